"""Compiled operations on the small blocks of a sentence pair: prox, projection, extension.

Notation. Edge e = (i, j) of the pair; block b = (phrase of the source) × (phrase of the target). A
copy c is an edge seen from one of its blocks: block b owns the copies start[b]:start[b+1], copy c
stands for the edge edge[c] = i m + j. d_c the metric of a copy, w_c = M_e / (number of copies of e)
its weight inside g. A model is (kind, params, unit, price): F_b(S) = price · 1[S ≠ ∅] if the kind
is STEP (a fixed charge), else F_b(S) = unit · g(w(S) / unit). V or Z the point to be moved, X or K
the answer; both are the same array over the copies, changed between two positions first:last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from structot.concave.base import STEP
from structot.concave.kernels import secant

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_jit = njit(cache=True, nogil=True, error_model="numpy")


class Model(NamedTuple):
    """F_b of every block, in a form that compiled code reads."""

    kind: int
    params: Array
    unit: float
    price: float


class Copies(NamedTuple):
    """The edges of all blocks, one block after the other."""

    edge: Ints
    start: Ints
    d: Array
    w: Array


@_jit
def block_edges(
    source: Ints, source_start: Ints, target: Ints, target_start: Ints, m: int
) -> tuple[Ints, Ints]:
    """The edges of the blocks (k, l), l running fastest, and where each block starts."""
    rows, columns = source_start.size - 1, target_start.size - 1
    edge = np.empty(source.size * target.size, np.int64)
    start = np.empty(rows * columns + 1, np.int64)
    c = 0
    for k in range(rows):
        for l in range(columns):
            start[k * columns + l] = c
            for i in source[source_start[k] : source_start[k + 1]]:
                for j in target[target_start[l] : target_start[l + 1]]:
                    edge[c] = i * m + j
                    c += 1
    start[rows * columns] = c
    return edge, start


@_jit
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
    while True:
        level = (total - price) / weight
        total, above = 0.0, 0.0
        for c in range(first, last):
            if x[c] > level:
                total += d[c] * x[c]
                above += d[c]
        if above >= weight:
            break
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
def _sorted_copies(x: Array, w: Array, first: int, last: int, floor: float, order: Ints) -> int:
    """The copies with w > 0 and x > floor into ``order``, x falling; their number."""
    size = 0
    for c in range(first, last):
        if w[c] > 0.0 and x[c] > floor:
            k = size
            while k > 0 and x[order[k - 1]] < x[c]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = c
            size += 1
    return size


@_jit
def pool(
    x: Array,
    w: Array,
    first: int,
    last: int,
    kind: int,
    params: Array,
    unit: float,
    rho: float,
    floor: float,
    order: Ints,
    spare: Array,
) -> None:
    """X = max(floor, argmin f(X) + rho/2 Σ w (X - V)²) over the copies with w > 0: sort and pool.

    Free copies (w = 0) only obey the floor. So do those below it: they end there and come last, so
    that no pool above the floor reaches them. Rows of ``spare``: sum, weight and end of each pool.
    """
    size = _sorted_copies(x, w, first, last, floor, order)
    cumulative, top = 0.0, 0
    for k in range(size):
        c = order[k]
        h = w[c]
        slope = secant(kind, params, cumulative / unit, h / unit)
        cumulative += h
        spare[0, top], spare[1, top], spare[2, top] = h * (x[c] - slope / rho), h, k + 1.0
        # A later value above an earlier one violates the order: average the two pools.
        while top > 0 and spare[0, top] * spare[1, top - 1] > spare[0, top - 1] * spare[1, top]:
            spare[0, top - 1] += spare[0, top]
            spare[1, top - 1] += spare[1, top]
            spare[2, top - 1] = spare[2, top]
            top -= 1
        top += 1
    for c in range(first, last):
        x[c] = max(x[c], floor)
    k = 0
    for t in range(top):
        level = max(spare[0, t] / spare[1, t], floor)
        while k < spare[2, t]:
            x[order[k]] = level
            k += 1


@_jit
def prox(x: Array, copies: Copies, model: Model, rho: float, order: Ints, spare: Array) -> None:
    """X = argmin_{X >= 0} Σ_b f_b(X) + rho/2 Σ d (X - V)²."""
    start, d, w = copies.start, copies.d, copies.w
    kind, params, unit, price = model
    if kind == STEP:
        for b in range(start.size - 1):
            cap(x, d, start[b], start[b + 1], price / rho)
    else:
        for b in range(start.size - 1):
            pool(x, w, start[b], start[b + 1], kind, params, unit, rho, 0.0, order, spare)


@_jit
def project(z: Array, copies: Copies, model: Model, order: Ints, spare: Array) -> None:
    """K = argmin of Σ (K - Z)² / d over the base polytopes B(F_b)."""
    start, d, w = copies.start, copies.d, copies.w
    kind, params, unit, price = model
    if kind == STEP:
        for b in range(start.size - 1):
            divide(z, d, start[b], start[b + 1], price)
        return
    # Moreau: K = Z - w X with X the prox of Z / w. What costs nothing alone has K = 0.
    for b in range(start.size - 1):
        first, last = start[b], start[b + 1]
        for c in range(first, last):
            z[c] = z[c] / w[c] if w[c] > 0.0 else 0.0
            spare[3, c - first] = z[c]
        pool(z, w, first, last, kind, params, unit, 1.0, -np.inf, order, spare)
        for c in range(first, last):
            z[c] = w[c] * (spare[3, c - first] - z[c])


@_jit
def charges(x: Array, copies: Copies, model: Model, order: Ints) -> float:
    """Σ_b f_b(X) for X >= 0: the price times the maximum, or g along X sorted downwards."""
    start, w = copies.start, copies.w
    kind, params, unit, price = model
    value = 0.0
    if kind == STEP:
        for b in range(start.size - 1):
            top = 0.0
            for c in range(start[b], start[b + 1]):
                top = max(top, x[c])
            value += top
        return price * value
    for b in range(start.size - 1):
        size = _sorted_copies(x, w, start[b], start[b + 1], 0.0, order)
        cumulative = 0.0
        for k in range(size):
            h = w[order[k]]
            slope = secant(kind, params, cumulative / unit, h / unit)
            value += x[order[k]] * h * slope
            cumulative += h
    return value


@_jit
def add_center(K: Array, copies: Copies, model: Model) -> None:
    """Add a point of every B(F_b) to K, over the edges: copies pay in proportion to d or w.

    For a concave g it is w g(W)/W with W the weight of the block: g(x)/x falls, so that every part
    of the block pays at most what it costs alone.
    """
    edge, start = copies.edge, copies.start
    kind, params, unit, price = model
    weights = copies.d if kind == STEP else copies.w
    for b in range(start.size - 1):
        first, last = start[b], start[b + 1]
        total = 0.0
        for c in range(first, last):
            total += weights[c]
        if total > 0.0:
            if kind == STEP:
                rate = price / total
            else:
                rate = secant(kind, params, 0.0, total / unit)
            for c in range(first, last):
                K[edge[c]] += rate * weights[c]
