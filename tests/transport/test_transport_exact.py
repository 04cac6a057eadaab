"""Exact transport and feasible potentials: duality, scale, forbidden pairs, zero weights."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import ot
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog
from transport_reference import c_transform_reference

from structot.transport import InfeasibleError, c_transform, emd, marginal_error


def random_problem(seed, n, m):
    rng = np.random.default_rng(seed)
    return rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))


def assert_feasible(K, u, v):
    """u_i + v_j <= K_ij in exact rational arithmetic."""
    assert np.isfinite(u).all()
    assert np.isfinite(v).all()
    assert ((u[:, None] + v) <= K).all()
    for i, j in np.argwhere(np.isfinite(K)):
        assert Fraction(u[i]) + Fraction(v[j]) <= Fraction(K[i, j])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 15), st.integers(1, 15), st.sampled_from([-1.0, 0.0]))
def test_duality(seed, n, m, shift):
    M, a, b = random_problem(seed, n, m)
    M = M + shift
    result = emd(M, a, b)
    u, v = result.potentials
    assert_feasible(M, u, v)
    scale = np.abs(M).max()
    assert a @ u + b @ v == pytest.approx(result.value, rel=1e-12, abs=1e-14 * scale)
    assert result.value == pytest.approx(np.vdot(result.plan, M), rel=1e-12, abs=1e-14 * scale)
    assert marginal_error(result.plan, a, b) <= 2e-15
    assert (result.plan >= 0).all()
    assert (result.plan > 0).sum() <= n + m - 1


def test_value_agrees_with_a_linear_program_and_pot():
    M, a, b = random_problem(1, 12, 9)
    equations = np.vstack([np.kron(np.eye(12), np.ones(9)), np.kron(np.ones(12), np.eye(9))])
    program = linprog(M.ravel(), A_eq=equations, b_eq=[*a, *b])
    value = emd(M, a, b).value
    assert value == pytest.approx(program.fun, rel=1e-8)
    assert value == pytest.approx(ot.emd2(a, b, M), rel=1e-12)


def test_uniform_weights_are_an_assignment():
    M = np.random.default_rng(2).random((40, 40))
    uniform = np.full(40, 1 / 40)
    result = emd(M, uniform, uniform)
    rows, columns = linear_sum_assignment(M)
    np.testing.assert_allclose(result.plan[rows, columns], 1 / 40, rtol=1e-14)
    assert (result.plan > 0).sum() == 40
    assert result.value == pytest.approx(M[rows, columns].mean(), rel=1e-13)


@pytest.mark.parametrize("scale", [1e-290, 1e-12, 1e-6, 1e6, 1e12, 1e290])
@pytest.mark.parametrize("total", [1e-12, 1.0, 1e9])
def test_scale_of_costs_and_masses_does_not_matter(scale, total):
    M, a, b = random_problem(3, 30, 25)
    one, other = emd(M, a, b), emd(scale * M, total * a, total * b)
    assert other.value == pytest.approx(scale * total * one.value, rel=1e-12)
    u, v = other.potentials
    assert (u[:, None] + v <= scale * M).all()
    assert total * (a @ u + b @ v) == pytest.approx(other.value, rel=1e-12)
    np.testing.assert_array_equal(other.plan > 0, one.plan > 0)


def test_known_answer_on_the_line():
    # In one dimension sorted points are matched in order.
    x, y = np.array([3.0, 0.0, 1.0]), np.array([5.0, 6.0, 8.0])
    third = np.full(3, 1 / 3)
    result = emd(np.abs(x[:, None] - y) ** 2, third, third)
    assert result.value == pytest.approx((25 + 25 + 25) / 3, rel=1e-15)


def test_zero_weights_have_tight_potentials():
    M, a, b = random_problem(4, 8, 9)
    a[[0, 3]], b[5] = 0.0, 0.0
    a, b = a / a.sum(), b / b.sum()
    result = emd(M, a, b)
    u, v = result.potentials
    assert_feasible(M, u, v)
    assert not result.plan[[0, 3]].any()
    assert not result.plan[:, 5].any()
    assert a @ u + b @ v == pytest.approx(result.value, rel=1e-12)
    slack = M - u[:, None] - v
    assert slack.min(axis=1).max() <= 1e-15
    nothing = emd(M, 0 * a, 0 * b)
    assert nothing.value == 0.0
    assert not nothing.plan.any()


def test_constant_and_single_costs():
    _, a, b = random_problem(5, 4, 6)
    for constant in (0.0, 2.5, -1e-200):
        result = emd(np.full((4, 6), constant), a, b)
        assert result.value == pytest.approx(constant, rel=1e-14)
        assert_feasible(np.full((4, 6), constant), *result.potentials)
    assert emd(np.array([[7.0]]), np.ones(1), np.ones(1)).value == 7.0


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_forbidden_pairs_against_all_permutations(size):
    rng = np.random.default_rng(6)
    for _ in range(10):
        M = size * rng.random((5, 5))
        M[rng.random((5, 5)) < 0.4] = np.inf
        uniform = np.full(5, 0.2)
        best = min(sum(M[i, p[i]] for i in range(5)) for p in permutations(range(5))) / 5
        if np.isinf(best):
            with pytest.raises(InfeasibleError):
                emd(M, uniform, uniform)
            continue
        result = emd(M, uniform, uniform)
        assert result.value == pytest.approx(best, rel=1e-12)
        assert not result.plan[np.isinf(M)].any()
        u, v = result.potentials
        assert_feasible(M, u, v)
        assert uniform @ u + uniform @ v == pytest.approx(best, rel=1e-11)


def test_infeasible_and_invalid_costs_are_refused():
    half = np.array([0.5, 0.5])
    M = np.array([[0.0, np.inf], [np.inf, 0.0]])
    assert emd(M, half, half).value == 0.0
    with pytest.raises(InfeasibleError):
        emd(M, half, np.array([0.3, 0.7]))
    with pytest.raises(InfeasibleError):
        emd(np.full((2, 2), np.inf), half, half)
    for bad in (np.nan, -np.inf):
        with pytest.raises(ValueError, match="M must"):
            emd(np.array([[bad, 1.0], [1.0, 1.0]]), half, half)


@pytest.mark.kernels
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(1, 8), st.floats(0, 0.9))
def test_c_transform_agrees_with_the_reference_and_is_feasible(seed, n, m, missing):
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(n, m)) * 10.0 ** rng.integers(-8, 8)
    K[rng.random((n, m)) < missing] = np.inf
    u = rng.normal(size=n) * 10.0 ** rng.integers(-8, 8)
    u[rng.random(n) < 0.2] = rng.choice([np.nan, np.inf, -np.inf])
    start = u.copy()
    U, V = c_transform(K, u, np.full(m, 2.0))
    np.testing.assert_array_equal(u, start)
    with np.errstate(invalid="ignore"):
        u_ref, v_ref = c_transform_reference(K, u, np.full(m, 2.0))
    np.testing.assert_array_equal(V, v_ref)
    np.testing.assert_allclose(U, u_ref, rtol=1e-15)
    assert_feasible(K, U, V)


def test_c_transform_improves_feasible_potentials_and_keeps_optimal_ones():
    M, a, b = random_problem(8, 10, 12)
    result = emd(M, a, b)
    U, V = c_transform(M, result.potentials[0] - 0.1)
    assert a @ U + b @ V == pytest.approx(result.value, rel=1e-12)
    U, V = c_transform(M, np.zeros(10))
    assert 0 < a @ U + b @ V <= result.value
    assert (U >= 0).all()
    K = np.full((3, 2), np.inf)
    np.testing.assert_array_equal(c_transform(K, np.ones(3))[0], np.zeros(3))
