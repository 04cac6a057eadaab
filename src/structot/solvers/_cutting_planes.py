"""Cutting planes: the linear program over those vertices of B(F) that matter, found one by one.

Notation. F = C + Σ_g F_g, a linear cost and *parts*: the blocks of layers made of blocks, other
layers as a whole. Each f_g is the maximum of <K, ·> over the vertices K of B(F_g), so that

    min_{P in U(a,b)} <C, P> + Σ_g t_g    subject to    <K, P> <= t_g for the vertices K of part g

is the problem itself. It is solved with a few vertices; the greedy vertex at its plan is the cut
that it violates most, and joins them. The multipliers λ of the cuts of a part add up to 1, so that
C + Σ λ K is a point of B(F), which proves a bound. No metric is involved: costs of very different
sizes, which spoil those of the other methods, are a matter of scaling rows and columns here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from operator import attrgetter
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from structot._deadline import call_foreign, check_time, time_left
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.certificate import dual_by_exact_transport, dual_from_cost, first_answer, lowered
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.start import Start
from structot.submodular.base import Submodular
from structot.transport import InfeasibleError, emd, round_plan, split_rounding

# Where cuts are made: shares of the best plan in the point between it and the plan of the program.
_CENTRES = (1e-7, 0.5)
# A cut is new if it lies above the program by this part of the value.
_VIOLATED = 1e-13
# Rounds without a better plan or bound after which HiGHS can tell nothing more.
_PATIENCE = 30
# Cuts that have had no multiplier for so many rounds are dropped.
_IDLE = 12
_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def cutting_planes(problem: Problem, start: Start) -> Iterator[Step]:
    """One round per item: solve the program, certify its plan and its multipliers, add cuts."""
    P, dual = first_answer(problem)
    P = P if start.plan is None else start.plan
    best, value, bound = P, problem.objective(P), dual.bound
    yield Step(value, lambda: best, bound, lambda: dual)
    program = _Program(problem)
    program.cut(P)
    waited = 0
    for k in count():
        answer = program.solve(_WAYS[k % len(_WAYS)], value)
        waited += 1
        if answer is None:
            if waited > _PATIENCE:
                return
            continue
        plan, K, u = answer
        P = rounded(problem, plan, K)
        found = problem.objective(P)
        if found < value:
            best, value, waited = P, found, 0
        K = lowered(K, np.abs(K))
        proofs = dual_from_cost(problem, K, u), dual_by_exact_transport(problem, K)
        proof = max(proofs, key=attrgetter("bound"))
        if proof.bound > bound:
            bound, waited = proof.bound, 0
        yield Step(found, lambda P=P: P, proof.bound, lambda proof=proof: proof)  # type: ignore[misc]
        new = [program.cut((1.0 - s) * plan + s * best) for s in _CENTRES]
        # Without a new cut the program has said all: but in the units of a better value it may
        # be solved more exactly, and in another way perhaps at all.
        if waited > (_PATIENCE if any(new) else len(_WAYS)):
            return


class _Way(NamedTuple):
    """How HiGHS solves the program: its algorithm, and whether costs limit the units of pairs."""

    algorithm: str
    limited: bool


# Mostly the simplex method, which ends at a vertex, exactly.
_WAYS = (*(_Way("highs-ds", True),) * 3, _Way("highs-ds", False), _Way("highs-ipm", True))


class _Program:
    """The program on the pairs that can carry mass, and its cuts, on all allowed pairs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._edges = problem.function._allowed()
        row, col = np.nonzero(self._edges)
        active = problem.marginals.active
        self._live = active[0][row] & active[1][col]
        self.row, self.col = row[self._live], col[self._live]
        linear = np.zeros(problem.shape) if problem.linear is None else problem.linear
        self.C = linear[self._edges]
        self.labels: list[Array] = []  # per layer the part of each pair, -1 for none
        self.layers = problem.function.set_functions
        self.parts = 0
        for layer in self.layers:
            number = _part_numbers(layer)
            self.labels.append(np.where(number >= 0, number + self.parts, -1)[self._edges])
            self.parts += int(number.max()) + 1
        # Of each cut: its part, its vertex as a sparse row, and when it last had a multiplier.
        self.part = np.empty(0, int)
        self.rows = csr_array((0, row.size))
        self.active = np.empty(0, int)
        self.round = 0

    def cut(self, P: Array) -> bool:
        """Add the vertices at this plan that are not known to lie below; whether there is one."""
        p = P[self._edges]
        found = False
        for layer, label in zip(self.layers, self.labels, strict=True):
            check_time()
            k = layer.greedy(P)[self._edges]
            inside = label >= 0
            first = int(label[inside].min(initial=0))
            height = np.bincount(label[inside] - first, (k * p)[inside])
            size = np.bincount(label[inside] - first, np.abs(k * p)[inside])
            parts = first + np.arange(height.size)
            known = self._height(p, parts)
            new = parts[height > known + _VIOLATED * size]
            found |= bool(new.size)
            self._append(k, label, new)
        return found

    def _height(self, p: Array, parts: Array) -> Array:
        """The largest cut of each of these parts at p."""
        top = np.full(self.parts, -np.inf)
        np.maximum.at(top, self.part, self.rows @ p)
        return top[parts]

    def _append(self, k: Array, label: Array, new: Array) -> None:
        number = np.full(self.parts, -1)
        number[new] = np.arange(new.size)
        edge = np.flatnonzero((label >= 0) & (number[label] >= 0))
        shape = (new.size, k.size)
        rows = coo_array((k[edge], (number[label[edge]], edge)), shape=shape).tocsr()
        self.rows = vstack([self.rows, rows], format="csr")
        self.part = np.append(self.part, new)
        self.active = np.append(self.active, np.full(new.size, self.round))

    def solve(self, way: _Way, value: float) -> tuple[Array, Array, Array] | None:
        """Plan, K in B(F) and row potentials; None if HiGHS gives up."""
        problem = self.problem
        rows, C = self.rows[:, self._live], self.C[self._live]
        n, m = problem.shape
        edges, cuts = self.row.size, self.part.size
        unit = value if value > 0 else 1.0
        scale = self._scale(rows, C, unit, way.limited)
        ends = np.concatenate([self.row, n + self.col])
        given = np.concatenate([problem.a, problem.b])
        weights = np.where(given > 0, given, given.mean())
        # The equation of the heaviest target follows from the others; rounding must not differ.
        ignored = n + int(np.argmax(problem.b)) if problem.marginals.hard else -1
        active = np.concatenate(problem.marginals.active)
        used = np.flatnonzero(active & (np.arange(n + m) != ignored))
        number = np.full(n + m, -1)
        number[used] = np.arange(used.size)
        kept = ends != ignored
        entries = np.tile(scale, 2)[kept] / weights[ends[kept]]
        places = number[ends[kept]], np.tile(np.arange(edges), 2)[kept]
        sums = coo_array((entries, places), shape=(used.size, edges + self.parts))
        levels = coo_array((-np.ones(cuts), (np.arange(cuts), self.part)), shape=(cuts, self.parts))
        above = hstack([rows.multiply(scale / unit), levels], format="csr")
        slacks, prices = self._slacks(used, weights)
        equations, right = hstack([sums, slacks], format="csr"), given[used] / weights[used]
        if problem.marginals.both_partial:
            mass = float(problem.marginals.mass or 1.0)
            total = np.concatenate([scale / mass, np.zeros(self.parts + prices.size)])
            equations = vstack([equations, csr_array(total[None])], format="csr")
            right = np.append(right, float(problem.marginals.mass > 0))  # type: ignore[operator]
        left = time_left()
        answer = call_foreign(
            linprog,
            np.concatenate([C * scale / unit, np.ones(self.parts), prices / unit]),
            A_ub=hstack([above, csr_array((cuts, prices.size))], format="csr"),
            b_ub=np.zeros(cuts),
            A_eq=equations,
            b_eq=right,
            bounds=[(0, None)] * edges + [(None, None)] * self.parts + [(0, None)] * prices.size,
            method=way.algorithm,
            options={**_OPTIONS, **({"time_limit": left} if np.isfinite(left) else {})},
        )
        self.round += 1
        if answer.status != 0 or answer.x is None or not np.isfinite(answer.x).all():
            return None
        plan = np.zeros(problem.shape)
        plan[self.row, self.col] = np.maximum(answer.x[:edges], 0.0) * scale
        potentials = np.zeros(n + m)
        potentials[used] = answer.eqlin.marginals[: used.size] * unit / weights[used]
        if problem.marginals.both_partial:
            potentials[:n] += answer.eqlin.marginals[-1] * unit / mass
        share = np.maximum(-answer.ineqlin.marginals, 0.0)
        K = self._worst_cost(share)
        self._forget(share)
        u = np.where(problem.marginals.active[0], potentials[:n], -np.inf)
        return plan, K, u

    def _slacks(self, used: Array, weights: Array) -> tuple[coo_array, Array]:
        """What points may keep, and with TV what may be made there: columns, in units of their
        weights, and prices."""
        low, high = self.problem.marginals.bounds
        signs, places, prices = [], [], []
        for sign, price in ((1.0, high), (-1.0, -low)):
            loose = np.flatnonzero(np.isfinite(price[used]))
            signs.append(np.full(loose.size, sign))
            places.append(loose)
            prices.append((price * weights)[used][loose])
        place = np.concatenate(places)
        columns = np.arange(place.size)
        entries = np.concatenate(signs), (place, columns)
        return coo_array(entries, shape=(used.size, place.size)), np.concatenate(prices)

    def _scale(self, rows: csr_array, C: Array, unit: float, limited: bool) -> Array:
        """What a pair can carry, the unit of its mass: all of its points, or what it may cost."""
        scale = np.minimum(self.problem.a[self.row], self.problem.b[self.col])
        scale = np.where(scale > 0, scale, self.problem.total / scale.size)
        if not limited:
            return scale
        typical = np.abs(C)
        if rows.shape[0]:
            typical = typical + np.asarray(abs(rows).max(axis=0).todense()).ravel()
        with np.errstate(over="ignore", divide="ignore"):  # what costs nothing has no limit
            return np.minimum(scale, unit / typical)

    def _worst_cost(self, share: Array) -> Array:
        """C + Σ λ K on all pairs, λ brought to the sum 1 in every part."""
        total = np.bincount(self.part, share, minlength=self.parts)
        present, first = np.unique(self.part, return_index=True)
        share = share.copy()
        share[first[total[present] <= 0.5]] += 1.0  # never with exact multipliers: they add up to 1
        total = np.bincount(self.part, share, minlength=self.parts)
        k = (share / total[self.part]) @ self.rows
        K = self.problem.function._blank_cost()
        K[self._edges] = self.C + k
        return K

    def _forget(self, share: Array) -> None:
        """Drop cuts that have not mattered for long."""
        self.active[share > 0] = self.round
        keep = self.active > self.round - _IDLE
        if not keep.all():
            self.rows, self.part, self.active = self.rows[keep], self.part[keep], self.active[keep]


def rounded(problem: Problem, P: Array, K: Array) -> Array:
    """P with the right marginals: what is missing goes the cheapest way.

    HiGHS leaves some 1e-10 of the mass. Spread evenly it would meet pairs that cost 1e12.
    """
    if not problem.marginals.hard:
        return problem.feasible(P)
    Q, r, c = split_rounding(P, problem.a, problem.b)
    if r.sum() > 0.0 and c.sum() > 0.0:
        with contextlib.suppress(InfeasibleError, RuntimeError):
            Q += emd(K, r, c * (r.sum() / c.sum())).plan
    return round_plan(Q, problem.a, problem.b, allowed=problem.function.allowed)


def _part_numbers(layer: Submodular) -> Array:
    """The part that each pair (n, m) belongs to, -1 outside the support."""
    if layer.kind == "blocks":
        layer = cast(Blocks, layer)
        size = np.diff(layer.start)
        return layer.scatter(np.repeat(np.arange(size.size), size).astype(float), -1.0).astype(int)
    return np.where(layer._edges(), 0, -1)
