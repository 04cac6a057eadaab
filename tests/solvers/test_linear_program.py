"""The linear program against brute force over subsets, plain transport and itself in disguise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from problems import clusters, moved
from subset_program import subset_optimum

import structot as sot
from structot.certificate import verify
from structot.concave import Linear, PiecewiseLinear, Sqrt, ThresholdSqrt, Truncation
from structot.solvers import LinearProgram
from structot.transport import emd

ROWS, COLS = np.array([0, 0, 1]), np.array([1, 0, 1])
KINKS = PiecewiseLinear([0.7, 2.0, 4.0], [1.5, 0.8, 0.3, 0.1])

TINY = {
    "truncation": sot.Groups(ROWS, COLS, Truncation(1.5), units="cost"),
    "never reached": sot.Groups(ROWS, COLS, Truncation(100.0), units="cost"),
    "nothing": sot.Groups(ROWS, COLS, Truncation(0.0), units="cost"),
    "piecewise": sot.Groups(ROWS, COLS, KINKS, units="cost"),
    "block units": sot.Groups(ROWS, COLS, PiecewiseLinear([0.2, 0.5], [1, 0.4, 0]), units="block"),
    "per block": sot.Groups(
        ROWS, COLS, lambda k, t: Truncation(1.0 + k) if t else KINKS, units="cost"
    ),
    "source only": sot.Groups(ROWS, None, Truncation(1.0), units="cost"),
    "coverage": sot.Coverage(ROWS, COLS, weights=[[1.0, 2.0], [0.5, 0.0]]),
    "fixed charge": sot.Modular() + sot.Coverage(ROWS, COLS, weights=0.7),
    "two layers": 0.5 * sot.Groups(ROWS, COLS, KINKS, units="cost")
    + sot.Coverage(COLS, ROWS, weights=0.4),
    "three": sot.Groups(ROWS, COLS, Truncation(1.0), units="cost")
    + sot.Groups(COLS, ROWS, KINKS, units="cost")
    + sot.Modular(),
}


def solve(M, a=None, b=None, *, structure, tol=1e-9, method="linear_program", **options):
    result = sot.solve(M, a, b, structure=structure, method=method, tol=tol, **options)
    assert verify(M, a, b, structure, result).holds()
    return result


def random_problem(n, m, seed):
    rng = np.random.default_rng(seed)
    M = moved(rng.uniform(0.2, 2.0, (n, m)))
    return M, rng.dirichlet(np.full(n, 2.0)), rng.dirichlet(np.full(m, 2.0))


@pytest.mark.parametrize("name", TINY)
@pytest.mark.parametrize("seed", [0, 1])
def test_equals_the_program_over_all_subsets(name, seed):
    M, a, b = random_problem(3, 3, seed)
    truth = subset_optimum(M, a, b, TINY[name])
    result = solve(M, a, b, structure=TINY[name])
    assert result.value == pytest.approx(truth.value, rel=1e-9, abs=1e-12)
    assert result.lower_bound == pytest.approx(truth.value, rel=1e-9, abs=1e-12)


def test_the_subset_program_itself_gives_a_plan_of_its_value():
    M, a, b = random_problem(3, 3, 5)
    structure = sot.Groups(ROWS, COLS, Sqrt(), units="cost")
    truth = subset_optimum(M, a, b, structure)
    assert structure.bind(M).extension(truth.plan) == pytest.approx(truth.value, rel=1e-9)
    np.testing.assert_allclose(truth.plan.sum(axis=1), a, atol=1e-10)


@pytest.mark.parametrize("g", [Linear(), Truncation(np.inf), PiecewiseLinear([], [1.0])])
def test_linear_g_is_plain_transport(g):
    M, a, b = random_problem(12, 9, 2)
    result = solve(
        M, a, b, structure=sot.Groups(np.arange(12) % 3, np.arange(9) % 2, g, units="cost")
    )
    assert result.value == pytest.approx(emd(M, a, b).value, rel=1e-12)


def test_no_structure_is_plain_transport():
    M, a, b = random_problem(7, 8, 3)
    assert solve(M, a, b, structure=None).value == pytest.approx(emd(M, a, b).value, rel=1e-12)


@pytest.mark.parametrize("algorithm", ["interior_point", "simplex"])
def test_zero_costs_forbidden_pairs_and_points_of_no_weight(algorithm):
    M, _, _ = random_problem(3, 4, 4)
    M[0, 0] = M[1, 2] = M[2, 3] = 0.0
    M[0, 2] = np.inf
    a, b = np.array([0.6, 0.0, 0.4]), np.array([0.3, 0.4, 0.3, 0.0])
    structure = sot.Groups(ROWS, [0, 1, 1, 0], Truncation(0.8), units="cost")
    truth = subset_optimum(M, a, b, structure)
    result = solve(M, a, b, structure=structure, method=LinearProgram(algorithm=algorithm))
    assert result.value == pytest.approx(truth.value, rel=1e-9)
    assert (result.plan[1] == 0).all()
    assert (result.plan[:, 3] == 0).all()


def test_coincident_points_cost_nothing():
    M = np.abs(np.arange(5.0)[:, None] - np.arange(5.0))
    result = solve(
        M, structure=sot.Groups([0, 0, 1, 1, 2], [0, 0, 1, 1, 2], Truncation(2.0), units="cost")
    )
    assert result.value == pytest.approx(0.0, abs=1e-12)


def test_parts_that_no_pair_connects():
    M = np.full((4, 4), np.inf)
    M[:2, :2], M[2:, 2:] = [[1.0, 2.0], [2.0, 1.5]], [[1.0, 0.5], [3.0, 1.0]]
    structure = sot.Groups([0, 1, 0, 1], [0, 0, 1, 1], Truncation(1.2), units="cost")
    truth = subset_optimum(M, np.full(4, 0.25), np.full(4, 0.25), structure)
    assert solve(M, structure=structure).value == pytest.approx(truth.value, rel=1e-9)


@pytest.mark.parametrize(("cost_scale", "mass_scale"), [(1e-9, 1.0), (1e12, 1.0), (1.0, 1e-12)])
def test_costs_and_masses_of_any_size(cost_scale, mass_scale):
    M, a, b = random_problem(10, 9, 6)
    rows, cols = np.arange(10) % 3, np.arange(9) % 2
    reference = solve(M, a, b, structure=sot.Groups(rows, cols, Truncation(4.0), units="cost"))
    scaled = solve(
        cost_scale * M,
        mass_scale * a,
        mass_scale * b,
        structure=sot.Groups(rows, cols, Truncation(4.0 * cost_scale), units="cost"),
    )
    assert scaled.value == pytest.approx(cost_scale * mass_scale * reference.value, rel=1e-9)


def test_the_order_of_the_points_does_not_matter():
    M, a, b = random_problem(10, 9, 7)
    rows, cols = np.arange(10) % 3, np.arange(9) % 2
    i, j = np.random.default_rng(0).permutation(10), np.random.default_rng(1).permutation(9)
    one = solve(M, a, b, structure=sot.Groups(rows, cols, KINKS, units="cost"))
    two = solve(M[i][:, j], a[i], b[j], structure=sot.Groups(rows[i], cols[j], KINKS, units="cost"))
    assert two.value == pytest.approx(one.value, rel=1e-9)


def test_more_of_the_same_block_is_cheaper():
    M, a, b = random_problem(10, 9, 8)
    rows, cols = np.arange(10) % 3, np.arange(9) % 2
    values = [
        solve(M, a, b, structure=sot.Groups(rows, cols, Truncation(alpha), units="cost")).value
        for alpha in (0.5, 1.0, 4.0, 16.0, 64.0)
    ]
    assert np.all(np.diff(values) > -1e-12)
    assert values[0] == pytest.approx(0.5 * values[1])  # far below every block: f is linear in α
    assert values[-1] == pytest.approx(emd(M, a, b).value)


def test_without_time_the_answer_is_poor_but_certified():
    M, a, b = random_problem(40, 40, 9)
    structure = sot.Groups(np.arange(40) % 3, np.arange(40) % 4, KINKS, units="cost")
    with pytest.warns(sot.ConvergenceWarning):
        poor = solve(M, a, b, structure=structure, method="linear_program", time_limit=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best = solve(M, a, b, structure=structure)
    assert poor.status is sot.Status.TIME_LIMIT
    assert poor.lower_bound < best.value < poor.value


@pytest.mark.parametrize("g", [ThresholdSqrt(1.0), Sqrt()])
def test_names_the_function_that_is_not_piecewise_linear_where_that_matters(g):
    rows = np.zeros(200, int)
    structure = sot.Coverage(rows) + sot.Groups(rows, rows, g, units="cost")
    with pytest.raises(ValueError, match=type(g).__name__) as caught:
        sot.solve(np.ones((200, 200)), structure=structure, method="linear_program")
    assert "method='auto'" in str(caught.value)


# -- programs over vertices ------------------------------------------------------------------------

OTHERS = {
    "square root": sot.Groups([0, 0, 1], [0, 1, 1], Sqrt(), units="cost"),
    "windows": sot.Groups([[0, 1], [1, 2]], [[0, 1], [1, 2]], ThresholdSqrt(0.3), units="cost"),
    "cut": sot.Modular() + sot.ChainCut(0.2),
    "rank": sot.Modular() + 0.3 * sot.Rank([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], None),
    "volume": sot.LogDet([[1.0], [2.0], [0.5]], [[1.0], [0.0], [1.0]]),
    "values": sot.SetFunction(lambda S: float(S.any(axis=1).sum()) ** 0.5) + sot.Modular(),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("seed", range(3))
def test_vertices_one_by_one_lead_to_the_optimum_over_all_subsets(name, seed):
    M, a, b = random_problem(3, 3, seed)
    if seed == 1:
        a[0] = 0.0  # a point that carries nothing
        a, b = a / a.sum(), b / b.sum()
    if seed == 2:
        M[0, 1] = np.inf
    structure = OTHERS[name]
    result = sot.solve(M, a, b, structure=structure, method="linear_program", tol=1e-8)
    optimum = subset_optimum(M, a, b, structure).value
    assert result.value == pytest.approx(optimum, rel=1e-7, abs=1e-9)
    assert verify(M, a, b, structure, result).holds()


def test_vertices_agree_with_newton_on_larger_problems():
    data = clusters(25, 20, n_classes=3)
    structure = sot.Groups(
        data.source_labels, data.target_labels, ThresholdSqrt(100.0), units="cost"
    )
    one, two = (
        sot.solve(data.cost, structure=structure, method=method, tol=1e-6)
        for method in ("linear_program", "newton")
    )
    assert abs(one.value - two.value) <= 2e-6 * one.value


def test_goes_on_from_a_plan_that_is_known():
    data = clusters(15, 12, n_classes=3)
    structure = sot.Groups(data.source_labels, data.target_labels, Sqrt(), units="cost")
    first = sot.solve(data.cost, structure=structure, tol=1e-9)
    again = sot.solve(data.cost, structure=structure, method="linear_program", init=first)
    assert again.value <= first.value * (1 + 1e-12)


def test_refuses_entropy_and_unknown_algorithms():
    with pytest.raises(ValueError, match="reg"):
        sot.solve(np.ones((2, 2)), method="linear_program", reg=0.1)
    with pytest.raises(ValueError, match="interior_point"):
        LinearProgram(algorithm="primal")
