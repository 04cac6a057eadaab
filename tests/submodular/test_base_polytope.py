"""Projections, prox and membership for base polytopes, against brute force over all subsets."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import (
    FAMILIES,
    GroupProblem,
    Table,
    descent,
    excess,
    group_problem,
    group_problems,
    members,
    points,
    vertices,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, minimize

from structot import submodular
from structot.concave import Linear, Sqrt, ThresholdSqrt, Truncation
from structot.structures import Groups, Modular
from structot.submodular import Oracle, Submodular, min_norm_point

Array = np.ndarray


def slack(problem: GroupProblem, point: Array) -> float:
    """Rounding of inner products of this size."""
    return 1e-9 * (1 + problem.scale + np.abs(point).sum()) ** 2


def gradient(F: Submodular, K: Array, Z: Array, metric: str) -> Array:
    """Of half the distance of K to Z, 0 on forbidden pairs."""
    edges = F._edges()
    out = np.zeros(F.shape)
    if metric == "entropy":
        out[edges] = np.log(K[edges] / Z[edges])
    else:
        out[edges] = (K - Z)[edges] / (F.metric[edges] if metric == "cost" else 1.0)
    return out


# ---------------------------------------------------------------------------------- projections


@pytest.mark.kernels
@pytest.mark.parametrize("metric", ["euclidean", "cost"])
@given(data=st.data())
def test_projection_satisfies_the_variational_inequality(metric: str, data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    Z = data.draw(points(problem))
    K = submodular.project(problem.F, Z, metric)
    assert np.isposinf(K[~problem.allowed]).all()
    # In the metric "cost" a zero-cost edge has a small weight, and errors of K are divided by it.
    assert excess(problem.table, K) <= 1e-12 * (problem.scale + np.abs(Z).sum())
    assert descent(problem.table, K, gradient(problem.F, K, Z, metric)) <= slack(problem, Z)


@pytest.mark.kernels
@given(data=st.data())
def test_entropic_projection_satisfies_the_variational_inequality(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    Z = data.draw(points(problem, 0.01, 4.0))
    K = submodular.project(problem.F, Z, "entropy")
    assert excess(problem.table, K) <= 1e-12 * problem.scale
    # K is 0 only on edges that cost nothing even alone: there B(F) offers nothing else.
    k = problem.table.flat(K)
    alone = problem.table.values[1 << np.arange(k.size)]
    assert ((k > 0) == (alone > 0)).all()
    slope = gradient(problem.F, np.where(K > 0, K, Z), Z, "entropy")
    assert descent(problem.table, K, slope) <= slack(problem, Z)


@pytest.mark.parametrize("metric", ["euclidean", "cost", "entropy"])
def test_projection_beats_every_vertex_of_six_edges(metric: str) -> None:
    rng = np.random.default_rng(1)
    for g in FAMILIES:
        problem = group_problem(
            rng.uniform(0.2, 2, (2, 3)), np.zeros(2, int), np.array([0, 0, 1]), g
        )
        Z = rng.uniform(0.1, 2, (2, 3))
        K = problem.F.project(Z, metric)
        slope = gradient(problem.F, K, Z, metric).ravel()
        assert ((vertices(problem.table) - K.ravel()) @ slope >= -1e-12).all()


@pytest.mark.parametrize("metric", ["euclidean", "cost"])
def test_projection_leaves_points_of_the_polytope_alone(metric: str) -> None:
    rng = np.random.default_rng(2)
    problem = group_problem(
        rng.uniform(0, 2, (3, 4)), np.array([0, 0, 1]), np.array([0, 1, 1, 1]), Sqrt()
    )
    inside = np.mean([problem.F.greedy(rng.normal(size=(3, 4))) for _ in range(5)], axis=0)
    assert problem.F.project(inside, metric) == pytest.approx(inside, abs=1e-13)


def test_twelve_edges() -> None:
    rng = np.random.default_rng(3)
    M = rng.uniform(0.1, 2, (3, 4))
    M[0, 1], M[2, 2] = 0.0, np.inf
    for g in FAMILIES:
        problem = group_problem(M, np.array([0, 0, 1]), np.array([0, 0, 0, 1]), g)
        Z = rng.normal(size=M.shape)
        for metric in ("euclidean", "cost"):
            K = problem.F.project(Z, metric)
            assert excess(problem.table, K) <= 1e-13 * problem.scale
            assert descent(problem.table, K, gradient(problem.F, K, Z, metric)) <= 1e-11


@pytest.mark.parametrize("metric", ["euclidean", "cost"])
@settings(max_examples=40)
@given(data=st.data())
def test_fast_projections_agree_with_the_min_norm_point(metric: str, data: st.DataObject) -> None:
    problem = data.draw(group_problems(max_edges=6))
    Z = data.draw(points(problem))
    weights = None if metric == "euclidean" else 1.0 / problem.F.metric
    slow = min_norm_point(problem.F, Z, weights=weights)
    fast = problem.F.project(Z, metric)
    edges = problem.allowed
    assert fast[edges] == pytest.approx(slow[edges], abs=1e-6 * (problem.scale + np.abs(Z).max()))


@pytest.mark.parametrize("metric", ["euclidean", "cost", "entropy"])
def test_modular_function_has_one_point(metric: str) -> None:
    rng = np.random.default_rng(4)
    M = rng.uniform(0.1, 2, (4, 3))
    Z = rng.uniform(0.1, 5, (4, 3))
    for structure in (
        Groups([0, 0, 1, 1], [0, 0, 1], Linear(), units="cost"),
        Groups([0, 0, 1, 1], [0, 0, 1], Truncation(np.inf), units="block"),
        Modular(),
        Groups(None, None, Linear(), units="cost"),
    ):
        F = structure.bind(M)
        assert F.project(Z, metric) == pytest.approx(M, rel=1e-12)
        assert F.greedy(Z) == pytest.approx(M, rel=1e-14)
        assert F.excess(M) <= 1e-12
        assert not submodular.contains(F, M + 0.01 * (Z - Z.mean()))


@pytest.mark.parametrize("metric", ["euclidean", "cost", "entropy"])
@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize(
    ("g", "units", "degree"),
    [(ThresholdSqrt(0.2), "block", 1.0), (Sqrt(), "cost", 0.5), (Linear(), "cost", 1.0)],
)
def test_costs_of_any_size(metric: str, scale: float, g, units: str, degree: float) -> None:
    rng = np.random.default_rng(5)
    M = rng.uniform(0, 2, (4, 5))
    M[0, 0] = 0.0
    labels = [0, 0, 1, 1], [0, 0, 0, 1, 1]
    plain, scaled = (Groups(*labels, g, units=units).bind(c * M) for c in (1.0, scale))
    Z = rng.uniform(0.1, 1, M.shape)
    factor = scale**degree
    P = rng.uniform(size=M.shape)
    assert scaled.extension(P) == pytest.approx(factor * plain.extension(P), rel=1e-12)
    assert scaled.greedy(P) == pytest.approx(factor * plain.greedy(P), rel=1e-12)
    K = scaled.project(factor * Z, metric)
    # The weights of the metric scale all alike, so that the projection only scales with F.
    expected = factor * plain.project(Z, metric)
    np.testing.assert_allclose(K, expected, rtol=1e-9, atol=1e-15 * factor)
    assert submodular.contains(scaled, K)
    assert not submodular.contains(scaled, 1.001 * K)


@pytest.mark.parametrize("metric", ["euclidean", "cost", "entropy"])
def test_projection_does_not_depend_on_the_order_of_points(metric: str) -> None:
    rng = np.random.default_rng(6)
    M = rng.uniform(0.1, 2, (5, 6))
    rows, cols = np.array([0, 1, 0, 1, 1]), np.array([2, 0, 1, 0, 1, 2])
    Z = rng.uniform(0.1, 2, M.shape)
    i, j = rng.permutation(5), rng.permutation(6)
    K = Groups(rows, cols).bind(M).project(Z, metric)
    moved = Groups(rows[i], cols[j]).bind(M[i][:, j]).project(Z[i][:, j], metric)
    assert moved == pytest.approx(K[i][:, j], abs=1e-13)
    turned = Groups(cols, rows).bind(M.T).project(Z.T, metric)
    np.testing.assert_allclose(turned.T, K, rtol=0, atol=1e-13)


# ------------------------------------------------------------------------------------------ prox


@pytest.mark.kernels
@given(data=st.data(), rho=st.sampled_from([0.05, 1.0, 30.0]))
def test_moreau_identity(data: st.DataObject, rho: float) -> None:
    """V = prox(V) + projection(rho d V) / (rho d)."""
    problem = data.draw(group_problems())
    V = data.draw(points(problem))
    d = problem.F.metric
    X = submodular.prox(problem.F, V, rho)
    K = submodular.project(problem.F, rho * d * V, "cost")
    edges = problem.allowed
    assert (X[~edges] == 0).all()
    assert (X + K / (rho * d))[edges] == pytest.approx(V[edges], abs=1e-12 * (1 + 1 / rho))
    # K is a subgradient of f at X: it attains the maximum that defines f(X).
    attained = float(X[edges] @ K[edges])
    assert problem.F.extension(X) == pytest.approx(attained, abs=slack(problem, V) * (1 + 1 / rho))


@settings(max_examples=40)
@given(data=st.data(), rho=st.sampled_from([0.3, 4.0]))
def test_one_sort_prox_agrees_with_the_oracle(data: st.DataObject, rho: float) -> None:
    """The same F as a Python function, in the metric of the costs, through the min-norm point."""
    problem = data.draw(group_problems(max_edges=6))

    class Slow(Oracle):
        metric = problem.F.metric

    slow = Slow(problem.F.value, problem.M.shape)
    slow.allowed = problem.allowed
    V = data.draw(points(problem))
    assert problem.F.prox(V, rho) == pytest.approx(slow.prox(V, rho), abs=1e-6 / rho)


def generic_optimum(problem: GroupProblem, V: Array, rho: float) -> float:
    """min_{X >= 0} f(X) + rho/2 Σ d (X - V)² by a generic solver, with f(X) = max over vertices."""
    d, v = problem.table.flat(problem.F.metric), problem.table.flat(V)
    corners = np.unique(np.round(vertices(problem.table), 12), axis=0)
    # Epigraph form: t >= <K, X> for each vertex K, X >= 0.
    answer = minimize(
        lambda y: y[0] + rho / 2 * (d * (y[1:] - v) ** 2).sum(),
        np.append(np.abs(corners).sum() + 10, np.maximum(v, 0.0)),
        jac=lambda y: np.append(1.0, rho * d * (y[1:] - v)),
        constraints={
            "type": "ineq",
            "fun": lambda y: y[0] - corners @ y[1:],
            "jac": lambda y: np.hstack([np.ones((len(corners), 1)), -corners]),
        },
        bounds=[(None, None)] + [(0, None)] * v.size,
        method="SLSQP",
        options={"ftol": 1e-11, "maxiter": 500},
    )
    # Status 8: no descent left at this accuracy, also an end. The caller compares the value.
    assert answer.status in (0, 8), answer.message
    return float(answer.fun)


@pytest.mark.parametrize("g", FAMILIES, ids=repr)
def test_nonnegative_prox_is_the_constrained_optimum(g) -> None:
    rng = np.random.default_rng(7)
    M = rng.uniform(0.2, 2, (2, 2))
    problem = group_problem(M, np.zeros(2, int), np.zeros(2, int), g)
    for rho in (0.7, 3.0):
        V = rng.normal(0.6, 1.0, M.shape)
        X = problem.F.prox(V, rho, nonnegative=True)
        assert (X >= 0).all()
        ours = problem.F.extension(X) + rho / 2 * (M * (X - V) ** 2).sum()
        assert ours == pytest.approx(generic_optimum(problem, V, rho), abs=1e-7)


@pytest.mark.kernels
@given(data=st.data(), rho=st.sampled_from([0.05, 1.0, 30.0]))
def test_nonnegative_prox_is_cut_at_zero(data: st.DataObject, rho: float) -> None:
    problem = data.draw(group_problems())
    V = data.draw(points(problem))
    free, cut = problem.F.prox(V, rho), problem.F.prox(V, rho, nonnegative=True)
    assert cut == pytest.approx(np.maximum(free, 0.0), abs=1e-12 * (1 + 1 / rho))
    # Cut or not, the point K = rho d (V - X) stays in {K(A) <= F(A) for all A}.
    K = problem.table.flat(rho * problem.F.metric * (V - cut))
    room = problem.table.values - members(K.size) @ K
    assert room.min() >= -1e-11 * (problem.scale + rho * np.abs(V).sum())


def test_zero_cost_edges_are_exact() -> None:
    M = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0]])
    F = Groups([0, 0], [0, 0, 0], Sqrt(), units="cost").bind(M)
    V = np.array([[0.3, 1.0, -1.0], [0.5, -0.7, 0.2]])
    X = F.prox(V, 2.0, nonnegative=True)
    assert X[0, 0] == 0.3
    assert X[1, 1] == 0.0
    assert F.greedy(V)[M == 0].tolist() == [0.0, 0.0]
    for metric in ("euclidean", "cost"):
        assert F.project(V, metric)[M == 0] == pytest.approx(0.0, abs=1e-15)
    alone = Groups([0, 0], [0, 0], Sqrt(), units="cost").bind(np.zeros((2, 2)))
    assert alone.value(np.ones((2, 2), bool)) == 0.0
    assert alone.prox(V[:, :2]) == pytest.approx(V[:, :2])


def test_isotonic_regression_of_scipy_gives_the_prox() -> None:
    rng = np.random.default_rng(8)
    M, V, rho = rng.uniform(0.1, 2, (6, 7)), rng.normal(size=(6, 7)), 0.8
    g = ThresholdSqrt(1.0)
    order = np.argsort(-V.ravel())
    w, v = M.ravel()[order], V.ravel()[order]
    W = np.cumsum(w)
    steps = np.diff(g(W), prepend=0.0) / w
    X = np.empty(42)
    X[order] = isotonic_regression(v - steps / rho, weights=w, increasing=False).x
    F = Groups(np.zeros(6), np.zeros(7), g, units="cost").bind(M)
    assert F.prox(V, rho).ravel() == pytest.approx(X, abs=1e-12)


# ------------------------------------------------------------------------------------ membership


@pytest.mark.kernels
@given(data=st.data())
def test_excess_against_all_subsets(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    K = data.draw(points(problem))
    tolerance = 1e-12 * (problem.scale + np.abs(K).sum())
    assert submodular.excess(problem.F, K) == pytest.approx(excess(problem.table, K), abs=tolerance)
    vertex = problem.F.greedy(K)
    assert submodular.contains(problem.F, vertex)
    assert submodular.excess(problem.F, vertex) <= tolerance


def test_excess_of_known_points() -> None:
    F = lambda S: min(S.sum(), 1)  # noqa: E731
    assert submodular.excess(F, [[0.5, 0.75]]) == pytest.approx(0.25)
    assert submodular.excess(F, [[0.25, 0.5]]) == pytest.approx(0.25)
    assert submodular.excess(F, [[1.5, -0.5]]) == pytest.approx(0.5)
    assert submodular.contains(F, [[0.25, 0.75]])
    assert not submodular.contains(F, [[0.25, 0.7500001]])
    assert submodular.contains(F, [[0.25, 0.7500001]], tol=1e-6)


def test_functions_take_lists_and_callables() -> None:
    F = lambda S: min(S.sum(), 1)  # noqa: E731
    assert submodular.project(F, [[0.2, 0.4]]) == pytest.approx(np.array([[0.4, 0.6]]))
    assert submodular.prox(F, [[3.0, 1.0]], 1.0) == pytest.approx(np.array([[2.0, 1.0]]))
    assert submodular.prox(F, [[3.0, -1.0]], 1.0, nonnegative=True).tolist() == [[2.0, 0.0]]


def test_table_of_known_function() -> None:
    """The brute force itself, on min(|S|, 1) over two edges."""
    table = Table(np.arange(2), np.array([0.0, 1.0, 1.0, 1.0]))
    assert sorted(map(tuple, vertices(table))) == [(0.0, 1.0), (1.0, 0.0)]
    assert excess(table, np.array([[0.5, 0.75]])) == 0.25
