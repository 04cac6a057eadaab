"""Proximal point outside, semismooth Newton inside: certified, and exact in the end.

Without a start the problem between clusters of points is solved first (`clusters.py`), begun in the
same way from clusters of clusters; the smallest begins with transport between groups (`starts.py`).

Notation as in `dual.py`. The outer loop moves the centre Y to X and adapts ρ so that the
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
from structot._typing import Array
from structot.certificate import Dual, relative_gap
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.newton.clusters import Clustered, Sights
from structot.solvers.newton.dual import ProximalDual, Value
from structot.solvers.newton.local_search import Search
from structot.solvers.newton.starts import coarse_start
from structot.solvers.start import Start
from structot.transport.rounding import split_rounding

# The weight ρ stays within this range of its first value, where arithmetic is safe.
_RHO_RANGE = 1e-10, 1e6
# The reach stays within this range of what a pair costs alone. It is multiplied by these after a
# full step, a shortened one, and one that is not taken: it would be shorter than the last number.
_REACH_RANGE = 1e-12, 1e6
_FULL, _SHORTENED, _REFUSED, _SHORTEST = 0.5, 3.0, 9.0, 0.1
# Bounds are polished from this gap on: before, Newton steps close it for less.
_CLOSE = 1e-5
# The first steps from the answer of a neighbouring problem, or between clusters, are shorter by
# this factor.
_NEIGHBOUR = 1e-2
# Where transport between groups has at most this gap clusters of points would not pay.
_GROUPS_DO = 0.7
# The linear program of a search is exact to this gap.
_EXACT = 1e-7


@dataclass(frozen=True)
class Newton(Solver):
    """Proximal point with semismooth Newton, for one layer of disjoint blocks plus a linear part.

    What options buy is measured in docs/ablation.md; none changes the answer, which is certified,
    only the time it takes.

    Parameters
    ----------
    rho
        First weight of the proximal term, relative to max(n, m) / T times the mean slope of g over
        single pairs.
    accuracy
        An inner problem counts as solved when the mass that its marginals miss is at most this part
        of the mass that has moved, |X - Y|. Where the value lags behind the bound the part is
        halved, down to a millionth.
    inner_steps
        Newton steps after which the centre moves although the inner problem is not solved; then ρ
        is doubled. Where the bound lags, and less than a third of them was needed, it is halved.
        While the gap does not fall, a quarter of the steps that were in vain comes on top.
    reach
        How far the first Newton step may change p ⊕ q, relative to what a pair costs alone; see
        `ProximalDual.direction`. Then it halves after a full step and grows after a shortened one.
    background
        The diagonal that stands for blocks that are not in use, per unit of reach.
    certify_every
        Newton steps between certificates, each of which costs as much as one of them. Without a
        start the first ones come sooner.
    search_every
        Newton steps between searches for a plan near the iterate (`local_search.py`), as long as
        they pay; 0 for none.
    clusters
        Gap to which the problem between clusters of points is solved first; 0 for a start from
        transport between groups.
    polish
        Most rounds of polishing of a bound (`ProximalDual.polished`), where the gap is below 1e-5
        and the last certificate closed less than a third of it.
    patience
        Newton steps without progress of the gap after which it gives up.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> M = np.random.default_rng(0).random((6, 6))
    >>> groups = sot.Groups([0, 0, 0, 1, 1, 1])
    >>> sot.solve(M, structure=groups, method=sot.solvers.Newton(search_every=0)).converged
    True
    """

    rho: float = 1.0
    accuracy: float = 0.3
    inner_steps: int = 12
    reach: float = 1e-2
    background: float = 0.3
    certify_every: int = 6
    search_every: int = 12
    clusters: float = 3e-3
    polish: int = 12
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
            if start.plan is None and start.potentials is None:
                # Not kept here: it is as large as the problem.
                yield from _proximal_newton(problem, self._first_start(problem), self)
            else:
                yield from _proximal_newton(problem, start, self)

    def _first_start(self, problem: Problem, sights: Sights | None = None) -> Start:
        """The answer between clusters of points; between groups where there are few points, or
        where plans between groups are good already.

        The steps on the way are not shown: they are no iterations of this problem. Only the clock
        stops them.
        """
        small = Clustered.of(problem, sights) if self.clusters > 0.0 else None
        if small is None:
            return coarse_start(problem)
        begin = self._first_start(small.problem, small.sights)
        value, bound, plan, potentials = np.inf, -np.inf, None, None
        for step in _proximal_newton(small.problem, begin, self):
            if step is not None and step.plan is not None and step.value < value:
                value, plan = step.value, step.plan()
            if step is not None and step.dual is not None and step.lower_bound > bound:
                bound, potentials = step.lower_bound, (step.dual().u, step.dual().v)
            gap = relative_gap(value, bound) if plan is not None else np.inf
            if begin.between_groups and gap <= _GROUPS_DO:
                return coarse_start(problem)
            if gap <= self.clusters:
                break
            begin = Start()  # only the first step is about it
        if plan is None or potentials is None:  # arithmetic broke down on the way
            return coarse_start(problem)
        return small.refined(problem, plan, potentials)


class _Pace:
    """With which ρ, and how exactly, the next inner problem is solved, and when to give up.

    φ lies between the bound and the value. What the value lacks comes from the mass that X misses:
    inner problems must be solved more exactly. What the bound lacks comes from the proximal term:
    ρ must fall.
    """

    def __init__(self, rho: float, options: Newton) -> None:
        self.rho, self.accuracy, self._options = rho, options.accuracy, options
        self._range = rho * _RHO_RANGE[0], rho * _RHO_RANGE[1]
        self._best, self._stuck = np.inf, 0
        self.bound_lags = True

    @property
    def most(self) -> int:
        """Newton steps that an inner problem may take: the more, the longer the gap stands."""
        return self._options.inner_steps + self._stuck // 4

    def adapt(self, steps: int, solved: bool) -> None:
        """A smaller ρ where the bound lags, a larger one after a hard inner problem."""
        if not solved:
            self.rho *= 2.0
        elif self.bound_lags and 3 * steps < self.most:
            self.rho /= 2.0
        self.rho = min(max(self.rho, self._range[0]), self._range[1])

    def judge(self, value: float, phi: float, bound: float) -> None:
        """Learn from a certificate which of the two, value or bound, is farther from φ."""
        self.bound_lags = phi - bound > value - phi
        factor = 2.0 if self.bound_lags else 0.5
        self.accuracy = min(max(factor * self.accuracy, 1e-6), self._options.accuracy)

    def goes_on(self, gap: float, steps: int) -> bool:
        """Whether the gap has fallen by a fifth within the steps that patience allows."""
        self._stuck += steps
        if gap < 0.8 * self._best:
            self._best, self._stuck = gap, 0
        return self._stuck < self._options.patience


def _proximal_newton(problem: Problem, start: Start, options: Newton) -> Iterator[Step | None]:
    known = start.plan is not None and start.potentials is not None
    near = known and not start.between_groups
    inner = ProximalDual(problem, options.background)
    certify = _Certifier(problem, inner, options.polish)
    pace = _Pace(options.rho * _first_rho(inner), options)
    p, q = problem.released(*_multipliers(problem, start))
    inner.centre(problem.independent if start.plan is None else start.plan, pace.rho)
    if known:
        yield certify.of_start(start, p, q)
    del start  # as large as the problem, and not needed again
    search = _search(problem, inner, options)
    reach, missing = (_NEIGHBOUR if near else 1.0) * options.reach * inner.price, np.inf
    # The first certificates come after 1, 2, ... steps, unless the start is near the answer.
    going, uncertified, certificates = True, 0, options.certify_every if near else 0
    while going:
        value = inner.evaluate(p, q)
        # What misses more mass than the last one did takes longer steps.
        size = float(np.abs(value.gradient).sum())
        reach *= max(1.0, size / missing) ** 0.5 if missing > 0 else 1.0
        steps, solved, moved = 0, False, True
        while moved and not solved and steps < pace.most:
            # The first iteration has something to show, in case it stays the only one; the first
            # inner problem, which may be hard although its start is near the answer, twice.
            if steps > 0:
                shows = certificates < 2 and steps in (1, options.certify_every)
                yield certify(value, reach) if shows else None
                certificates += shows
            value, reach, moved = _newton_step(inner, value, reach)
            steps += 1
            size = float(np.abs(value.gradient).sum())
            solved = size <= max(pace.accuracy * value.moved, 1e-15 * problem.total)
        uncertified, missing, plan = uncertified + steps, size, None
        if uncertified >= min(certificates, options.certify_every):
            yield certify(value, reach)
            certificates += 1
            pace.judge(certify.value, value.phi, certify.bound)
            going = pace.goes_on(certify.gap, uncertified)
            if search is not None and search.due(uncertified) and certify.gap > _EXACT:
                found, plan = certify.by_search(search, value)
                yield found
                del found
            uncertified = 0
        else:
            yield None
        pace.adapt(steps, solved)
        p, q = value.p, value.q
        inner.centre(plan, pace.rho)
        plan = None  # as large as the problem, as what was found


def _multipliers(problem: Problem, start: Start) -> tuple[Array, Array]:
    """The potentials of a start, in proportion to what its plan costs here; zeros without any.

    For the problem they come from they cost as much as the plan, (p ⊕ q) · P = f(P). A neighbour
    of it, with another discount, has other prices.
    """
    if start.potentials is None:
        return np.zeros(problem.shape[0]), np.zeros(problem.shape[1])
    p, q = start.potentials
    if start.plan is None or not problem.marginals.hard:
        return p, q
    paid, price = float(problem.a @ p + problem.b @ q), problem.objective(start.plan)
    factor = price / paid if paid > 0.0 and price > 0.0 else 1.0
    return factor * p, factor * q


def _search(problem: Problem, inner: ProximalDual, options: Newton) -> Search | None:
    """Searching is for few large blocks; among many small ones the program would be large.

    Which marginals the plan of a partial problem should have a program cannot tell, and with those
    of the iterate it was never seen to pay.
    """
    few = inner.layer.start.size - 1 <= max(problem.shape)
    if not few or options.search_every == 0 or problem.marginals.partial:
        return None
    return Search(problem, inner.true_layer, options.search_every)


def _first_rho(inner: ProximalDual) -> float:
    """max(n, m) / T times what pairs cost alone, per unit of the metric: free of units."""
    return max(inner.n, inner.m) / inner.problem.total * inner.price / inner.weight


def _newton_step(inner: ProximalDual, value: Value, reach: float) -> tuple[Value, float, bool]:
    """One Newton step with a line search on the concave φ; returns the reach of the next one, and
    whether there is a next one.
    """
    p, q, n, clip = value.p, value.q, value.p.size, inner.problem.marginals.clip
    least, most = (inner.price * x for x in _REACH_RANGE)
    reach = min(max(reach, least), most)
    d, held = inner.direction(inner.pool_matrix(), value, reach), inner.held
    rise = float(value.gradient @ d)
    length = 1.0
    for trial in range(14):
        check_time()
        # Potentials end where the dual terms of their side do.
        there = inner.evaluate(*clip(p + length * d[:n], q + length * d[n:], held))
        slope = float(there.gradient @ d)
        gained = value.gradient[:n] @ (there.p - p) + value.gradient[n:] @ (there.q - q)
        # Near the maximum φ is flat to rounding, and its derivative decides.
        flat = abs(there.phi - value.phi) <= 1e-13 * abs(value.phi)
        if there.phi >= value.phi + 1e-4 * gained or (flat and abs(slope) <= 0.9 * rise):
            factor = _FULL if trial == 0 else _SHORTENED
            return there, reach * factor, True
        # Along the line φ' falls from rise to slope: its zero is about where the secant says.
        length *= min(max(rise / (rise - slope), 0.1), 0.7) if slope < 0 else 0.5
        if length < _SHORTEST and reach < most:
            break
    return inner.evaluate(p, q), _REFUSED * reach, reach < most


class _Certifier:
    """Turns an inner iterate into a plan with its value and a proved bound."""

    def __init__(self, problem: Problem, inner: ProximalDual, polish: int) -> None:
        self.problem, self.inner, self._polish = problem, inner, polish
        self._slow = False
        self.best_value, self.best_bound = np.inf, -np.inf
        self.value, self.bound = np.inf, -np.inf  # of the last certificate

    @property
    def missing(self) -> float:
        return max(self.best_value - self.best_bound, float(np.finfo(float).tiny))

    @property
    def gap(self) -> float:
        if not np.isfinite(self.best_value):
            return np.inf
        return relative_gap(self.best_value, self.best_bound)

    def __call__(self, value: Value, reach: float) -> Step:
        P = self._plan(value, reach)
        check_time()
        objective, before = self.inner.value_of(P), self.gap
        self.best_value = min(self.best_value, objective)
        proof = max(self.inner.proofs(value), key=lambda proof: proof[2])
        rounds = self._polish if self._slow and self.gap < _CLOSE else 0
        u, v, bound = self.inner.polished(proof, self.best_value, rounds)
        self.best_bound = max(self.best_bound, bound)
        self._slow = self.gap > 0.67 * before
        self.value, self.bound = objective, bound
        return Step(objective, lambda: P, bound, lambda: Dual(u, v, None, bound))

    def of_start(self, start: Start, p: Array, q: Array) -> Step:
        """What is known before the first Newton step, at the price of a few sorts."""
        plan = start.plan
        assert plan is not None
        self.best_value = self.inner.value_of(plan)
        u, v, bound = self.inner.projected(p, q)
        self.best_bound = bound
        return Step(self.best_value, lambda: plan, bound, lambda: Dual(u, v, None, bound))

    def _plan(self, value: Value, reach: float) -> Array:
        """A feasible plan near X: repaired, scaled down to the marginals, and filled up again."""
        problem = self.problem
        P = self.inner.repaired(value, reach)
        if problem.marginals.hard:
            P, r, c = split_rounding(P, problem.a, problem.b, overwrite=True)
            self.inner.fill_rests(P, r, c, everywhere=problem.function.allowed is None)
        return problem.feasible(P, (value.p, value.q), overwrite=True)

    def by_search(self, search: Search, value: Value) -> tuple[Step | None, Array | None]:
        """What a search proves, as a step, and the plan it found if it is good enough to become
        the centre of the next proximal step.
        """
        inner, missing = self.inner, self.missing
        found = search(inner.C, inner.pools, (value.p, value.q))
        if found is None:
            return None, None
        objective = inner.value_of(found.plan)
        self.best_value = min(self.best_value, objective)
        u, v, bound = inner.projected(found.u, found.v)
        self.best_bound = max(self.best_bound, bound)
        worth = search.paid(1.0 - self.missing / missing)
        step = Step(objective, lambda: found.plan, bound, lambda: Dual(u, v, None, bound))
        return step, found.plan if worth else None
