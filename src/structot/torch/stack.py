"""Fixed-charge problems of one padded shape, many at a time, on one device.

Notation. Problem b has K source groups of at most S points and L target groups of at most T; its
pairs are the cells (k, s, l, t) of a dense array, its blocks the pairs (k, l). Places without a
point have weight 0. "Own targets" is the case T = 1. With C the linear cost, c the price of a
block and r = a bᵀ / T the independent plan, a problem is

    min_{P in U(a,b)}  <C, P> + Σ_kl c_kl max_{block kl} P + reg Σ (P log(P/r) - P + r).

Costs may be kept in single precision; everything that is computed from them is double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from structot.torch.replays import Replays

# The logarithm of no weight: its exponential is 0, and unlike -inf it can be subtracted.
NOTHING = -1e30
# Cells that are worked on at a time: what a temporary array holds. On a CPU they fit the cache.
_TILE = {"cuda": 1 << 25, "cpu": 1 << 18}

Tile = tuple[slice, slice]


@dataclass(frozen=True, eq=False)
class Stack:
    """Problems in block layout, in their own units."""

    C: Tensor  # (B, K, S, L, T), 0 where there is no pair
    a: Tensor  # (B, K, S)
    b: Tensor  # (B, L, T)
    price: Tensor | None  # (B, K, L); None for plain transport, then T = 1
    reg: Tensor  # (B,)
    rows: Tensor  # (B, K, S) whether there is a point
    cols: Tensor  # (B, L, T)
    replays: Replays | None = None  # graphs of what is done again and again with all problems

    @property
    def recording(self) -> bool:
        """Whether what is done now is only recorded, so that no number can be looked at."""
        return self.replays is not None and self.replays.recording

    def recorded(
        self, work: Callable[..., tuple[Any, ...]], *given: Tensor | None
    ) -> tuple[Any, ...]:
        """What a function of tensors returns, replayed where it was recorded for this stack."""
        return work(*given) if self.replays is None else self.replays.call(work, *given)

    @property
    def count(self) -> int:
        return self.C.shape[0]

    @cached_property
    def total(self) -> Tensor:
        """(B,) the mass to be moved."""
        return self.a.sum((1, 2))

    @cached_property
    def log_a(self) -> Tensor:
        return torch.where(self.a > 0, self.a.clamp(min=1e-300).log(), NOTHING)

    @cached_property
    def log_b(self) -> Tensor:
        """log(b / total)."""
        share = self.b / self.total[:, None, None]
        return torch.where(share > 0, share.clamp(min=1e-300).log(), NOTHING)

    def take(self, index: Tensor) -> Stack:
        """Some of the problems."""
        if index.numel() == self.count:
            return self
        price = None if self.price is None else self.price[index]
        reg, rows, cols = (x[index] for x in (self.reg, self.rows, self.cols))
        return Stack(self.C[index], self.a[index], self.b[index], price, reg, rows, cols)

    def level(self) -> Tensor:
        """(B,) what a unit of mass costs in the independent plan: f(r) / total."""
        level = torch.zeros_like(self.reg)
        for tile in self.tiles():
            level[tile[0]] += (self.C[tile] * self.independent(tile)).sum((1, 2, 3, 4))
        if self.price is not None:
            highest = self.a.amax(2), self.b.amax(2) / self.total[:, None]
            level += torch.einsum("bkl,bk,bl->b", self.price, *highest)
        return level / self.total

    def in_units(self, cost: Tensor, mass: Tensor) -> Stack:
        """The same problems with costs and masses in these units, powers of two."""
        C = self.C if bool((cost == 1.0).all()) else self.C / per_problem(cost, self.C).to(self.C)
        price = None if self.price is None else self.price / per_problem(cost, self.price)
        a, b = (x / per_problem(mass, x) for x in (self.a, self.b))
        return Stack(C, a, b, price, self.reg / cost, self.rows, self.cols)

    def tiles(self) -> Iterator[Tile]:
        """Slices of problems and source groups, each with all its rows whole."""
        B, K, S, L, T = self.C.shape
        limit = _TILE.get(self.C.device.type, _TILE["cpu"])
        groups = max(limit // (S * L * T), 1)
        if groups >= K:
            step = max(groups // K, 1)
            for k in range(0, B, step):
                yield slice(k, min(k + step, B)), slice(0, K)
        else:
            for problem in range(B):
                for k in range(0, K, groups):
                    yield slice(problem, problem + 1), slice(k, min(k + groups, K))

    def costs(self, tile: Tile) -> Tensor:
        """C of a tile in double precision, not to be written to."""
        return self.C[tile].to(torch.float64)

    def pairs(self, tile: Tile) -> Tensor:
        """1 for every pair of a tile, 0 for places without a point."""
        there = self.rows[tile][..., None, None] & self.cols[tile[0]][:, None, None]
        return there.to(torch.float64)

    def independent(self, tile: Tile) -> Tensor:
        """r of a tile."""
        problems, groups = tile
        b = self.b[problems] / self.total[problems, None, None]
        return self.a[problems, groups, :, None, None] * b[:, None, None]


def outer(x: Tensor, y: Tensor) -> Tensor:
    """x ⊕ y for x (B, K, S) and y (B, L, T), a new array."""
    return x[..., None, None] + y[:, None, None]


def per_problem(x: Tensor, like: Tensor) -> Tensor:
    """A number per problem, shaped for arithmetic with arrays of problems."""
    return x.view(-1, *(1,) * (like.dim() - 1))


def inner(x: Tensor, y: Tensor) -> Tensor:
    """Σ x y per problem."""
    return (x * y).flatten(1).sum(1)
