"""Modular F: the network simplex, which proves its own answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from structot.certificate import Dual, dual_from_cost, transport_bound
from structot.marginals import relaxed_emd
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.base import Solver
from structot.solvers.start import Start


@dataclass(frozen=True)
class Exact(Solver):
    """min_{P in U(a,b)} <P, C> by the network simplex of POT, for modular F.

    Marginals may be relaxed by TV, or a part of the mass be moved.

    Examples
    --------
    >>> import structot as sot
    >>> sot.solve([[1.0, 3.0], [3.0, 1.0]], method=Exact()).value
    1.0
    """

    name: ClassVar[str] = "exact"
    takes_lanes: ClassVar[bool] = True
    takes_relaxed: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        if problem.function.modular_cost is None:
            return "it needs a modular function; use method='auto' for structured costs"
        if not problem.marginals.linear:
            return "marginals relaxed by KL are no linear program; use method='auto'"
        return super().objection(problem)

    def steps(self, problem: Problem, start: Start) -> Iterator[Step]:
        cost = problem.function.modular_cost
        assert cost is not None
        try:
            answer = relaxed_emd(cost, problem.marginals)
        except RuntimeError:  # the network simplex gave up; the loop has an answer of its own
            return
        u, v = answer.potentials
        if not problem.marginals.hard:
            plan, dual = problem.feasible(answer.plan), dual_from_cost(problem, cost, u)
            yield Step(problem.objective(plan), lambda: plan, dual.bound, lambda: dual)
            return
        bound = transport_bound(problem, u, v)
        yield Step(answer.value, lambda: answer.plan, bound, lambda: Dual(u, v, cost, bound))
