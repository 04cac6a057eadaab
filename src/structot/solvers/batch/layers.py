"""Compiled operations on the layers of one small problem: prox, projection, extension.

Notation. Edge e = i m + j is the pair (i, j). A copy c is an edge seen from one of the blocks that
hold it: block b owns the copies start[b]:start[b+1], layer l the blocks layer[l]:layer[l+1], and
copy c stands for the edge edge[c]. w_c > 0 is the weight of a copy inside g, d_c = scale_l w_c its
metric. F = Σ_b outer_b g_b(inner_b w(S ∩ b)); V or Z is the point to be moved, X or K the answer,
and both are the same array over the copies.

A layer of steps (a fixed charge per block) has closed forms here, which need no sort; all others
go to the kernels of `structot.blocks`, which want no more of their edges than start and w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from structot.blocks.kernels import prox_blocks
from structot.blocks.polytope import add_exactly, extension_blocks
from structot.blocks.pools import Pools
from structot.concave.base import STEP
from structot.concave.kernels import block_secant

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# The least metric of a layer, relative to that of the layer with the highest prices.
_LEAST_SCALE = 1e-3

_jit = njit(cache=True, nogil=True, error_model="numpy")
_inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")


class Copies(NamedTuple):
    """The edges of all blocks, one block after the other, and the functions of the blocks."""

    edge: Ints
    start: Ints
    w: Array
    d: Array
    totals: Array  # w of whole blocks
    layer: Ints
    scale: Array
    is_step: NDArray[np.bool_]  # per layer
    kind: Ints
    offset: Ints
    params: Array
    outer: Array
    inner: Array


class Memory(NamedTuple):
    """The order of the last sort, from which the next one starts, and space for pools."""

    order: NDArray[np.int32]
    n_active: Ints
    end: NDArray[np.int32]
    n_pools: Ints
    spare: Array


@_jit
def make_memory(copies: Copies) -> Memory:
    """Nothing known yet."""
    size, blocks = copies.edge.size, copies.totals.size
    order, pool = np.empty(size, np.int32), np.empty(size, np.int32)
    count, pools = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
    return Memory(order, count, pool, pools, np.empty(size))


@_jit
def make_copies(
    edge: Ints,
    start: Ints,
    w: Array,
    layer: Ints,
    kind: Ints,
    offset: Ints,
    params: Array,
    outer: Array,
    inner: Array,
) -> Copies:
    """The metric of every layer: its weights, times its price per weight.

    So one ρ suits layers of very different prices.
    """
    totals = np.zeros(start.size - 1)
    for b in range(totals.size):
        for c in range(start[b], start[b + 1]):
            totals[b] += w[c]
    scale, is_step = np.empty(layer.size - 1), np.ones(layer.size - 1, np.bool_)
    for l in range(scale.size):
        price, weight = 0.0, 0.0
        for b in range(layer[l], layer[l + 1]):
            W = totals[b]
            price += W * block_secant(kind, offset, params, outer, inner, b, 0.0, W)
            weight += totals[b]
            is_step[l] &= kind[b] == STEP
        scale[l] = price / weight
    least = _LEAST_SCALE * scale.max() if scale.size else 0.0
    d = np.empty(edge.size)
    for l in range(scale.size):
        scale[l] = max(scale[l], least) if least > 0.0 else 1.0
        for c in range(start[layer[l]], start[layer[l + 1]]):
            d[c] = scale[l] * w[c]
    functions = (kind, offset, params, outer, inner)
    return Copies(edge, start, w, d, totals, layer, scale, is_step, *functions)


@_jit
def _table(copies: Copies) -> tuple[Ints, Ints, Array, Array, Array]:
    return copies.kind, copies.offset, copies.params, copies.outer, copies.inner


@_inlined
def cap(x: Array, d: Array, first: int, last: int, price: float) -> None:
    """X = argmin_{X >= 0} price · max X + 1/2 Σ d (X - V)²: V cut off above at a level t.

    Σ d (V - t)₊ = price; t is the mean of the entries above it less their share of the price, and
    an entry below such a mean is below the final one too, so that entries are only ever dropped.
    """
    total, weight = 0.0, 0.0
    for c in range(first, last):
        if x[c] > 0.0:
            total += d[c] * x[c]
            weight += d[c]
        else:
            x[c] = 0.0
    if total <= price:
        for c in range(first, last):
            x[c] = 0.0
        return
    level = 0.0
    searching = True
    while searching:
        level = (total - price) / weight
        total, above = 0.0, 0.0
        for c in range(first, last):
            if x[c] > level:
                total += d[c] * x[c]
                above += d[c]
        searching = 0.0 < above < weight
        weight = above
    for c in range(first, last):
        x[c] = min(x[c], level)


@_jit
def divide(z: Array, d: Array, first: int, last: int, price: float) -> None:
    """K = argmin_{K >= 0, ΣK = price} Σ (K - Z)² / d, the base polytope of a fixed charge."""
    total, weight = -price, 0.0
    for c in range(first, last):
        total += z[c]
        weight += d[c]
    while True:
        level = total / weight
        total, above = -price, 0.0
        for c in range(first, last):
            if z[c] > level * d[c]:
                total += z[c]
                above += d[c]
        if above >= weight or above == 0.0:
            break
        weight = above
    for c in range(first, last):
        z[c] = max(z[c] - level * d[c], 0.0)


@_jit
def prox(x: Array, copies: Copies, rho: float, memory: Memory) -> None:
    """X = argmin_{X >= 0} Σ_b f_b(X) + rho/2 Σ d (X - V)²."""
    start, w, outer, totals = copies.start, copies.w, copies.outer, copies.totals
    pools = Pools(x, memory.order, memory.n_active, memory.end, memory.n_pools)
    table = _table(copies)
    for l in range(copies.scale.size):
        first, last = copies.layer[l], copies.layer[l + 1]
        weight = rho * copies.scale[l]
        if copies.is_step[l]:
            inverse = 1.0 / weight
            for b in range(first, last):
                cap(x, w, start[b], start[b + 1], outer[b] * inverse)
        else:
            prox_blocks(first, last, copies, x, weight, 0.0, totals, table, pools)


@_jit
def project(z: Array, copies: Copies, memory: Memory) -> None:
    """K = argmin of Σ (K - Z)² / d over the base polytopes B(F_b)."""
    start, w, d, outer, totals = copies.start, copies.w, copies.d, copies.outer, copies.totals
    pools = Pools(z, memory.order, memory.n_active, memory.end, memory.n_pools)
    spare, table = memory.spare, _table(copies)
    for l in range(copies.scale.size):
        first, last = copies.layer[l], copies.layer[l + 1]
        if copies.is_step[l]:
            for b in range(first, last):
                divide(z, w, start[b], start[b + 1], outer[b])
            continue
        # Moreau: K = Z - d X with X the prox of Z / d.
        for c in range(start[first], start[last]):
            spare[c] = z[c]
            z[c] /= d[c]
        prox_blocks(first, last, copies, z, copies.scale[l], -np.inf, totals, table, pools)
        for c in range(start[first], start[last]):
            z[c] = spare[c] - d[c] * z[c]


@_jit
def extension(x: Array, copies: Copies, memory: Memory) -> float:
    """Σ_b f_b(X) for X >= 0, right to a few units in the last place."""
    start, outer, table = copies.start, copies.outer, _table(copies)
    value, error = 0.0, 0.0
    for l in range(copies.scale.size):
        first, last = copies.layer[l], copies.layer[l + 1]
        if copies.is_step[l]:
            for b in range(first, last):
                top = 0.0
                for c in range(start[b], start[b + 1]):
                    top = max(top, x[c])
                value, error = add_exactly(value, error, outer[b] * top)
        else:
            own = extension_blocks(first, last, copies, x, table, memory)
            value, error = add_exactly(value, error, own)
    return value + error


@_jit
def add_center(K: Array, copies: Copies) -> None:
    """Add a point of every B(F_b) to K, over the edges: w g(W)/W with W the weight of the block.

    g(x)/x falls, so that every part of a block pays at most what it costs alone.
    """
    edge, start = copies.edge, copies.start
    kind, offset, params, outer, inner = _table(copies)
    for b in range(start.size - 1):
        rate = block_secant(kind, offset, params, outer, inner, b, 0.0, copies.totals[b])
        for c in range(start[b], start[b + 1]):
            K[edge[c]] += rate * copies.w[c]
