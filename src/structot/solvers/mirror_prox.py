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
from structot.problem import Problem
from structot.solvers._mirror import OVERFLOW, Averages, Iterate, MirrorSolver, Steps, on_edges
from structot.solvers._start import Start
from structot.submodular.base import METRICS, Submodular

Array = np.ndarray

START_COSTS = ("projection", "vertex")
# Entropy: smallest entry of K before a projection, relative to the largest; K = 0 stays 0 forever.
_FLOOR = 1e-100
# Entropy: part of the projection of M in a first K that is a vertex or comes from potentials.
_SPREAD = 0.1
# No step moves P by more than this many times what would make the averaged gap f(P_0) / t.
_LARGEST_MOVE = 10.0


class Rates(NamedTuple):
    """The step sizes of plan and cost when the step is 1."""

    plan: float
    cost: float


@dataclass(frozen=True)
class SaddleSolver(MirrorSolver):
    """The options that both saddle-point methods share."""

    mirror_map: str = "euclidean"
    start_cost: str = "projection"

    def __post_init__(self) -> None:
        super().__post_init__()
        _checks.one_of("mirror_map", self.mirror_map, METRICS)
        _checks.one_of("start_cost", self.start_cost, START_COSTS)

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
        M = on_edges(F, problem.M)
        projection = self._project(F, M)
        if start.potentials is not None:
            K = on_edges(F, F.project(np.add.outer(*start.potentials), "cost"))
        elif self.start_cost == "vertex":
            rng = np.random.default_rng(self.seed)
            K = on_edges(F, F.greedy(rng.random(problem.shape)))
        else:
            return projection
        return K if self.mirror_map != "entropy" else (1 - _SPREAD) * K + _SPREAD * projection

    def cost_step(self, F: Submodular, K: Array, eta: float, P: Array) -> Array:
        """argmax_{K' in B(F)} η <P, K'> - D(K', K)."""
        if self.mirror_map == "euclidean":
            return self._project(F, K + eta * P)
        if self.mirror_map == "cost":
            return self._project(F, K + eta * F.metric * P)
        # A factor common to all entries does not move the projection; this one cannot overflow.
        return self._project(F, K * np.exp(eta * (P - P.max())))

    def _project(self, F: Submodular, Z: Array) -> Array:
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
        size = max(float(np.sum(P * np.abs(first))), problem.scale())
        longest = _LARGEST_MOVE / size
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
    name: ClassVar[str] = "saddle_mirror_descent"
    automatic: ClassVar[float] = 1.0

    schedule: str = "sqrt"

    def steps(self, problem: Problem, start: Start) -> Steps:
        F = problem.function
        now, K = Iterate.first(problem, start.plan), self.first_cost(problem, start)
        rates = self.rates(problem, now.plan, K)
        averages = Averages(problem)
        for t in count(1):
            step = self.rate(t)
            averages.add(step * rates.plan, now.plan, K)
            moved = now.moved(problem, step * rates.plan, K, averages.sinkhorn_tol)
            if moved is None:
                yield OVERFLOW
                return
            K = self.cost_step(F, K, step * rates.cost, now.plan)
            now = moved
            yield averages.certificate(t, now)


@dataclass(frozen=True)
class MirrorProx(SaddleSolver):
    name: ClassVar[str] = "mirror_prox"
    automatic: ClassVar[float] = 1.0

    def steps(self, problem: Problem, start: Start) -> Steps:
        F = problem.function
        now, K = Iterate.first(problem, start.plan), self.first_cost(problem, start)
        rates = self.rates(problem, now.plan, K)
        averages = Averages(problem)
        half: Iterate | None = None
        for t in count(1):
            eta, eta_cost = self.rate(t) * rates.plan, self.rate(t) * rates.cost
            tol = averages.sinkhorn_tol
            half = now.moved(problem, eta, K, tol, half)
            half_K = self.cost_step(F, K, eta_cost, now.plan)
            moved = None if half is None else now.moved(problem, eta, half_K, tol, half)
            if half is None or moved is None:
                yield OVERFLOW
                return
            averages.add(eta, half.plan, half_K)
            K = self.cost_step(F, K, eta_cost, half.plan)
            now = moved
            yield averages.certificate(t, now)


def _has_entropy(function: Submodular) -> bool:
    try:
        function.project(np.ones(function.shape), "entropy")
    except ValueError:
        return False
    return True
