"""Certificates against the linear program over all sets of edges."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import moved
from subset_program import subset_optimum

import structot as sot
from structot import certificate
from structot.problem import Problem

c = sot.concave
seeds = st.integers(0, 10_000)
FUNCTIONS = [c.Sqrt(), c.ThresholdSqrt(0.5), c.Truncation(0.7), c.Log(0.3)]


def tiny(seed):
    """A 3×3 problem with random costs (some zero), weights and groups."""
    rng = np.random.default_rng(seed)
    M = moved(rng.random((3, 3)) * (rng.random((3, 3)) > 0.15))
    a, b = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    groups = rng.integers(0, 2, 3), rng.integers(0, 2, 3)
    structure = sot.Groups(*groups, FUNCTIONS[seed % len(FUNCTIONS)], units="cost")
    if seed % 3 == 1:
        structure = 0.5 * sot.Modular() + structure
    if seed % 3 == 2:
        structure = sot.Modular() + sot.Coverage(*groups, weights=0.3)
    return M, a, b, structure


@given(seeds)
def test_bounds_hold_the_optimum_between_them(seed):
    M, a, b, structure = tiny(seed)
    optimum = subset_optimum(M, a, b, structure).value
    slack = 1e-9 * max(optimum, 1e-3)
    for limit in (1, None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sot.ConvergenceWarning)
            result = sot.solve(M, a, b, structure=structure, max_iter=limit, tol=1e-7)
        assert result.value >= optimum - slack
        assert result.lower_bound <= optimum + slack
        assert certificate.verify(M, a, b, structure, result).holds()
    assert result.value == pytest.approx(optimum, rel=1e-6, abs=1e-9)


@given(seeds)
def test_every_dual_proves_less_than_the_optimum(seed):
    M, a, b, structure = tiny(seed)
    problem = Problem.of(M, a, b, structure=structure)
    optimum = subset_optimum(M, a, b, structure).value
    rng = np.random.default_rng(seed)
    p, q = rng.normal(size=3), rng.normal(size=3)
    K = problem.function.project(rng.normal(size=(3, 3)))
    for dual in (
        certificate.dual_from_potentials(problem, p, q),
        certificate.dual_from_cost(problem, K),
        certificate.dual_by_exact_transport(problem, K),
    ):
        assert dual.bound <= optimum + 1e-9
        assert problem.function.excess(dual.K) <= 1e-9
        assert (np.add.outer(dual.u, dual.v) <= dual.K + 1e-12).all()
        assert dual.bound == pytest.approx(a @ dual.u + b @ dual.v)
    exact = certificate.dual_by_exact_transport(problem, K).bound
    assert exact >= certificate.dual_from_cost(problem, K).bound - 1e-12


@given(seeds)
def test_saddle_gap_is_never_negative_and_zero_at_the_answer(seed):
    M, a, b, structure = tiny(seed)
    problem = Problem.of(M, a, b, structure=structure)
    K = problem.function.project(M)
    assert certificate.saddle_gap(problem, np.outer(a, b), K) >= -1e-12
    result = sot.solve(M, a, b, structure=structure, tol=1e-9)
    gap = certificate.saddle_gap(problem, result.plan, result.worst_cost)
    assert gap == pytest.approx(0, abs=1e-8)


def test_verify_finds_each_kind_of_lie():
    M, a, b, structure = tiny(4)
    good = sot.solve(M, a, b, structure=structure, tol=1e-9)
    u, v = good.potentials
    lies = {
        "marginals": replace(good, plan=good.plan * 1.01),
        "value": replace(good, value=good.value * 0.99),
        "polytope": replace(good, worst_cost=good.worst_cost * 1.01),
        "potentials": replace(good, potentials=(u + 0.01, v)),
        "bound": replace(good, lower_bound=good.lower_bound * 1.01),
    }
    assert certificate.verify(M, a, b, structure, good).holds()
    for field, lie in lies.items():
        check = certificate.verify(M, a, b, structure, lie)
        assert not check.holds()
        assert getattr(check, field) > 1e-4


def test_verify_is_not_fooled_by_large_numbers_elsewhere():
    """Each of these was built by hand: a price of 1e15 must not excuse an error on cheap pairs."""
    # A potential of 1e15 gives no slack to the others.
    M = np.array([[0.0, 1.0], [1.0, 0.0], [1e15, 1e15]])
    a = np.array([0.5, 0.5, 1e-15])
    b = np.full(2, a.sum() / 2)
    good = sot.solve(M, a, b)
    wrong = np.array([[0.0, 0.5], [0.5, 0.0], [5e-16, 5e-16]])
    lie = replace(
        good,
        plan=wrong,
        value=2.0,
        lower_bound=2.0,
        gap=0.0,
        potentials=(np.array([1.0, 1.0, 1e15]), np.zeros(2)),
    )
    assert not certificate.verify(M, a, b, None, lie).holds()
    # With entropy the worst cost may not be raised on cheap pairs beside dear ones.
    rng = np.random.default_rng(0)
    M = rng.random((6, 6))
    M[rng.random((6, 6)) < 0.3] = 1e15
    good = _quiet(M, reg=0.1)
    K = np.where(M < 1e14, good.worst_cost + 0.5, good.worst_cost)
    lie = replace(good, worst_cost=K, lower_bound=good.value, gap=0.0)
    assert certificate.verify(M, None, None, None, good, reg=0.1).holds()
    assert certificate.verify(M, None, None, None, lie, reg=0.1).harm > 1e-3
    # A point of little mass may not be dropped.
    M, a, b = np.array([[1.0, 2.0], [1e15, 1e15]]), np.array([1.0, 1e-12]), np.full(2, 0.5)
    b = b * a.sum()
    good = _quiet(M, a, b)
    lie = replace(good, plan=good.plan * np.array([[1.0], [0.0]]))
    assert certificate.verify(M, a, b, None, good).marginals <= 1e-9
    assert certificate.verify(M, a, b, None, lie).marginals > 0.5


def _quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sot.solve(*args, **options)


def test_numbers_near_the_ends_of_the_range():
    M = np.array([[1.0, 2.0], [3.0, 1.0]])
    assert sot.solve(M * 1e-310).value == pytest.approx(1e-310)
    assert sot.solve(M * 1e300).value == pytest.approx(1e300)
    with pytest.raises(ValueError, match="out of all proportion"):
        sot.solve(M * 1e300, reg=1e-30)
