"""Lovász extension, greedy vertices, minimisation and sums, against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import (
    FAMILIES,
    GroupProblem,
    Table,
    descent,
    excess,
    extension,
    group_problems,
    is_submodular,
    largest,
    minimum,
    points,
    tabulate,
    vertices,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from structot import submodular
from structot.concave import Sqrt, Truncation
from structot.structures import Coverage, Groups, Modular
from structot.submodular import BoundCost, Oracle, Submodular

Array = np.ndarray


def clear(problem: GroupProblem, P: Array) -> Array:
    """P without mass on forbidden pairs."""
    return np.where(problem.allowed, P, 0.0)


# ---------------------------------------------------------------------------- value and extension


@pytest.mark.kernels
@settings(max_examples=50)
@given(problem=group_problems(max_edges=6))
def test_value_and_extension_of_every_indicator(problem: GroupProblem) -> None:
    for mask, value in zip(problem.table.masks(problem.M.shape), problem.table.values, strict=True):
        assert problem.F.value(mask) == pytest.approx(value, rel=1e-13, abs=1e-300)
        assert problem.F.extension(mask.astype(float)) == pytest.approx(value, rel=1e-12)


@settings(max_examples=30)
@given(problem=group_problems(max_edges=6))
def test_group_functions_are_submodular_and_monotone(problem: GroupProblem) -> None:
    table = tabulate(problem.F.value, problem.allowed)
    assert is_submodular(table)
    for k in range(table.edges.size):
        without = np.flatnonzero(~(np.arange(table.values.size) >> k) & 1)
        assert (table.values[without | 1 << k] >= table.values[without] - 1e-12).all()


@pytest.mark.kernels
@given(data=st.data())
def test_extension_is_the_maximum_over_all_vertices(data: st.DataObject) -> None:
    problem = data.draw(group_problems(max_edges=6))
    P = clear(problem, data.draw(points(problem)))
    expected = (vertices(problem.table) @ problem.table.flat(P)).max()
    assert submodular.extension(problem.F, P) == pytest.approx(expected, abs=1e-11)


def test_extension_is_the_linear_program_over_all_subsets() -> None:
    rng = np.random.default_rng(0)
    for size, g in zip((7, 8, 9, 10, 11, 12, 8, 9), FAMILIES, strict=True):
        M = rng.uniform(0, 2, (1, size))
        M[0, 0] = 0.0
        rows, cols = np.zeros(1, int), np.arange(size) % 2
        F = Groups(rows, cols, g).bind(M)
        table = tabulate(F.value, np.ones(M.shape, bool))
        P = rng.normal(size=M.shape)
        assert F.extension(P) == pytest.approx(largest(table, P), abs=1e-8)
        assert F.extension(P) == pytest.approx(extension(table, P), abs=1e-11)


@given(data=st.data())
def test_extension_is_convex_and_homogeneous(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    P, Q = (clear(problem, data.draw(points(problem))) for _ in range(2))
    f = problem.F.extension
    assert f(2.5 * P) == pytest.approx(2.5 * f(P), abs=1e-11)
    assert f(P + Q) <= f(P) + f(Q) + 1e-11
    whole = clear(problem, np.ones(P.shape))
    assert f(P + whole) == pytest.approx(f(P) + problem.table.values[-1], abs=1e-11)


@pytest.mark.kernels
@given(data=st.data())
def test_greedy_point_is_a_vertex_that_attains_the_extension(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    P = clear(problem, data.draw(points(problem)))
    K = submodular.greedy(problem.F, P)
    assert excess(problem.table, K) <= 1e-12 * problem.scale
    assert descent(problem.table, K, -P) == pytest.approx(0.0, abs=1e-11)
    assert np.isposinf(K[~problem.allowed]).all()


def test_mass_on_a_forbidden_pair_costs_infinity() -> None:
    M = np.array([[1.0, np.inf], [2.0, 3.0]])
    for structure in (
        Groups([0, 0], [0, 0]),
        Modular(),
        Coverage([0, 0]),
        Modular() + Groups([0, 0], [0, 0]),
        0.0 * Groups([0, 0]),
    ):
        F = structure.bind(M)
        assert F.extension(np.full((2, 2), 0.25)) == np.inf
        assert F.value(np.ones((2, 2), bool)) == np.inf
        P = np.array([[0.5, 0.0], [0.2, 0.3]])
        assert np.isfinite(F.extension(P))
        assert (F.greedy(P) == np.inf).tolist() == [[False, True], [False, False]]
        assert F.prox(P)[0, 1] == 0.0
        assert not F.minimize(np.full((2, 2), -100.0)).mask[0, 1]


# ----------------------------------------------------------------------------------- minimisation


@pytest.mark.kernels
@given(data=st.data())
def test_minimize_against_all_subsets(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    shift = data.draw(points(problem))
    found = submodular.minimize(problem.F, shift)
    best = minimum(problem.table, shift)
    assert found.value == pytest.approx(best, abs=1e-12)
    assert not found.mask[~problem.allowed].any()
    attained = problem.F.value(found.mask) + shift[found.mask].sum()
    assert attained == pytest.approx(best, abs=1e-11)


@settings(max_examples=40)
@given(data=st.data())
def test_minimize_through_the_min_norm_point(data: st.DataObject) -> None:
    problem = data.draw(group_problems(max_edges=6))
    slow = Oracle(problem.F.value, problem.M.shape)
    slow.allowed = problem.allowed
    shift = data.draw(points(problem))
    found = slow.minimize(shift)
    assert found.value == pytest.approx(minimum(problem.table, shift), abs=1e-7)
    assert problem.F.value(found.mask) + shift[found.mask].sum() == pytest.approx(found.value)


def cut(S: Array) -> float:
    """Of a cycle of pairs: not monotone."""
    return float((S.ravel() != np.roll(S.ravel(), 1)).sum())


def test_minimize_a_function_that_is_not_monotone() -> None:
    table = tabulate(cut, np.ones((2, 4), bool))
    rng = np.random.default_rng(2)
    for _ in range(20):
        shift = rng.normal(0, 1.5, (2, 4))
        found = submodular.minimize(cut, shift)
        assert found.value == pytest.approx(minimum(table, shift), abs=1e-8)


def test_minimize_without_a_shift() -> None:
    F = Groups([0, 0], [0, 0]).bind(np.ones((2, 2)))
    sums = (np.ones((2, 2)), ()), (np.ones((2, 2)), F.layers), (None, 2 * F.layers)
    for G in (F, F.layers[0], *(BoundCost.of(C, layers) for C, layers in sums)):
        found = G.minimize()
        assert found.value == 0.0
        assert not found.mask.any()


# ---------------------------------------------------------------------------------- oracle, empty


def test_oracle_is_normalised() -> None:
    F = Oracle(lambda S: 7.0 + min(S.sum(), 2), (2, 2))
    assert F.value(np.zeros((2, 2), bool)) == 0.0
    assert F.extension(np.array([[1.0, 3.0], [2.0, 0.0]])) == 5.0
    assert (F.metric == 1).all()


def test_functions_take_lists_and_callables() -> None:
    F = lambda S: min(S.sum(), 1)  # noqa: E731
    assert submodular.extension(F, [[0.2, 0.5]]) == 0.5
    assert submodular.greedy(F, [[0.2, 0.5]]).tolist() == [[0.0, 1.0]]
    assert submodular.minimize(F, [[-0.8, -0.5, 0.1]]).mask.tolist() == [[True, True, False]]


# ------------------------------------------------------------------------------- sums and scalings


def combinations() -> list:
    rows, cols = [0, 0, 1], [0, 1]
    groups, other = Groups(rows, cols, Sqrt()), Groups([0, 1, 0], [0, 0], Truncation(1.0))
    return [
        2.5 * groups,
        Modular() + groups,
        groups + other,
        Modular() + Coverage(rows, cols, weights=0.7),
        0.5 * Modular() + 2.0 * groups + 0.25 * (other + Coverage([0, 0, 0], [0, 0])),
        0.0 * groups + other,
        Modular(np.full((3, 2), 0.3)) + 0.0 * other,
        0.0 * groups,
        3.0 * (2.0 * groups),
    ]


@pytest.mark.parametrize("structure", combinations(), ids=repr)
@pytest.mark.parametrize("forbid", [False, True])
def test_combinations_against_the_oracle(structure, forbid: bool) -> None:
    rng = np.random.default_rng(3)
    M = rng.uniform(0.2, 2, (3, 2))
    M[1, 1] = 0.0
    if forbid:
        M[0, 1] = np.inf
    F = structure.bind(M)
    parts = [(c, t.bind(M)) for c, t in structure.terms]
    allowed = np.isfinite(M)
    table = tabulate(lambda S: sum(c * part.value(S) for c, part in parts), allowed)
    slow = Oracle(F.value, M.shape)
    slow.allowed = allowed
    assert tabulate(F.value, allowed).values == pytest.approx(table.values, abs=1e-13)
    for _ in range(3):
        P = np.where(allowed, rng.normal(size=M.shape), 0.0)
        assert F.extension(P) == pytest.approx(extension(table, P), abs=1e-12)
        assert excess(table, F.greedy(P)) <= 1e-12
        assert F.minimize(P).value == pytest.approx(minimum(table, P), abs=1e-7)
        K = F.project(P)
        assert excess(table, K) <= 1e-9
        assert descent(table, K, np.where(allowed, K - P, 0.0)) <= 1e-6
        assert K[allowed] == pytest.approx(slow.project(P)[allowed], abs=1e-6)
        own = F.project(P, "cost")
        assert descent(table, own, np.where(allowed, (own - P) / F.metric, 0.0)) <= 1e-6
        X = F.prox(P, 0.8)
        K = np.where(allowed, 0.8 * F.metric * (P - X), 0.0)
        assert excess(table, K) <= 1e-6
        assert float((K * X).sum()) == pytest.approx(extension(table, X), abs=1e-5)


def test_linear_part_may_forbid_pairs_of_its_own() -> None:
    """What Modular(cost) forbids is no edge of the other terms either."""
    M = np.array([[1.0, 0.5, 2.0], [0.3, 1.0, 0.7]])
    C = np.array([[0.1, np.inf, 0.2], [0.4, 0.0, 0.6]])
    allowed = np.isfinite(C)
    rng = np.random.default_rng(4)
    for layers in (
        Groups([0, 0], [0, 0, 0], Sqrt()),
        Coverage([0, 0], [0, 0, 0]) + Groups([0, 1], [0, 0, 0]),
    ):
        F = (Modular(C) + layers).bind(M)
        table = tabulate(F.value, allowed)
        Z = rng.normal(size=M.shape)
        K = F.project(Z)
        assert K[0, 1] == np.inf
        assert excess(table, K) <= 1e-9
        assert descent(table, K, np.where(allowed, K - Z, 0.0)) <= 1e-6
        assert excess(table, F.greedy(Z)) <= 1e-12
        assert F.minimize(5 * Z).value == pytest.approx(minimum(table, 5 * Z), abs=1e-8)
        assert F.value(~allowed) == np.inf
        assert F.excess(K) <= 1e-9


def test_sums_of_one_layer_keep_the_fast_prox() -> None:
    """An added linear term C only shifts V by -C/(rho d)."""
    rng = np.random.default_rng(5)
    M, C, V = rng.uniform(0.1, 1, (3, 4, 5))
    layer = Groups([0, 0, 1, 1], [0, 0, 0, 1, 1])
    F, G = (Modular(C) + layer).bind(M), layer.bind(M)
    assert (F.metric == M).all()
    np.testing.assert_allclose(F.prox(V, 2.0), G.prox(V - C / (2.0 * M), 2.0), atol=1e-12)


def test_generic_functions_have_no_entropic_projection() -> None:
    with pytest.raises(ValueError, match="Oracle has no entropic projection; use metric="):
        Oracle(cut, (2, 2)).project(np.ones((2, 2)), "entropy")


def test_linear_function() -> None:
    C = np.array([[1.0, np.inf], [0.0, 2.0]])
    F: Submodular = BoundCost.of(C, [])
    assert F.value(np.array([[True, False], [True, True]])) == 3.0
    V = np.array([[1.0, 5.0], [2.0, 3.0]])
    assert F.prox(V, 2.0).tolist() == [[0.5, 0.0], [2.0, 2.0]]
    assert F.prox(V - 3, 2.0, nonnegative=True).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    found = F.minimize(-V)
    assert found.value == -3.0
    assert found.mask.tolist() == [[False, False], [True, True]]
    assert F.excess(C) == 0.0


def test_brute_force_vertices_against_the_linear_program() -> None:
    table = tabulate(cut, np.ones((1, 5), bool))
    assert is_submodular(table)
    rng = np.random.default_rng(6)
    for P in rng.normal(size=(3, 1, 5)):
        best = (vertices(table) @ P.ravel()).max()
        assert largest(table, P) == pytest.approx(best)
        assert extension(table, P) == pytest.approx(best)
    assert not is_submodular(Table(np.arange(2), np.array([0.0, 1.0, 1.0, 3.0])))
