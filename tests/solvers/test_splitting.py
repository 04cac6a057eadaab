"""Splitting against brute force over subsets, the linear program, and its own certificates."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import FAMILIES
from problems import clusters, moved
from subset_program import subset_optimum

import structot as sot
from structot.certificate import verify
from structot.concave import PiecewiseLinear, Sqrt, ThresholdSqrt, Truncation
from structot.solvers import Splitting
from structot.structures import Structure
from structot.submodular import BoundCost, Oracle
from structot.transport import emd

ROWS, COLS = np.array([0, 0, 1]), np.array([1, 0, 1])
KINKS = PiecewiseLinear([0.7, 2.0, 4.0], [1.5, 0.8, 0.3, 0.1])


def solve(M, a=None, b=None, *, structure, method="splitting", **options):
    """Solve, and check the proof from scratch."""
    result = sot.solve(M, a, b, structure=structure, method=method, **options)
    assert verify(M, a, b, structure, result).holds()
    return result


def random_problem(n, m, seed):
    rng = np.random.default_rng(seed)
    M = moved(rng.uniform(0.2, 2.0, (n, m)))
    return M, rng.dirichlet(np.full(n, 2.0)), rng.dirichlet(np.full(m, 2.0))


def cluster_groups(problem, alpha):
    return sot.Groups(problem.source_labels, problem.target_labels, ThresholdSqrt(alpha))


@pytest.mark.parametrize("g", FAMILIES, ids=repr)
@pytest.mark.parametrize("units", ["cost", "block"])
def test_equals_the_program_over_all_subsets(g, units):
    M, a, b = random_problem(3, 3, 0)
    structure = sot.Groups(ROWS, COLS, g, units=units)
    truth = subset_optimum(M, a, b, structure)
    result = solve(M, a, b, structure=structure, tol=1e-8)
    assert result.converged
    assert result.value == pytest.approx(truth.value, rel=2e-8)
    # The program is solved to a feasibility of 1e-10, in units of which its value is off.
    assert result.lower_bound <= truth.value * (1 + 1e-9)


LAYERS = {
    "coverage": sot.Coverage(ROWS, COLS, weights=[[1.0, 2.0], [0.5, 0.0]]),
    "fixed charge": sot.Modular() + sot.Coverage(ROWS, COLS, weights=0.7),
    "groups and coverage": sot.Groups(ROWS, COLS) + sot.Coverage(COLS, ROWS, weights=0.4),
    "two metrics": sot.Groups(ROWS, COLS, Sqrt()) + sot.Coverage(COLS, ROWS, weights=30.0),
    "three": sot.Groups(ROWS, COLS, KINKS) + 0.01 * sot.Groups(COLS, ROWS, Sqrt()) + sot.Modular(),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_several_layers_equal_the_program_over_all_subsets(name, seed):
    M, a, b = random_problem(3, 3, seed)
    truth = subset_optimum(M, a, b, LAYERS[name])
    result = solve(M, a, b, structure=LAYERS[name], tol=1e-7)
    assert result.converged
    assert result.value == pytest.approx(truth.value, rel=2e-7, abs=1e-12)


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("max_iter", [1, 12])
@pytest.mark.filterwarnings("ignore::structot.ConvergenceWarning")
def test_the_optimum_lies_between_the_bounds_when_cut_off(name, max_iter):
    M, a, b = random_problem(3, 3, 3)
    truth = subset_optimum(M, a, b, LAYERS[name]).value
    result = solve(M, a, b, structure=LAYERS[name], tol=0.0, max_iter=max_iter)
    assert result.n_iter <= max_iter
    assert result.lower_bound <= truth + 1e-9
    assert result.value >= truth - 1e-9


@pytest.mark.parametrize(
    ("n", "m", "extra"),
    [(10, 9, None), (10, 9, sot.Modular()), (6, 5, sot.Coverage([0, 0, 0, 1, 1, 1], weights=0.5))],
)
@pytest.mark.parametrize("g", [Truncation(3.0), Truncation(0.5), KINKS], ids=repr)
def test_agrees_with_the_linear_program(g, n, m, extra):
    M, a, b = random_problem(n, m, 4)
    structure = sot.Groups(np.arange(n) % 3, np.arange(m) % 2, g)
    structure = structure if extra is None else structure + extra
    exact = solve(M, a, b, structure=structure, method="linear_program", tol=1e-9)
    result = solve(M, a, b, structure=structure, tol=1e-6)
    assert result.converged
    assert exact.value * (1 - 1e-9) <= result.value <= exact.value * (1 + 2e-6)
    assert exact.value * (1 - 2e-6) <= result.lower_bound <= exact.value * (1 + 1e-9)


def test_two_layers_with_different_metrics():
    problem = clusters(15, 12, 3, seed=4)
    rng = np.random.default_rng(4)
    structure = cluster_groups(problem, 1.0) + sot.Coverage(
        rng.integers(0, 4, 15), rng.integers(0, 3, 12), weights=2.0
    )
    a, b = rng.dirichlet(np.ones(15)), rng.dirichlet(np.ones(12))
    assert solve(problem.cost, a, b, structure=structure).converged


# The thresholds up to 200 of geomspace(0.1, 1e5, 13), and 200 itself.
ALPHAS = [0.0, *np.geomspace(0.1, 100.0, 7), 200.0]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_hundred_points_in_three_classes(alpha):
    problem = clusters(100)
    assert solve(problem.cost, structure=cluster_groups(problem, alpha)).converged


@pytest.mark.parametrize("alpha", ALPHAS)
def test_random_weights_and_unequal_sizes(alpha):
    problem = clusters(60, 110, 5, n_target_classes=7)
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0.2, 1.8, 60), rng.uniform(0.2, 1.8, 110)
    a, b = a / a.sum(), b / b.sum()
    assert solve(problem.cost, a, b, structure=cluster_groups(problem, alpha)).converged


def test_the_modular_limit_is_plain_transport():
    problem = clusters(40, 30)
    a, b = np.full(40, 1 / 40), np.full(30, 1 / 30)
    result = solve(problem.cost, structure=cluster_groups(problem, 1e5))
    truth = emd(problem.cost, a, b).value
    assert truth <= result.value * (1 + 1e-12)
    assert result.value <= truth * (1 + 1e-4)


def test_zero_costs_forbidden_pairs_and_points_of_no_weight():
    M, _, _ = random_problem(3, 4, 4)
    M[0, 0] = M[1, 2] = M[2, 3] = 0.0
    M[0, 2] = np.inf
    a, b = np.array([0.6, 0.0, 0.4]), np.array([0.3, 0.4, 0.3, 0.0])
    structure = sot.Groups(ROWS, [0, 1, 1, 0], ThresholdSqrt(0.3)) + sot.Coverage(ROWS)
    truth = subset_optimum(M, a, b, structure)
    result = solve(M, a, b, structure=structure, tol=1e-7)
    assert result.value == pytest.approx(truth.value, rel=1e-6)
    assert (result.plan[1] == 0).all()
    assert (result.plan[:, 3] == 0).all()
    assert result.plan[0, 2] == 0


def test_coincident_points_cost_nothing():
    M = np.abs(np.arange(6.0)[:, None] - np.arange(6.0))
    result = solve(M, structure=sot.Groups([0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 2, 2]), tol=1e-4)
    assert result.converged
    assert result.value <= 1e-11


def test_a_function_that_charges_nothing():
    M, a, b = random_problem(3, 3, 3)
    free = sot.Groups(ROWS, COLS, Truncation(0.0))
    result = sot.solve(M, a, b, structure=free, method="splitting")
    assert result.converged
    assert result.value == 0


def test_the_order_of_the_points_does_not_matter():
    M, a, b = random_problem(10, 9, 7)
    rows, cols = np.arange(10) % 3, np.arange(9) % 2
    i, j = np.random.default_rng(0).permutation(10), np.random.default_rng(1).permutation(9)
    one = solve(M, a, b, structure=sot.Groups(rows, cols), tol=1e-8)
    two = solve(M[i][:, j], a[i], b[j], structure=sot.Groups(rows[i], cols[j]), tol=1e-8)
    assert two.value == pytest.approx(one.value, rel=2e-8)


def test_scaling_masses_scales_the_answer():
    """Bit by bit, by a power of two: nothing in the method is an absolute amount of mass."""
    M, a, b = random_problem(10, 9, 8)
    structure = sot.Groups(np.arange(10) % 3, np.arange(9) % 2)
    one = solve(M, a, b, structure=structure)
    two = solve(M, 2.0**-60 * a, 2.0**-60 * b, structure=structure)
    assert np.array_equal(two.plan, 2.0**-60 * one.plan)
    assert two.value == 2.0**-60 * one.value


@pytest.mark.parametrize("alpha", [5.0, 500.0])
def test_a_warm_start_leads_to_the_same_value(alpha):
    """Two certified values differ by at most the larger gap."""
    problem = clusters(50, seed=3)
    structure = cluster_groups(problem, alpha)
    M = problem.cost
    first = solve(M, structure=structure)
    again = solve(M, structure=structure, init=first)
    assert again.converged
    assert again.value == pytest.approx(first.value, rel=2e-4)
    noise = 1.0 + 1e-3 * np.random.default_rng(0).standard_normal(M.shape)
    cold = solve(noise * M, structure=structure)
    warm = solve(noise * M, structure=structure, init=first)
    assert warm.converged
    assert warm.value == pytest.approx(cold.value, rel=2e-4)


def test_starts_from_a_plan_or_potentials_alone():
    M, a, b = random_problem(10, 9, 9)
    structure = sot.Groups(np.arange(10) % 3, np.arange(9) % 2)
    first = solve(M, a, b, structure=structure, tol=1e-8)
    for init in (first.plan, first.potentials):
        again = solve(M, a, b, structure=structure, tol=1e-8, init=init)
        assert again.value == pytest.approx(first.value, rel=2e-8)


def test_same_input_same_bits():
    problem = clusters(100, 90, seed=2)
    one, two = (solve(problem.cost, structure=cluster_groups(problem, 2.0)) for _ in range(2))
    assert np.array_equal(one.plan, two.plan)
    assert np.array_equal(one.worst_cost, two.worst_cost)
    assert one.lower_bound == two.lower_bound
    assert one.n_iter == two.n_iter


@pytest.mark.filterwarnings("ignore::structot.ConvergenceWarning")
def test_ends_by_itself_at_the_limit_of_precision():
    M, a, b = random_problem(10, 9, 10)
    result = solve(M, a, b, structure=sot.Groups(np.arange(10) % 3, np.arange(9) % 2), tol=0.0)
    # Value and bound are sums over 90 pairs: some 100 ulp, and the steps end at 1e-15 of the point.
    assert abs(result.value - result.lower_bound) <= 1e-12 * result.value


class _Opaque(Structure):
    """Layers that hide how they are made: one Python function each, metric and prox generic."""

    def __init__(self, *structures: Structure, keep_blocks: bool = False) -> None:
        self.structures, self.keep_blocks = structures, keep_blocks

    def _bound(self, M, a, b):
        layers = [structure.bind(M).layers[0] for structure in self.structures]
        assert all(layer.kind == "blocks" for layer in layers)
        hidden = [Oracle(layer.value, M.shape) for layer in layers]
        return BoundCost.of(None, [hidden[0], *(layers if self.keep_blocks else hidden)[1:]])


@pytest.mark.parametrize("keep_blocks", [False, True])
def test_layers_without_a_fast_prox(keep_blocks):
    M, a, b = random_problem(3, 3, 11)
    parts = sot.Groups(ROWS, COLS, Sqrt()), sot.Groups(COLS, ROWS, KINKS)
    truth = subset_optimum(M, a, b, parts[0] + parts[1])
    result = solve(M, a, b, structure=_Opaque(*parts, keep_blocks=keep_blocks), tol=1e-5)
    assert result.converged
    assert result.value == pytest.approx(truth.value, rel=2e-5)


def test_refuses_what_others_do_better():
    M = np.ones((3, 3))
    with pytest.raises(ValueError, match="exact"):
        sot.solve(M, method="splitting")
    with pytest.raises(ValueError, match="reg"):
        sot.solve(M, structure=sot.Groups(ROWS), method="splitting", reg=0.1)
    with pytest.raises(ValueError, match="relaxation"):
        Splitting(relaxation=2.5)
    with pytest.raises(ValueError, match="rho"):
        Splitting(rho=0.0)
