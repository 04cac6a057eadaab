"""Certified steps along the central path of a problem with routes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from structot.certificate import dual_by_exact_transport, dual_from_tariffs
from structot.problem import Problem
from structot.solvers._cutting_planes import rounded
from structot.solvers._loop import Step
from structot.solvers.interior_point.lanes.layout import Layout
from structot.solvers.interior_point.lanes.namespace import NumPy
from structot.solvers.interior_point.lanes.path import CentralPath
from structot.solvers.interior_point.lanes.program import Point, Prices, Program
from structot.solvers.interior_point.lanes.start import first_point
from structot.solvers.start import Start

# A certificate is made each time that Σ x z has fallen below this part of what it was at the last.
_NEWS = 0.5
# The path has ended where Σ x z is this small beside the value.
_ENDED = 1e-16


def route_path(problem: Problem, start: Start) -> Iterator[Step | None]:
    """One Newton step per item, a `Step` where there is news.

    A start is no place to begin for an interior-point method, but what it proves is kept.
    """
    if start.plan is not None or start.potentials is not None:
        yield _known(problem, start)
    layout = Layout.of(problem)
    xp = NumPy()
    program = Program.of(layout, xp, _prices(problem, layout))
    path = CentralPath(program, first_point(program, xp.array(layout.cost)))
    shown, value = np.inf, np.inf
    for _ in path.steps():
        total = path.total
        if total > _NEWS * shown:
            yield None
            continue
        shown = total
        step = _certified(problem, layout, path.point, xp)
        yield step
        value = min(value, step.value)
        if total <= _ENDED * abs(value):
            break
    yield _last_resort(problem, layout, path.point, xp)


def _prices(problem: Problem, layout: Layout) -> Prices:
    """Of the rows and the columns of the layout, where they are relaxed."""
    rows, columns = problem.marginals.prices or (None, None)
    return (columns, rows) if layout.transposed else (rows, columns)


def _certified(problem: Problem, layout: Layout, point: Point, xp: NumPy) -> Step:
    """The plan with its marginals put right, and what the tariffs within their budgets prove."""
    plan = layout.plan(xp.numpy(point.x[0]), problem.shape)
    P = problem.feasible(plan, overwrite=True)
    value = problem.objective(P)  # before there is a worst cost: both take arrays of this size
    tariffs = layout.tariffs(problem, xp.numpy(point.z[1]), xp.numpy(point.z[2]))
    u = layout.row_potentials(xp.numpy(point.u), xp.numpy(point.v), problem.shape[0])
    proof = dual_from_tariffs(problem, *tariffs, u)
    return Step(value, lambda: P, proof.bound, lambda: proof)


def _last_resort(problem: Problem, layout: Layout, point: Point, xp: NumPy) -> Step:
    """The last point once more, the exact way.

    What its plan lacks is sent at least cost instead of evenly, and the potentials are those of
    exact transport with its tariffs.
    """
    dual = _certified(problem, layout, point, xp).dual
    assert dual is not None
    K = dual().K
    assert K is not None
    P = rounded(problem, layout.plan(xp.numpy(point.x[0]), problem.shape), K)
    proof = dual_by_exact_transport(problem, K)
    return Step(problem.objective(P), lambda: P, proof.bound, lambda: proof)


def _known(problem: Problem, start: Start) -> Step:
    """What an earlier plan and earlier potentials are worth here."""
    step = Step()
    if start.plan is not None:
        P = start.plan
        step = Step(problem.objective(P), lambda: P)
    if start.potentials is not None:
        assert problem.lanes is not None
        assert problem.linear is not None
        u, v = start.potentials
        above = np.add.outer(u, v) - problem.linear
        proof = dual_from_tariffs(problem, *problem.lanes.cheapest_tariffs(above), u)
        step = Step(step.value, step.plan, proof.bound, lambda: proof)
    return step
