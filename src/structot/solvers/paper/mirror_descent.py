"""Mirror descent on the plan alone: the paper's Algorithm 1.

Notation. P_t the plan, K_t = argmax_{K in B(F)} <K, P_t> a subgradient of f there (Edmonds), η_t
the step, T the total mass.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

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
from structot.solvers.paper.tangents import Tangents
from structot.solvers.start import Start


@dataclass(frozen=True)
class MirrorDescent(MirrorSolver):
    """P_{t+1} = argmin_{P in U(a,b)} η_t <P, K_t> + KL(P | P_t),   K_t a subgradient of f at P_t.

    The answer is the average of the P_t with weights η_t, or the last one if that is better; the
    bound comes from the average of the K_t, for a `ConvexCost` from that of the linearisations. The
    gap falls like 1/√t.

    Parameters
    ----------
    step
        η_1 in units of √(2 log nm) / G_t, with G_t² the mean of <P_s, K_s²> / T over s <= t: the
        step that is best in theory for subgradients of this size, free of the units of cost and
        mass. None is 0.3 (0.05 for the constant schedule), the best on clusters of points.
    schedule
        ``"sqrt"``: falling like 1/√t; ``"constant"``: soon good, but ends at a gap ~ step.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 4.0], [4.0, 2.0]]
    >>> groups = sot.Groups([0, 1], [0, 1], sot.concave.Sqrt())
    >>> sot.solve(M, structure=groups, method=MirrorDescent(), tol=1e-2).converged
    True
    """

    name: ClassVar[str] = "mirror_descent"
    takes_convex: ClassVar[bool] = True
    automatic: ClassVar[dict[str, float]] = {"sqrt": 0.3, "constant": 0.05}

    schedule: str = "sqrt"

    def steps(self, problem: Problem, start: Start) -> Steps:
        function = problem.function
        now = Iterate.first(problem, start.plan)
        K = on_edges(function, function.greedy(now.plan))
        best = np.sqrt(2.0 * np.log(max(K.size, 2)))
        square = 0.0  # Σ_s <P_s, K_s²> / T
        # Only the known potentials would need a projection, which may be slow where F has no own.
        fast = not problem.layers or problem.blocks is not None
        # A Lovász extension is homogeneous, f(P) = <K, P>: only other functions have offsets.
        tangents = Tangents(problem) if problem.function.is_convex else None
        averages = Averages(
            problem,
            start.plan,
            known_dual(problem, start) if fast else None,
            recent=tangents is not None,
        )
        for t in count(1):
            square += float(np.sum(now.plan * K**2)) / problem.total
            size = np.sqrt(square / t) if square > 0 else 1.0  # K = 0: any step will do
            eta = self.first_step * self.decay(t) * best / size
            averages.add(eta, now.plan, K if tangents is None else tangents.cost(now.plan, K))
            moved = now.moved(problem, eta, K, averages.sinkhorn_tol)
            if moved is None:
                yield OVERFLOW
                return
            now = moved
            yield averages.certificate(t, now)
            K = on_edges(function, function.greedy(now.plan))
