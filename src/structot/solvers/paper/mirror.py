"""What the paper's three algorithms share: mirror steps, averages, and when to certify.

Notation. P in U(a, b) the plan with total T, K in B(F) the cost, η the step size of one iteration,
KL(P | Q) = Σ P log(P/Q) - P + Q. Outside this file K is +inf on forbidden pairs; inside it is 0
there, so that it can be averaged, and log P = -inf keeps these pairs empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import ClassVar

import numpy as np

from structot import _checks
from structot._deadline import check_time
from structot._typing import Array
from structot.certificate import (
    Dual,
    dual_by_exact_transport,
    dual_from_cost,
    dual_from_potentials,
    lowered,
    relative_gap,
)
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.start import Start
from structot.submodular.base import Submodular
from structot.transport import SinkhornStatus, round_plan, sinkhorn

SCHEDULES = ("constant", "sqrt")
# Share of the independent plan in a given first plan: multiplicative steps never leave a zero.
_SPREAD = 1e-2
# Sinkhorn may leave this part of the certified gap as an error of the marginals, in [low, high].
_SLOPPINESS, _FINEST, _COARSEST = 0.02, 1e-10, 2e-3
_SINKHORN_SWEEPS = 200
# Certificates at 1, 2, 4, ... then this factor apart, those with exact transport the second one.
_CERTIFY_FACTOR, _EXACT_FACTOR = 1.15, 1.3
# A Euclidean projection may start from a point this many times larger than K.
_BLUR = 100.0


@dataclass(frozen=True)
class MirrorSolver(Solver):
    """The options that the three algorithms share."""

    step: float | None = None
    schedule: str = "constant"

    # The first step where none is given, by schedule, in the method's own unit.
    automatic: ClassVar[dict[str, float]]

    def __post_init__(self) -> None:
        if self.step is not None:
            _checks.positive("step", self.step)
        _checks.one_of("schedule", self.schedule, SCHEDULES)

    @property
    def first_step(self) -> float:
        """The step of the first iteration, in the method's own unit."""
        return self.automatic[self.schedule] if self.step is None else self.step

    def decay(self, t: int) -> float:
        """The step of iteration t = 1, 2, ... relative to the first."""
        return 1.0 / np.sqrt(t) if self.schedule == "sqrt" else 1.0


def on_edges(function: Submodular, K: Array) -> Array:
    """K with 0 instead of +inf on forbidden pairs."""
    return K if function.allowed is None else np.where(function.allowed, K, 0.0)


def known_dual(problem: Problem, start: Start) -> Dual | None:
    """What the potentials of the start prove, if there are any."""
    return None if start.potentials is None else dual_from_potentials(problem, *start.potentials)


@dataclass(frozen=True)
class Iterate:
    """A plan, its logarithm, and the row potentials of all mirror steps that led to it."""

    plan: Array
    log_plan: Array
    rows: Array
    last: tuple[Array, Array] | None = None

    @classmethod
    def first(cls, problem: Problem, plan: Array | None) -> Iterate:
        """The independent plan a bᵀ/T, or the given one with a little of it mixed in."""
        P = problem.independent
        if plan is not None:
            P = (1.0 - _SPREAD) * plan + _SPREAD * P
        allowed = problem.function.allowed
        if allowed is not None:
            P = np.where(allowed, P, 0.0)
        with np.errstate(divide="ignore"):
            first = cls(P, np.log(P), np.zeros(problem.shape[0]))
        if allowed is None:
            return first
        # What the forbidden pairs took away must go elsewhere.
        return first.moved(problem, 0.0, np.zeros(problem.shape), _COARSEST) or first

    def moved(
        self, problem: Problem, eta: float, K: Array, tol: float, guess: Iterate | None = None
    ) -> Iterate | None:
        """argmin_{Q in U(a,b)} η <Q, K> + KL(Q | P), by Sinkhorn; None if it overflowed.

        The potentials of the last step (of ``guess``) are the start: steps resemble each other.
        """
        check_time()
        init = (guess or self).last
        answer = sinkhorn(
            self.log_plan - eta * K,
            problem.a,
            problem.b,
            init=init,
            tol=tol,
            max_iter=_SINKHORN_SWEEPS,
        )
        if answer.status in (SinkhornStatus.NOT_FINITE, SinkhornStatus.INFEASIBLE):
            return None
        f, g = answer.potentials
        return Iterate(answer.plan, answer.log_plan, self.rows + f, (f, g))

    def divergence(self, other: Iterate) -> float:
        """KL(P | Q) with Q the other plan, of the same support."""
        used = self.plan > 0
        ratio = np.subtract(self.log_plan, other.log_plan, where=used, out=np.zeros(used.shape))
        return float(np.sum(self.plan * ratio - self.plan + other.plan))


class _Mean:
    """P̄ and K̄ with the weights η so far."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.count, self.weight = 0, 0.0
        self.P, self.K = np.zeros(shape), np.zeros(shape)

    def add(self, eta: float, P: Array, K: Array) -> None:
        self.count += 1
        self.weight += eta
        share = eta / self.weight
        self.P += share * (P - self.P)
        self.K += share * (K - self.K)


class Averages:
    """P̄ = Σ η_s P_s / Σ η_s and K̄ likewise, and what they prove.

    P̄ is feasible and K̄ is in B(F) by convexity, so f(P̄) and min_P <P, K̄> enclose the optimum.
    A plan and a proof known from the start take part in the first certificate.

    With ``recent`` the averages since the last power of two take part as well: they forget the
    first iterates, whose linearisations a curved f has left behind. ``blurred`` says that the K
    come from Euclidean projections, whose errors are relative to the largest entry.
    """

    def __init__(
        self,
        problem: Problem,
        plan: Array | None = None,
        dual: Dual | None = None,
        *,
        recent: bool = False,
        blurred: bool = False,
    ) -> None:
        self.problem, self._blurred = problem, blurred
        self.known_plans = [] if plan is None else [plan]
        self.known_duals = [] if dual is None else [dual]
        self.means = [_Mean(problem.shape) for _ in range(2 if recent else 1)]
        self.value, self.bound = np.inf, -np.inf
        self.next, self.next_exact = 1, 4

    def add(self, eta: float, P: Array, K: Array) -> None:
        """Take in the points where the gradient was taken, with weight η."""
        count = self.means[0].count
        if len(self.means) > 1 and count & (count - 1) == 0:
            self.means[1] = _Mean(self.problem.shape)
        for mean in self.means:
            mean.add(eta, P, K)

    @property
    def sinkhorn_tol(self) -> float:
        """How exact the marginals of the next iterate must be for the gap to go on falling."""
        if not (np.isfinite(self.value) and np.isfinite(self.bound)):
            return _COARSEST
        gap = relative_gap(self.value, self.bound)
        return min(max(_SLOPPINESS * gap, _FINEST), _COARSEST)

    def certificate(self, t: int, last: Iterate) -> Step | None:
        """The proof after iteration t, or None where the schedule has none."""
        if t < self.next:
            return None
        self.next = max(t + min(t, 2), int(np.ceil(_CERTIFY_FACTOR * t)))
        problem = self.problem
        allowed = problem.function.allowed
        points = [*(mean.P for mean in self.means), last.plan]
        check_time()
        plans = [round_plan(P, problem.a, problem.b, allowed=allowed) for P in points]
        plans += self.known_plans
        value, plan = min(((self._value(P), P) for P in plans), key=itemgetter(0))
        # The row potentials of P ∝ exp(-Σ η K) belong to entropic transport with cost K̄ and
        # regularisation 1 / Σ η: divided by Σ η they are nearly optimal for K̄ itself.
        rows = last.rows / self.means[0].weight
        costs = [mean.K for mean in self.means]
        check_time()
        duals = [self._proof(dual_from_cost, K, rows) for K in costs] + self.known_duals
        if t == 1:  # one step says little; a cost >= 0 proves at least 0 from u = 0
            duals.append(self._proof(dual_from_cost, costs[0]))
        if t >= self.next_exact:
            self.next_exact = int(np.ceil(_EXACT_FACTOR * t))
            duals += [self._proof(dual_by_exact_transport, K) for K in costs]
        dual = max(duals, key=attrgetter("bound"))
        self.known_plans, self.known_duals = [], []
        self.value, self.bound = min(self.value, value), max(self.bound, dual.bound)
        return Step(value, lambda: plan, dual.bound, lambda: dual)

    def _value(self, P: Array) -> float:
        check_time()
        return self.problem.objective(P)

    def _proof(self, prove: Callable[..., Dual], K: Array, *start: Array) -> Dual:
        """What K̄, +inf on forbidden pairs, proves less its rounding error."""
        allowed, size = self.problem.function.allowed, np.abs(K)
        known = lowered(K, _BLUR * float(size.max()) if self._blurred else size)
        K = K.copy()
        if allowed is not None:
            known[~allowed] = K[~allowed] = np.inf
        return prove(self.problem, known, *start)._replace(K=K)


OVERFLOW = Step(value=np.nan)
Steps = Iterator[Step | None]
