"""Prices that stand for "forbidden" in problems of `Routes`: pairs left out at first.

Methods for routes work with absolute accuracies, or with all prices in one matrix: they lose the
digits of the small prices beside one of 1e15. Let C' be the costs with such prices replaced by
+inf. A plan that is best for C' is best for C too if the potentials (u, v) of C' stay below the
true prices of what was left out, as they do where nothing is to be gained there; and that is what
the proof for C tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from structot.certificate import dual_from_cost
from structot.problem import Problem
from structot.solvers._loop import Step
from structot.solvers.start import Start
from structot.submodular.lanes import PROHIBITIVE_OCTAVES
from structot.transport import InfeasibleError


def prohibitive_last(
    problem: Problem, start: Start, steps: Callable[[Problem, Start], Iterator[Step | None]]
) -> Iterator[Step | None]:
    """The steps of a method for routes: first without prohibitive prices, where there are any."""
    mild = without_prohibitive(problem)
    if mild is not None:
        for step in steps(mild, Start()):
            yield None if step is None else _with_true_prices(problem, mild, step)
    yield from steps(problem, start)


def without_prohibitive(problem: Problem) -> Problem | None:
    """The problem without pairs of prohibitive prices, in units that fit the others.

    None if F has no lanes, if there are no such prices, or no plan without these pairs.
    """
    costs, lanes = problem.linear, problem.lanes
    if costs is None or lanes is None:
        return None
    prices = costs[(costs > 0) & np.isfinite(costs)]
    charges = lanes.price[lanes.price > 0] / problem.total
    octaves = np.frexp(np.append(prices, charges))[1]
    least = octaves.min(initial=0)
    used = least + np.flatnonzero(np.bincount(octaves - least))
    below = used[:-1][np.diff(used) > PROHIBITIVE_OCTAVES]
    if below.size == 0:
        return None
    allowed = costs < np.ldexp(1.0, int(below[-1]))
    try:
        problem.marginals.feasible(np.zeros(problem.shape), None, allowed)
    except InfeasibleError:
        return None
    function = replace(
        problem.function,
        linear=np.where(allowed, costs, np.inf),
        layers=(replace(lanes, allowed=allowed),),
        allowed=allowed,
    )
    return replace(problem, function=function).normalized()


def _with_true_prices(problem: Problem, mild: Problem, step: Step) -> Step:
    """What a step of the mild problem is worth, and proves, for the problem itself."""
    unit, out = mild.units.cost / problem.units.cost, Step()
    if step.plan is not None:
        P = (mild.units.mass / problem.units.mass) * step.plan()
        out = Step(problem.objective(P), lambda: P)
    if step.dual is not None:
        dual = step.dual()
        assert dual.K is not None
        assert problem.linear is not None
        assert mild.linear is not None
        K = np.where(np.isfinite(mild.linear), unit * dual.K, problem.linear)
        proof = dual_from_cost(problem, K, unit * dual.u)
        out = Step(out.value, out.plan, proof.bound, lambda: proof)
    return out
