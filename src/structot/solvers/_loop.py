"""The one loop: every solver is a generator of steps; stopping, tracing and limits happen here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from structot.certificate import Dual, complete, linear_value
from structot.problem import Problem
from structot.result import Result, Status, Trace
from structot.solvers._progress import live_progress

Array = np.ndarray


@dataclass(frozen=True)
class Step:
    """What one iteration of a solver can prove. The plan and the proof are made only if needed.

    ``value`` is the objective at ``plan()`` or an upper bound of it; ``lower_bound`` is what
    ``dual()`` proves, or less.
    """

    value: float = np.inf
    plan: Callable[[], Array] | None = None
    lower_bound: float = -np.inf
    dual: Callable[[], Dual] | None = None


@dataclass(frozen=True)
class Limits:
    """When to stop: the certified gap, or what comes first."""

    tol: float = 1e-4
    max_iter: int | None = None
    time_limit: float | None = None


@dataclass(frozen=True)
class State:
    """What a callback sees."""

    iteration: int
    time: float
    value: float
    lower_bound: float
    gap: float


def run(
    problem: Problem,
    steps: Iterator[Step | None],
    method: str,
    limits: Limits,
    callback: Callable[[State], bool | None] | None = None,
    progress: bool = False,
) -> Result:
    """Draw steps until the gap between the best plan and the best bound is at most ``tol``."""
    clock = time.perf_counter
    start = clock()
    best = _Best(problem)
    rows: list[tuple[int, float, float, float]] = []
    status = Status.STALLED
    iteration = 0
    # Closing the generator also after an interruption gives back what it holds.
    with contextlib.closing(steps), live_progress(progress, method, limits.tol) as show:  # type: ignore[type-var]
        while True:
            step = next(steps, _END)
            if step is _END:
                status = Status.CONVERGED if best.gap <= limits.tol else Status.STALLED
                break
            iteration += 1
            now = clock() - start
            if isinstance(step, Step):
                if not best.credible(step):
                    status = Status.NOT_FINITE
                    break
                best.take(step)
                rows.append((iteration, now, best.value, best.bound))
            state = State(iteration, now, best.value, best.bound, best.gap)
            show(state)
            stop = callback is not None and bool(callback(state))
            if best.gap <= limits.tol:
                status = Status.CONVERGED
            elif stop:
                status = Status.STOPPED
            elif limits.max_iter is not None and iteration >= limits.max_iter:
                status = Status.ITERATION_LIMIT
            elif limits.time_limit is not None and now >= limits.time_limit:
                status = Status.TIME_LIMIT
            else:
                continue
            break
    return best.result(method, status, iteration, clock() - start, rows, limits.tol)


_END = object()


class _Best:
    """The best plan and the best proof so far."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.value, self.bound = np.inf, -np.inf
        self.plan: Array | None = None
        self.dual: Dual | None = None

    @property
    def gap(self) -> float:
        if not (np.isfinite(self.value) and np.isfinite(self.bound)):
            return np.inf
        return self.problem.relative_gap(self.value, self.bound)

    def credible(self, step: Step) -> bool:
        """No NaN, and no bound clearly above a value: arithmetic has broken down otherwise."""
        value, bound = min(self.value, step.value), max(self.bound, step.lower_bound)
        if np.isnan(step.value) or np.isnan(step.lower_bound):
            return False
        return not np.isfinite(value) or self.problem.relative_gap(value, bound) > -1e-6

    def take(self, step: Step) -> None:
        if step.plan is not None and step.value < self.value:
            self.value, self.plan = step.value, step.plan()
        if step.dual is not None and step.lower_bound > self.bound:
            self.bound, self.dual = step.lower_bound, step.dual()

    def result(
        self, method: str, status: Status, iteration: int, seconds: float, rows: list, tol: float
    ) -> Result:
        problem = self.problem
        if self.plan is None or self.dual is None:
            raise FloatingPointError(
                f"method {method!r} produced no finite plan and bound ({status}); rescale the "
                "costs or weights, or try another method."
            )
        # The recorded numbers may be estimates on the safe side; the result holds exact ones.
        plan, dual = self.plan, complete(problem, self.dual)
        assert dual.K is not None
        structured = problem.function.extension(plan)
        value = structured + problem.entropy_term(plan)
        gap = problem.relative_gap(value, dual.bound)
        columns = np.array(rows, float).reshape(-1, 4).T
        kind = problem.dtype
        return Result(
            plan=plan.astype(kind, copy=False),
            value=value,
            value_structured=structured,
            value_linear=linear_value(problem, plan),
            lower_bound=dual.bound,
            gap=gap,
            potentials=(dual.u.astype(kind, copy=False), dual.v.astype(kind, copy=False)),
            worst_cost=dual.K.astype(kind, copy=False),
            ground_cost=problem.M.astype(kind, copy=False),
            status=Status.CONVERGED if gap <= tol else status,
            method=method,
            n_iter=iteration,
            time=seconds,
            trace=Trace(columns[0].astype(int), columns[1], columns[2], columns[3]),
        )
