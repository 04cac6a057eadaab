"""Checked problems of one kind, solved on their device: (B, N, M) in, answers in the same shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from structot import _checks
from structot._deadline import Deadline
from structot.torch import proof
from structot.torch.engine import Answers, Goal, Report, solve_stack
from structot.torch.fixed_charge import FixedCharge, Layout
from structot.torch.gradients import Solved, with_gradients
from structot.torch.stack import per_problem

# Iteration, value, bound and gap -> whether to stop.
Watcher = Callable[[int, float, float, float], bool]


@dataclass(frozen=True, eq=False)
class Problems:
    """Problems whose structures all have a price, or none has; all turned, or none.

    ``M`` (B, N, M), ``a`` (B, N) and ``b`` (B, M) are as they were given, for derivatives;
    ``weights`` in double precision with equal totals, 0 where a problem has fewer points.
    """

    parts: Sequence[FixedCharge]
    M: Tensor
    a: Tensor | None
    b: Tensor | None
    weights: tuple[Tensor, Tensor]
    reg: float


@dataclass(frozen=True, eq=False)
class Batch:
    """Answers in the units of the user; those of a problem k are the entries [k]."""

    plan: Tensor  # (B, N, M)
    worst_cost: Tensor  # (B, N, M)
    potentials: tuple[Tensor, Tensor]  # (B, N), (B, M)
    weights: tuple[Tensor, Tensor]
    value: Tensor  # (B,)
    structured: Tensor
    linear: Tensor
    bound: Tensor
    gap: Tensor
    atol: Tensor
    n_iter: Tensor
    code: Tensor


@dataclass(frozen=True)
class Limits:
    """The gap to reach, and iterations; ``atol`` in the units of the user."""

    tol: float
    atol: float | None
    max_iter: int | None

    @classmethod
    def of(cls, tol: Any, atol: Any, max_iter: Any) -> Limits:
        return cls(
            _checks.nonnegative("tol", tol),
            None if atol is None else _checks.nonnegative("atol", atol),
            None if max_iter is None else _checks.count("max_iter", max_iter),
        )


def solve_problems(
    problems: Problems, limits: Limits, deadline: Deadline, report: Watcher | None = None
) -> Batch:
    """All problems at once, each with its certificate; ``report`` sees the first of them."""
    M = problems.M.detach()
    kind = torch.float32 if M.is_floating_point() and M.element_size() <= 4 else torch.float64
    M = M.to(kind)
    reg = torch.full((M.shape[0],), problems.reg, dtype=torch.float64, device=M.device)
    layout = Layout.of(problems.parts, M, *problems.weights, reg)
    unit = layout.cost * layout.mass
    atol = None if limits.atol is None else limits.atol / unit
    goal = Goal(limits.tol, atol, limits.max_iter)
    watch: Report | None = None
    if report is not None:
        scale = float(unit[0])

        def watch(iteration: int, answers: Answers) -> bool:
            value, bound = float(answers.value.value[0]), float(answers.bound[0])
            return report(iteration, value * scale, bound * scale, float(answers.gap[0]))

    answers = solve_stack(layout.stack, goal, deadline, watch)
    return _in_units(problems, layout, answers, M, unit)


def _in_units(
    problems: Problems, layout: Layout, answers: Answers, M: Tensor, unit: Tensor
) -> Batch:
    """Plans and proofs made from their vectors, in the units of the user."""
    plan = layout.matrix(_plans(layout, answers)) * per_problem(layout.mass, M).to(M)
    linear = (plan * M).sum((1, 2), dtype=torch.float64)
    K = layout.matrix(_costs(layout, answers)) * per_problem(layout.cost, M).to(M)
    u, v = layout.vectors(answers.proof.p, answers.proof.q)
    potentials = u * layout.cost[:, None], v * layout.cost[:, None]
    potentials = lowered(problems.weights, K, *potentials)
    point = answers.rounding.point
    value = answers.value.value * unit
    solved = Solved(layout, point, plan, value, potentials, problems.weights)
    value, plan = with_gradients(solved, problems.M, problems.a, problems.b)
    return Batch(
        plan=plan,
        worst_cost=K,
        potentials=(potentials[0].to(M.dtype), potentials[1].to(M.dtype)),
        weights=problems.weights,
        value=value,
        structured=answers.value.structured * unit,
        linear=linear,
        bound=answers.bound * unit,
        gap=answers.gap,
        atol=answers.atol * unit,
        n_iter=answers.n_iter,
        code=answers.code,
    )


def _plans(layout: Layout, answers: Answers) -> Tensor:
    stack = layout.stack
    cells = torch.empty_like(stack.C, memory_format=torch.contiguous_format)
    for tile in stack.tiles():
        cells[tile] = proof.plan(stack, answers.rounding, stack.reg, tile).to(cells.dtype)
    return cells


def _costs(layout: Layout, answers: Answers) -> Tensor:
    stack = layout.stack
    if stack.price is None:
        return stack.C
    cells = torch.empty_like(stack.C, memory_format=torch.contiguous_format)
    for tile in stack.tiles():
        cells[tile] = proof.costs(stack, answers.proof, stack.reg, tile).to(cells.dtype)
    return cells


def lowered(
    weights: tuple[Tensor, Tensor], K: Tensor, u: Tensor, v: Tensor
) -> tuple[Tensor, Tensor]:
    """Potentials of points without weight, which prove nothing: low enough to stay below K."""
    a, b = weights
    if not bool((a == 0).any() or (b == 0).any()):
        return u, v
    low = torch.where((b > 0)[:, None], K - v[:, None], torch.inf).amin(2)
    u = torch.where(a > 0, u, low)
    low = (K - u[:, :, None]).amin(1)
    return u, torch.where(b > 0, v, low)
