"""The exact reference: linear programs by HiGHS, one where g is piecewise linear.

Other functions are maxima of so many linear ones that these are found one by one; see
`_cutting_planes.py`. The one program:

Notation. F = C + Σ_r F_r, each F_r a sum over blocks of c·w(S) + Σ_t min(r_t w(S), κ_t): a linear
part and truncations with rate r_t and cap κ_t. Coverage is the truncation of infinite rate. The
Lovász extension of min(r w(S), κ) is

    f(X) = min_{λ >= 0} κλ + Σ_e r w_e (X_e - λ)₊  =  max {<k, X> : 0 <= k <= r w, k(block) <= κ},

and with the right side for every truncation the dual of the transport problem is a linear program
with one row per pair and one per truncation,

    max a·u + b·v   subject to   u_i + v_j - Σ_t k_t,ij <= C_ij + c_ij,   k as above,

whose multipliers are the plan and the widths λ. HiGHS solves it twice as fast as its mirror image,
the program in the plan and λ. Marginals relaxed by TV are bounds |u| <= τ; to move a given mass is
u, v <= 0 and one more potential, for the total.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, cast

import numpy as np
from scipy.sparse import csc_array, hstack

from structot._deadline import check_time
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.certificate import Dual, dual_from_cost
from structot.concave import Concave
from structot.concave import Step as Jump
from structot.problem import Problem
from structot.solvers._cutting_planes import cutting_planes
from structot.solvers._highs import MEAN_WEIGHT, call_highs, power_of_two
from structot.solvers._lane_program import LaneProgram
from structot.solvers._loop import Step
from structot.solvers._prohibitive import prohibitive_last
from structot.solvers.base import Solver
from structot.solvers.start import Start

_ALGORITHMS = {"interior_point": "highs-ipm", "simplex": "highs-ds"}
# Pairs up to which programs over vertices are tried.
_MOST_PAIRS = 20_000


@dataclass(frozen=True)
class LinearProgram(Solver):
    """min_{P in U(a,b)} f(P) by linear programs: exact, and fast for small problems only.

    One program where g is piecewise linear. For other functions, and where HiGHS fails at that
    one, a sequence of programs, each with some more vertices of B(F): a matter of some ten rounds
    and milliseconds with tens of pairs, of minutes with thousands; refused above 20 000.

    Parameters
    ----------
    algorithm
        "interior_point", followed by a crossover to a vertex, or "simplex"; the other one is tried
        if the first fails.
    time_limit
        Seconds granted to each of the two for the one program, within those that
        `solve(time_limit=...)` leaves.
    rounds
        The most programs over vertices.

    Examples
    --------
    >>> import structot as sot
    >>> groups = sot.Groups([0, 0, 1], [0, 1, 1], sot.concave.Truncation(0.5))
    >>> M = [[1.0, 3.0, 4.0], [2.0, 2.0, 1.0], [5.0, 1.0, 1.0]]
    >>> sot.solve(M, structure=groups, method="linear_program").converged
    True
    """

    name: ClassVar[str] = "linear_program"
    takes_relaxed: ClassVar[bool] = True
    takes_lanes: ClassVar[bool] = True
    algorithm: str = "interior_point"
    time_limit: float | None = None
    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.algorithm not in _ALGORITHMS:
            raise ValueError(
                f"algorithm must be one of {', '.join(_ALGORITHMS)}; got {self.algorithm!r}."
            )

    def objection(self, problem: Problem) -> str | None:
        """Too large a problem is only refused where it is not one program."""
        if not problem.marginals.linear:
            return "marginals relaxed by KL are no linear program; use method='auto'"
        other = _not_piecewise_linear(problem)
        if other is not None and problem.M.size > _MOST_PAIRS:
            return (
                f"{other} is not piecewise linear, and {problem.M.size} pairs are too many for a "
                "program over vertices; use Truncation, PiecewiseLinear or Linear, or method='auto'"
            )
        return super().objection(problem)

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        yield from prohibitive_last(problem, start, self._steps)

    def _steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        if _not_piecewise_linear(problem) is None:
            step = self._one_program(problem)
            if step is not None:
                yield step
                start = Start(step.plan() if step.plan is not None else None)
        if problem.M.size <= _MOST_PAIRS and problem.lanes is None:
            yield from itertools.islice(cutting_planes(problem, start), self.rounds)

    def _one_program(self, problem: Problem) -> Step | None:
        program = _Program(problem) if problem.lanes is None else LaneProgram(problem)
        first = _ALGORITHMS[self.algorithm]
        answer = None
        for algorithm in (first, *(other for other in _ALGORITHMS.values() if other != first)):
            check_time()
            answer = program.solve(algorithm, self.time_limit)
            if answer is not None:
                break
        if answer is None:
            return None
        P, K, u = answer
        plan = problem.feasible(P)
        dual: Dual = dual_from_cost(problem, K, u)
        return Step(problem.objective(plan), lambda: plan, dual.bound, lambda: dual)


def _not_piecewise_linear(problem: Problem) -> str | None:
    """The name of a part of F that is no sum of truncations; None if there is none."""
    for layer in problem.layers:
        if layer.kind == "lanes":
            continue
        if layer.kind != "blocks":
            return type(layer).__name__
        for g in dict.fromkeys(cast(Blocks, layer).table.functions):
            if not (isinstance(g, Jump) or g.is_piecewise_linear):
                return repr(g)
    return None


class _Truncations(NamedTuple):
    """A layer in block order: its linear part, and one entry per (edge, truncation) pair."""

    linear: Array  # (E,) c
    edge: Array  # (N,) position of the edge in the layer
    rate: Array  # (N,) r w of the edge, +inf for coverage
    term: Array  # (N,) number of the truncation
    cap: Array  # (truncations,) κ


def _truncations(layer: Blocks) -> _Truncations:
    """Σ_t min(r_t w(S ∩ b), κ_t) + c w(S ∩ b) for outer · g(inner · w(S ∩ b)) of every block b."""
    table = layer.table
    linear = np.zeros(layer.w.size)
    edges, rates, caps = [np.empty(0, int)], [np.empty(0)], []
    split: dict[Concave, tuple[float, Array, Array]] = {}
    for b, g in enumerate(table.functions):
        check_time()
        first, last = layer.start[b], layer.start[b + 1]
        w, outer, inner = layer.w[first:last], float(table.outer[b]), float(table.inner[b])
        if outer == 0.0:
            continue
        if isinstance(g, Jump):
            slope, rate, cap = 0.0, np.array([math.inf]), np.array([outer])
        else:
            if g not in split:
                split[g] = g.truncations()
            slope, drops, breaks = split[g]
            # A threshold beyond the whole block is never reached: that part is linear.
            reached = breaks < inner * layer.totals[b]
            slope = outer * inner * (slope + float(drops[~reached].sum()))
            rate, cap = outer * inner * drops[reached], (outer * drops * breaks)[reached]
        linear[first:last] = slope * w
        for r, kappa in zip(rate, cap, strict=True):
            edges.append(np.arange(first, last))
            rates.append(r * w)
            caps.append(kappa)
    check_time()
    term = np.repeat(np.arange(len(caps)), [e.size for e in edges[1:]])
    return _Truncations(linear, np.concatenate(edges), np.concatenate(rates), term, np.array(caps))


class _Program:
    """The dual program on the pairs of points with positive weight.

    Points of no weight carry nothing, whatever their potentials. They are left out, with k = 0 on
    their pairs (still feasible, for F is monotone); the c-transform brings them back.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        allowed = problem.function.allowed
        live = np.outer(*problem.marginals.active)
        self.live = live if allowed is None else live & allowed
        self.layers = cast(tuple[Blocks, ...], problem.layers)
        self.parts = [_truncations(layer) for layer in self.layers]
        check_time()
        self.row, self.col = np.nonzero(self.live)  # of edge e = 0, 1, ... of the program
        number = np.full(problem.shape, -1)
        number[self.live] = np.arange(self.row.size)
        cost = np.zeros(problem.shape) if problem.linear is None else problem.linear.copy()
        # Where the variables k of each layer sit: edge of the program, and the entry they mirror.
        self.entries, self.targets = [], []
        for layer, part in zip(self.layers, self.parts, strict=True):
            check_time()
            cost[layer.row, layer.col] += part.linear
            target = number[layer.row, layer.col][part.edge]
            self.entries.append(np.flatnonzero(target >= 0))
            self.targets.append(target[self.entries[-1]])
        self.cost = cost[self.live]

    def solve(self, algorithm: str, time_limit: float | None) -> tuple[Array, Array, Array] | None:
        """(P, K, u): multipliers as plan, K in B(F), row potentials; None if HiGHS gives up."""
        problem = self.problem
        n, m = problem.shape
        rate = np.concatenate(
            [np.empty(0), *(p.rate[e] for p, e in zip(self.parts, self.entries, strict=True))]
        )
        cap = np.concatenate([np.empty(0), *(part.cap for part in self.parts)])
        # Powers of two: scaling rounds nothing.
        prices = self.cost.sum() + cap.sum()
        money = power_of_two(prices / self.row.size) if prices > 0 else 1.0
        mass = power_of_two(problem.total / (MEAN_WEIGHT * max(n, m)))
        lower = np.concatenate([np.full(n + m, -np.inf), np.zeros(rate.size)])
        upper = np.concatenate([np.full(n + m, np.inf), rate / money])
        low, high = problem.marginals.bounds
        lower[: n + m], upper[: n + m] = low / money, high / money
        # Points of no weight and one potential per problem are free to be anything: fix them.
        fixed = ~np.concatenate(problem.marginals.active)
        fixed[int(np.argmax(problem.a))] |= problem.marginals.hard
        lower[: n + m][fixed] = upper[: n + m][fixed] = 0.0
        matrix, goal = self._matrix(cap.size), [-problem.a, -problem.b, np.zeros(rate.size)]
        if problem.marginals.both_partial and problem.marginals.mass is not None:
            total = np.repeat([1.0, 0.0], [self.row.size, cap.size])
            matrix = hstack([matrix, csc_array(total[:, None])], format="csc")
            goal.append(np.array([-problem.marginals.mass]))
            lower, upper = np.append(lower, -np.inf), np.append(upper, np.inf)
        answer = call_highs(
            np.concatenate(goal) / mass,
            matrix,
            np.concatenate([self.cost, cap]) / money,
            np.column_stack([lower, upper]),
            algorithm,
            time_limit,
        )
        if answer is None:
            return None
        x, multipliers = answer
        P = np.zeros(problem.shape)
        P[self.live] = np.maximum(mass * multipliers[: self.row.size], 0.0)
        u = money * x[:n] + (money * x[-1] if problem.marginals.both_partial else 0.0)
        u = np.where(problem.marginals.active[0], u, -np.inf)
        return P, self._worst_cost(money * x[n + m : n + m + rate.size]), u

    def _matrix(self, caps: int) -> csc_array:
        """Rows u_i + v_j - Σ k (one per edge) and k(block) (one per truncation)."""
        n, m = self.problem.shape
        edges = self.row.size
        each = np.arange(edges)
        target = np.concatenate([np.empty(0, int), *self.targets])
        terms, before = [np.empty(0, int)], edges
        for part, entry in zip(self.parts, self.entries, strict=True):
            terms.append(before + part.term[entry])
            before += part.cap.size
        variable = n + m + np.arange(target.size)
        check_time()
        rows = np.concatenate([each, each, target, np.concatenate(terms)])
        columns = np.concatenate([self.row, n + self.col, variable, variable])
        values = np.concatenate([np.ones(2 * edges), -np.ones(target.size), np.ones(target.size)])
        check_time()
        shape = (edges + caps, n + m + target.size)
        return csc_array((values, (rows, columns)), shape=shape)

    def _worst_cost(self, k: Array) -> Array:
        """K >= C + c + Σ k in B(F): the projection of a point of the polyhedron dominates it."""
        linear = self.problem.linear
        K = np.zeros(self.problem.shape) if linear is None else linear.copy()
        position = 0
        for layer, part, entry in zip(self.layers, self.parts, self.entries, strict=True):
            mine = k[position : position + entry.size]
            position += entry.size
            inside = np.bincount(part.edge[entry], weights=mine, minlength=layer.w.size)
            K += layer.cost_of_edges(layer.project_edges(part.linear + inside, "cost"))
        return K
