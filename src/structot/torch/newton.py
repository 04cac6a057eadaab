"""Newton's method on the smooth dual, many problems in step.

Notation as in `dual`. Every problem has its own reg (small ones are reached by continuation), its
own step length and its own damping; problems that have come to an end drop out.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structot._deadline import check_time
from structot.torch.dual import Point, evaluate, sweep
from structot.torch.hessian import newton_direction
from structot.torch.stack import Stack, inner, per_problem


@dataclass(frozen=True)
class Options:
    """How the ascent goes; none of this changes the answer, only the way to it.

    Parameters
    ----------
    first_reg, stage
        Where continuation starts, as a fraction of the mean cost, and the factor from one value of
        reg to the next.
    stage_error, stage_steps
        A stage before the last ends at this marginal error, or after so many Newton steps.
    sweeps, few_sweeps
        Sinkhorn sweeps at the start of a stage, and after a shortened Newton step.
    long
        A step of this length is no shortened one.
    damping
        The least damping, as a fraction of the diagonal of H.
    """

    first_reg: float = 0.02
    stage: float = 4.0
    stage_error: float = 0.05
    stage_steps: int = 40
    sweeps: int = 10
    few_sweeps: int = 3
    long: float = 0.3
    damping: float = 1e-12


class Ascent:
    """The state of all problems, and one iteration of them."""

    def __init__(self, stack: Stack, options: Options) -> None:
        self.stack, self.options = stack, options
        p, q, largest = first_potentials(stack)
        # No sensible step is longer: parts of a plan that hardly meet make H nearly singular.
        self.reach = largest + 50.0 * stack.reg
        ratio = options.first_reg * stack.level() / stack.reg
        stages = (ratio.clamp(min=1.0).log() / torch.tensor(options.stage).log()).ceil()
        self.stages = stages.to(torch.int64)  # (B,) how many lie before the last
        self.steps = torch.zeros_like(self.stages)  # Newton steps in the current one
        self.damping = torch.full_like(stack.reg, 1e-10)
        self.stuck = torch.zeros(stack.count, dtype=torch.bool, device=stack.reg.device)
        self.fresh = ~self.stuck  # whether the current stage has just begun
        self.point = evaluate(stack, p, q, self.reg)

    @property
    def reg(self) -> Tensor:
        """(B,) the reg of the current stages."""
        return self.stack.reg * self.options.stage ** self.stages.to(torch.float64)

    @property
    def last_stage(self) -> Tensor:
        """(B,) whether it is that of the problem."""
        return self.stages == 0

    def take(self, index: Tensor) -> None:
        """Go on with some of the problems only."""
        self.stack, self.point = self.stack.take(index), self.point.take(index)
        for name in ("reach", "stages", "steps", "damping", "stuck", "fresh"):
            setattr(self, name, getattr(self, name)[index])

    def step(self) -> None:
        """Sweeps where a stage begins, a Newton step elsewhere."""
        self._sweep(self.fresh, self.options.sweeps)
        moving = ~self.fresh & ~self.stuck
        self.fresh = torch.zeros_like(self.fresh)
        if bool(moving.any()):
            index = moving.nonzero()[:, 0]
            short = torch.zeros_like(moving)
            short[index] = self._newton(index)
            self._sweep(short, self.options.few_sweeps)
            self.steps[index] += 1
        self._next_stage()

    def _next_stage(self) -> None:
        error = self.point.error(self.stack)
        over = (error < self.options.stage_error) | (self.steps >= self.options.stage_steps)
        over = (over | self.stuck) & ~self.last_stage
        if bool(over.any()):
            self.stages -= over.to(torch.int64)
            self.steps[over], self.stuck[over], self.fresh[over] = 0, False, True
            index = over.nonzero()[:, 0]
            part, point = self.stack.take(index), self.point.take(index)
            new = evaluate(part, point.p, point.q, self.reg[index], point.level)
            self.point.put(index, new)

    def _sweep(self, chosen: Tensor, times: int) -> None:
        if bool(chosen.any()):
            index = chosen.nonzero()[:, 0]
            part = self.stack.take(index)
            self.point.put(index, sweep(part, self.point.take(index), self.reg[index], times))

    def _newton(self, index: Tensor) -> Tensor:
        """One Newton step of some problems with line search on φ; whose it was shortened."""
        part, point, reg = self.stack.take(index), self.point.take(index), self.reg[index]
        g, h = part.a - point.rows, part.b - point.cols
        x, y = newton_direction(part, point, reg, self.damping[index])
        good = x.flatten(1).sum(1).isfinite() & y.flatten(1).sum(1).isfinite()
        longest = torch.maximum(x.abs().amax((1, 2)), y.abs().amax((1, 2)))
        factor = torch.where(good, (self.reach[index] / longest.clamp(min=1e-300)), 0.0)
        factor = factor.clamp(max=1.0)
        x = torch.where(per_problem(good, x), x * per_problem(factor, x), 0.0)
        y = torch.where(per_problem(good, y), y * per_problem(factor, y), 0.0)
        slope = inner(g, x) + inner(h, y)
        new, length, found = line_search(part, point, reg, x, y, slope)
        self.point.put(index, new)
        self.stuck[index] = ~found
        less = torch.where(length >= self.options.long, 0.1, 10.0)
        self.damping[index] = (self.damping[index] * less).clamp(self.options.damping, 1.0)
        return found & (length < self.options.long)


def line_search(
    stack: Stack, point: Point, reg: Tensor, x: Tensor, y: Tensor, slope: Tensor
) -> tuple[Point, Tensor, Tensor]:
    """The first of the steps 1, 1/2, ... with enough ascent, for every problem by itself.

    Returns the new points (the old one where there was none), the step lengths, and whether there
    was one.
    """
    size = inner(stack.a, point.p.abs()) + inner(stack.b, point.q.abs())
    noise = 1e-14 * (size + reg * stack.total)  # differences of φ below this are rounding
    error = point.error(stack)
    best = point.copy()
    length = torch.ones_like(reg)
    found = torch.zeros_like(slope, dtype=torch.bool)
    open_ = slope > 0.0
    while bool(open_.any()):
        check_time()
        index = open_.nonzero()[:, 0]
        part, t, rate = stack.take(index), length[index], reg[index]
        here = point.take(index)
        p, q = here.p + per_problem(t, x) * x[index], here.q + per_problem(t, y) * y[index]
        new = evaluate(part, p, q, rate, here.level)
        rise = slope[index]
        level = rise <= 1e2 * noise[index]  # only the gradient can tell better from worse
        good = (new.phi >= here.phi + 1e-4 * t * rise) | (
            level & (new.error(part) < 0.9 * error[index])
        )
        taken = good.nonzero()[:, 0]
        best.put(index[taken], new.take(taken))
        found[index[taken]] = True
        shorter = torch.where(new.phi.isfinite(), 0.5, 0.25)
        length[index] = torch.where(good, t, t * shorter)
        open_[index] = ~good & (rise > noise[index]) & (t > 1e-7)
    return best, length, found


def first_potentials(stack: Stack) -> tuple[Tensor, Tensor, Tensor]:
    """p ⊕ q <= C, from which no exponential can explode, and the largest cost."""
    q = torch.full_like(stack.b, torch.inf)
    largest = torch.zeros_like(stack.reg)
    nobody = torch.where(stack.a > 0, 0.0, torch.inf)
    for tile in stack.tiles():
        problems, _ = tile
        C = stack.costs(tile)
        largest[problems] = torch.maximum(largest[problems], C.amax((1, 2, 3, 4)))
        cheapest = (C + nobody[tile][..., None, None]).amin((1, 2))
        q[problems] = torch.minimum(q[problems], cheapest)
    q = torch.where(stack.b > 0, q, 0.0)
    p = torch.empty_like(stack.a)
    nobody = torch.where(stack.b > 0, 0.0, torch.inf)
    for tile in stack.tiles():
        rest = stack.costs(tile) + (nobody - q)[tile[0]][:, None, None]
        p[tile] = rest.amin((3, 4))
    if stack.price is not None:
        largest = largest + stack.price.amax((1, 2))
    return torch.where(stack.a > 0, p, 0.0), q, largest
