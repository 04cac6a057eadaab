"""The prox of concave functions over disjoint blocks of edges: sort, pool, cut off.

Notation. The edges of all blocks stand one block after the other: block b owns positions
``start[b]:start[b+1]``. ``w`` are weights inside g (also the metric), ``V`` the point to be
projected, ``g_b(x) = outer_b * g(inner_b * x)`` the concave function of block b, packed in a
``ConcaveTable``. Every kernel treats the blocks ``first <= b < last``, so that several threads can
share the work; none keeps state, all release the GIL. The NumPy twins are in ``reference.py``.
"""

import numpy as np
from numba import njit

from structot.blocks.bins import (
    BINS,
    Bins,
    all_low,
    fill_bins,
    inlined,
    place,
    push_and_merge,
    settle_bins,
)
from structot.blocks.sorting import sort_descending
from structot.concave.kernels import block_secant, secant

_WORTH_PLACING = 0.25  # share of elements in settled bins that makes up for placing all by bins
_FEW = 32  # elements of a block that are sorted faster than arrays are passed on
_BINS_PAY = 512  # elements of a block from which on bins save more than it takes to fill them


@njit(cache=True, nogil=True)
def prox_busy(first, last, edges, V, rho, floor, totals, table, pools, busy):
    """X = max(floor, argmin f(X) + rho/2 sum w (X - V)^2), with the pools that produced it.

    Elements that must end at the floor are left out, and those deep inside a pool are not sorted
    (see ``settle_bins``); ``totals`` are the weights of whole blocks. On entry ``pools`` holds the
    order of the last call, the seed of this one; on exit X and its pools. X may be V itself. All of
    a block that is not ``busy`` is known to end at the floor.
    """
    start, w = edges.start, edges.w
    order, n_active, n_pools = pools.order, pools.n_active, pools.n_pools
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    room = np.empty(longest), np.zeros(longest, np.uint8), spare  # height, seen, spare
    sums = np.empty((3, BINS))
    ends = np.empty(BINS, np.int64)
    bins = Bins(sums[0], sums[1], sums[2], ends, np.empty(BINS, np.bool_))
    stack = np.empty(longest), np.empty(longest), np.empty(longest, np.int64)
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        top = 0
        if (busy.size > 0 and not busy[b]) or (
            _FEW < size < _BINS_PAY
            and n_pools[b] == 0  # as in the last call
            and floor > -np.inf
            and all_low(b, s, size, w, V, rho, floor, totals[b], table, bins)
        ):
            n_active[b] = 0
        elif size <= _FEW:
            n_active[b], top = _pool_few(
                b, s, size, w, V, rho, floor, totals[b], table, order, stack
            )
        else:
            own = V[s : s + size], w[s : s + size], totals[b], order[s : s + size], n_active[b]
            n_active[b], top = _pool_many(b, own, rho, floor, table, room, bins, stack)
        n_pools[b] = _write(s, size, floor, top, stack, pools)


@njit(cache=True, nogil=True)
def prox_blocks(first, last, edges, V, rho, floor, totals, table, pools):
    """The same, of all blocks."""
    all_busy = np.empty(0, np.bool_)
    prox_busy(first, last, edges, V, rho, floor, totals, table, pools, all_busy)


@inlined
def _pool_few(b, s, size, w, V, rho, floor, total, table, order, stack):
    """Sort the elements of a short block that may end above the floor, and pool them.

    Returns how many elements and pools. To sort them anew takes less time than views of arrays.
    """
    kind, offset, params, outer, inner = table
    own, scale = params[offset[b] : offset[b + 1]], outer[b] * inner[b]
    lowest = 0.0
    if floor > -np.inf:
        lowest = scale * secant(kind[b], own, inner[b] * total, 0.0) / rho
    length = 0
    for e in range(size):
        if V[s + e] - floor > lowest:
            k = s + length
            while k > s and V[s + order[k - 1]] < V[s + e]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = e
            length += 1
    cumulative = 0.0
    top = 0
    for k in range(length):
        e = s + order[s + k]
        h = w[e]
        slope = scale * secant(kind[b], own, inner[b] * cumulative, inner[b] * h)
        cumulative += h
        top = push_and_merge(h * V[e] - slope * h / rho, h, k + 1, top, stack)
    return length, top


@inlined
def _pool_many(b, own, rho, floor, table, room, bins, stack):
    """The same for a long block, whose order is known from the last call, with the help of bins."""
    kind, offset, params, outer, inner = table
    point, weights, _, sequence, _ = own
    length, parts = _arrange(b, own, rho, floor, table, room, bins, stack)
    spare, ends = room[2], bins.size
    cumulative = 0.0
    top = 0
    low = 0
    for part in range(parts):
        high = ends[part]
        if bins.settled[part]:
            top = push_and_merge(bins.net[part], bins.mass[part], high, top, stack)
            cumulative += bins.mass[part]
        else:
            sort_descending(point, sequence[low:high], spare[low:high])
            for k in range(low, high):
                e = sequence[k]
                h = weights[e]
                slope = block_secant(kind, offset, params, outer, inner, b, cumulative, h)
                cumulative += h
                top = push_and_merge(h * point[e] - slope * h / rho, h, k + 1, top, stack)
        low = high
    return length, top


@inlined
def _write(s, size, floor, top, stack, pools):
    """X from the stack of pools, cut at the floor; returns how many pools lie above it."""
    X, order, end_of_pool = pools.X, pools.order, pools.end
    total, weight, end = stack
    for k in range(s, s + size):
        X[k] = floor
    position = 0
    found = 0
    for t in range(top):
        level = total[t] / weight[t]
        if level <= floor:
            break
        for k in range(position, end[t]):
            X[s + order[s + k]] = level
        position = end[t]
        end_of_pool[s + found] = position
        found += 1
    return found


@inlined
def _arrange(b, own, rho, floor, table, room, bins, stack):
    """Collect in ``sequence`` the elements that may end above the floor, in parts that fall.

    Returns how many elements and parts. Part k ends at ``bins.size[k]`` now; it is still to be
    sorted unless it is settled. There is only one part where bins save too little.
    """
    kind, offset, params, outer, inner = table
    point, weights, total, sequence, known = own
    size = point.size
    height, seen, spare = room[0][:size], room[1][:size], room[2]
    lowest = 0.0
    if floor > -np.inf:
        lowest = block_secant(kind, offset, params, outer, inner, b, total, 0.0) / rho
    if floor > -np.inf and size >= _BINS_PAY:
        for k in range(size):
            height[k] = point[k] - floor
        upper, density = fill_bins(height, point, weights, lowest, bins)
        used, idle = settle_bins(b, upper, rho, floor, table, bins, stack)
        length = candidates(height, upper[used], sequence, known, seen) if used else 0
        if idle > _WORTH_PLACING * length or (density > 0.0 and used > 0):
            place(height, upper, density, sequence[:length], spare, bins.size)
            return length, used
    else:
        length = candidates(point, floor + lowest, sequence, known, seen)
    bins.size[0] = length
    bins.settled[0] = False
    return length, 1


@njit(cache=True, nogil=True)
def candidates(point, level, sequence, known, seen):
    """Collect the elements with point > level, those known from the last call first, in order."""
    size = point.size
    total = 0
    for e in range(size):
        seen[e] = point[e] > level
        if seen[e]:
            total += 1
    length = 0
    for k in range(known):
        e = sequence[k]
        if seen[e]:
            seen[e] = 0
            sequence[length] = e
            length += 1
    if length < total:
        for e in range(size):
            if seen[e]:
                seen[e] = 0
                sequence[length] = e
                length += 1
    return length


@njit(cache=True, nogil=True)
def order_ties(start, x, order, n_active):
    """Put elements of equal x, which stand one after the other in ``order``, in their own order."""
    for b in range(start.size - 1):
        s = start[b]
        first = 0
        for k in range(1, n_active[b] + 1):
            if k == n_active[b] or x[s + order[s + k]] != x[s + order[s + first]]:
                if k - first > 1:
                    order[s + first : s + k].sort()
                first = k
