"""The one loop: every solver is a generator of steps; stopping, tracing and limits happen here.

A solver may break down in any way that arithmetic has: what it has proved until then is the
answer, and the status says how it ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from structot import certificate
from structot._deadline import Deadline, OutOfTime
from structot._progress import live_progress
from structot._typing import Array
from structot.certificate import Dual
from structot.outcome import Status, Trace
from structot.problem import Objective, Problem
from structot.result import Result
from structot.solvers.start import Start

if TYPE_CHECKING:
    from structot.solvers.base import Solver


# Only where the value is this small beside the weight of the entropy can rounding be all of it.
_TINY = 1e-6
# Elsewhere it is at most a tenth of what the tolerance allows.
_NEAR = 1.11


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


class Row(NamedTuple):
    """An entry of the trace."""

    iteration: int
    time: float
    value: float
    lower_bound: float


@dataclass(frozen=True)
class Limits:
    """When to stop: the certified gap, or what comes first. ``atol`` in the user's units."""

    tol: float = 1e-4
    atol: float | None = None
    max_iter: int | None = None


@dataclass(frozen=True)
class State:
    """What a callback sees, in the units of the user."""

    iteration: int
    time: float
    value: float
    lower_bound: float
    gap: float


def run(
    problem: Problem,
    solvers: Sequence[Solver],
    start: Start,
    limits: Limits,
    deadline: Deadline,
    callback: Callable[[State], bool | None] | None = None,
    progress: bool = False,
) -> Result:
    """Draw steps until the gap between the best plan and the best bound is at most ``tol``.

    Where a solver can get no further the next one goes on from what is known. Without any the
    answer is the first one, which is right where nothing is moved.
    """
    best = _Best(problem, limits)
    if not solvers:
        P, dual = certificate.first_answer(problem)
        best.take(Step(problem.objective(P), lambda: P, dual.bound, lambda: dual))
    rows: list[Row] = []
    used: list[str] = []
    status = Status.STALLED
    with live_progress(progress, limits.tol) as show:

        def report(state: State) -> bool:
            show(used[-1], state)
            return callback is not None and bool(callback(state))

        for solver in solvers:
            used.append(solver.name)
            steps = solver.steps(problem, start)
            status = _follow(best, steps, limits, deadline, rows, report)
            if status not in (Status.STALLED, Status.NOT_FINITE):
                break
            start = best.start()
    return best.result(", then ".join(used) or "none", status, deadline, rows)


def _follow(
    best: _Best,
    steps: Iterator[Step | None],
    limits: Limits,
    deadline: Deadline,
    rows: list[Row],
    report: Callable[[State], bool],
) -> Status:
    """Take the steps of one solver until there is a reason to stop."""
    unit = best.problem.units.value
    # Closing the generator also after an interruption gives back what it holds.
    with contextlib.closing(steps):  # type: ignore[type-var]
        while True:
            step, status = _draw(steps, deadline)
            if status is not None:
                return status
            best.iteration += 1
            if isinstance(step, Step):
                if not best.take(step):
                    return Status.NOT_FINITE
                rows.append(Row(best.iteration, deadline.elapsed, best.value, best.bound))
                step = None  # its plan is as large as the problem
            seen = best.iteration, deadline.elapsed, best.value * unit, best.bound * unit
            stop = report(State(*seen, best.gap))
            if best.is_converged():
                return Status.CONVERGED
            if stop:
                return Status.STOPPED
            if limits.max_iter is not None and best.iteration >= limits.max_iter:
                return Status.ITERATION_LIMIT
            if deadline.left <= 0.0:
                return Status.TIME_LIMIT


def _draw(steps: Iterator[Step | None], deadline: Deadline) -> tuple[Step | None, Status | None]:
    """The next step, or the status in which the solver has ended."""
    try:
        with deadline.in_force():
            return next(steps), None
    except StopIteration:
        return None, Status.STALLED
    except OutOfTime:
        return None, Status.TIME_LIMIT
    except np.linalg.LinAlgError:
        return None, Status.STALLED
    except ArithmeticError:
        return None, Status.NOT_FINITE


class _Best:
    """The best plan and the best proof so far."""

    def __init__(self, problem: Problem, limits: Limits) -> None:
        self.problem, self.tol = problem, limits.tol
        self._given = None if limits.atol is None else limits.atol / problem.units.value
        self.iteration = 0
        self.value = np.inf
        self.plan: Array | None = None
        # For a monotone F something is known before the first step.
        self.dual: Dual | None = certificate.zero_dual(problem)
        self.bound = -np.inf if self.dual is None else self.dual.bound
        # What is known of the best plan and proof exactly, not only as an estimate.
        self._objective: Objective | None = None
        self._proof: Dual | None = None
        # The magnitude of its terms, and what missing the marginals by rounding may hide.
        self._rounding: tuple[float, float] | None = None

    @property
    def gap(self) -> float:
        if not (np.isfinite(self.value) and np.isfinite(self.bound)):
            return np.inf
        return certificate.relative_gap(self.value, self.bound)

    def take(self, step: Step) -> bool:
        """Keep what is better; False if the step shows that arithmetic has broken down."""
        if step.plan is not None and step.value < self.value:
            self.value, self.plan = step.value, step.plan()
            self._objective = self._rounding = None
        if step.dual is not None and step.lower_bound > self.bound:
            self.bound, self.dual = step.lower_bound, step.dual()
            self._proof = self._rounding = None
        return not (np.isnan(step.value) or np.isnan(step.lower_bound))

    def is_converged(self) -> bool:
        """Whether the gap is closed, by the numbers that go into the result."""
        if self.plan is None or self.dual is None:
            return False
        if not certificate.is_converged(self.value, self.bound, self.tol, self._atol()):
            return False
        self.settle()  # the numbers may change in the last digits
        return certificate.is_converged(self.value, self.bound, self.tol, self._atol())

    def settle(self) -> tuple[Objective, Dual]:
        """Replace estimates, which are on the safe side, by the numbers of the result."""
        if self.plan is None or self.dual is None:
            plan, dual = certificate.first_answer(self.problem)
            self.plan = plan if self.plan is None else self.plan
            self.dual = dual if self.dual is None else self.dual
        if self._objective is None:
            self._objective = self.problem.evaluate(self.plan)
        if self._proof is None:
            self._proof = certificate.complete(self.problem, self.dual)
        self.value, self.bound = self._objective.value, self._proof.bound
        return self._objective, self._proof

    def _atol(self, always: bool = False) -> float:
        """The absolute tolerance, evaluated only where it can decide."""
        if self._rounding is None:
            value = abs(self.value)
            # Only where terms cancel can rounding be all of a value.
            cancels = not self.problem.monotone or value <= _TINY * self.problem.reg
            near = self.value - self.bound <= _NEAR * self.tol * value
            if not (near or cancels or always):
                return 0.0 if self._given is None else self._given
            objective, proof = self.settle()
            assert self.plan is not None
            missed = certificate.infeasibility(self.problem, self.plan, proof.u, proof.v)
            self._rounding = objective.magnitude, missed
        magnitude, missed = self._rounding
        return certificate.absolute_tolerance(self.value, magnitude, self.tol, missed, self._given)

    def start(self) -> Start:
        """Where another solver may go on."""
        return Start(self.plan, None if self.dual is None else (self.dual.u, self.dual.v))

    def result(self, method: str, status: Status, deadline: Deadline, rows: list[Row]) -> Result:
        problem, units = self.problem, self.problem.units
        objective, proof = self.settle()
        plan, K, atol = self.plan, proof.K, self._atol(always=True)
        assert plan is not None
        assert K is not None
        if certificate.is_converged(self.value, self.bound, self.tol, atol):
            status = Status.CONVERGED
        columns = np.array(rows, float).reshape(-1, 4).T
        kind, relaxed = problem.dtype, problem.marginals.in_units(1 / units.cost, 1 / units.mass)
        return Result(
            plan=(plan * units.mass).astype(kind, copy=False),
            value=self.value * units.value,
            value_structured=objective.structured * units.value,
            value_linear=problem.linear_value(plan) * units.value,
            lower_bound=self.bound * units.value,
            gap=self.gap,
            atol=atol * units.value,
            potentials=(
                (proof.u * units.cost).astype(kind, copy=False),
                (proof.v * units.cost).astype(kind, copy=False),
            ),
            worst_cost=(K * units.cost).astype(kind, copy=False),
            ground_cost=problem.M.astype(kind, copy=False),
            structure=problem.structure,
            weights=(relaxed.a, relaxed.b),
            reg=problem.reg * units.cost,
            status=status,
            method=method,
            n_iter=self.iteration,
            time=deadline.elapsed,
            trace=Trace(
                columns[0].astype(int),
                columns[1],
                columns[2] * units.value,
                columns[3] * units.value,
            ),
            unbalanced=relaxed.prices,
            unbalanced_type=relaxed.kind,
            mass=relaxed.mass,
        )
