"""The prox of concave functions over disjoint blocks of edges: sort, pool, cut off.

Notation. The edges of all blocks stand one block after the other: block b owns positions
``start[b]:start[b+1]``. ``w`` are weights inside g (also the metric), ``V`` the point to be
projected, ``g_b(x) = outer_b * g(inner_b * x)`` the concave function of block b, packed in a
``ConcaveTable``. Every kernel treats the blocks ``first <= b < last``, so that several threads can
share the work; none keeps state, all release the GIL. The NumPy twins are in ``reference.py``.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.blocks.sorting import sort_descending
from structot.concave.kernels import block_secant, secant

_BINS = 256  # of _fill_bins; 49 of the 52 bits of a mantissa leave eight bins per octave
_BIN_SHIFT = 49
_PER_BIN = 8  # elements of a block per bin of equal width
_WORTH_PLACING = 0.25  # share of elements in settled bins that makes up for placing all by bins
_FEW = 32  # elements of a block that are sorted faster than arrays are passed on
_BINS_PAY = 512  # elements of a block from which on bins save more than it takes to fill them
_ROUNDING = 1e-12  # bound for the error of a sum, relative to the sum of its absolute terms

# For steps that take many arrays: with blocks of a few elements, to pass these on is the main work.
_inlined = njit(cache=True, nogil=True, inline="always")


class _Bins(NamedTuple):
    """Sums over the elements of each bin, and whether it is settled (see ``_settle_bins``)."""

    mass: np.ndarray  # sum of w
    gain: np.ndarray  # sum of w V
    net: np.ndarray  # gain - (increase of g) / rho
    size: np.ndarray  # number of elements
    settled: np.ndarray


@njit(cache=True, nogil=True)
def prox_blocks(first, last, edges, V, rho, floor, totals, table, pools):
    """X = max(floor, argmin f(X) + rho/2 sum w (X - V)^2), with the pools that produced it.

    Elements that must end at the floor are left out, and those deep inside a pool are not sorted
    (see ``_settle_bins``); ``totals`` are the weights of whole blocks. On entry ``pools`` holds the
    order of the last call, the seed of this one; on exit X and its pools. X may be V itself.
    """
    start, w = edges.start, edges.w
    order, n_active, n_pools = pools.order, pools.n_active, pools.n_pools
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    room = np.empty(longest), np.zeros(longest, np.uint8), spare  # height, seen, spare
    sums = np.empty((3, _BINS))
    ends = np.empty(_BINS, np.int64)
    bins = _Bins(sums[0], sums[1], sums[2], ends, np.empty(_BINS, np.bool_))
    stack = np.empty(longest), np.empty(longest), np.empty(longest, np.int64)
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        if size <= _FEW:
            n_active[b], top = _pool_few(
                b, s, size, w, V, rho, floor, totals[b], table, order, stack
            )
        else:
            own = V[s : s + size], w[s : s + size], totals[b], order[s : s + size], n_active[b]
            n_active[b], top = _pool_many(b, own, rho, floor, table, room, bins, stack)
        n_pools[b] = _write(s, size, floor, top, stack, pools)


@njit(cache=True, nogil=True)
def prox_busy(first, last, edges, V, rho, floor, totals, table, pools, busy):
    """The same where all of a block that is not busy is known to end at the floor."""
    b = first
    while b < last:
        stop = b + 1
        if busy[b]:
            while stop < last and busy[stop]:
                stop += 1
            prox_blocks(b, stop, edges, V, rho, floor, totals, table, pools)
        else:
            pools.X[edges.start[b] : edges.start[stop]] = floor
            pools.n_active[b] = 0
            pools.n_pools[b] = 0
        b = stop


@_inlined
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
        top = _append(h * V[e] - slope * h / rho, h, k + 1, top, stack)
    return length, top


@_inlined
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
            top = _append(bins.net[part], bins.mass[part], high, top, stack)
            cumulative += bins.mass[part]
        else:
            sort_descending(point, sequence[low:high], spare[low:high])
            for k in range(low, high):
                e = sequence[k]
                h = weights[e]
                slope = block_secant(kind, offset, params, outer, inner, b, cumulative, h)
                cumulative += h
                top = _append(h * point[e] - slope * h / rho, h, k + 1, top, stack)
        low = high
    return length, top


@_inlined
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


@_inlined
def _append(gain, mass, stop, top, stack):
    """Put an element that ends at ``stop`` on the stack of ``top`` pools; returns its height."""
    total, weight, end = stack
    total[top] = gain
    weight[top] = mass
    end[top] = stop
    # A later value above an earlier one violates the order: average the two pools.
    while top > 0 and total[top] * weight[top - 1] > total[top - 1] * weight[top]:
        total[top - 1] += total[top]
        weight[top - 1] += weight[top]
        end[top - 1] = end[top]
        top -= 1
    return top + 1


@_inlined
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
        upper, density = _fill_bins(height, point, weights, lowest, bins)
        used, idle = _settle_bins(b, upper, rho, floor, table, bins, stack)
        length = candidates(height, upper[used], sequence, known, seen) if used else 0
        if idle > _WORTH_PLACING * length or (density > 0.0 and used > 0):
            _place(height, upper, density, sequence[:length], spare, bins.size)
            return length, used
    else:
        length = candidates(point, floor + lowest, sequence, known, seen)
    bins.size[0] = length
    bins.settled[0] = False
    return length, 1


@_inlined
def _fill_bins(height, point, weights, lowest, bins):
    """Add up the elements with height > lowest in bins, from the top down.

    Bins have equal relative width, and the last one takes the rest; or, where these would be few,
    equal width. Returns the largest number of each bin, then ``lowest``, and the number of bins per
    unit of height, 0 where widths are relative.
    """
    mass, gain, members = bins.mass, bins.gain, bins.size
    bits = height.view(np.int64)  # in the same order as the numbers, where these are positive
    top = np.int64(-1)
    for e in range(height.size):
        top = max(top, bits[e])
    mass[0] = lowest  # only to read its bits
    number = max(0, min((top >> _BIN_SHIFT) - (mass.view(np.int64)[0] >> _BIN_SHIFT) + 1, _BINS))
    equal = min(_BINS, height.size // _PER_BIN)
    density = 0.0
    if 1 < number < equal // 4:
        number = equal
        upper = np.empty(number + 1)
        upper.view(np.int64)[0] = top
        density = number / (upper[0] - lowest)
        for k in range(1, number):
            upper[k] = upper[0] - k / density
    else:
        limits = np.empty(number + 1, np.int64)
        for k in range(number):
            limits[k] = (((top >> _BIN_SHIFT) - k + 1) << _BIN_SHIFT) - 1
        upper = limits.view(np.float64)
    for k in range(number):
        mass[k] = 0.0
        gain[k] = 0.0
        members[k] = 0
        bins.settled[k] = False
    for e in range(height.size):
        if height[e] > lowest:
            k = _bin_of(height[e], bits[e], upper, density)
            mass[k] += weights[e]
            gain[k] += weights[e] * point[e]
            members[k] += 1
    upper[number] = lowest
    return upper, density


@_inlined
def _bin_of(x, bits, upper, density):
    """The number of the bin of an element of height x."""
    if density > 0.0:
        k = np.int64((upper[0] - x) * density)
    else:
        k = (upper.view(np.int64)[0] >> _BIN_SHIFT) - (bits >> _BIN_SHIFT)
    return min(k, upper.size - 2)


@_inlined
def _settle_bins(b, upper, rho, floor, table, bins, stack):
    """Find the bins that need no sorting; returns how many bins to use, and elements in those.

    Pools are the edges of the least concave majorant of the curve A(W) = sum of w V - g(W) / rho in
    the order of V. The ends of bins are points of the curve; let M be the majorant of these alone,
    with slopes not below the floor. Inside a bin the curve lies below the convex function that
    leaves it at the start as if all V were the upper limit of the bin, and so below its chord; also
    below one that arrives at the end as if all V were the lower limit. If either chord is below M
    the bin is settled: no pool ends inside, and it can enter as one element. Settled bins at the
    end, where M has the slope of the floor, end at the floor and are not used.
    """
    kind, offset, params, outer, inner = table
    mass, gain, net, members, settled = bins
    total, weight, end = stack
    cumulative = 0.0
    terms = 0.0
    top = 0
    for k in range(upper.size - 1):
        if members[k] > 0:
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative, mass[k]) / rho
            cumulative += mass[k]
            net[k] = gain[k] - slope * mass[k]
            terms += abs(gain[k]) + (slope + abs(floor)) * mass[k]
            top = _append(net[k], mass[k], k + 1, top, stack)
    gap = 0.0  # M - A
    used = idle = pending = 0
    k = 0
    for t in range(top):
        level = max(total[t] / weight[t], floor)
        while k < end[t]:
            if members[k] > 0:
                before = gap - _ROUNDING * terms
                gap += level * mass[k] - net[k]
                after = gap - _ROUNDING * terms
                settled[k] = (
                    after > (floor + upper[k]) * mass[k] - gain[k]
                    or before > gain[k] - (floor + upper[k + 1]) * mass[k]
                )
                if settled[k]:
                    pending += members[k]
                if level > floor or not settled[k]:
                    used, idle = k + 1, pending
            k += 1
    return used, idle


@njit(cache=True, nogil=True)
def _place(height, upper, density, sequence, spare, members):
    """Order ``sequence`` by bins, otherwise as it was; ``members`` become the ends of the bins."""
    bits = height.view(np.int64)
    number = upper.size - 1
    position = 0
    for k in range(number):
        size = members[k]
        members[k] = position
        position += size
    for k in range(sequence.size):
        spare[k] = sequence[k]
    for e in spare[: sequence.size]:
        k = _bin_of(height[e], bits[e], upper, density)
        sequence[members[k]] = e
        members[k] += 1


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
