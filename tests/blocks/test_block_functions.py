"""Block functions: coverage in any metric, functions written in Python, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import group_problems, points
from hypothesis import given
from hypothesis import strategies as st

from structot.concave import PiecewiseLinear, Sqrt, Truncation
from structot.structures import Coverage, Groups, Modular

Array = np.ndarray

# -------------------------------------------------------------------------------------- coverage


def simplex_projection(z: Array, total: float) -> Array:
    """argmin Σ (K - z)² over K >= 0, ΣK = total, by bisection on the multiplier."""
    low, high = z.min() - total, z.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(z - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(z - high, 0)


def test_coverage_projects_onto_a_simplex_per_block() -> None:
    rng = np.random.default_rng(9)
    M = rng.uniform(0, 2, (4, 6))
    M[0, 0], M[1, 5] = 0.0, np.inf
    F = Coverage([0, 0, 1, 1], [0, 0, 0, 1, 1, 1], weights=[[1.0, 0.0], [0.5, 2.0]]).bind(M)
    Z = rng.normal(0.3, 1, M.shape)
    plain, weighted = F.project(Z), F.project(Z, "cost")
    for i, j, price in ((0, 0, 1.0), (0, 1, 0.0), (1, 0, 0.5), (1, 1, 2.0)):
        block = np.ix_([2 * i, 2 * i + 1], [3 * j, 3 * j + 1, 3 * j + 2])
        z = Z[block].ravel()
        ok = np.isfinite(M[block]).ravel()
        expected = simplex_projection(z[ok], price)
        assert plain[block].ravel()[ok] == pytest.approx(expected, abs=1e-12)
        assert weighted[block].ravel()[ok] == pytest.approx(expected, abs=1e-12)
        entropic = F.project(np.abs(Z), "entropy")[block].ravel()[ok]
        assert entropic == pytest.approx(price * np.abs(z[ok]) / np.abs(z[ok]).sum(), abs=1e-13)


@pytest.mark.kernels
@given(data=st.data())
def test_coverage_prox(data: st.DataObject) -> None:
    problem = data.draw(group_problems())
    V, rho = data.draw(points(problem)), data.draw(st.sampled_from([0.5, 3.0]))
    F = Coverage(problem.rows, problem.cols, weights=0.8).bind(problem.M)
    X = F.prox(V, rho)
    K = np.where(problem.allowed, rho * (V - X), 0.0)
    # Optimal: K in B(F), the product of simplices of size 0.8, and <K, X> = f(X).
    for k in np.unique(problem.rows):
        for l in np.unique(problem.cols):
            block = np.ix_(problem.rows == k, problem.cols == l)
            if problem.allowed[block].any():
                assert K[block].min() >= -1e-11
                assert K[block].sum() == pytest.approx(0.8, abs=1e-11)
                top = X[block][problem.allowed[block]].max()
                assert (K * X)[block].sum() == pytest.approx(0.8 * top, abs=1e-10)


# ---------------------------------------------------------------------------------- user-written


def test_python_functions_equal_the_built_in_ones() -> None:
    rng = np.random.default_rng(10)
    M = rng.uniform(0, 2, (6, 8))
    M[0, 0], M[3, 3] = 0.0, np.inf
    labels = [0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 2, 2, 2]
    V, Z = rng.normal(size=M.shape), rng.uniform(0.1, 1, M.shape)
    pairs = [
        (lambda x: min(x, 1.5), Truncation(1.5)),
        (lambda x: 0.75 * x + 0.25 * np.minimum(x, 2.0), PiecewiseLinear([2.0], [1.0, 0.75])),
        (np.sqrt, Sqrt()),
    ]
    for python, built_in in pairs:
        for units in ("cost", "block"):
            slow, fast = (Groups(*labels, g, units=units).bind(M) for g in (python, built_in))
            assert slow.extension(np.where(np.isfinite(M), Z, 0)) == pytest.approx(
                fast.extension(np.where(np.isfinite(M), Z, 0)), rel=1e-12
            )
            assert slow.greedy(V) == pytest.approx(fast.greedy(V), abs=1e-7)
            assert slow.prox(V, 0.7) == pytest.approx(fast.prox(V, 0.7), abs=1e-7)
            cut = slow.prox(V, 0.7, nonnegative=True)
            assert cut == pytest.approx(fast.prox(V, 0.7, nonnegative=True), abs=1e-7)
            for metric in ("euclidean", "cost", "entropy"):
                ours = slow.project(Z, metric)
                assert ours == pytest.approx(fast.project(Z, metric), abs=1e-7)
            assert slow.minimize(V).value == pytest.approx(fast.minimize(V).value, abs=1e-7)


def test_scalings_of_python_functions() -> None:
    M = np.arange(1.0, 7.0).reshape(2, 3)
    F = (3.0 * Groups([0, 0], [0, 0, 1], lambda x: x**0.5, units="cost")).bind(M)
    G = (3.0 * Groups([0, 0], [0, 0, 1], Sqrt(), units="cost")).bind(M)
    V = np.array([[1.0, 2.0, 0.0], [0.5, 0.1, 4.0]])
    assert F.prox(V) == pytest.approx(G.prox(V), abs=1e-9)
    assert F.greedy(V) == pytest.approx(G.greedy(V), abs=1e-9)


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda F: F.project(np.ones((2, 2)), "manhattan"), "metric must be one of .*'manhattan'"),
        (lambda F: F.project(np.ones((2, 2)), "euclid"), "Did you mean 'euclidean'"),
        (lambda F: F.project(np.ones((2, 3))), r"Z has shape \(2, 3\).*\(2, 2\)"),
        (lambda F: F.project(np.array([[1.0, np.nan], [0, 0]])), r"Z is NaN at \(0, 1\)"),
        (lambda F: F.project(np.array([[1.0, np.inf], [0, 0]])), "Z must be finite"),
        (lambda F: F.project(np.zeros((2, 2)), "entropy"), "Z must be positive .*entropy"),
        (lambda F: F.prox(np.ones(4)), r"V must have 2 dimension.*\(4,\)"),
        (lambda F: F.prox(np.ones((2, 2)), 0.0), "rho must be positive"),
        (lambda F: F.prox(np.ones((2, 2)), np.nan), "rho is NaN"),
        (lambda F: F.minimize(np.ones((1, 2))), r"shift has shape \(1, 2\)"),
        (lambda F: F.greedy(np.ones((1, 2))), r"P has shape \(1, 2\)"),
        (lambda F: F.value(np.ones((1, 2), bool)), r"mask has shape \(1, 2\)"),
        (lambda F: F.excess(np.ones(2)), "K must have 2 dimension"),
    ],
)
@pytest.mark.parametrize("linear", [False, True])
def test_bad_input(call, message: str, linear: bool) -> None:
    structure = Groups([0, 0], [0, 0])
    if linear:
        structure = Modular() + structure
    if linear and "positive .*entropy" in message:
        message = "BoundCost has no entropic projection"
    with pytest.raises(ValueError, match=message):
        call(structure.bind(np.ones((2, 2))))


def test_presorted_blocks_are_projected_like_others() -> None:
    """Blocks of a thousand pairs and more, with ties: to the last bit, whatever sorts them."""
    rng = np.random.default_rng(4)
    M, u = rng.integers(1, 4, (60, 50)).astype(float), rng.integers(0, 3, 60).astype(float)
    F = Groups(np.arange(60) % 2, np.zeros(50, int), Sqrt()).bind(M)
    v = rng.integers(0, 3, 50).astype(float)
    expected = F.project(np.add.outer(u, v), "cost")
    np.testing.assert_array_equal(F.project_potentials(u, v), expected)
