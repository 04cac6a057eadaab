"""The interior-point method for routes against HiGHS on the whole program, and its algebra."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from problems import clusters, moved

import structot as sot
from structot.problem import Problem
from structot.solvers.interior_point.lanes.layout import Layout
from structot.solvers.interior_point.lanes.namespace import NumPy
from structot.solvers.interior_point.lanes.newton import Newton
from structot.solvers.interior_point.lanes.path import CentralPath
from structot.solvers.interior_point.lanes.program import Point, Program, Residuals
from structot.solvers.interior_point.lanes.start import first_point
from structot.structures._grouping import group_numbers

Array = np.ndarray


def drawn(seed: int, largest: int) -> tuple[Array, Array, Array, sot.Routes]:
    """1 to 8 groups of uneven sizes per side, some zero weights, forbidden pairs, many charges."""
    rng = np.random.default_rng([17, seed])
    n, m = rng.integers(1, largest + 1, 2)
    sides: list = []
    for size in (n, m):
        count = int(rng.integers(1, 9))
        labels = rng.choice(count, size, p=rng.dirichlet(np.ones(count)))
        sides.append(None if rng.random() < 0.1 else labels.tolist())
    M = moved(10.0 ** rng.uniform(-2, 2) * rng.random((n, m)) ** rng.integers(1, 4))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    for weights in (a, b):
        if rng.random() < 0.3 and weights.size > 1:
            weights[rng.random(weights.size) < 0.2] = 0.0
            weights[0] += 0.1
            weights /= weights.sum()
    if rng.random() < 0.4:
        plan = sot.transport.emd(rng.random((n, m)), a, b).plan
        M[(rng.random((n, m)) < rng.uniform(0.0, 0.7)) & (plan == 0)] = np.inf
    shape = [
        int(group_numbers("groups", side, size).max()) + 1
        for side, size in zip(sides, (n, m), strict=True)
    ]
    charge: Array | float = float(10.0 ** rng.uniform(-2, 1.5))
    if rng.random() < 0.4:
        charge = charge * rng.random(shape) * (rng.random(shape) < 0.8)
    return M, a, b, sot.Routes(*sides, charge)


def agree(seed: int, largest: int) -> None:
    M, a, b, structure = drawn(seed, largest)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = sot.solve(M, a, b, structure=structure, method="interior_point", tol=1e-8)
    exact = sot.solve(M, a, b, structure=structure, method="linear_program", tol=1e-8)
    assert ours.converged
    assert exact.converged
    assert ours.value == pytest.approx(exact.value, rel=1e-7)
    assert ours.verify().holds()
    assert exact.verify().holds()


@pytest.mark.parametrize("seed", range(60))
def test_equals_the_whole_program(seed: int) -> None:
    agree(seed, largest=24)


@pytest.mark.parametrize("seed", range(100, 108))
def test_equals_the_whole_program_on_larger_problems(seed: int) -> None:
    agree(seed, largest=60)


def test_many_sizes_of_groups() -> None:
    """More sizes than are kept apart: some groups are filled up with points of no weight."""
    sizes = np.arange(1, 14)
    rng = np.random.default_rng(0)
    M = moved(rng.random((sizes.sum(), 30)))
    structure = sot.Routes(np.repeat(np.arange(sizes.size), sizes), np.arange(30) % 4, 1.0)
    layout = Layout.of(Problem.of(M, structure=structure))
    assert layout.cost.shape[0] > sizes.sum()
    ours = sot.solve(M, structure=structure, method="interior_point", tol=1e-8)
    exact = sot.solve(M, structure=structure, method="linear_program", tol=1e-8)
    assert ours.converged
    assert ours.value == pytest.approx(exact.value, rel=1e-7)


# ------------------------------------------------------------------------------- special problems


def test_no_charge_is_plain_transport() -> None:
    points = clusters(30, 25, n_classes=3)
    labels = points.source_labels, points.target_labels
    plain = sot.solve(points.cost)
    free = sot.solve(points.cost, structure=sot.Routes(*labels, 0.0))
    assert free.method == "exact"
    assert free.value == plain.value
    # Next to no charge goes through the method itself, and ends near the same value.
    little = sot.solve(points.cost, structure=sot.Routes(*labels, 1e-7), tol=1e-7)
    assert little.method == "interior_point"
    assert plain.value * (1 - 1e-7) <= little.value <= plain.value * (1 + 1e-5)


def test_every_point_its_own_group_is_linear() -> None:
    rng = np.random.default_rng(1)
    M, a, b = moved(rng.random((7, 9))), rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(9))
    result = sot.solve(M, a, b, structure=sot.Routes(None, None, 0.2, units="cost"), tol=1e-8)
    plain = sot.solve(M + 0.2 / np.minimum.outer(a, b), a, b)
    assert result.method == "exact"
    assert result.value == pytest.approx(plain.value, rel=1e-12)
    assert result.verify().holds()
    path = sot.solve(
        M, a, b, structure=sot.Routes(None, None, 0.2, units="cost"), method="interior_point"
    )
    assert path.converged
    assert path.value == pytest.approx(plain.value, rel=1e-4)


def test_one_group_pays_for_its_only_route() -> None:
    M = moved(np.random.default_rng(2).random((6, 8)))
    result = sot.solve(M, structure=sot.Routes([0] * 6, [0] * 8, 0.5, units="cost"), tol=1e-8)
    assert result.routes == pytest.approx(np.ones((1, 1)))
    assert result.value == pytest.approx(sot.solve(M).value + 0.5, rel=1e-7)


def test_parts_that_nothing_joins() -> None:
    """Two sets of points with no allowed pair between them: the potentials have two constants."""
    M = np.full((6, 6), np.inf)
    M[:3, :3] = moved(np.random.default_rng(3).random((3, 3)))
    M[3:, 3:] = moved(np.random.default_rng(4).random((3, 3)))
    structure = sot.Routes([0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2], 0.5)
    ours = sot.solve(M, structure=structure, method="interior_point", tol=1e-8)
    exact = sot.solve(M, structure=structure, method="linear_program", tol=1e-8)
    assert ours.converged
    assert ours.value == pytest.approx(exact.value, rel=1e-7)


def test_the_transpose_has_the_same_value() -> None:
    M, a, b, _ = drawn(3, 24)
    rows, cols = np.arange(a.size) % 3, np.arange(b.size) % 2
    there = sot.solve(M, a, b, structure=sot.Routes(rows, cols, 0.4), tol=1e-8)
    back = sot.solve(M.T, b, a, structure=sot.Routes(cols, rows, 0.4), tol=1e-8)
    assert there.value == pytest.approx(back.value, rel=1e-7)


# ---------------------------------------------------------------------------- starts and limits


def test_an_earlier_answer_is_kept() -> None:
    points = clusters(30, 25, n_classes=3)
    structure = sot.Routes(points.source_labels, points.target_labels, 0.3)
    first = sot.solve(points.cost, structure=structure, tol=1e-6)
    again = sot.solve(points.cost, structure=structure, tol=2e-6, init=first)
    assert again.converged
    assert again.n_iter == 1
    for init in (first.plan, first.potentials):
        assert sot.solve(points.cost, structure=structure, tol=1e-6, init=init).converged


def test_a_path_over_the_charge() -> None:
    points = clusters(24, n_classes=3)
    charges = (0.01, 0.1, 0.3, 1.0)
    path = sot.solve_path(
        points.cost,
        structures=[sot.Routes(points.source_labels, points.target_labels, x) for x in charges],
        tol=1e-6,
    )
    assert path.converged
    assert path.dials.tolist() == list(charges)
    values = path.table()["value"]
    assert (np.diff(values) >= -1e-6 * values[1:]).all()


def test_limits_return_what_is_certified() -> None:
    points = clusters(30, n_classes=3)
    structure = sot.Routes(points.source_labels, points.target_labels, 0.3)
    with pytest.warns(sot.ConvergenceWarning):
        result = sot.solve(points.cost, structure=structure, max_iter=2, tol=1e-9)
    assert result.status is sot.Status.ITERATION_LIMIT
    assert result.verify().holds()
    with pytest.warns(sot.ConvergenceWarning):
        result = sot.solve(points.cost, structure=structure, time_limit=1e-6, tol=1e-9)
    assert result.status is sot.Status.TIME_LIMIT
    assert result.verify().holds()


def test_threads_share_the_work_and_change_no_bit() -> None:
    """Large enough for threads; groups of several sizes, so that there are several panels."""
    data = clusters(220, n_classes=3)
    ys = np.where(np.arange(220) < 40, 7, data.source_labels)
    results = []
    try:
        for threads in (1, 2, 3):
            sot.set_num_threads(threads)
            results.append(sot.solve(data.cost, structure=sot.Routes(ys, data.target_labels)))
    finally:
        sot.set_num_threads(None)
    assert results[0].converged
    assert results[0].verify().holds()
    for other in results[1:]:
        np.testing.assert_array_equal(other.plan, results[0].plan)
        assert other.lower_bound == results[0].lower_bound


def test_operations_shared_by_threads_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 300, 200)) + 0.1
    try:
        sot.set_num_threads(3)
        for name in ("add", "divide", "multiply", "subtract"):
            ours, theirs = getattr(NumPy(), name), getattr(np, name)
            for left, right in ((x, y), (x, y[:, :1]), (x[0], y), (2.0, y), (x[:1], y)):
                out = np.full(x.shape, np.nan)
                assert ours(left, right, out=out) is out
                np.testing.assert_array_equal(out, theirs(left, right))
        S, T = rng.random((150, 150)), rng.random((300, 150))
        found = np.tril(NumPy().subtract_gram(S.copy(), T))
        assert found == pytest.approx(np.tril(S - T.T @ T), abs=1e-12)
    finally:
        sot.set_num_threads(None)


# ------------------------------------------------------------------------------------ the algebra


def at_start(seed: int) -> tuple[Program, Point, Layout]:
    M, a, b, structure = drawn(seed, 20)
    layout = Layout.of(Problem.of(M, a, b, structure=structure).normalized())
    program = Program.of(layout, NumPy())
    return program, first_point(program, layout.cost), layout


SEEDS = [seed for seed in range(12) if drawn(seed, 20)[3].bind(*drawn(seed, 20)[:3]).lanes]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_start_satisfies_the_equations(seed: int) -> None:
    program, point, layout = at_start(seed)
    path = CentralPath(program, point)
    rest = path.residuals()
    if layout.live is None:
        assert abs(rest.u).max() <= 1e-13
        assert abs(rest.v).max() <= 1e-13
    assert abs(rest.rows).max() <= 1e-12 * (1 + abs(point.x[1]).max())
    assert abs(rest.cols).max() <= 1e-12 * (1 + abs(point.x[2]).max())
    assert abs(rest.routes).max() <= 1e-13
    z = np.empty_like(point.z[0])
    program.spread(*path._tariffs(), z)
    z += layout.cost - point.u[:, None] - point.v
    live = np.ones(z.shape, bool) if layout.live is None else layout.live
    assert z[live] == pytest.approx(point.z[0][live], rel=1e-12)
    for array in (*point.x, *point.z):
        assert array.min() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_solves_the_linearised_equations(seed: int) -> None:
    program, point, layout = at_start(seed)
    rng = np.random.default_rng(seed)
    step = Point(
        tuple(np.zeros_like(x) for x in point.x),
        tuple(np.zeros_like(x) for x in point.z),
        np.zeros_like(point.u),
        np.zeros_like(point.v),
    )
    newton = Newton(program)
    newton.factor(point)
    target = tuple(
        rng.normal(size=x.shape) * x * z * (1.0 if there is None else there)
        for x, z, there in zip(point.x, point.z, program.there, strict=True)
    )
    rest = CentralPath(program, point).residuals()
    rest = Residuals(rest.u, rest.v, *(r + 1e-3 * t for r, t in zip(rest[2:], program.there[1:])))
    newton.step(target, rest, step)
    for k, there in enumerate(program.there):
        mask = slice(None) if there is None else there > 0
        left = point.x[k] * step.z[k] + point.z[k] * step.x[k]
        size = abs(point.x[k] * step.z[k]) + abs(point.z[k] * step.x[k]) + abs(target[k])
        assert (abs(left - target[k])[mask] <= 1e-12 * size[mask]).all()
    rows, cols = program.lane_sums(step.x[0])
    wide = program.to_lanes(step.x[3])
    scale = 1e-9 * sum(abs(x).max() for x in step.x)
    assert rows.sum(1) == pytest.approx(rest.u, abs=scale)
    assert cols.sum(0) == pytest.approx(rest.v, abs=scale)
    assert (rows + step.x[1] - wide[0]) * program.there[1] == pytest.approx(rest.rows, abs=scale)
    assert (cols + step.x[2] - wide[1]) * program.there[2] == pytest.approx(rest.cols, abs=scale)
    dz = np.empty_like(step.z[0])
    program.spread(step.z[1], step.z[2], dz)
    dz -= step.u[:, None] + step.v
    live = np.ones(dz.shape, bool) if layout.live is None else layout.live
    assert dz[live] == pytest.approx(step.z[0][live], abs=1e-10 * abs(dz).max())


# ------------------------------------------------------------------------------ relaxed marginals


@pytest.mark.parametrize("seed", range(20))
def test_relaxed_by_total_variation_equals_the_whole_program(seed: int) -> None:
    """One side or both, prices far below and far above the costs, totals that differ."""
    M, a, b, structure = drawn(200 + seed, 20)
    rng = np.random.default_rng(seed)
    unit = float(M[np.isfinite(M)].mean())
    prices: list[float | None] = [unit * 10.0 ** rng.uniform(-1.5, 1.5) for _ in range(2)]
    if seed % 3:
        prices[seed % 2] = None
    else:
        a = a * rng.uniform(0.5, 2.0)
    options = {"unbalanced": tuple(prices), "unbalanced_type": "TV", "tol": 1e-8}
    method = "auto" if structure.bind(M, a, b).modular_cost is not None else "interior_point"
    ours = sot.solve(M, a, b, structure=structure, method=method, **options)
    exact = sot.solve(M, a, b, structure=structure, method="linear_program", **options)
    assert ours.converged
    assert exact.converged
    assert ours.value == pytest.approx(exact.value, rel=1e-7)
    assert ours.verify().holds()


def test_other_relaxations_are_refused_with_the_reason() -> None:
    M, structure = np.ones((4, 4)) + np.eye(4), sot.Routes([0, 0, 1, 1], [0, 1, 0, 1], 0.3)
    for options in ({"unbalanced": 1.0}, {"mass": 0.5}):
        with pytest.raises(ValueError, match=r"unbalanced_type='TV'; for 'KL' or .* use Groups"):
            sot.solve(M, structure=structure, method="interior_point", **options)


@pytest.mark.parametrize("method", ["interior_point", "linear_program"])
@pytest.mark.parametrize("relaxed", [{}, {"unbalanced": 2.0, "unbalanced_type": "TV"}])
def test_prices_that_forbid_cost_no_digits(method: str, relaxed: dict) -> None:
    """A price of 1e15 beside small ones: the answer is that of +inf, and certified."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        M = rng.integers(0, 4, (9, 10)).astype(float)
        forbidden = rng.random(M.shape) < 0.25
        charge = 0.7 * rng.random((3, 4))
        structure = sot.Routes(np.arange(9) % 3, np.arange(10) % 4, charge, units="cost")
        a, b = (x / x.sum() for x in (rng.random(9), rng.random(10)))
        options = {"structure": structure, "method": method, "tol": 1e-7, **relaxed}
        wanted = sot.solve(np.where(forbidden, np.inf, M), a, b, **options)
        found = sot.solve(np.where(forbidden, 1e15 * (1.0 + M), M), a, b, **options)
        assert wanted.converged
        assert found.converged
        assert found.verify().holds()
        assert (found.plan[forbidden] == 0.0).all()
        assert found.value == pytest.approx(wanted.value, rel=2e-7, abs=1e-12)


def test_high_prices_that_must_be_paid_are_paid() -> None:
    """No plan without them: they are prices like others."""
    M = np.array([[1e9, 2e9], [1.0, 2.0]])
    structure = sot.Routes([0, 1], [0, 1], 0.5, units="cost")
    result = sot.solve(M, structure=structure, tol=1e-9)
    assert result.converged
    assert result.value == pytest.approx(0.5 * (1e9 + 2.0) + 1.0, rel=1e-9)
