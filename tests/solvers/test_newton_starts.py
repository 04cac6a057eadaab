"""The start from transport between groups."""

import numpy as np
import pytest
from problems import moved

import structot as sot
from structot.problem import Problem
from structot.solvers.newton.starts import _sums_by_groups, coarse_start

c = sot.concave


@pytest.fixture
def problem():
    rng = np.random.default_rng(2)
    M = rng.random((90, 96))
    M[3, 4] = M[7, 8] = 0.0
    labels = rng.integers(0, 3, 90), rng.integers(0, 4, 96)
    a, b = (x / x.sum() for x in (rng.uniform(0.9, 1.1, 90), rng.uniform(0.9, 1.1, 96)))
    linear = sot.Modular(rng.random((90, 96)))
    structure = linear + sot.Groups(*labels, c.ThresholdSqrt(0.0), units="cost")
    return Problem.of(moved(1e4 * M), a, b, structure=structure)


def test_sums_by_groups(problem):
    (layer,) = problem.layers
    x = np.random.default_rng(0).random(layer.w.size)
    total = np.zeros((3, 4))
    np.add.at(total, (layer.row_group[layer.row], layer.col_group[layer.col]), x)
    assert _sums_by_groups(layer, x, (3, 4)) == pytest.approx(total)


def test_the_best_product_inside_every_block(problem):
    """Feasible, a product inside blocks, its cost that of the groups, not above the even plan."""
    start = coarse_start(problem)
    P = start.plan
    assert P.sum(1) == pytest.approx(problem.a, abs=1e-12)
    assert P.sum(0) == pytest.approx(problem.b, abs=1e-12)
    (layer,) = problem.layers
    density = P / np.outer(problem.a, problem.b)
    for k in range(3):
        for t in range(4):
            block = density[layer.row_group == k][:, layer.col_group == t]
            assert np.ptp(block) <= 1e-12 * max(block.max(), 1)
    u, v = start.potentials
    assert problem.objective(P) == pytest.approx(problem.a @ u + problem.b @ v, rel=1e-9)
    # The even plan is such a product, too; the sums have 10⁴ terms.
    assert problem.objective(P) <= problem.objective(problem.independent) * (1 + 1e-12)


def test_no_start_where_pairs_are_forbidden():
    data = sot.datasets.clusters(12, n_classes=3, seed=3)
    M = data.cost.copy()
    M[::7, ::5] = np.inf
    problem = Problem.of(M, structure=sot.Groups(data.source_labels)).normalized()
    assert coarse_start(problem.with_blocks()).plan is None


def test_no_start_of_a_given_mass():
    M = np.random.default_rng(1).random((5, 5))
    problem = Problem.of(M, structure=sot.Groups([0, 0, 1, 1, 1]), mass=0.5).normalized()
    assert coarse_start(problem.with_blocks()).plan is None
