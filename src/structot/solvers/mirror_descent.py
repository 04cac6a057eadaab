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
from structot.solvers._mirror import OVERFLOW, Averages, Iterate, MirrorSolver, Steps, on_edges
from structot.solvers._start import Start

Array = np.ndarray


@dataclass(frozen=True)
class MirrorDescent(MirrorSolver):
    """P_{t+1} = argmin_{P in U(a,b)} η_t <P, K_t> + KL(P | P_t),   K_t a subgradient of f at P_t.

    The answer is the average of the P_t with weights η_t, or the last one if that is better; the
    bound comes from the average of the K_t. The gap falls like 1/√t.

    Parameters
    ----------
    step
        η_1 in units of √(2 log nm) / G, G² = <P_0, K_0²> / T: the step that is best in theory for
        subgradients of this size, and free of the units of cost and mass. None is automatic.
    schedule
        ``"sqrt"``: η_t = η_1 / √t; ``"constant"``: η_t = η_1, which ends at a distance ~ η_1.
    seed
        Not used; every method takes one.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 4.0], [4.0, 2.0]]
    >>> groups = sot.Groups([0, 1], [0, 1], sot.concave.Sqrt())
    >>> sot.solve(M, structure=groups, method=MirrorDescent(), tol=1e-2).converged
    True
    """

    name: ClassVar[str] = "mirror_descent"
    automatic: ClassVar[float] = 1.0

    schedule: str = "sqrt"

    def steps(self, problem: Problem, start: Start) -> Steps:
        function = problem.function
        now = Iterate.first(problem, start.plan)
        K = on_edges(function, function.greedy(now.plan))
        unit = _unit(problem, now.plan, K)
        averages = Averages(problem)
        for t in count(1):
            eta = self.rate(t) * unit
            averages.add(eta, now.plan, K)
            moved = now.moved(problem, eta, K, averages.sinkhorn_tol)
            if moved is None:
                yield OVERFLOW
                return
            now = moved
            yield averages.certificate(t, now)
            K = on_edges(function, function.greedy(now.plan))


def _unit(problem: Problem, P: Array, K: Array) -> float:
    size = np.sqrt(float(np.sum(P * K**2)) / problem.total)
    return np.sqrt(2.0 * np.log(max(P.size, 2))) / max(size, problem.scale() / problem.total)
