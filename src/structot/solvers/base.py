"""What a solver is: options, a reason to refuse a problem, and a generator of certified steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from structot.problem import Problem
from structot.solvers._loop import State as State
from structot.solvers._loop import Step
from structot.solvers.start import Start


class Solver(ABC):
    """A method of solution; its options are the fields of the (frozen dataclass) subclass.

    A solver never checks input and never decides when to stop: it yields one item per iteration,
    a `Step` when it has something to prove and None otherwise, for as long as it can improve.

    Examples
    --------
    >>> from structot.solvers import Exact, Newton
    >>> isinstance(Exact(), Solver), Newton(rho=2.0).rho
    (True, 2.0)
    """

    name: ClassVar[str]
    # Whether subgradients are all it needs, so that a `ConvexCost` will do.
    takes_convex: ClassVar[bool] = False
    # Whether it knows marginals that need not hold.
    takes_relaxed: ClassVar[bool] = False
    # Whether it knows lanes, the tariffs of `Routes`.
    takes_lanes: ClassVar[bool] = False

    def refusal(self, problem: Problem) -> str | None:
        """Why this problem cannot be solved in this way: for want of a set function, or else."""
        if problem.function.is_convex:
            if not self.takes_convex:
                return "a ConvexCost is no set function; use method='mirror_descent' or 'auto'"
            if problem.reg > 0:
                return "a ConvexCost takes no reg > 0; add the entropy to its value and subgradient"
        if not (problem.marginals.hard or self.takes_relaxed):
            return (
                "it needs marginals that hold exactly; unbalanced and mass are for exact, newton, "
                "splitting, linear_program, with reg > 0 and at most one layer of groups "
                "entropic, and for Routes with TV interior_point"
            )
        if problem.lanes is not None:
            if problem.reg > 0:
                return "Routes takes no entropy yet; use reg=0, or Groups"
            if not self.takes_lanes:
                return (
                    "Routes prices shares of points, not pairs; use method='interior_point', "
                    "'linear_program' or 'auto'"
                )
        return self.objection(problem)

    def objection(self, problem: Problem) -> str | None:
        """Why this method cannot solve this problem, as the end of a sentence, or None."""
        return "it cannot handle reg > 0; use method='entropic'" if problem.reg > 0 else None

    @abstractmethod
    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        """The iterations, one item each."""
