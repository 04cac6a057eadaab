"""The smooth dual of fixed-charge problems, and Sinkhorn's iteration beside it.

Notation. p (B, K, S) and q (B, L, T) multipliers of the marginals, V = log r + (p ⊕ q - C) / reg;
log X = min(V, t) with one level t per block such that Σ_block (V - t)₊ = price / reg; capped are
the pairs with V > t. φ(p, q) = a·p + b·q - reg Σ (X - r) is concave and smooth, its gradient
(a - X1, b - Xᵀ1). No array of the size of the plan is kept: a tile of X is made where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structot._deadline import check_time
from structot.torch.stack import Stack, Tile, inner, outer, per_problem

# More rounds than any block has needed: the active set of a level shrinks in every one of them.
_ROUNDS = 200
_EXACT = 2.0**-50
_TINY = 1e-300


class Point(NamedTuple):
    """Multipliers, and what was evaluated there: φ, X1, Xᵀ1, the levels t."""

    p: Tensor  # (B, K, S)
    q: Tensor  # (B, L, T)
    phi: Tensor  # (B,), -inf where the exponentials overflow
    rows: Tensor  # (B, K, S)
    cols: Tensor  # (B, L, T)
    level: Tensor | None  # (B, K, L)

    def take(self, index: Tensor) -> Point:
        """The same for some of the problems; itself for all of them."""
        return self if index.numel() == self.phi.numel() else self.each(lambda x: x[index])

    def each(self, change: Callable[[Tensor], Tensor]) -> Point:
        """The same with all its tensors changed."""
        level = None if self.level is None else change(self.level)
        p, q, phi, rows, cols = (change(x) for x in self[:5])
        return Point(p, q, phi, rows, cols, level)

    def copy(self) -> Point:
        return self.each(torch.clone)

    def put(self, index: Tensor, other: Point) -> None:
        """Overwrite some of the problems, in place."""
        for mine, new in zip(self, other, strict=True):
            if mine is not None and new is not None and mine is not new:
                mine[index] = new

    def error(self, stack: Stack) -> Tensor:
        """(B,) the L1 norm of the gradient relative to the mass."""
        lost = (stack.a - self.rows).abs().sum((1, 2)) + (stack.b - self.cols).abs().sum((1, 2))
        return lost / stack.total


def log_plan(stack: Stack, p: Tensor, q: Tensor, reg: Tensor, tile: Tile) -> Tensor:
    """V of a tile."""
    problems, _ = tile
    rate = 1.0 / reg[problems]
    V = outer(
        p[tile] * per_problem(rate, p) + stack.log_a[tile],
        q[problems] * per_problem(rate, q) + stack.log_b[problems],
    )
    if rate.numel() == 1 and not stack.recording:
        return V.sub_(stack.C[tile], alpha=float(rate))
    return V.sub_(stack.C[tile] * per_problem(rate, V))


def levels(V: Tensor, supply: Tensor, guess: Tensor | None) -> Tensor:
    """t with Σ_block (V - t)₊ = supply: Newton's method on a convex, piecewise linear function.

    A step ends at or left of the solution, and from there on they only go right, until the set of
    pairs above t no longer changes.

    Parameters
    ----------
    V
        (B, K, S, L, T).
    supply
        (B, K, L).
    guess
        Where to begin; None where nothing is known.
    """
    fused = fused_levels() if V.is_cuda else None
    if fused is not None:
        return fused(V, supply, guess, _ROUNDS, _EXACT)
    return reference_levels(V, supply, guess)


@cache
def fused_levels() -> Callable[..., Tensor] | None:
    """The kernel of `fused`; None where it cannot be compiled, or does not what it should."""
    if find_spec("triton") is None:
        return None
    new: dict[str, Any] = {"dtype": torch.float64, "device": "cuda"}
    V = torch.linspace(0.0, 1.0, 24, **new).view(1, 2, 3, 4, 1)
    supply = torch.full((1, 2, 4), 0.5, **new)
    try:
        from structot.torch.fused import levels as kernel

        found = kernel(V, supply, None, _ROUNDS, _EXACT)
    except Exception:  # whatever it is that a compiler lacks
        return None
    return kernel if torch.allclose(found, reference_levels(V, supply, None)) else None


def reference_levels(V: Tensor, supply: Tensor, guess: Tensor | None) -> Tensor:
    """`levels` by operations on whole arrays."""
    top = V.amax((2, 4))
    least = top - supply
    t = least if guess is None else torch.where(guess < top, guess, least)
    above = torch.empty_like(V)
    for _ in range(_ROUNDS):
        torch.sub(V, t[:, :, None, :, None], out=above).clamp_(min=0.0)
        number = (above > 0).sum((2, 4))
        step = (above.sum((2, 4)) - supply) / number.clamp(min=1)
        new = torch.maximum(t + step, least)
        moved = (new - t).abs() > _EXACT * (new.abs() + supply)
        t = new
        if not bool(moved.any()):
            break
    return t


def capped_plan(
    stack: Stack, p: Tensor, q: Tensor, reg: Tensor, level: Tensor | None, tile: Tile
) -> tuple[Tensor, Tensor | None]:
    """X of a tile at known levels, and which pairs are capped."""
    V = log_plan(stack, p, q, reg, tile)
    if level is None:
        return V.exp_(), None
    t = level[tile][:, :, None, :, None]
    capped = V > t
    return torch.minimum(V, t, out=V).exp_(), capped


def evaluate(stack: Stack, p: Tensor, q: Tensor, reg: Tensor, guess: Tensor | None = None) -> Point:
    """φ and its gradient at (p, q) for this reg; ``guess`` are levels to begin from."""

    def work(p: Tensor, q: Tensor, reg: Tensor, guess: Tensor | None) -> tuple[Tensor | None, ...]:
        point, _ = _pass(stack, p, q, reg, guess, sweep=False)
        return point[2:]

    phi, rows, cols, level = stack.recorded(work, p, q, reg, guess)
    return Point(p, q, phi, rows, cols, level)


def sweep(stack: Stack, point: Point, reg: Tensor, times: int) -> Point:
    """Exact ascent of φ = max_K φ_K in K, p and q in turns: Sinkhorn's iteration with caps."""

    def once(p: Tensor, q: Tensor, reg: Tensor, level: Tensor | None) -> tuple[Tensor | None, ...]:
        at, cols = _pass(stack, p, q, reg, level, sweep=True)
        p = p + per_problem(reg, p) * _log_ratio(stack.a, at.rows)
        q = q + per_problem(reg, q) * _log_ratio(stack.b, cols)
        return p, q, at.level

    p, q, level = point.p, point.q, point.level
    for _ in range(times):
        p, q, level = stack.recorded(once, p, q, reg, level)
    return evaluate(stack, p, q, reg, level)


def _pass(
    stack: Stack, p: Tensor, q: Tensor, reg: Tensor, guess: Tensor | None, sweep: bool
) -> tuple[Point, Tensor]:
    """`evaluate`, and with ``sweep`` the sums of columns after the rows were scaled to a."""
    rows, cols, scaled = torch.zeros_like(p), torch.zeros_like(q), torch.zeros_like(q)
    level = None if stack.price is None else torch.empty_like(stack.price)
    for tile in stack.tiles():
        check_time()
        problems, _ = tile
        V = log_plan(stack, p, q, reg, tile)
        if stack.price is not None:
            assert level is not None
            supply = stack.price[tile] / per_problem(reg[problems], level)
            t = levels(V, supply, None if guess is None else guess[tile])
            level[tile] = t
            torch.minimum(V, t[:, :, None, :, None], out=V)
        X = V.exp_()
        rows[tile] = X.sum((3, 4))
        cols[problems] += X.sum((1, 2))
        if sweep:
            factor = stack.a[tile] / rows[tile].clamp(min=_TINY)
            scaled[problems] += X.mul_(factor[..., None, None]).sum((1, 2))
    phi = inner(stack.a, p) + inner(stack.b, q) - reg * (rows.sum((1, 2)) - stack.total)
    phi = torch.where(phi.isfinite(), phi, -torch.inf)
    return Point(p, q, phi, rows, cols, level), scaled


def _log_ratio(weights: Tensor, sums: Tensor) -> Tensor:
    """log(weights / sums), and 0 where there is no weight."""
    ratio = (weights.clamp(min=_TINY) / sums.clamp(min=_TINY)).log()
    return torch.where(weights > 0, ratio, 0.0)
