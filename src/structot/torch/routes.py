"""Routes on a device: the interior-point method over lanes, its certificates made there too.

Notation as in `structot.submodular.lanes`: shares t of routes, tariffs α on lanes (i, l) of source
points and β on lanes (k, j) of target points, within the budgets w of the routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structot import certificate
from structot._deadline import Deadline, OutOfTime
from structot.certificate.rule import EPS, bound_rounding
from structot.outcome import Status
from structot.solvers.interior_point.lanes.layout import Layout
from structot.solvers.interior_point.lanes.path import CentralPath
from structot.solvers.interior_point.lanes.program import Point, Program
from structot.solvers.interior_point.lanes.start import first_point
from structot.structures.base import Combination, Structure
from structot.structures.modular import Modular
from structot.structures.routes import Routes
from structot.submodular.lanes import Lanes
from structot.torch.batch import Limits, Watcher, lowered
from structot.torch.namespace import Torch
from structot.torch.prohibitive import has_prohibitive

# A certificate is made each time that Σ x z has fallen below this part of what it was at the last.
_NEWS = 0.2


@dataclass(frozen=True, eq=False)
class RouteProblem:
    """A problem with routes, in its own units and in the order of its layout."""

    program: Program
    xp: Torch
    layout: Layout
    C: Tensor  # (n, m)
    linear: Tensor  # the linear part in the order and the units of the user
    cost: float  # what 1 is worth in costs and masses
    mass: float

    @classmethod
    def of(
        cls, structure: Structure | None, M: Tensor, weights: tuple[Tensor, Tensor]
    ) -> RouteProblem | str:
        """From checked tensors, or the reason why arrays must do it."""
        terms = structure.terms if isinstance(structure, Combination) else ((1.0, structure),)
        routes = [(x, term) for x, term in terms if type(term) is Routes and x > 0]
        if len(routes) != 1 or any(type(term) not in (Modular, Routes) for _, term in terms):
            return "not one term of routes"
        ((factor, term),) = routes
        sides = term.groupings((M.shape[0], M.shape[1]))
        if not all(side.is_disjoint for side in sides):
            return "groups that overlap"
        charges = factor * term.charges(sides[0].count, sides[1].count)
        a, b = (x.cpu().numpy() for x in weights)
        rows, cols = (side.layers[0].group[side.layers[0].number] for side in sides)
        price = charges * _unit(term, M, weights, rows, cols)
        if not np.isfinite(price).all() or not price.any():
            return "closed routes, or none"
        lanes = Lanes(rows, cols, a, b, price)
        total = float(a.sum())
        share = np.maximum.outer(np.bincount(rows, a), np.bincount(cols, b)) / total
        linear = _linear(terms, M)
        if has_prohibitive(linear, price / total):
            return "prices that stand for forbidden pairs"
        level = float(weights[0] @ linear @ weights[1]) / total + float(np.sum(price * share))
        cost, mass = _power_of_two(level / total), _power_of_two(total)
        layout = Layout.without_costs(lanes.in_units(cost, mass), most_sizes=1)
        if layout is None:
            return "single points on both sides"
        C = (linear.T if layout.transposed else linear) / cost
        for axis, order in enumerate(layout.order):
            place = torch.as_tensor(order, device=M.device)
            C = C.index_select(axis, place.clamp(min=0))
            C = C.index_fill_(axis, (place < 0).nonzero()[:, 0], 0.0)
        xp = Torch(M.device)
        return cls(Program.of(layout, xp), xp, layout, C, linear, cost, mass)

    @property
    def kind(self) -> tuple[Any, ...]:
        """Problems of one kind differ in numbers only, so that stages do the same operations."""
        program = self.program
        shape = tuple(self.C.shape), tuple(program.price.shape)
        pairs = program.there[0] is None
        panels = (tuple(map(str, panel)) for panel in program.panels)
        return (*shape, program.size, program.pinned, pairs, *panels)

    def arrays(self) -> list[Tensor]:
        """All the numbers that stages read and never write."""
        p = self.program
        found = (self.C, p.a, p.b, p.price, p.source, p.target, *p.there, *p.filled)
        return [x for x in (*found, p.row_group, p.col_group) if x is not None]


def _unit(
    term: Routes, M: Tensor, weights: tuple[Tensor, Tensor], rows: np.ndarray, cols: np.ndarray
) -> Any:
    """What a charge of 1 is, for every route."""
    if term.units == "cost":
        return 1.0
    a, b = weights
    mean = float(a @ M.to(torch.float64) @ b) / float(a.sum() * b.sum())
    mass = np.bincount(rows, a.cpu().numpy()), np.bincount(cols, b.cpu().numpy())
    return mean * np.minimum.outer(*mass)


def _linear(terms: tuple, M: Tensor) -> Tensor:
    """The linear part: the ground cost that routes contain, and other terms."""
    C = torch.zeros(M.shape, dtype=torch.float64, device=M.device)
    for factor, term in terms:
        given = M if type(term) is Routes or term.cost is None else torch.as_tensor(term.cost)
        C.add_(given.to(M.device), alpha=factor)
    return C


@dataclass(eq=False)
class RouteAnswer:
    """The best plan and the best proof so far, in the units and the order of the layout."""

    value: float = np.inf
    structured: float = np.inf
    bound: float = -np.inf
    atol: float = 0.0
    plan: Tensor | None = None
    tariffs: tuple[Tensor, Tensor] | None = None
    potentials: tuple[Tensor, Tensor] | None = None
    status: Status = Status.STALLED
    n_iter: int = 0

    @property
    def gap(self) -> float:
        known = np.isfinite(self.value) and np.isfinite(self.bound)
        return certificate.relative_gap(self.value, self.bound) if known else np.inf


def solve_routes(
    problem: RouteProblem, limits: Limits, deadline: Deadline, report: Watcher
) -> RouteAnswer:
    """Follow the central path until the gap is closed, or another end."""
    answer, unit = RouteAnswer(), problem.cost * problem.mass
    given = None if limits.atol is None else limits.atol / unit
    first_plan(problem, answer)
    try:
        with deadline.in_force():
            answer.status = _follow(problem, answer, limits, given, unit, report)
    except OutOfTime:
        answer.status = Status.TIME_LIMIT
    except np.linalg.LinAlgError:
        answer.status = Status.STALLED
    except ArithmeticError:
        answer.status = Status.NOT_FINITE
    if _is_converged(answer, limits.tol):
        answer.status = Status.CONVERGED
    return answer


def _follow(
    problem: RouteProblem,
    answer: RouteAnswer,
    limits: Limits,
    given: float | None,
    unit: float,
    report: Watcher,
) -> Status:
    xp, program = problem.xp, problem.program
    with xp.replays(program.pairs, problem.kind) as graphs:
        point = first_point(program, problem.C)
        if graphs is not None and graphs.work is not None:
            made: Certificate = graphs.work
            made.put(problem, point)
        else:
            made = Certificate(problem, CentralPath(program, point))
        xp = made.problem.xp
        xp.replay_with(graphs)
        if graphs is not None:
            graphs.work = made
        try:
            return _to_the_end(made, answer, limits, given, unit, report)
        finally:
            xp.replay_with(None)


def _to_the_end(
    made: Certificate,
    answer: RouteAnswer,
    limits: Limits,
    given: float | None,
    unit: float,
    report: Watcher,
) -> Status:
    path, shown = made.path, np.inf
    for _ in path.steps():
        answer.n_iter += 1
        last = answer.n_iter == limits.max_iter
        total = path.total
        # What is left of Σ x z is about the gap: towards the end every step may be the last.
        near = total <= 2.0 * limits.tol * abs(answer.value)
        if total <= _NEWS * shown or near or last:
            shown = total
            improve(made, answer, limits.tol, given)
        seen = answer.value * unit, answer.bound * unit, answer.gap
        if report(answer.n_iter, *seen):
            return Status.STOPPED
        if _is_converged(answer, limits.tol):
            return Status.CONVERGED
        if last:
            return Status.ITERATION_LIMIT
    improve(made, answer, limits.tol, given)
    return Status.STALLED


def _is_converged(answer: RouteAnswer, tol: float) -> bool:
    return certificate.is_converged(answer.value, answer.bound, tol, answer.atol)


def first_plan(problem: RouteProblem, answer: RouteAnswer) -> None:
    """The independent plan, and zero potentials below costs without tariffs: an answer to any."""
    program = problem.program
    P = program.a[:, None] * (program.b / program.a.sum())
    answer.value = answer.structured = float(objective(problem, P))
    answer.plan = P
    answer.tariffs = torch.zeros_like(program.source), torch.zeros_like(program.target)
    answer.potentials = torch.zeros_like(program.a), torch.zeros_like(program.b)
    answer.bound = 0.0


class Certificate:
    """A plan and a proof made of the last point of a path, as a stage of its iteration."""

    def __init__(self, problem: RouteProblem, path: CentralPath) -> None:
        self.problem, self.path = problem, path

    def put(self, problem: RouteProblem, point: Point) -> None:
        """Begin anew with the numbers of another problem of the same kind."""
        here = self.path.point
        for mine, others in (
            (self.problem.arrays(), problem.arrays()),
            ((*here.x, *here.z, here.u, here.v), (*point.x, *point.z, point.u, point.v)),
        ):
            for x, y in zip(mine, others, strict=True):
                x.copy_(y)
        self.path.restart()

    def certify(self) -> tuple[Tensor, ...]:
        """The value of the plan, and the bound."""
        problem, point = self.problem, self.path.point
        self.plan = round_plan(problem, point.x[0])
        value = objective(problem, self.plan)
        self.tariffs = within_budget(problem, point.z[1], point.z[2])
        self.potentials, bound = prove(problem, *self.tariffs, point.u)
        return value, bound


def improve(made: Certificate, answer: RouteAnswer, tol: float, given: float | None) -> None:
    """Keep the plan and the proof of the last point where they are better."""
    program, xp = made.problem.program, made.problem.xp
    value, bound = xp.run(made.certify)
    if value < answer.value:
        answer.value = answer.structured = value
        answer.plan = xp.kept(made.plan)
    if bound > answer.bound:
        answer.bound = bound
        answer.tariffs, answer.potentials = (
            (xp.kept(x), xp.kept(y)) for x, y in (made.tariffs, made.potentials)
        )
    assert answer.plan is not None
    assert answer.potentials is not None
    rows = (answer.plan.sum(1) - program.a).abs() @ answer.potentials[0].abs()
    cols = (answer.plan.sum(0) - program.b).abs() @ answer.potentials[1].abs()
    missed = 2.0 * float(rows + cols)
    answer.atol = certificate.absolute_tolerance(answer.value, answer.value, tol, missed, given)


def round_plan(problem: RouteProblem, P: Tensor) -> Tensor:
    """P rounded into U(a, b), as `structot.transport.round_plan`."""
    a, b = problem.program.a, problem.program.b
    Q = P * _shrink(a, P.sum(1))[:, None]
    Q *= _shrink(b, Q.sum(0))
    r, c = (a - Q.sum(1)).clamp(min=0.0), (b - Q.sum(0)).clamp(min=0.0)
    rest = torch.maximum(r.sum(), c.sum()).clamp(min=1e-300)
    return Q.addr_(r / rest, c)


def _shrink(weights: Tensor, sums: Tensor) -> Tensor:
    return (weights / sums.clamp(min=1e-300)).clamp(max=1.0)


def objective(problem: RouteProblem, P: Tensor) -> Tensor:
    """<C, P> + Σ w t."""
    return (problem.C * P).sum() + (problem.program.price * shares(problem, P)).sum()


def shares(problem: RouteProblem, P: Tensor) -> Tensor:
    """t of all routes with a price, (K, L)."""
    program = problem.program
    sums = program.lane_sums(P)
    t = torch.zeros_like(program.price)
    lanes = [
        torch.where(c > 0, x / c.clamp(min=1e-300), 0.0)
        for x, c in zip(sums, (program.source, program.target), strict=True)
    ]
    for panel in program.panels:
        by_source, by_target = panel.source(lanes[0]).amax(2), panel.target(lanes[1]).amax(2)
        panel.routes(t)[...] = torch.maximum(by_source, by_target)
    return t


def within_budget(problem: RouteProblem, alpha: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Tariffs of the lanes that are there, made smaller until no route pays more than its price."""
    program = problem.program
    alpha, beta = alpha * program.there[1], beta * program.there[2]
    paid = program.paid(alpha, beta)
    # By a rounding error less than all of it: what is paid is a sum over the lanes of the route.
    lanes = (problem.C.shape[0] + problem.C.shape[1]) ** 0.5
    budget = program.price * (1.0 - 4.0 * EPS * lanes)
    rate = torch.where(paid > budget, budget / paid.clamp(min=1e-300), 1.0)
    return alpha * rate[program.row_group], beta * rate[:, program.col_group]


def prove(
    problem: RouteProblem, alpha: Tensor, beta: Tensor, u: Tensor
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Potentials below K = C + α ⊕ β by c-transform, and a·u + b·v less its rounding error."""
    program = problem.program
    K = torch.empty_like(problem.C)
    program.spread(alpha, beta, K)
    K += problem.C
    # Places that are filled up allow any potential.
    v = (K - torch.where(program.a > 0, u, -torch.inf)[:, None]).amin(0)
    u = K.sub_(torch.where(program.b > 0, v, -torch.inf)).amin(1)
    parts = program.a * u, program.b * v
    size = parts[0].abs().sum() + parts[1].abs().sum()
    bound = parts[0].sum() + parts[1].sum() - 2.0 * bound_rounding(K.numel()) * size
    return (u, v), bound


def in_order(
    problem: RouteProblem, answer: RouteAnswer, M: Tensor, weights: tuple[Tensor, Tensor]
) -> dict[str, Any]:
    """Plan, worst cost and potentials in the order and the units of the user."""
    assert answer.plan is not None
    assert answer.tariffs is not None
    assert answer.potentials is not None
    turned = problem.layout.transposed
    real = [torch.as_tensor(np.flatnonzero(x >= 0), device=M.device) for x in problem.layout.order]
    i, j = (torch.as_tensor(x[x >= 0], device=M.device) for x in problem.layout.order)
    K = torch.empty_like(problem.C)
    problem.program.spread(*answer.tariffs, K)
    K += problem.C
    found = []
    for x, unit, rest in ((answer.plan, problem.mass, 0.0 * M), (K, problem.cost, problem.linear)):
        whole = rest.to(torch.float64).clone()
        view = whole.T if turned else whole
        view[i[:, None], j] = unit * (x if x.shape == (i.numel(), j.numel()) else _at(x, *real))
        found.append(whole)
    sides: list[Tensor] = []
    for x, index in zip(answer.potentials, (i, j), strict=True):
        whole = torch.zeros(M.shape[len(sides) ^ turned], dtype=torch.float64, device=M.device)
        whole[index] = problem.cost * x[real[len(sides)]]
        sides.append(whole[None])
    u, v = sides[::-1] if turned else sides
    u, v = lowered((weights[0][None], weights[1][None]), found[1][None], u, v)
    kind = M.dtype
    return {
        "plan": found[0].to(kind),
        "worst_cost": found[1].to(kind),
        "potentials": (u[0].to(kind), v[0].to(kind)),
        "value_linear": float((found[0] * M).sum()),
    }


def _at(x: Tensor, rows: Tensor, cols: Tensor) -> Tensor:
    return x.index_select(0, rows).index_select(1, cols)


def _power_of_two(x: float) -> float:
    """The largest power of two that is not above x; 1 where there is none."""
    return 2.0 ** (int(np.frexp(x)[1]) - 1) if 0.0 < x < np.inf else 1.0
