"""Rounding into U(a, b): exact marginals, idempotence, forbidden pairs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from structot.transport import (
    InfeasibleError,
    emd,
    marginal_error,
    round_plan,
    split_rounding,
)
from structot.transport import kernels as _kernels


def exact_errors(P, a, b):
    """L1 errors of both marginals, correctly rounded sums."""
    rows = math.fsum(abs(math.fsum([*row, -x])) for row, x in zip(P.tolist(), a, strict=True))
    cols = math.fsum(abs(math.fsum([*c, -x])) for c, x in zip(P.T.tolist(), b, strict=True))
    return rows, cols


def random_marginals(rng, n, m, total=1.0):
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    return total * a, total * b


@pytest.mark.kernels
def test_residuals_agree_with_correctly_rounded_sums():
    rng = np.random.default_rng(0)
    P = rng.random((40, 60)) * 10.0 ** rng.uniform(-20, 0, (40, 60))
    a, b = P.sum(axis=1) * (1 + 1e-15), P.sum(axis=0) * (1 - 1e-13)
    r, c = _kernels.residuals(P, a, b)
    r_true = [math.fsum([x, *(-row)]) for x, row in zip(a, P, strict=True)]
    c_true = [math.fsum([x, *(-col)]) for x, col in zip(b, P.T, strict=True)]
    np.testing.assert_allclose(r, r_true, rtol=1e-10, atol=1e-28)
    np.testing.assert_allclose(c, c_true, rtol=1e-10, atol=1e-28)
    error = (np.abs(r_true).sum() + np.abs(c_true).sum()) / a.sum()
    assert marginal_error(P, a, b) == pytest.approx(error, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0.0, 1e-16, 1e-12, 1e-3, 1.0, 1e3]),
    st.sampled_from([1e-9, 1.0, 1e9]),
)
def test_rounding_is_exact_close_and_idempotent(seed, n, m, noise, total):
    rng = np.random.default_rng(seed)
    a, b = random_marginals(rng, n, m, total)
    P = np.outer(a, b) / a.sum() + noise * total * rng.random((n, m))
    X = round_plan(P, a, b)
    rows, columns = exact_errors(X, a, b)
    unequal = abs(math.fsum(a) - math.fsum(b))  # no plan can have both totals
    assert rows <= 1e-15 * total + unequal
    assert columns <= 1e-15 * total + unequal
    assert (X >= 0).all()
    # The bound of Altschuler et al. 2017, Lemma 7.
    distance = np.abs(P.sum(axis=1) - a).sum() + np.abs(P.sum(axis=0) - b).sum()
    assert np.abs(X - P).sum() <= 2 * distance + 1e-14 * total
    np.testing.assert_array_equal(round_plan(X, a, b), X)


def test_large_plan_is_exact():
    rng = np.random.default_rng(1)
    n = 1000
    a, b = random_marginals(rng, n, n)
    P = np.outer(a, b) * (1 + 0.1 * rng.random((n, n)))
    X = round_plan(P, a, b)
    unequal = abs(math.fsum(a) - math.fsum(b))  # no plan can have both totals
    assert max(exact_errors(X, a, b)) <= 1e-15 + unequal
    np.testing.assert_array_equal(round_plan(X, a, b), X)


def test_pieces_add_up_to_the_rounded_plan():
    rng = np.random.default_rng(2)
    a, b = random_marginals(rng, 6, 9)
    P = rng.random((6, 9)) / 40
    Q, r, c = split_rounding(P, a, b)
    assert (Q <= P).all()
    assert (Q.sum(axis=1) <= a * (1 + 1e-15)).all()
    assert (Q.sum(axis=0) <= b * (1 + 1e-15)).all()
    np.testing.assert_allclose(a - Q.sum(axis=1), r, atol=1e-16)
    np.testing.assert_allclose(b - Q.sum(axis=0), c, atol=1e-16)
    np.testing.assert_allclose(round_plan(P, a, b), Q + np.outer(r, c) / r.sum(), rtol=1e-14)
    assert P.sum() > 0.5  # the input was not changed


def test_feasible_plans_come_back_equal_and_zeros_stay():
    rng = np.random.default_rng(3)
    a, b = random_marginals(rng, 5, 5)
    a[1] = b[4] = 0.0
    a, b = a / a.sum(), b / b.sum()
    X = round_plan(rng.random((5, 5)), a, b)
    assert (X[1] == 0).all()
    assert (X[:, 4] == 0).all()
    np.testing.assert_array_equal(round_plan(X, a, b), X)
    vertex = emd(rng.random((5, 5)), a, b).plan
    np.testing.assert_array_equal(round_plan(vertex, a, b), vertex)
    np.testing.assert_allclose(round_plan(np.zeros((5, 5)), a, b), np.outer(a, b), rtol=1e-14)
    assert (round_plan(X - 1e-3, a, b) >= 0).all()


def test_overwriting_gives_the_same_plan_in_the_memory_of_the_matrix():
    rng = np.random.default_rng(4)
    a, b = random_marginals(rng, 6, 5)
    P = rng.random((6, 5)) - 0.1
    expected, before = round_plan(P, a, b), P.copy()
    np.testing.assert_array_equal(P, before)
    in_place = round_plan(P, a, b, overwrite=True)
    np.testing.assert_array_equal(in_place, expected)
    assert np.shares_memory(in_place, P)


def test_traces_of_mass_without_weight_are_dropped():
    """Also when they are so small that the marginals count as right."""
    a, b = np.array([0.0, 0.5, 0.5]), np.array([0.75, 0.0, 0.25])
    P = np.outer(a, b)
    P[0, 2] = P[1, 1] = 1e-19
    np.testing.assert_array_equal(round_plan(P, a, b), np.outer(a, b))


def test_nan_is_refused():
    with pytest.raises(ValueError, match="finite"):
        round_plan(np.array([[np.nan, 0.0]]), np.ones(1), np.array([0.5, 0.5]))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 8), st.floats(0.1, 0.7))
def test_forbidden_pairs_get_nothing_or_the_problem_is_infeasible(seed, n, m, density):
    rng = np.random.default_rng(seed)
    allowed = rng.random((n, m)) > density
    a, b = random_marginals(rng, n, m)
    P = rng.random((n, m)) / (n * m)
    # Feasibility of the mask by an unrelated linear program.
    equations = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    bounds = [(0, None if x else 0) for x in allowed.ravel()]
    program = linprog(np.zeros(n * m), A_eq=equations, b_eq=[*a, *b], bounds=bounds)
    if program.status == 2:
        with pytest.raises(InfeasibleError, match="forbidden"):
            round_plan(P, a, b, allowed)
        return
    X = round_plan(P, a, b, allowed)
    assert max(exact_errors(X, a, b)) <= 2e-15
    assert (X >= 0).all()
    assert not X[~allowed].any()


def test_rest_is_rerouted_when_its_own_pairs_are_forbidden():
    # Row 0 and column 0 lack 0.1, their pair is forbidden: mass of (1, 1) must make way.
    a = b = np.array([0.5, 0.5])
    allowed = np.array([[False, True], [True, True]])
    P = np.array([[0.0, 0.4], [0.4, 0.1]])
    np.testing.assert_allclose(round_plan(P, a, b, allowed), [[0, 0.5], [0.5, 0]], atol=1e-16)


def test_masked_rounding_moves_little_when_the_error_is_small():
    rng = np.random.default_rng(5)
    n = 60
    allowed = ~np.eye(n, dtype=bool)
    a = b = np.full(n, 1 / n)
    X = round_plan(rng.random((n, n)), a, b, allowed)
    P = X * (1 - 1e-6 * rng.random((n, n)))
    Y = round_plan(P, a, b, allowed)
    assert np.abs(Y - P).sum() <= 4 * marginal_error(P, a, b)
    assert max(exact_errors(Y, a, b)) <= 1e-15
    np.testing.assert_array_equal(round_plan(X, a, b, allowed), X)


def test_infeasible_masks_are_refused():
    a = b = np.array([0.5, 0.5])
    with pytest.raises(InfeasibleError, match="allowed"):
        round_plan(np.eye(2) / 2, a, np.array([0.4, 0.6]), np.eye(2, dtype=bool))
    with pytest.raises(InfeasibleError):
        round_plan(np.eye(2) / 2, a, b, np.array([[False, False], [True, True]]))


def test_light_points_get_their_mass_to_rounding():
    """A rounding error of the total is much to a point of 1e-12, and its pairs may be dear."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        n, m = rng.integers(1, 6, 2)
        a, b = 10.0 ** rng.uniform(-12, 0, n), 10.0 ** rng.uniform(-12, 0, m)
        a, b = a / a.sum(), b / b.sum()
        b[np.argmax(b)] += math.fsum(a) - math.fsum(b)
        X = round_plan(np.outer(a, b) * rng.uniform(0.5, 1.5, (n, m)), a, b)
        for sums, weights in ((X.sum(axis=1), a), (X.sum(axis=0), b)):
            assert (np.abs(sums - weights) <= 1e-12 * weights + 4e-16 * (weights > 0.01)).all()
