"""From structures and cost matrices to stacks in block layout, and back.

Notation as in `stack`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from structot._typing import Array
from structot.structures.base import Combination, Structure
from structot.structures.coverage import Coverage
from structot.structures.modular import Modular
from structot.torch.stack import Stack

# How many times more places than points a layout may have.
_WASTE = 4.0


@dataclass(frozen=True, eq=False)
class FixedCharge:
    """F = Σ factor · Modular + factor · Coverage with disjoint groups: what a stack can hold.

    The side that is eliminated from the Hessian is that of the columns, so that a problem whose
    target groups are larger than its source groups is ``turned``: its rows are the targets.
    """

    linear: tuple[tuple[float, Array | None], ...]  # factors of costs, of M itself where None
    weights: Array | None  # (row groups, column groups); None for plain transport
    in_blocks: bool  # whether weights are in units of the total costs of blocks
    row: Array  # (K, S) the points of each group of rows, -1 where there is none
    col: Array  # (L, T)
    turned: bool = False

    @classmethod
    def of(cls, structure: Structure | None, shape: tuple[int, int]) -> FixedCharge | str:
        """What the structure is made of, or the reason why it cannot be stacked."""
        structure = Modular() if structure is None else structure
        terms = structure.terms if isinstance(structure, Combination) else ((1.0, structure),)
        linear, charges = [], []
        for factor, term in terms:
            if type(term) is Modular:
                linear.append((factor, term.cost))
            elif type(term) is Coverage:
                charges += [(factor, term)] if factor > 0 else []
            else:
                return f"{type(term).__name__} has no method on tensors"
        if len(charges) > 1:
            return "a sum of several Coverage terms has no method on tensors"
        if not charges:
            n, m = (np.arange(size)[:, None] for size in shape)
            return cls(tuple(linear), None, False, n, m)
        return cls._charged(tuple(linear), *charges[0], shape)

    @classmethod
    def _charged(
        cls, linear: tuple, factor: float, coverage: Coverage, shape: tuple[int, int]
    ) -> FixedCharge | str:
        rows, cols = coverage.groupings(shape)
        if not (rows.is_disjoint and cols.is_disjoint):
            return "groups that overlap have no method on tensors"
        weights = factor * coverage.prices(rows.count, cols.count)
        row, col = _places(rows.layers[0].number), _places(cols.layers[0].number)
        if row.size * col.size > _WASTE * shape[0] * shape[1]:
            return "groups of very different sizes have no method on tensors"
        in_blocks = coverage.units == "block"
        if col.shape[1] <= row.shape[1]:
            return cls(linear, weights, in_blocks, row, col)
        linear = tuple((x, None if cost is None else cost.T) for x, cost in linear)
        return cls(linear, weights.T, in_blocks, col, row, turned=True)


def _places(number: Array) -> Array:
    """(groups, size of the largest): the points of each group in their order, then -1."""
    order = np.argsort(number, kind="stable")
    sizes = np.bincount(number)
    places = np.full((sizes.size, sizes.max()), -1)
    places[np.arange(places.shape[1]) < sizes[:, None]] = order
    return places


@dataclass(frozen=True, eq=False)
class Layout:
    """A stack of problems, all turned or none, in its own units, and the way back to theirs."""

    stack: Stack
    cost: Tensor  # (B,) what 1 is worth in costs, and in masses
    mass: Tensor
    point: tuple[Tensor, Tensor]  # (B, K S) and (B, L T): the point of each place, -1 for none
    place: tuple[Tensor, Tensor]  # (B, N) and (B, M): the place of each point
    turned: bool
    factor: Tensor  # (B,) the factor of M in the linear part
    share: Tensor | None  # (B, K, L) the factor of the total cost of each block in its price

    @classmethod
    def of(
        cls, parts: Sequence[FixedCharge], Ms: Tensor, a: Tensor, b: Tensor, reg: Tensor
    ) -> Layout:
        """For problems Ms (B, N, M), a (B, N), b (B, M), in double precision but for Ms."""
        turned = parts[0].turned
        if turned:
            Ms, a, b = Ms.mT, b, a
        row, col = (
            torch.as_tensor(_padded([getattr(part, side) for part in parts]), device=Ms.device)
            for side in ("row", "col")
        )
        cells = _cells(Ms, row, col)
        price, share = _prices(parts, cells)
        linear = _linear(parts, cells, row, col)
        if price is not None and row.shape[2] == col.shape[2] == 1:
            # Blocks of one pair: their price is a cost.
            linear, price = (linear + price[:, :, None, :, None]).to(linear.dtype), None
        a, b = _weights(a, row), _weights(b, col)
        stack = Stack(linear, a, b, price, reg, row >= 0, col >= 0)
        cost, mass = _power_of_two(stack.level()), _power_of_two(stack.total)
        point = row.flatten(1), col.flatten(1)
        place = _inverse(point[0], Ms.shape[1]), _inverse(point[1], Ms.shape[2])
        slopes = [sum(x for x, given in part.linear if given is None) for part in parts]
        factor = torch.as_tensor(slopes, dtype=torch.float64, device=Ms.device)
        stack = stack.in_units(cost, mass)
        return cls(stack, cost, mass, point, place, turned, factor, share)

    def cells(self, matrix: Tensor) -> Tensor:
        """(B, K, S, L, T) from (B, N, M), 0 where there is no pair."""
        B, K, S, L, T = self.stack.C.shape
        row, col = self.point[0].view(B, K, S), self.point[1].view(B, L, T)
        return _cells(matrix.mT if self.turned else matrix, row, col)

    def matrix(self, cells: Tensor) -> Tensor:
        """(B, N, M) from an array in block layout."""
        flat = cells.flatten(3).flatten(1, 2)
        found = _select(_select(flat, self.place[0], 1), self.place[1], 2)
        return found.mT if self.turned else found

    def vectors(self, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
        """(B, N) and (B, M) from (B, K, S) and (B, L, T)."""
        x, y = (
            _select(z.flatten(1), place, 1)
            for z, place in zip((rows, cols), self.place, strict=True)
        )
        return (y, x) if self.turned else (x, y)


def _cells(matrix: Tensor, row: Tensor, col: Tensor) -> Tensor:
    found = _select(_select(matrix, row.flatten(1), 1), col.flatten(1), 2)
    cells = found.reshape(*row.shape, *col.shape[1:])
    if bool((row < 0).any() or (col < 0).any()):
        there = (row >= 0)[..., None, None] & (col >= 0)[:, None, None]
        cells = torch.where(there, cells, torch.zeros((), dtype=cells.dtype, device=cells.device))
    return cells


def _weights(x: Tensor, place: Tensor) -> Tensor:
    found = x.gather(1, place.flatten(1).clamp(min=0)).view(place.shape)
    return torch.where(place >= 0, found, 0.0)


def _prices(parts: Sequence[FixedCharge], M: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """(B, K, L) the prices of blocks, None for plain transport; and what M has to do with them."""
    if parts[0].weights is None:
        return None, None
    B, K, _, L, _ = M.shape
    weights = np.zeros((B, K, L))
    for part, prices in zip(parts, weights, strict=True):
        assert part.weights is not None
        k, l = part.weights.shape
        prices[:k, :l] = part.weights
    price = torch.as_tensor(weights, device=M.device)
    in_blocks = torch.as_tensor([part.in_blocks for part in parts], device=M.device)
    if not bool(in_blocks.any()):
        return price, None
    share = torch.where(in_blocks[:, None, None], price, 0.0)
    totals = M.sum((2, 4), dtype=torch.float64)
    return torch.where(in_blocks[:, None, None], price * totals, price), share


def _linear(parts: Sequence[FixedCharge], M: Tensor, row: Tensor, col: Tensor) -> Tensor:
    """The linear part of F in block layout."""
    if all(part.linear == ((1.0, None),) for part in parts):
        return M
    if not any(part.linear for part in parts):
        return torch.zeros((), dtype=M.dtype, device=M.device).expand(M.shape)
    C = torch.zeros_like(M)
    for k, part in enumerate(parts):
        for factor, cost in part.linear:
            if cost is None:
                C[k] += factor * M[k]
            else:
                given = torch.as_tensor(np.ascontiguousarray(cost)).to(M)
                C[k] += factor * _cells(given[None], row[k : k + 1], col[k : k + 1])[0]
    return C


def _padded(places: Sequence[Array]) -> Array:
    """(B, K, S) from arrays of different shapes, -1 beyond them."""
    shape = np.max([x.shape for x in places], axis=0)
    if len(places) == 1:
        return places[0][None]
    padded = np.full((len(places), *shape), -1)
    for whole, x in zip(padded, places, strict=True):
        whole[: x.shape[0], : x.shape[1]] = x
    return padded


def _inverse(point: Tensor, size: int) -> Tensor:
    """(B, size) where each point stands; the first place for points that stand nowhere."""
    B, places = point.shape
    place = torch.zeros(B, size + 1, dtype=torch.int64, device=point.device)
    number = torch.arange(places, device=point.device).expand(B, -1)
    place.scatter_(1, torch.where(point >= 0, point, size), number)
    return place[:, :size]


def _select(x: Tensor, index: Tensor, dim: int) -> Tensor:
    """Entries of each problem along a dimension; x itself where that changes nothing."""
    size = x.shape[dim]
    if index.shape[1] == size and bool((index == torch.arange(size, device=x.device)).all()):
        return x
    index = index.clamp(min=0)
    if x.shape[0] == 1:
        return x.index_select(dim, index[0])
    if x.dim() == 2:
        return x.gather(1, index)
    index = index[:, :, None] if dim == 1 else index[:, None]
    shape = list(x.shape)
    shape[dim] = -1
    return x.gather(dim, index.expand(*shape))


def _power_of_two(x: Tensor) -> Tensor:
    """The largest power of two that is not above x; 1 where there is none."""
    good = x.isfinite() & (x > 0)
    exponent = torch.frexp(torch.where(good, x, 1.0)).exponent - 1
    return torch.where(good, torch.ldexp(torch.ones_like(x), exponent), 1.0)
