"""Units do not matter: factors of two in costs or masses change no bit of a plan."""

import warnings

import numpy as np
import pytest
from problems import clusters, moved

import structot as sot
from structot.problem import Problem
from structot.solvers.solve import METHODS, make_solver

c = sot.concave
POWERS = (-200, -40, -1, 1, 40, 200)
N, M = 9, 8


def data():
    """Costs with a zero and a forbidden pair, uneven weights, labels and sets of pairs."""
    rng = np.random.default_rng(0)
    cost = moved(rng.random((N, M)))
    cost[2, 3], cost[0, 1] = 0.0, np.inf
    a, b = rng.dirichlet(np.ones(N)), rng.dirichlet(np.ones(M))
    labels = rng.integers(0, 3, N), rng.integers(0, 2, M)
    return cost, a, b, labels, rng.random((5, N, M)) < 0.3


COST, A, B, (YS, YT), SETS = data()
WINDOWS = [[0, 1, 2, 3], [3, 4, 5, 6]]
# Structures whose objective is homogeneous in the costs, with prices in units of s.
HOMOGENEOUS = {
    "plain": lambda s: None,
    "block units": lambda s: sot.Groups(YS, YT, c.Sqrt(), units="block"),
    "own targets": lambda s: sot.Groups(YS, None, c.Log(0.3), units="block"),
    "linear": lambda s: sot.Groups(YS, YT, c.Linear(), units="cost"),
    "coverage": lambda s: sot.Coverage(YS, YT, weights=0.3 * s),
    "fixed charge": lambda s: sot.Modular() + sot.Coverage(YS, weights=0.02, units="block"),
    "windows": lambda s: sot.Groups(WINDOWS, YT, c.Sqrt(), units="block"),
    "sets": lambda s: sot.Modular() + sot.Coverage.of_sets(SETS, 0.1 * s),
    "chain": lambda s: sot.Modular() + sot.ChainCut(0.1 * s),
    "graph": lambda s: sot.Modular() + sot.GraphCut([(0, 1), (1, 2)], [(0, 1)], 0.1 * s),
    "hierarchy": lambda s: sot.Hierarchy([YS, YS // 2], [YT, YT], c.Sqrt(), units="block"),
    "routes": lambda s: sot.Routes(YS, YT, 0.3),
    "sum": lambda s: 0.3 * sot.Modular() + sot.Groups(YS, YT, c.Truncation(0.3), units="block"),
}


def solve(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sot.solve(*args, max_iter=12, **options)


def accepted():
    """Every structure with every method that takes it, with and without entropy."""
    for name, structure in HOMOGENEOUS.items():
        for reg in (0.0, 0.05):
            problem = Problem.of(COST, A, B, structure=structure(1.0), reg=reg)
            for method in METHODS[1:]:
                if make_solver(method).refusal(problem) is None:
                    yield pytest.param(name, method, reg, id=f"{name}-{method}-{reg:g}")


@pytest.mark.parametrize(("name", "method", "reg"), [*accepted()])
def test_factors_of_two_change_no_bit(name, method, reg):
    structure = HOMOGENEOUS[name]
    options = {"method": method}
    base = solve(COST, A, B, structure=structure(1.0), reg=reg, **options)
    u, v = base.potentials
    for k in POWERS:
        s = 2.0**k
        dear = solve(s * COST, A, B, structure=structure(s), reg=s * reg, **options)
        heavy = solve(COST, s * A, s * B, structure=structure(1.0), reg=reg, **options)
        assert dear.status is heavy.status is base.status
        np.testing.assert_array_equal(dear.plan, base.plan)
        np.testing.assert_array_equal(heavy.plan, s * base.plan)
        np.testing.assert_array_equal(dear.worst_cost, s * base.worst_cost)
        for found, factor in ((dear, s), (heavy, 1.0)):
            np.testing.assert_array_equal(found.potentials[0], factor * u)
            np.testing.assert_array_equal(found.potentials[1], factor * v)
            for number in ("value", "lower_bound", "atol", "value_linear", "value_structured"):
                assert getattr(found, number) == s * getattr(base, number)
            assert found.gap == base.gap
            np.testing.assert_array_equal(found.trace.value, s * base.trace.value)


def test_many_pairs_shared_by_threads():
    """More pairs than one thread does alone: the same parts in the same order."""
    points = clusters(230, 220, n_classes=3)
    groups = sot.Groups(points.source_labels, points.target_labels, c.Log(0.1), units="block")
    base, other = (solve(s * points.cost, structure=groups) for s in (1.0, 2.0**40))
    np.testing.assert_array_equal(base.plan, other.plan)
    assert other.lower_bound == 2.0**40 * base.lower_bound


@pytest.mark.parametrize("method", ["newton", "splitting"])
def test_a_square_root_of_the_cost_scales_as_one(method):
    """√(s · cost): not homogeneous, but F(s M) = √s F(M) has the same plans."""
    groups = sot.Groups(YS, YT, c.Sqrt(), units="cost")
    values = [
        sot.solve(s * COST, A, B, structure=groups, method=method, tol=1e-10).value / np.sqrt(s)
        for s in (1.0, 2.0**40, 2.0**-40, 3.0)
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


def test_a_start_and_a_tolerance_are_in_the_units_of_the_user():
    structure = HOMOGENEOUS["block units"]
    s, t = 2.0**40, 2.0**-30
    first = sot.solve(COST, A, B, structure=structure(1.0), tol=1e-9)
    again = sot.solve(s * COST, t * A, t * B, structure=structure(s), tol=1e-6)
    for init in (again, again.plan, again.potentials):
        warm = sot.solve(s * COST, t * A, t * B, structure=structure(s), init=init, tol=1e-6)
        assert warm.value / (s * t) == pytest.approx(first.value, rel=2e-6)
    rough = sot.solve(s * COST, t * A, t * B, structure=structure(s), atol=s * t, tol=0.0)
    assert rough.converged
    assert rough.atol == s * t


def test_a_callback_sees_the_units_of_the_user():
    seen = []
    sot.solve(1e6 * COST, A, B, structure=HOMOGENEOUS["sum"](1.0), callback=seen.append)
    result = sot.solve(1e6 * COST, A, B, structure=HOMOGENEOUS["sum"](1.0))
    # The last state holds estimates on the safe side, both within the gap that was reached.
    assert result.value * (1 - 1e-9) <= seen[-1].value <= result.value * (1 + 2e-4)
    assert result.lower_bound * (1 - 2e-4) <= seen[-1].lower_bound
    assert seen[-1].lower_bound <= result.lower_bound * (1 + 1e-9)


def test_a_convex_cost_sees_the_plans_of_the_user():
    """f(P) = Σ P² is not homogeneous: a callable must be given masses as they are."""
    totals = []

    def square(P):
        totals.append(P.sum())
        return float((P**2).sum())

    a = np.array([3.0, 5.0])
    result = sot.solve(
        np.ones((2, 2)), a, a, structure=sot.ConvexCost(square, lambda P: 2 * P), tol=1e-2
    )
    assert totals == pytest.approx(np.full(len(totals), 8.0), rel=1e-2)
    assert result.value == pytest.approx(float((result.plan**2).sum()))
    assert result.lower_bound <= result.value
