"""Interior-point methods: linear programs with block structure, and costs over many decades."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from structot._parallel import single_threaded_blas
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers._prohibitive import prohibitive_last
from structot.solvers.base import Solver
from structot.solvers.interior_point.chords.path import MOST_PAIRS, central_path
from structot.solvers.interior_point.lanes.solver import route_path
from structot.solvers.start import Start
from structot.submodular.cuts import CutLayer


@dataclass(frozen=True)
class InteriorPoint(Solver):
    """min_{P in U(a,b)} f(P) for `Routes`; with reg · entropy for blocks and cuts and their sums.

    For `Routes` some ten to thirty Newton steps, each with one dense system of as many unknowns as
    the smaller side has points. For blocks and cuts it needs no metric, so that costs over many
    decades do it no harm, and some tens of Newton steps of at most a tenth of a second for a
    thousand pairs; refused above 20 000.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 3.0, 4e9], [2.0, 2.0, 1e-3], [5.0, 1e-6, 1.0]]
    >>> groups = sot.Groups([0, 0, 1], [0, 1, 1]) + sot.ChainCut(0.5)
    >>> sot.solve(M, structure=groups, method="interior_point").converged
    True
    """

    name: ClassVar[str] = "interior_point"

    takes_lanes: ClassVar[bool] = True
    takes_relaxed: ClassVar[bool] = True

    def objection(self, problem: Problem) -> str | None:
        if problem.lanes is not None:
            if problem.marginals.linear and not problem.marginals.partial:
                return None
            return (
                "Routes takes marginals that hold, or unbalanced_type='TV'; for 'KL' or a given "
                "mass use Groups"
            )
        if not problem.marginals.hard:
            return "but for Routes it needs marginals that hold exactly"
        for layer in problem.layers:
            if layer.kind != "blocks" and not isinstance(layer, CutLayer):
                needs = "; reg > 0 takes groups, cuts and their sums" if problem.reg > 0 else ""
                return f"{type(layer).__name__} is made of neither blocks nor cuts{needs}"
        if problem.M.size > MOST_PAIRS:
            return f"{problem.M.size} pairs are too many for it"
        return None

    def steps(self, problem: Problem, start: Start) -> Iterator[Step | None]:
        with single_threaded_blas(sum(problem.shape)):
            if problem.lanes is not None:
                yield from prohibitive_last(problem, start, route_path)
            else:
                yield from central_path(problem)
