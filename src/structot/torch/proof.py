"""Certificates on the device: a plan in U(a, b) with its value, and a bound that is safe.

Notation as in `dual`. X at (p, q) is scaled down by rows, then by columns, until no marginal is
exceeded, and the rests r and c are added as r cᵀ / Σ c: the plan. Its worst cost is K = C + k with
k = reg (V - t)₊, which sums to the price in every block. Both are made tile by tile; what is kept
are vectors, from which plan and K can be made once more.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from structot.certificate import ROUNDING
from structot.certificate.rule import EPS
from structot.torch.dual import Point, capped_plan, log_plan
from structot.torch.stack import Stack, Tile, inner, outer, per_problem

# Relative distance of x from r below which the entropy is summed as a series.
_NEAR = 1.0 / 64.0
_SHARE_OF_TOL = 0.1


class Rounding(NamedTuple):
    """The plan x X y + rest: factors and rests of rows and columns, with the multipliers of X."""

    point: Point
    x: Tensor  # (B, K, S)
    y: Tensor  # (B, L, T)
    r: Tensor  # (B, K, S)
    c: Tensor  # (B, L, T), divided by its sum

    def take(self, index: Tensor) -> Rounding:
        return Rounding(self.point.take(index), *(z[index] for z in self[1:]))

    def put(self, index: Tensor, other: Rounding) -> None:
        self.point.put(index, other.point)
        for mine, new in zip(self[1:], other[1:], strict=True):
            mine[index] = new


class Value(NamedTuple):
    """Of each problem, (B,)."""

    value: Tensor
    structured: Tensor
    magnitude: Tensor  # the sum of the absolute terms that the value is made of


def round_plan(stack: Stack, point: Point, reg: Tensor) -> Rounding:
    """X rounded into U(a, b), without making it."""
    x = _shrink(stack.a, point.rows)
    cols = torch.zeros_like(stack.b)
    for tile in stack.tiles():
        X, _ = capped_plan(stack, point.p, point.q, reg, point.level, tile)
        cols[tile[0]] += X.mul_(x[tile][..., None, None]).sum((1, 2))
    y = _shrink(stack.b, cols)
    rows, cols = torch.zeros_like(stack.a), torch.zeros_like(stack.b)
    for tile in stack.tiles():
        X = _scaled(stack, point, reg, x, y, tile)
        rows[tile] = X.sum((3, 4))
        cols[tile[0]] += X.sum((1, 2))
    r, c = (stack.a - rows).clamp(min=0.0), (stack.b - cols).clamp(min=0.0)
    rest = torch.maximum(r.sum((1, 2)), c.sum((1, 2))).clamp(min=1e-300)
    return Rounding(point, x, y, r, c / per_problem(rest, c))


def plan(stack: Stack, rounding: Rounding, reg: Tensor, tile: Tile) -> Tensor:
    """The plan of a tile."""
    X = _scaled(stack, rounding.point, reg, rounding.x, rounding.y, tile)
    r, c = rounding.r[tile][..., None, None], rounding.c[tile[0]][:, None, None]
    return X.addcmul_(r, c)


def evaluate_plan(stack: Stack, rounding: Rounding, reg: Tensor) -> Value:
    """The objective at the plan."""
    linear, entropy = torch.zeros_like(reg), torch.zeros_like(reg)
    change, charged = torch.zeros_like(reg), torch.zeros_like(reg)
    for tile in stack.tiles():
        problems, _ = tile
        P = plan(stack, rounding, reg, tile)
        linear[problems] += (P * stack.C[tile]).sum((1, 2, 3, 4))
        if stack.price is not None:
            charged[problems] += (stack.price[tile] * P.amax((2, 4))).sum((1, 2))
        r = stack.independent(tile)
        change[problems] += (P - r).abs_().sum((1, 2, 3, 4))
        entropy[problems] += surplus(P, r).sum((1, 2, 3, 4))
    f = linear + charged
    return Value(f + stack.reg * entropy, f, f + stack.reg * (entropy + change))


def surplus(P: Tensor, r: Tensor) -> Tensor:
    """P log(P/r) - P + r without cancellation near P = r; 0 where r = 0."""
    t = (P - r) / torch.where(r > 0, r, 1.0)
    near = t.clamp(-_NEAR, _NEAR)
    series = torch.zeros_like(t)
    for k in range(10, 1, -1):
        series = 1.0 / (k * (k - 1)) - near * series
    far = torch.special.xlogy(1.0 + t, 1.0 + t) - t
    middle = (1.0 + t) * torch.log1p(t.clamp(min=-0.5)) - t
    relative = torch.where(t.abs() > 0.5, far, middle)
    relative = torch.where(t.abs() <= _NEAR, t * t * series, relative)
    return r * relative


def costs(stack: Stack, point: Point, reg: Tensor, tile: Tile) -> Tensor:
    """K of a tile, in B(F): a block whose pairs carry nothing shares its price evenly."""
    K = stack.costs(tile)
    if stack.price is None:
        return K
    assert point.level is not None
    V = log_plan(stack, point.p, point.q, reg, tile)
    k = V.sub_(point.level[tile][:, :, None, :, None]).clamp_(min=0.0)
    alive = (stack.a[tile] > 0)[..., None, None] & (stack.b[tile[0]] > 0)[:, None, None]
    k = torch.where(alive, k, 0.0)
    total = k.sum((2, 4))
    dead = total <= 0.0
    if bool(dead.any()):
        k = torch.where(dead[:, :, None, :, None], stack.pairs(tile), k)
        total = k.sum((2, 4))
    factor = stack.price[tile] / total.clamp(min=1e-300)  # sums are right to rounding, not nearly
    return torch.addcmul(K, k, factor[:, :, None, :, None])


def prove(stack: Stack, point: Point) -> Tensor:
    """(B,) a·p + b·q - reg Σ r (exp((p ⊕ q - K) / reg) - 1), less its rounding error."""
    p, q, reg = point.p, point.q, stack.reg
    lost, size = torch.zeros_like(reg), torch.zeros_like(reg)
    for tile in stack.tiles():
        problems, _ = tile
        K = costs(stack, point, reg, tile)
        r = stack.independent(tile)
        made_of = outer(p[tile].abs(), q[problems].abs()).add_(K.abs())
        z = outer(p[tile], q[problems]).sub_(K)
        growth = z.mul_(per_problem(1.0 / reg[problems], z)).expm1_()
        growth = torch.where(r > 0, growth, 0.0)
        lost[problems] += (r * growth).sum((1, 2, 3, 4))
        size[problems] += (r * (1.0 + growth)).mul_(made_of).sum((1, 2, 3, 4))
        size[problems] += reg[problems] * (r * growth.abs_()).sum((1, 2, 3, 4))
    size += inner(stack.a, p.abs()) + inner(stack.b, q.abs())
    pairs = math.prod(stack.C.shape[1:])
    # As `certificate.bound_rounding`, with room for sums that are not correctly rounded.
    bound = inner(stack.a, p) + inner(stack.b, q) - reg * lost
    bound = bound - (32.0 + 0.5 * math.sqrt(pairs)) * EPS * size
    return torch.where(bound.isfinite(), bound, -torch.inf)


def missed(stack: Stack, rounding: Rounding, reg: Tensor) -> Tensor:
    """(B,) how much less the plan may cost for missing its marginals: `infeasibility`."""
    rows, cols = torch.zeros_like(stack.a), torch.zeros_like(stack.b)
    for tile in stack.tiles():
        P = plan(stack, rounding, reg, tile)
        rows[tile] = P.sum((3, 4))
        cols[tile[0]] += P.sum((1, 2))
    u, v = rounding.point.p.abs(), rounding.point.q.abs()
    return 2.0 * (inner((rows - stack.a).abs(), u) + inner((cols - stack.b).abs(), v))


def tolerance(value: Value, tol: float, extra: Tensor, given: Tensor | None) -> Tensor:
    """`certificate.absolute_tolerance` for many values."""
    rounding = ROUNDING * value.magnitude
    limited = torch.minimum(rounding + extra, _SHARE_OF_TOL * tol * value.value.abs())
    rounding = torch.where(value.value.abs() > rounding, limited, rounding)
    return rounding if given is None else torch.maximum(rounding, given)


def _shrink(weights: Tensor, sums: Tensor) -> Tensor:
    """min(1, weight / sum)."""
    return (weights / sums.clamp(min=1e-300)).clamp(max=1.0)


def _scaled(stack: Stack, point: Point, reg: Tensor, x: Tensor, y: Tensor, tile: Tile) -> Tensor:
    X, _ = capped_plan(stack, point.p, point.q, reg, point.level, tile)
    return X.mul_(x[tile][..., None, None]).mul_(y[tile[0]][:, None, None])
