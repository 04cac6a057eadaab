"""The interior-point method: the program below the chords, Newton's equations, and the answers."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.generate import case
from problems import clusters

import structot as sot
from structot.certificate import verify
from structot.concave import Sqrt, ThresholdSqrt, Truncation
from structot.problem import Problem
from structot.solvers.interior_point.newton import Point, System
from structot.solvers.interior_point.program import Pairs, Program, first_knots, refined

Array = np.ndarray


def wide(n: int, m: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Costs over twelve decades, some of them 0, and three labels on each side."""
    rng = np.random.default_rng(seed)
    M = 10.0 ** rng.uniform(-6.0, 6.0, (n, m))
    M[rng.random((n, m)) < 0.05] = 0.0
    return M, rng.integers(0, 3, n), rng.integers(0, 3, m)


def structures(rows: Array, cols: Array) -> dict[str, sot.structures.Structure]:
    overlapping = [np.flatnonzero(rows < 2), np.flatnonzero(rows > 0)]
    return {
        "groups": sot.Groups(rows, cols, ThresholdSqrt(1.0), units="cost"),
        "own": sot.Groups(rows, None, Sqrt(), units="cost"),
        "truncation": sot.Modular() + sot.Groups(rows, cols, Truncation(3.0), units="cost"),
        "coverage": sot.Modular() + sot.Coverage(rows, cols, weights=0.5),
        "custom": sot.Groups(rows, cols, np.log1p, units="cost"),
        "chain": sot.Modular() + sot.ChainCut(0.1),
        "graph": sot.Modular() + sot.GraphCut([(0, 1), (1, 2), (0, 3)], [(0, 2)], weight=0.3),
        "layers": sot.Groups(rows, cols) + sot.Groups(overlapping, None) + sot.ChainCut(0.1),
    }


NAMES = list(structures(np.zeros(4, int), np.zeros(4, int)))


def program_of(problem: Problem, rounds: int = 0) -> Program:
    """The program below the first chords, refined at random plans."""
    pairs = Pairs(problem)
    knots = [first_knots(layer) for layer in pairs.blocks]
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        x = rng.random(problem.shape)
        knots = [
            refined(layer, own, layer.gather(x))
            for layer, own in zip(pairs.blocks, knots, strict=True)
        ]
    return Program(pairs, knots)


def least(program: Program, P: Array) -> float:
    """The program at a plan: each width λ is best at an entry of its truncation, or 0."""
    pairs = program.pairs
    plan = P[pairs.row, pairs.col]
    total = float(program.c[: pairs.size] @ plan)
    cuts = program.tail < pairs.size
    fall = plan[program.head[cuts]] - plan[program.tail[cuts]]
    total += float(program.rate[cuts] @ np.maximum(fall, 0.0))
    for width in range(pairs.size, program.size):
        own = program.tail == width
        x, rate = plan[program.head[own]], program.rate[own]
        candidates = np.append(x, 0.0)
        above = np.maximum(x - candidates[:, None], 0.0) @ rate
        total += float(np.min(program.c[width] * candidates + above))
    return total


@pytest.mark.parametrize("name", NAMES)
def test_the_program_lies_below_f_and_the_closer_the_more_knots_it_has(name):
    M, rows, cols = wide(6, 5)
    problem = Problem.of(M, structure=structures(rows, cols)[name]).normalized()
    rng = np.random.default_rng(2)
    coarse, fine = program_of(problem), program_of(problem, 6)
    for _ in range(5):
        P = rng.random(problem.shape) ** 3
        value = problem.function.extension(P)
        low, high = least(coarse, P), least(fine, P)
        assert low <= value * (1 + 1e-12)
        assert high <= value * (1 + 1e-12)
        assert low <= high * (1 + 1e-12)
        if name in ("truncation", "coverage", "chain", "graph"):
            assert low == pytest.approx(value, rel=1e-12)
    # Where the sets {P > λ} end at knots the chords miss nothing.
    x = np.random.default_rng(1).random(problem.shape)
    pairs = Pairs(problem)
    knots = [first_knots(layer) for layer in pairs.blocks]
    for _ in range(30):
        knots = [
            refined(layer, own, layer.gather(x))
            for layer, own in zip(pairs.blocks, knots, strict=True)
        ]
    exact = Program(pairs, knots)
    assert least(exact, x) == pytest.approx(problem.function.extension(x), rel=1e-9)


@pytest.mark.parametrize("mu", [1e-9, 1.0, 1e9])
def test_tensions_are_on_the_central_path(mu):
    M, rows, cols = wide(6, 5)
    structure = structures(rows, cols)["layers"]
    program = program_of(Problem.of(M, structure=structure).normalized())
    x = np.random.default_rng(3).random(program.size)
    k, rest = program.tensions(x, mu)
    assert (k > 0).all()
    assert (rest > 0).all()
    np.testing.assert_allclose(k + rest, program.rate, rtol=1e-12)
    size = mu / rest + mu / k
    error = mu / rest - mu / k - (x[program.head] - x[program.tail])
    assert (np.abs(error) <= 1e-12 * size).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reg", [0.0, 0.3])
def test_a_newton_step_solves_the_linearised_equations(name, reg):
    M, rows, cols = wide(6, 5)
    M = 1.0 + M / (1.0 + M)  # one decade: here differences are compared
    problem = Problem.of(M, structure=structures(rows, cols)[name], reg=reg).normalized()
    program = program_of(problem)
    pairs, rng = program.pairs, np.random.default_rng(4)
    bars = program.rate.size
    share = rng.uniform(0.1, 0.9, bars)
    point = Point(
        x=rng.uniform(0.5, 1.5, program.size),
        z=rng.uniform(0.5, 1.5, program.size),
        y=rng.normal(size=pairs.marginals.size),
        Y=rng.uniform(0.5, 1.5, bars),
        Z=rng.uniform(0.5, 1.5, bars),
        k=share * program.rate,
        rest=(1.0 - share) * program.rate,
    )

    def equations(at: Point) -> Array:
        stationary = program.c + program.B.T @ at.k - at.z
        stationary[: pairs.size] -= pairs.A.T @ at.y
        stationary[: pairs.size] += pairs.omega * np.log(at.x[: pairs.size] / pairs.r)
        sums = pairs.A @ at.x[: pairs.size] - pairs.marginals
        lengths = program.B @ at.x - at.Y + at.Z
        products = [s * t for s, t in at.products]
        return np.concatenate([stationary, sums, lengths, *products])

    step = System(program, point).solve([np.full(s.size, 0.1) for s, _ in point.products])
    h = 1e-6

    def along(t: float) -> Point:
        return Point(**{key: s + t * getattr(step, key) for key, s in vars(point).items()})

    slope = (equations(along(h)) - equations(along(-h))) / (2.0 * h)
    linear = program.size + pairs.marginals.size + bars
    wanted = np.append(np.zeros(linear), np.full(point.count, 0.1)) - equations(point)
    np.testing.assert_allclose(slope, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reg", [0.0, 1e-3, 10.0])
def test_costs_over_twelve_decades_are_solved(name, reg):
    M, rows, cols = wide(7, 9, seed=5)
    structure = structures(rows, cols)[name]
    options = {"structure": structure, "reg": reg, "tol": 1e-4}
    result = sot.solve(M, method="interior_point", **options)
    assert result.converged
    assert verify(M, None, None, structure, result, reg=reg).holds(1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_it_agrees_with_the_method_of_choice(name):
    data = clusters(12, n_classes=3)
    structure = structures(data.source_labels, data.target_labels)[name]
    options = {"structure": structure, "tol": 1e-6}
    first = sot.solve(data.cost, method="auto", **options)
    second = sot.solve(data.cost, method="interior_point", **options)
    assert first.converged
    assert second.converged
    assert second.value == pytest.approx(first.value, rel=2e-6)


def test_with_entropy_it_agrees_with_newton():
    data = clusters(12, n_classes=3)
    structure = sot.Groups(data.source_labels, data.target_labels)
    options = {"structure": structure, "reg": 0.1 * data.cost.mean(), "tol": 1e-8}
    first = sot.solve(data.cost, method="entropic", **options)
    second = sot.solve(data.cost, method="interior_point", **options)
    assert first.converged
    assert second.converged
    np.testing.assert_allclose(second.plan, first.plan, atol=1e-5)


def test_several_layers_with_entropy():
    data = clusters(10, n_classes=3)
    structure = sot.Groups(data.source_labels) + sot.ChainCut(0.1)
    reg = 0.1 * data.cost.mean()
    result = sot.solve(data.cost, structure=structure, reg=reg)
    assert result.converged
    assert verify(data.cost, None, None, structure, result, reg=reg).holds(1e-8)


def test_other_functions_are_refused():
    with pytest.raises(ValueError, match="neither blocks nor cuts"):
        sot.solve(
            np.ones((2, 2)), structure=sot.Rank(np.eye(2), np.eye(2)), method="interior_point"
        )


def test_where_nothing_costs_anything_any_plan_will_do():
    M = np.zeros((3, 4))
    result = sot.solve(M, structure=sot.Groups([0, 0, 1]), method="interior_point")
    assert result.converged
    assert result.value == 0.0


@pytest.mark.parametrize("seed", [7000819, 7000900])
def test_rows_may_miss_by_rounding_what_no_column_misses(seed):
    """Where the totals of both marginals differ in the last digit."""
    found = case(seed, 3)
    result = sot.solve(found.M, found.a, found.b, method="interior_point", **found.options())
    assert result.converged
