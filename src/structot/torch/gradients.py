"""Derivatives of answers by what they were solved for.

The optimal value V(M, a, b) is differentiated by the envelope theorem: only what stands in the
objective at the optimal plan and in the constraints counts, not how the plan moves,

    dV = <∂f/∂M, dM> + u·da + v·db,

f through everything that depends on M (the prices of blocks too). Totals stay equal because the
weights b are scaled to the total of a before anything else: u and v are known up to a constant that
moves between them, and the derivatives of that scaling take it out.

A plan of reg > 0 solves X1 = a, Xᵀ1 = b with X = X(p, q, M): one system with the Hessian of the
smooth dual gives its derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structot.torch.dual import Point, capped_plan
from structot.torch.fixed_charge import Layout
from structot.torch.hessian import factorize
from structot.torch.stack import Tile, outer, per_problem

# Of the Hessian at an answer: beyond rounding, and nothing is lent.
_DAMPING = 1e-15


@dataclass(frozen=True, eq=False)
class Solved:
    """What derivatives need of the problems of a stack, in the units of the user."""

    layout: Layout
    point: Point  # the multipliers of the plan, in the units of the stack
    plan: Tensor  # (B, N, M)
    value: Tensor  # (B,)
    potentials: tuple[Tensor, Tensor]  # (B, N), (B, M)
    weights: tuple[Tensor, Tensor]  # as they were solved


def with_gradients(solved: Solved, M: Tensor, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """The values (B,) and plans (B, N, M) as functions of M, a and b."""
    inputs = [x if isinstance(x, Tensor) else None for x in (M, a, b)]
    needed = any(x is not None and x.requires_grad for x in inputs)
    if not (needed and torch.is_grad_enabled()):
        return solved.value, solved.plan
    return _Value.apply(*inputs, solved), _Plan.apply(*inputs, solved)


def weight_gradients(u: Tensor, v: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """What u·da + v·db' is for the a and b that were given, b' = b Σa / Σb; (B, N), (B, M)."""
    mean = (v * b).sum(-1, keepdim=True) / a.sum(-1, keepdim=True)
    return u + mean, v - mean


class _Value(torch.autograd.Function):
    """The optimal values, by the envelope theorem."""

    @staticmethod
    def forward(ctx: Any, M: Tensor, a: Tensor, b: Tensor, solved: Solved) -> Tensor:
        ctx.solved = solved
        ctx.given = (M, a, b)
        return solved.value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        solved, layout = ctx.solved, ctx.solved.layout
        found: list[Tensor | None] = [None, None, None]
        if ctx.needs_input_grad[0]:
            P = solved.plan.to(torch.float64)
            slope = per_problem(layout.factor, P) * P
            if layout.share is not None:
                priced = layout.share * layout.cells(P).amax((2, 4))
                spread = priced[:, :, None, :, None].expand(layout.stack.C.shape)
                slope = slope + layout.matrix(spread)
            found[0] = per_problem(grad, slope) * slope
        weights = weight_gradients(*solved.potentials, *solved.weights)
        for k, (needed, slope) in enumerate(zip(ctx.needs_input_grad[1:3], weights)):
            if needed:
                found[1 + k] = grad[:, None] * slope
        return (*_like(found, ctx.given), None)


class _Plan(torch.autograd.Function):
    """The optimal plans, by implicit differentiation of the smooth dual."""

    @staticmethod
    def forward(ctx: Any, M: Tensor, a: Tensor, b: Tensor, solved: Solved) -> Tensor:
        ctx.solved = solved
        ctx.given = (M, a, b)
        return solved.plan.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        solved, layout = ctx.solved, ctx.solved.layout
        stack, reg = layout.stack, layout.stack.reg
        G = layout.cells(grad.to(torch.float64)) * per_problem(layout.mass, layout.stack.C)
        rows, cols = torch.zeros_like(stack.a), torch.zeros_like(stack.b)
        for tile in stack.tiles():
            moved, _ = _moved(solved, G[tile], tile)
            rows[tile] = moved.sum((3, 4))
            cols[tile[0]] += moved.sum((1, 2))
        rows, cols = (x / per_problem(reg, x) for x in (rows, cols))
        damping = torch.full_like(reg, _DAMPING)
        x, y = factorize(stack, solved.point, reg, damping, lent=0.0).solve(rows, cols)
        slope = torch.empty_like(G)
        for tile in stack.tiles():
            moved, price = _moved(solved, G[tile] - outer(x[tile], y[tile[0]]), tile)
            problems, _ = tile
            slope[tile] = -moved * per_problem(layout.factor[problems], moved)
            if layout.share is not None:
                # Blocks of one pair have no price: it is part of their cost.
                priced = -moved[:, :, 0, :, 0] if price is None else price
                slope[tile] += (layout.share[tile] * priced)[:, :, None, :, None]
        slope /= per_problem(reg * layout.cost, slope)
        x, y = (z / per_problem(layout.mass, z) for z in (x, y))
        found = [layout.matrix(slope), *weight_gradients(*layout.vectors(x, y), *solved.weights)]
        needed = zip(found, ctx.needs_input_grad[:3])
        return (*_like([z if use else None for z, use in needed], ctx.given), None)


def _moved(solved: Solved, G: Tensor, tile: Tile) -> tuple[Tensor, Tensor | None]:
    """dX/dV applied to G (it is symmetric), and the derivative by price / reg."""
    stack, point = solved.layout.stack, solved.point
    X, capped = capped_plan(stack, point.p, point.q, stack.reg, point.level, tile)
    X *= G
    if capped is None:
        return X, None
    assert point.level is not None
    number = capped.sum((2, 4)).clamp(min=1)
    # Pairs of a pool move together: their sum was multiplied by X = exp(t) already.
    pooled = torch.where(capped, X, 0.0).sum((2, 4)) / number
    return torch.where(capped, pooled[:, :, None, :, None], X), -pooled


def _like(found: list[Tensor | None], given: tuple) -> list[Tensor | None]:
    return [None if x is None else x.to(like) for x, like in zip(found, given, strict=True)]
