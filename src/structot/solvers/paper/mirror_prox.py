"""Mirror descent and mirror prox on the saddle point: the paper's Algorithm 2 and its appendix.

Notation. min_{P in U(a,b)} max_{K in B(F)} <P, K>; D the Bregman divergence of the mirror map on
B(F), d the metric of F, R_P and R_K how far the answer can be from the start in KL and D, T mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np

from structot import _checks
from structot._deadline import check_time
from structot._typing import Array
from structot.problem import Problem
from structot.solvers.paper.mirror import (
    OVERFLOW,
    Averages,
    Iterate,
    MirrorSolver,
    Steps,
    known_dual,
    on_edges,
)
from structot.solvers.start import Start
from structot.submodular.base import METRICS, Submodular

START_COSTS = ("projection", "vertex")
# Entropy: smallest entry of K before a projection, relative to the largest; K = 0 stays 0 forever.
_FLOOR = 1e-100
# Entropy: part of the projection of M in a first K that is a vertex or comes from potentials.
_SPREAD = 0.1
# No step moves P by more than this many times what would make the averaged gap f(P_0) / t.
_LARGEST_MOVE = 10.0
# No step goes farther than this many times the size of K: it would end in the same corner of B(F),
# but the projection has to keep the digits of K, which drown in a point too far away.
_FARTHEST = 1e4
# The automatic step of mirror prox: its factors after a safe and an unsafe move, and its range.
_GROW, _SHRINK, _SMALLEST, _LARGEST = 1.02, 0.8, 1e-2, 1e4


class Rates(NamedTuple):
    """The step sizes of plan and cost when the step is 1."""

    plan: float
    cost: float

    def times(self, step: float) -> Rates:
        """For another step."""
        return Rates(step * self.plan, step * self.cost)


@dataclass(frozen=True)
class SaddleSolver(MirrorSolver):
    """The options that both saddle-point methods share."""

    mirror_map: str = "euclidean"
    start_cost: str = "projection"
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("mirror_map", self.mirror_map, METRICS)
        _checks.one_of("start_cost", self.start_cost, START_COSTS)
        _checks.count("seed", self.seed, least=0)

    def objection(self, problem: Problem) -> str | None:
        if self.mirror_map == "entropy" and not _has_entropy(problem.function):
            return (
                f"mirror_map='entropy': {type(problem.function).__name__} has no entropic "
                "projection; use mirror_map='euclidean' or 'cost'"
            )
        return super().objection(problem)

    def first_cost(self, problem: Problem, start: Start) -> Array:
        """K_0: the projection of M (or of given potentials u ⊕ v) onto B(F), or a random vertex."""
        F = problem.function
        M = on_edges(F, problem.ground_cost)
        # Twice: the first one is right to a rounding error of M, which may be far above all of F.
        projection = self._project(F, self._project(F, M))
        if start.potentials is not None:
            K = on_edges(F, F.project_potentials(*start.potentials))
        elif self.start_cost == "vertex":
            rng = np.random.default_rng(self.seed)
            K = on_edges(F, F.greedy(rng.random(problem.shape)))
        else:
            return projection
        return K if self.mirror_map != "entropy" else (1 - _SPREAD) * K + _SPREAD * projection

    def cost_step(self, F: Submodular, K: Array, eta: float, P: Array) -> Array:
        """argmax_{K' in B(F)} η <P, K'> - D(K', K)."""
        gradient = F.metric * P if self.mirror_map == "cost" else P
        size = 1.0 if self.mirror_map == "entropy" else float(np.abs(K).max())
        eta = min(eta, _FARTHEST * size / max(float(gradient.max()), np.finfo(float).tiny))
        if self.mirror_map == "entropy":
            # A factor common to all entries moves no projection; this one avoids overflow.
            return self._project(F, K * np.exp(eta * (P - P.max())))
        return self._project(F, K + eta * gradient)

    def _project(self, F: Submodular, Z: Array) -> Array:
        check_time()
        if self.mirror_map == "entropy":
            Z = np.maximum(Z, _FLOOR * max(float(Z.max()), np.finfo(float).tiny / _FLOOR))
        return on_edges(F, F.project(Z, self.mirror_map))

    def rates(self, problem: Problem, P: Array, K: Array) -> Rates:
        """√(R_P / R_K L²) and √(R_K / R_P L²), the longest steps for which mirror prox is safe.

        P <= c = min(a_i, b_j) makes KL 1/c-strongly convex in the plain norm; D is 1-strongly
        convex in the norm of its mirror map, where <P, K> has the norm L² = max c, c·d or c·max K.
        """
        F = problem.function
        V = on_edges(F, F.greedy(-K))
        first = on_edges(F, F.greedy(P))
        cap = on_edges(F, np.minimum.outer(problem.a, problem.b))
        if self.mirror_map == "cost":
            cap = cap * F.metric
        elif self.mirror_map == "entropy":
            cap = cap * max(float(V.max()), float(first.max()))
        far_plan = problem.total * np.log(max(P.size, 2))
        far_cost = max(self._divergence(F, V, K), self._divergence(F, first, K))
        size = float(np.sum(P * np.abs(first)))
        longest = _LARGEST_MOVE / (size if size > 0 else problem.total)  # F = 0: any step will do
        norm = np.sqrt(far_plan * far_cost * float(cap.max()))
        unit = min(1.0 / norm, longest) if norm > 0 else longest
        return Rates(unit * far_plan, unit * far_cost)

    def _divergence(self, F: Submodular, V: Array, K: Array) -> float:
        if self.mirror_map == "entropy":
            used = V > 0
            ratio = V[used] / np.maximum(K[used], np.finfo(float).tiny)
            return max(float(np.sum(V[used] * np.log(ratio)) - V.sum() + K.sum()), 0.0)
        weights = F.metric if self.mirror_map == "cost" else 1.0
        return 0.5 * float(np.sum((V - K) ** 2 / weights))


@dataclass(frozen=True)
class SaddleMirrorDescent(SaddleSolver):
    """P_{t+1} = argmin η <P, K_t> + KL(P | P_t),   K_{t+1} = argmax η' <P_t, K> - D(K, K_t).

    Mirror descent on both sides of min_P max_K <P, K> at once. The answer is the average of the
    P_t, or the last one if that is better; the bound comes from the average of the K_t. The gap
    falls like 1/√t.

    Parameters
    ----------
    step
        In the unit of `MirrorProx`. None is 10 (1 for the constant schedule).
    schedule
        ``"sqrt"``: step / √t; ``"constant"``: soon good, but ends at a gap ~ step.
    mirror_map, start_cost, seed
        As in `MirrorProx`.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 4.0], [4.0, 2.0]]
    >>> groups = sot.Groups([0, 1], [0, 1], sot.concave.Sqrt())
    >>> sot.solve(M, structure=groups, method=SaddleMirrorDescent(), tol=1e-2).converged
    True
    """

    name: ClassVar[str] = "saddle_mirror_descent"
    automatic: ClassVar[dict[str, float]] = {"sqrt": 10.0, "constant": 1.0}

    schedule: str = "sqrt"

    def steps(self, problem: Problem, start: Start) -> Steps:
        now, K = Iterate.first(problem, start.plan), self.first_cost(problem, start)
        rates = self.rates(problem, now.plan, K)
        averages = Averages(problem, start.plan, known_dual(problem, start), blurred=True)
        for t in count(1):
            eta = rates.times(self.first_step * self.decay(t))
            averages.add(eta.plan, now.plan, K)
            moved = now.moved(problem, eta.plan, K, averages.sinkhorn_tol)
            if moved is None:
                yield OVERFLOW
                return
            K = self.cost_step(problem.function, K, eta.cost, now.plan)
            now = moved
            yield averages.certificate(t, now)


@dataclass(frozen=True)
class MirrorProx(SaddleSolver):
    """A step to the half-way point (U, V), then the same step again with the gradient found there.

        U = argmin η <P, K_t> + KL(P | P_t),        V = argmax η' <P_t, K> - D(K, K_t)
        P_{t+1} = argmin η <P, V> + KL(P | P_t),    K_{t+1} = argmax η' <U, K> - D(K, K_t)

    over U(a, b) and B(F). The answer is the average of the U, or the last plan if that is better;
    the bound comes from the average of the V. The gap falls like 1/t.

    Parameters
    ----------
    step
        A fixed step. At 1 it is the longest for which theory promises convergence whatever the
        problem: η η' L² = 1 with L² the norm of <P, K> in the two mirror maps, and η : η' the
        ratio of the distances still to go. Costs and masses may have any unit. None adapts the
        step: from 4 on it grows slowly and shrinks where the inequality behind the proof of
        convergence fails, which repeats the iteration.
    schedule
        ``"constant"``, or ``"sqrt"`` for step / √t.
    mirror_map
        D on the base polytope: ``"euclidean"`` ½ Σ (K - K')², ``"cost"`` ½ Σ (K - K')² / d with d
        the function's own metric, ``"entropy"`` Σ K log(K/K') - K + K'.
    start_cost
        K_0: ``"projection"`` of the ground cost onto B(F), or a random ``"vertex"`` of it.
    seed
        Of the random vertex.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 4.0], [4.0, 2.0]]
    >>> groups = sot.Groups([0, 1], [0, 1], sot.concave.Sqrt())
    >>> sot.solve(M, structure=groups, method=MirrorProx(mirror_map="cost"), tol=1e-3).converged
    True
    """

    name: ClassVar[str] = "mirror_prox"
    automatic: ClassVar[dict[str, float]] = {"constant": 4.0, "sqrt": 4.0}

    def steps(self, problem: Problem, start: Start) -> Steps:
        now, K = Iterate.first(problem, start.plan), self.first_cost(problem, start)
        rates = self.rates(problem, now.plan, K)
        averages = Averages(problem, start.plan, known_dual(problem, start), blurred=True)
        half: Iterate | None = None
        step = self.first_step
        for t in count(1):
            while True:
                eta = rates.times(step * self.decay(t))
                move = self._move(problem, now, K, eta, averages.sinkhorn_tol, half)
                if move is None:
                    yield OVERFLOW
                    return
                if self.step is not None:
                    break
                if step <= _SMALLEST or self._is_safe(problem.function, now, K, move, eta):
                    step = min(step * _GROW, _LARGEST)
                    break
                step *= _SHRINK
            half = move.half
            averages.add(eta.plan, half.plan, move.half_cost)
            now, K = move.end, move.end_cost
            yield averages.certificate(t, now)

    def _move(
        self,
        problem: Problem,
        now: Iterate,
        K: Array,
        eta: Rates,
        tol: float,
        last: Iterate | None,
    ) -> _Move | None:
        """Both halves of one iteration; None if they overflowed."""
        half = now.moved(problem, eta.plan, K, tol, last)
        if half is None:
            return None
        half_cost = self.cost_step(problem.function, K, eta.cost, now.plan)
        end = now.moved(problem, eta.plan, half_cost, tol, half)
        if end is None:
            return None
        end_cost = self.cost_step(problem.function, K, eta.cost, half.plan)
        return _Move(half, half_cost, end, end_cost)

    def _is_safe(self, F: Submodular, now: Iterate, K: Array, move: _Move, eta: Rates) -> bool:
        """<g(w) - g(z), w - z'> <= D(w, z) + D(z', w), with g the gradient, z → w → z' the move.

        Summed over the iterations it bounds the averaged gap by (distance to go) / Σ η.
        """
        U, V = move.half.plan, move.half_cost
        bend = np.sum((V - K) * (U - move.end.plan)) - np.sum((U - now.plan) * (V - move.end_cost))
        length = (move.half.divergence(now) + move.end.divergence(move.half)) / eta.plan
        if eta.cost > 0:
            far = self._divergence(F, V, K) + self._divergence(F, move.end_cost, V)
            length += far / eta.cost
        return bool(bend <= length)


class _Move(NamedTuple):
    """The half-way point and the end of an iteration of mirror prox."""

    half: Iterate
    half_cost: Array
    end: Iterate
    end_cost: Array


def _has_entropy(function: Submodular) -> bool:
    try:
        function.project(np.ones(function.shape), "entropy")
    except ValueError:
        return False
    return True
