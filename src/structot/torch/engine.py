"""The loop over a stack of problems: certificates, stopping, limits; each problem by itself.

Only the certified gap ends a problem well; iterations, time, a callback and arithmetic are other
ends, and the best plan and the best bound so far are the answer in every case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import IntEnum

import torch
from torch import Tensor

from structot._deadline import Deadline, OutOfTime
from structot.outcome import Status
from structot.torch import proof
from structot.torch.dual import Point, fused_levels
from structot.torch.newton import Ascent, Options
from structot.torch.proof import Rounding, Value
from structot.torch.replays import LARGE, Replays
from structot.torch.stack import Stack

# A certificate is made when the marginal error has fallen by this factor, or after so many steps.
_NEWS, _NEWS_STEPS = 0.05, 10
# So many certificates that close less than a hundredth of the gap each are the end.
_PATIENCE = 12


class Code(IntEnum):
    """How a problem ended; the places of its statuses in `STATUS`."""

    OPEN = -1
    CONVERGED = 0
    ITERATION_LIMIT = 1
    TIME_LIMIT = 2
    STOPPED = 3
    STALLED = 4


STATUS = (
    Status.CONVERGED,
    Status.ITERATION_LIMIT,
    Status.TIME_LIMIT,
    Status.STOPPED,
    Status.STALLED,
)


@dataclass(frozen=True)
class Goal:
    """When a problem has come to an end; ``atol`` per problem in its units, or None."""

    tol: float
    atol: Tensor | None = None
    max_iter: int | None = None


@dataclass(eq=False)
class Answers:
    """The best plan and the best proof of every problem so far."""

    rounding: Rounding
    proof: Point
    value: Value
    bound: Tensor  # (B,)
    atol: Tensor  # (B,)
    n_iter: Tensor  # (B,)
    code: Tensor  # (B,)

    @property
    def gap(self) -> Tensor:
        """(B,) (value - bound) / |value|, 0 where both are 0."""
        missing = (self.value.value - self.bound).clamp(min=0.0)
        return torch.where(missing > 0, missing / self.value.value.abs(), missing)


Report = Callable[[int, Answers], bool]


def solve_stack(
    stack: Stack,
    goal: Goal,
    deadline: Deadline,
    report: Report | None = None,
    options: Options | None = None,
) -> Answers:
    """Newton's method on all problems until each has its gap, or another end.

    ``report`` is called after every iteration; a true answer stops all problems.
    """
    with _replays(stack) as replays:
        run = _Run(replace(stack, replays=replays), goal, options or Options())
        try:
            with deadline.in_force():
                run.loop(report)
        except OutOfTime:
            run.close(Code.TIME_LIMIT)
    return run.answers


def _replays(stack: Stack) -> AbstractContextManager[Replays | None]:
    """Graphs for a single problem whose steps need no look at the device."""
    levels = stack.price is None or (stack.C.is_cuda and fused_levels() is not None)
    if stack.count > 1 or not levels or stack.b.shape[2] > LARGE:
        return nullcontext()
    return Replays.on(stack.C.device, stack.C.numel())


class _Run:
    """Answers of all problems, and the ascent of those that are open."""

    def __init__(self, stack: Stack, goal: Goal, options: Options) -> None:
        self.whole, self.goal = stack, goal
        self.ascent = Ascent(stack, options)
        self.answers = self._first()
        device = stack.reg.device
        self.open = torch.arange(stack.count, device=device)  # the problems of the ascent
        self.shown = torch.full_like(stack.reg, 0.1)
        self.silent = torch.zeros(stack.count, dtype=torch.int64, device=device)
        self.waited = torch.zeros_like(self.silent)

    def _first(self) -> Answers:
        """The independent plan (all factors 0, the rest is everything), and the first bound."""
        stack, point = self.whole, self.ascent.point
        zero = torch.zeros_like(stack.a), torch.zeros_like(stack.b)
        share = stack.b / stack.total[:, None, None]
        rounding = Rounding(point.copy(), *zero, stack.a.clone(), share)
        value = proof.evaluate_plan(stack, rounding, stack.reg)
        count = torch.zeros(stack.count, dtype=torch.int64, device=stack.reg.device)
        bound = torch.full_like(stack.reg, -torch.inf)
        return Answers(
            rounding, point.copy(), value, bound, torch.zeros_like(bound), count, count - 1
        )

    def loop(self, report: Report | None) -> None:
        self.answers.bound = proof.prove(self.whole, self.ascent.point)
        iteration = 0
        while self.open.numel():
            iteration += 1
            self.ascent.step()
            self.answers.n_iter[self.open] = iteration
            self.silent += 1
            error = self.ascent.point.error(self.ascent.stack)
            last = self.goal.max_iter is not None and iteration >= self.goal.max_iter
            due = (error <= _NEWS * self.shown) | (self.silent >= _NEWS_STEPS)
            due = (due | self.ascent.stuck) & self.ascent.last_stage
            self._certify(due | last, error)
            if last:
                self.close(Code.ITERATION_LIMIT)
            if report is not None and report(iteration, self.answers):
                self.close(Code.STOPPED)

    def close(self, code: Code) -> None:
        """End all problems that are open."""
        open_ = self.answers.code == Code.OPEN
        self.answers.code[open_] = int(code)
        self.open = self.open[:0]

    def _certify(self, due: Tensor, error: Tensor | None = None) -> None:
        """Plans and proofs where they are due; problems that have come to an end drop out."""
        if not bool(due.any()):
            return
        here = due.nonzero()[:, 0]
        index = self.open[here]
        if error is not None:
            self.shown[here] = error[here]
        self.silent[here] = 0
        missing = self.answers.value.value[index] - self.answers.bound[index]
        self._improve(index, here)
        answers, goal = self.answers, self.goal
        value, bound = answers.value.value[index], answers.bound[index]
        reached = value - bound <= goal.tol * value.abs() + answers.atol[index]
        closed = (missing - (value - bound)) >= 0.01 * missing
        self.waited[here] = torch.where(closed | missing.isinf(), 0, self.waited[here] + 1)
        stalled = (self.waited[here] >= _PATIENCE) | self.ascent.stuck[here]
        code = torch.where(stalled, int(Code.STALLED), int(Code.OPEN))
        answers.code[index] = torch.where(reached, int(Code.CONVERGED), code)
        left = (answers.code[self.open] == Code.OPEN).nonzero()[:, 0]
        if left.numel() < self.open.numel():
            self.open = self.open[left]
            for name in ("shown", "silent", "waited"):
                setattr(self, name, getattr(self, name)[left])
            if left.numel():
                self.ascent.take(left)

    def _improve(self, index: Tensor, here: Tensor) -> None:
        """Keep what is better: plans with their values, proofs with their bounds."""
        answers = self.answers
        part, reg = self.ascent.stack.take(here), self.ascent.reg[here]
        point = self.ascent.point.take(here)
        own = self.ascent.last_stage[here]  # a plan of an earlier stage is none of this reg
        rounding = proof.round_plan(part, point, reg)
        value = proof.evaluate_plan(part, rounding, reg)
        better = (own & (value.value < answers.value.value[index])).nonzero()[:, 0]
        answers.rounding.put(index[better], rounding.take(better))
        for mine, new in zip(answers.value, value, strict=True):
            mine[index[better]] = new[better]
        bound = proof.prove(part, point)
        better = (bound > answers.bound[index]).nonzero()[:, 0]
        answers.proof.put(index[better], point.take(better))
        answers.bound[index[better]] = bound[better]
        given = None if self.goal.atol is None else self.goal.atol[index]
        chosen = Value(*(x[index] for x in answers.value))
        extra = torch.zeros_like(bound)
        # Only near the end can the rounding of marginals decide.
        if bool((chosen.value - answers.bound[index] <= 2 * self.goal.tol * chosen.value).any()):
            extra = proof.missed(part, answers.rounding.take(index), part.reg)
        answers.atol[index] = proof.tolerance(chosen, self.goal.tol, extra, given)
