"""The problem between clusters: exactly the given one on plans that are even inside cells."""

import numpy as np
import pytest
from problems import moved

import structot as sot
from structot.problem import Problem
from structot.solvers import Newton
from structot.solvers.newton.clusters import Clustered
from structot.solvers.newton.dual import ProximalDual

c = sot.concave
ROWS, COLS = np.arange(256) % 2, np.arange(320) % 4


def structures():
    linear = sot.Modular(np.random.default_rng(5).random((256, 320)))
    per_block = [[c.Discount(0.3 + 0.1 * (k + t)) for t in range(4)] for k in range(2)]
    return {
        "block units": sot.Groups(ROWS, COLS, c.Discount(0.8)),
        "cost units": sot.Groups(ROWS, COLS, c.ThresholdSqrt(50.0), units="cost"),
        "a function per block": sot.Groups(ROWS, COLS, lambda k, t: per_block[k][t]),
        "with a linear part": linear + sot.Groups(ROWS, COLS, c.Sqrt(), units="cost"),
        "fixed charge": sot.Modular() + sot.Coverage(ROWS, COLS, weights=3.0),
    }


def bound(structure, M, **options):
    return Problem.of(M, structure=structure, **options).normalized().with_blocks()


@pytest.fixture
def costs():
    return moved(np.random.default_rng(3).random((256, 320)) + 0.01)


@pytest.mark.parametrize("name", structures())
def test_a_plan_that_is_even_inside_cells_costs_the_same(name, costs):
    """Groups of 128 and 80 points are whole numbers of clusters, so that all have equal sizes."""
    problem = bound(structures()[name], costs)
    small = Clustered.of(problem)
    shape = small.problem.shape
    assert shape == (64, 80)
    assert (np.bincount(small.rows) == 4).all()
    rng = np.random.default_rng(0)
    plan = small.problem.feasible(rng.random(shape) * (rng.random(shape) < 0.3))
    spread = small.refined(problem, plan, (np.zeros(64), np.zeros(80))).plan
    assert spread.sum(1) == pytest.approx(problem.a, abs=1e-14)
    assert spread.sum(0) == pytest.approx(problem.b, abs=1e-14)
    assert problem.objective(spread) == pytest.approx(small.problem.objective(plan), rel=1e-12)


def test_clusters_lie_within_groups_and_join_points_that_see_the_same():
    data = sot.datasets.clusters(400, n_classes=3, seed=1)
    M, labels = data.cost, data.source_labels
    small = Clustered.of(bound(sot.Groups(labels, None), M))
    assert all(np.ptp(labels[small.rows == k]) == 0 for k in range(small.rows.max() + 1))
    # Every target point is a group of its own: these may be joined.
    assert small.problem.shape[1] == 100
    assert small.problem.blocks.col_group.max() == 99
    X = data.X
    inside = sum(((X[small.rows == k] - X[small.rows == k].mean(0)) ** 2).sum() for k in small.rows)
    at_random = sum(
        ((X[part] - X[part].mean(0)) ** 2).sum()
        for part in np.array_split(np.random.default_rng(0).permutation(400), 100)
    )
    assert inside / 4 < 0.1 * at_random


def test_multipliers_of_the_answer_between_clusters_nearly_prove_it():
    """Points that coincide are one cluster: its answer is the answer, its potentials the proof."""
    data = sot.datasets.clusters(80, n_classes=2, seed=2)
    M = moved(np.repeat(np.repeat(data.cost, 4, axis=0), 4, axis=1))
    labels = np.repeat(data.source_labels, 4), np.repeat(data.target_labels, 4)
    problem = bound(sot.Groups(*labels, c.Discount(0.6)), M)
    small = Clustered.of(problem)
    answer = sot.solve(
        data.cost,
        structure=sot.Groups(data.source_labels, data.target_labels, c.Discount(0.6)),
        tol=1e-8,
    )
    order = [int(np.flatnonzero(small.rows == k)[0]) // 4 for k in range(80)]
    columns = [int(np.flatnonzero(small.cols == k)[0]) // 4 for k in range(80)]
    u, v = (x / problem.units.cost for x in answer.potentials)
    plan = answer.plan[np.ix_(order, columns)] / problem.units.mass
    start = small.refined(problem, plan, (u[order], v[columns]))
    value = problem.objective(start.plan)
    assert value * problem.units.value == pytest.approx(answer.value, rel=1e-9)
    assert ProximalDual(problem).projected(*start.potentials)[2] == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(
    "why",
    ["forbidden pairs", "blocks of any form", "a given mass", "few points"],
)
def test_none_where_it_would_not_be_of_the_same_kind(why, costs):
    options = {"mass": 0.5} if why == "a given mass" else {}
    structure = sot.Groups(ROWS, COLS)
    if why == "forbidden pairs":
        costs[3, 4] = np.inf
    if why == "few points":
        costs, structure = costs[:100, :100], sot.Groups(ROWS[:100], COLS[:100])
    problem = bound(None if why == "blocks of any form" else structure, costs, **options)
    assert Clustered.of(problem) is None


@pytest.mark.parametrize(
    "options",
    [{}, {"unbalanced": 0.5}, {"unbalanced": (0.4, None), "unbalanced_type": "TV"}],
    ids=["hard", "KL", "TV"],
)
def test_the_answer_is_the_same_with_and_without(options, costs):
    structure = sot.Groups(ROWS, COLS, c.Discount(0.7))
    values = [
        sot.solve(costs, structure=structure, method=Newton(clusters=gap), tol=1e-5, **options)
        for gap in (0.0, 3e-3)
    ]
    assert all(result.converged for result in values)
    assert values[0].value == pytest.approx(values[1].value, rel=2e-5)


def test_a_limit_of_time_holds_between_clusters(costs):
    result = sot.solve(costs, structure=sot.Groups(ROWS, COLS), time_limit=1e-4, tol=0)
    assert result.status is sot.Status.TIME_LIMIT
    assert np.isfinite(result.value)
