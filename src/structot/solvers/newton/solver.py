"""Proximal point outside, semismooth Newton inside: certified, and exact in the end.

Notation as in `_proximal.py`. The outer loop moves the centre Y to X and adapts ρ so that the
inner problem stays a matter of a few Newton steps: a smaller ρ makes longer outer steps, but a
dual function with more kinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structot._deadline import check_time
from structot._parallel import single_threaded_blas
from structot.blocks.pools import Pools
from structot.certificate import Dual, relative_gap
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.newton.coarse import coarse_start
from structot.solvers.newton.dual import ProximalDual, Value
from structot.solvers.newton.local_search import Search
from structot.solvers.start import Start
from structot.submodular.base import inner as inner_product

Array = np.ndarray

# The weight ρ stays within this range of its first value, where arithmetic is safe.
_RHO_RANGE = 1e-10, 1e6
# Mass that the solution of an inner problem may lack, in units of the gap.
_MISSING = 5.0
# Newton steps without progress of the gap after which the inner problems are solved more exactly.
_STALL = 12
# A certificate costs about two Newton steps: at first one is made after each, later after so many.
_CERTIFY_EVERY = 6
# Least and greatest share of the damping in a Newton step (see ProximalDual.direction).
_DAMPING = 1e-12, 0.3
# The share of edges that move alone in the repair of a plan (see ProximalDual.repaired).
_REPAIR_SHARE = 0.03
# The gaps between which a search for a plan near the iterate pays (the linear program is exact to
# 1e-7), and the part of the gap that the plan it found may have in it to stay the centre.
_NEAR = 1e-7, 0.05
_STILL_BEST = 0.3
# Shares of the multipliers of a search in those that a bound is made from.
_SHARES_OF_SEARCH = 1.0, 0.3
# Rounds of polishing of a bound, when the gap falls quickly and when it does not.
_ROUNDS = 0, 12


@dataclass(frozen=True)
class Newton(Solver):
    """Proximal point with semismooth Newton, for one layer of disjoint blocks plus a linear part.

    Parameters
    ----------
    rho
        First weight of the proximal term, relative to max(n, m) / T times the mean slope of g over
        single pairs.
    patience
        Newton steps without progress of the gap after which it gives up.

    Examples
    --------
    >>> import structot as sot
    >>> groups = sot.Groups([0, 0, 1], [0, 1, 1])
    >>> M = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]]
    >>> sot.solve(M, structure=groups, method=Newton(rho=2.0)).converged
    True
    """

    rho: float = 1.0
    patience: int = 1000
    name: ClassVar[str] = "newton"
    takes_relaxed: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        if not problem.layers:
            if problem.marginals.linear:
                return "F is modular; use method='exact'"
        elif problem.blocks is None:
            return "it needs one layer of disjoint blocks; use method='splitting'"
        return super().objection(problem)

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        problem = problem.with_blocks()
        with single_threaded_blas(sum(problem.shape)):
            yield from _proximal_newton(problem, start, self)


class _Pace:
    """How exactly, and with which ρ, the next inner problem is solved.

    A rough inner solution (relative to the distance between X and Y) is enough as long as the gap
    keeps falling; when it does not for some outer steps, more exact ones are asked for.
    """

    def __init__(self, rho: float, patience: int) -> None:
        self.rho, self._patience = rho, patience
        self._range = rho * _RHO_RANGE[0], rho * _RHO_RANGE[1]
        self.accuracy, self.most, self._easy, self._hard = 0.3, 8, 2, 5
        self._best, self._since, self._stuck = np.inf, 0, 0
        self.stalled = False

    def adapt(self, steps: int, solved: bool) -> None:
        """A smaller ρ after an easy inner problem, a larger one after a hard one."""
        if not solved:
            self.rho *= 2.0
        elif steps <= self._easy:
            self.rho /= 2.0
        elif steps >= self._hard:
            self.rho *= 1.5
        self.rho = min(max(self.rho, self._range[0]), self._range[1])

    def judge(self, gap: float, steps: int) -> bool:
        """Ask for more accuracy when the gap has stopped falling; False when that never helps."""
        self._since += steps
        self._stuck += steps
        self.stalled = gap >= 0.8 * self._best and self._since >= _STALL
        if gap < 0.8 * self._best:
            self._best, self._since, self._stuck = gap, 0, 0
        elif self.stalled:
            self._since = 0
            self.accuracy = max(self.accuracy / 3.0, 1e-4)
            self.most = min(self.most + 6, 40)
            self._easy, self._hard = min(self._easy + 2, 10), min(self._hard + 4, 25)
        return self._stuck < self._patience


def _proximal_newton(problem: Problem, start: Start, options: Newton) -> Iterator[Step | None]:
    inner = ProximalDual(problem)
    certify = _Certifier(problem, inner)
    n, m = problem.shape
    rho = options.rho * max(n, m) / problem.total * _typical_slope(problem, inner)
    pace = _Pace(rho, options.patience)
    warm = start.plan is not None and start.potentials is not None
    if warm:
        pace.rho /= 8  # near the answer long outer steps pay
    elif start.plan is None and start.potentials is None:
        start = coarse_start(problem)
        pace.rho /= 5 if start.plan is not None else 1
    p, q = (np.zeros(n), np.zeros(m)) if start.potentials is None else start.potentials
    p, q = problem.released(p, q)
    plan = problem.independent if start.plan is None else start.plan
    inner.recentre(pace.rho, plan)
    del plan, start  # as large as the problem, and not needed again
    # Searching is for few large blocks; among many small ones the program would be large.
    few = inner.layer.start.size - 1 <= max(n, m)
    search = Search(problem, inner.true_layer, warm) if few else None
    centre = None  # the plan that a search found, while it is better than moving on with X
    share = 1e-2
    going, certificates, uncertified = True, 0, 0
    while going:
        value = inner.evaluate(p, q)
        steps, solved = 0, False
        while True:
            p, q, value, share, moved = _newton_step(inner, p, q, value, share)
            steps += 1
            size = float(np.abs(value.gradient).sum())
            # Mass that is missing costs its part of the value: no more of it than the gap allows.
            wanted = min(pace.accuracy * value.moved, _MISSING * certify.gap * problem.total)
            solved = size <= max(wanted, 1e-15 * problem.total)
            if solved or not moved or steps >= pace.most:
                break
            # The first iteration has something to show, in case it stays the only one.
            yield certify(p, q, value) if certificates == 0 else None
            certificates = max(certificates, 1)
        uncertified += steps
        if uncertified >= min(certificates, _CERTIFY_EVERY):
            yield certify(p, q, value)
            certificates += 1
            going = pace.judge(certify.gap, uncertified)
            near = _NEAR[0] < certify.gap < _NEAR[1]
            due = search is not None and search.due(uncertified) and near
            uncertified = 0
        else:
            yield None
            due = False
        pace.adapt(steps, solved)
        # A centre that could be improved by much of the gap (down to φ), or around which the bound
        # no longer rises, is worth leaving.
        if pace.stalled or certify.best_value - value.phi > _STILL_BEST * certify.missing:
            centre = None
        if due and search is not None:
            step, centre = certify.by_search(search, p, q)
            yield step
        inner.recentre(pace.rho, centre)


def _typical_slope(problem: Problem, inner: ProximalDual) -> float:
    """What pairs cost alone, per unit of the metric: it makes ρ free of units."""
    even = inner.layer.gather(problem.independent, out=inner.Y)  # not in use yet
    alone = inner.layer.single_edges()
    if problem.linear is not None:
        alone += inner.C
    slope = float(alone @ even) / float(inner.layer.w @ even)
    return slope if slope > 0 else 1.0


def _newton_step(
    inner: ProximalDual, p: Array, q: Array, value: Value, share: float
) -> tuple[Array, Array, Value, float, bool]:
    """One damped Newton step with a line search on the concave φ; adapts the damping share."""
    n, clip = p.size, inner.problem.marginals.clip
    G = inner.pool_matrix()
    d, held = inner.direction(G, value.gradient, share, active=False), inner.held
    rise = float(value.gradient @ d)
    length = 1.0
    for trial in range(14):
        check_time()
        # Potentials end where the dual terms of their side do.
        p_there, q_there = clip(p + length * d[:n], q + length * d[n:], held)
        there = inner.evaluate(p_there, q_there)
        slope = float(there.gradient @ d)
        gained = value.gradient[:n] @ (p_there - p) + value.gradient[n:] @ (q_there - q)
        # Near the maximum φ is flat to rounding, and its derivative decides.
        flat = abs(there.phi - value.phi) <= 1e-13 * abs(value.phi)
        if there.phi >= value.phi + 1e-4 * gained or (flat and abs(slope) <= 0.9 * rise):
            share = min(max(share * (0.3 if trial == 0 else 3.0), _DAMPING[0]), _DAMPING[1])
            return p_there, q_there, there, share, True
        # Along the line φ' falls from rise to slope: its zero is about where the secant says.
        length *= min(max(rise / (rise - slope), 0.1), 0.7) if slope < 0 else 0.5
    return p, q, inner.evaluate(p, q), min(100.0 * share, _DAMPING[1]), share < _DAMPING[1]


class _Certifier:
    """Turns an inner iterate into a plan with its value and a proved bound."""

    def __init__(self, problem: Problem, inner: ProximalDual) -> None:
        self.problem, self.inner = problem, inner
        edges, blocks = inner.layer.w.size, inner.layer.start.size - 1
        self.projection = Pools.empty(edges, blocks, X=inner.V)
        self.best_value, self.best_bound = np.inf, -np.inf
        self.rounds = _ROUNDS[0]

    @property
    def missing(self) -> float:
        return max(self.best_value - self.best_bound, float(np.finfo(float).tiny))

    @property
    def gap(self) -> float:
        if not np.isfinite(self.best_value):
            return np.inf
        return relative_gap(self.best_value, self.best_bound)

    def __call__(self, p: Array, q: Array, value: Value) -> Step:
        problem, inner = self.problem, self.inner
        P = inner.layer.scatter(inner.repaired(value.gradient, _REPAIR_SHARE))
        P = problem.feasible(P, (p, q), overwrite=True)
        check_time()
        objective, before = self._objective(P), self.gap
        self.best_value = min(self.best_value, objective)
        proof = inner.proved_potentials(p, q, self.projection)
        u, v, bound = inner.polished(proof, self.projection, self.best_value, self.rounds)
        self.best_bound = max(self.best_bound, bound)
        # While Newton steps close the gap quickly by themselves, polishing would only cost time.
        self.rounds = _ROUNDS[int(self.gap > 0.7 * before)]
        return Step(objective, lambda: P, bound, lambda: Dual(u, v, None, bound))

    def by_search(self, search: Search, p: Array, q: Array) -> tuple[Step | None, Array | None]:
        """What a search proves, as a step, and its plan again if that is worth being the centre."""
        found = search(self.inner.C, self.inner.pools, (p, q))
        if found is None:
            return None, None
        objective, missing = self._objective(found.plan), self.missing
        self.best_value = min(self.best_value, objective)
        # Near the answer the multipliers of the program are the best; before, a mixture is.
        mixed = [
            (t * found.u + (1.0 - t) * p, t * found.v + (1.0 - t) * q) for t in _SHARES_OF_SEARCH
        ]
        proofs = [self.inner.projected_potentials(*z, self.projection) for z in mixed]
        best = max(proofs, key=lambda proof: proof[2])
        u, v, bound = self.inner.polished(best, self.projection, self.best_value, _ROUNDS[1])
        self.best_bound = max(self.best_bound, bound)
        worth = search.paid(1.0 - self.missing / missing)
        step = Step(objective, lambda: found.plan, bound, lambda: Dual(u, v, None, bound))
        return step, found.plan if worth else None

    def _objective(self, P: Array) -> float:
        """f(P) as in `Problem.objective`, with the memory of the projection."""
        F = self.inner.true_layer
        value = F.extension_edges(F.gather(P, out=self.inner.V), self.projection)
        value += self.problem.marginals.penalty(P)[0]
        return (
            value if self.problem.linear is None else value + inner_product(P, self.problem.linear)
        )
