"""KL projection onto U(a, b): optimality, extreme range, zero weights, statuses."""

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import moved
from transport_reference import alternate_reference

from structot.transport import SinkhornStatus, emd, marginal_error, sinkhorn
from structot.transport import kernels as _kernels


def random_problem(seed, n, m, total=1.0):
    rng = np.random.default_rng(seed)
    M = moved(rng.random((n, m)))
    return M, total * rng.dirichlet(np.ones(n)), total * rng.dirichlet(np.ones(m))


def precise_sinkhorn(M, a, b, reg):
    """Entropic transport in extended precision: log domain, the regularisation halved in steps."""
    M, a, b = (x.astype(np.longdouble) for x in (M, a, b))
    g = np.zeros(b.size, np.longdouble)
    level = np.longdouble(M.max())
    while True:
        level = max(level / 2, np.longdouble(reg))
        for _ in range(20_000):
            x = (g - M) / level
            top = x.max(axis=1)
            f = level * (np.log(a) - top - np.log(np.exp(x - top[:, None]).sum(axis=1)))
            x = (f[:, None] - M) / level
            top = x.max(axis=0)
            g_next = level * (np.log(b) - top - np.log(np.exp(x - top).sum(axis=0)))
            step, g = np.abs(g_next - g).max(), g_next
            if step <= 1e-14 * level:
                break
        if level == reg:
            return np.exp((f[:, None] + g - M) / level)


@pytest.mark.kernels
@pytest.mark.parametrize("reg", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (7, 1), (9, 13)])
def test_kernel_agrees_with_the_reference(reg, shape):
    M, a, b = random_problem(3, *shape)
    f, g = np.zeros(shape[0]), np.zeros(shape[1])
    # No error is below -1: both make all 60 steps, whatever the last bits of the error.
    plan, log_plan, error, n_iter, _ = _kernels.alternate(-M / reg, a, b, f, g, -1.0, 60)
    P, f_ref, g_ref, n_ref = alternate_reference(-M / reg, a, b, 0.0 * b, -1.0, 60)
    assert n_iter == n_ref == 60
    np.testing.assert_allclose(plan, P, rtol=1e-10, atol=1e-200)
    np.testing.assert_allclose(f[:, None] + g, f_ref[:, None] + g_ref, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(log_plan, f[:, None] + g - M / reg, rtol=1e-13, atol=1e-12)
    assert error == pytest.approx(marginal_error(plan, a, b), abs=1e-15)
    # With a tolerance it stops at the first step that meets it, or after all of them.
    _, _, error, n_iter, _ = _kernels.alternate(-M / reg, a, b, 0.0 * f, 0.0 * g, 1e-9, 60)
    assert error <= 1e-9 or n_iter == 60


@pytest.mark.kernels
def test_vectorised_exponential_agrees_with_the_library():
    x = -np.concatenate([[0.0, 1e-300, 1e-17], np.geomspace(1e-9, 599.9, 5000)])
    y = x.copy()
    _kernels.exponentiate(y, np.empty(y.size, np.int64))
    np.testing.assert_allclose(y, np.exp(x), rtol=5e-16)
    below = np.array([-601.0, -1e300, -np.inf])
    _kernels.exponentiate(below, np.empty(3, np.int64))
    assert ((below > 0) & (below < _kernels._NOTHING)).all()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 12), st.floats(0.05, 5.0))
def test_answer_is_a_scaling_with_the_right_marginals(seed, n, m, reg):
    # Both together characterise the projection.
    M, a, b = random_problem(seed, n, m)
    a, b = np.maximum(a, 1e-3), np.maximum(b, 1e-3)
    b *= a.sum() / b.sum()
    result = sinkhorn(-M / reg, a, b, tol=1e-11, max_iter=100_000)
    assert result.converged
    assert result.marginal_error <= 2e-11
    np.testing.assert_allclose(result.plan.sum(axis=1), a, rtol=1e-13)
    f, g = result.potentials
    np.testing.assert_allclose(result.plan, np.exp(f[:, None] + g - M / reg), rtol=1e-11)
    np.testing.assert_allclose(np.exp(result.log_plan), result.plan, rtol=1e-11)


def test_agrees_with_pot():
    M, a, b = random_problem(0, 20, 30)
    expected = ot.sinkhorn(a, b, M, 0.05, method="sinkhorn_log", stopThr=1e-13, numItermax=10_000)
    result = sinkhorn(-M / 0.05, a, b, tol=1e-13, max_iter=10_000)
    np.testing.assert_allclose(result.plan, expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_extreme_range_against_extended_precision(seed):
    M, a, b = random_problem(seed, 6, 6)
    reg = 1e-4 * M.mean()
    result = sinkhorn(-M / reg, a, b, tol=1e-13, max_iter=3_000_000)
    assert result.converged
    expected = precise_sinkhorn(M, a, b, reg).astype(float)
    np.testing.assert_allclose(result.plan, expected, rtol=1e-8, atol=1e-11)
    assert np.isfinite(result.log_plan).all()
    assert result.plan.min() < 1e-300
    assert np.vdot(result.plan, M) == pytest.approx(emd(M, a, b).value, rel=1e-4)


def test_many_absorptions_do_not_change_the_iterates():
    M, a, b = random_problem(5, 8, 11)
    L = -M / 5e-4
    result = sinkhorn(L, a, b, tol=0.0, max_iter=400)
    P = alternate_reference(L, a, b, 0.0 * b, 0.0, 400)[0]
    np.testing.assert_allclose(result.plan, P, rtol=1e-8, atol=1e-15)


def test_kernel_with_a_huge_diagonal_scaling_gives_the_same_plan():
    # exp(L) and diag(x) exp(L) diag(y) have the same projection, whatever x and y.
    M, a, b = random_problem(1, 10, 10)
    rng = np.random.default_rng(1)
    x, y = 1e5 * rng.normal(size=10), 1e5 * rng.normal(size=10)
    plain = sinkhorn(-M / 0.1, a, b, tol=1e-12)
    moved = sinkhorn(-M / 0.1 + x[:, None] + y, a, b, tol=1e-12)
    np.testing.assert_allclose(moved.plan, plain.plan, rtol=1e-8)


def test_warm_start_needs_no_iteration():
    """A step never raises the error, and 1e-12 is far enough below 1e-9 for its rounding."""
    M, a, b = random_problem(2, 30, 40)
    cold = sinkhorn(-M / 0.05, a, b, tol=1e-12)
    warm = sinkhorn(-M / 0.05, a, b, tol=1e-9, init=cold.potentials)
    assert warm.n_iter <= 1
    np.testing.assert_allclose(warm.plan, cold.plan, rtol=1e-6)


@pytest.mark.parametrize("total", [1e-9, 3.0, 1e9])
def test_total_mass_only_scales_the_plan(total):
    M, a, b = random_problem(4, 7, 5)
    one, many = sinkhorn(-M / 0.1, a, b), sinkhorn(-M / 0.1, total * a, total * b)
    np.testing.assert_allclose(many.plan, total * one.plan, rtol=1e-9)
    assert many.marginal_error <= 1.1e-9


def test_zero_weights_give_zero_rows_and_finite_potentials():
    M, a, b = random_problem(6, 6, 7)
    a[2], b[[0, 5]] = 0.0, 0.0
    a, b = a / a.sum(), b / b.sum()
    result = sinkhorn(-M / 0.1, a, b, tol=1e-12)
    small = sinkhorn(-np.delete(np.delete(M, 2, 0), [0, 5], 1) / 0.1, a[a > 0], b[b > 0], tol=1e-12)
    assert (result.plan[2] == 0).all()
    assert (result.plan[:, [0, 5]] == 0).all()
    assert np.isneginf(result.log_plan[2]).all()
    np.testing.assert_allclose(result.plan[a > 0][:, b > 0], small.plan, rtol=1e-12)
    f, g = result.potentials
    assert np.isfinite(f).all()
    assert np.isfinite(g).all()
    np.testing.assert_allclose(
        np.exp(f[:, None] + g - M / 0.1), result.plan, rtol=1e-9, atol=1e-300
    )
    again = sinkhorn(result.log_plan, a, b)  # the next step of a mirror method: -inf rows
    assert again.converged
    np.testing.assert_allclose(again.plan, result.plan, rtol=1e-9)
    empty = sinkhorn(-M, np.zeros(6), np.zeros(7))
    assert empty.converged
    assert not empty.plan.any()


def test_forbidden_pairs_stay_empty():
    M, a, b = random_problem(7, 8, 8)
    L = -M / 0.1
    L[np.arange(8), np.arange(8)] = -np.inf
    a, b = np.full(8, 1 / 8), (np.full(8, 1 / 8) + b) / 2
    result = sinkhorn(L, a, b, tol=1e-12)
    assert result.converged
    assert (np.diag(result.plan) == 0).all()
    assert np.isneginf(np.diag(result.log_plan)).all()
    f, g = result.potentials
    np.testing.assert_allclose(result.plan, np.exp(f[:, None] + g + L), rtol=1e-11)


def test_statuses():
    a = np.array([0.5, 0.5])
    L = np.zeros((2, 2))
    row, column = L.copy(), L.copy()
    row[0], column[:, 1] = -np.inf, -np.inf
    for kernel in (row, column):
        result = sinkhorn(kernel, a, a)
        assert result.status is SinkhornStatus.INFEASIBLE
        assert not result.plan.any()
        assert result.marginal_error == 2.0
    # The only finite entry of row 0 meets a column without mass.
    only = np.array([[0.0, -np.inf, -np.inf], [0.0, 0.0, 0.0]])
    status = sinkhorn(only, a, np.array([0.0, 0.5, 0.5])).status
    assert status is SinkhornStatus.INFEASIBLE
    for bad in (np.nan, np.inf):
        kernel = L.copy()
        kernel[1, 0] = bad
        result = sinkhorn(kernel, a, a)
        assert result.status is SinkhornStatus.NOT_FINITE
        assert np.isfinite(result.plan).all()
    # Totals that no plan on the two allowed pairs has: never called convergence.
    diagonal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    result = sinkhorn(diagonal, a, np.array([0.4, 0.6]), max_iter=50)
    assert result.status is SinkhornStatus.ITERATION_LIMIT
    assert result.marginal_error == pytest.approx(0.2)
    assert np.isfinite(result.plan).all()
    huge = sinkhorn(np.array([[-1e308, 0.0], [0.0, -1e308]]), a, a, init=(0 * a, 0 * a - 1e308))
    assert np.isfinite(huge.plan).all()
    assert np.isfinite(huge.potentials[0]).all()
