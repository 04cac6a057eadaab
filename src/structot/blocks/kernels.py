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
from structot.concave.kernels import block_secant

_BINS = 256  # of _fill_bins; 49 of the 52 bits of a mantissa leave eight bins per octave
_BIN_SHIFT = 49
_WORTH_PLACING = 0.25  # share of elements in settled bins that makes up for placing all by bins
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
    X, order, n_active, end_of_pool, n_pools = pools
    kind, offset, params, outer, inner = table
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
        sequence = order[s : s + size]
        point = V[s : s + size]
        weights = w[s : s + size]
        n_active[b], parts = _arrange(
            b,
            point,
            weights,
            rho,
            floor,
            totals[b],
            table,
            sequence,
            n_active[b],
            room,
            bins,
            stack,
        )
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
        ends_of_pools = end_of_pool[s : s + size]
        n_pools[b] = _write(floor, top, stack, sequence, X[s : s + size], ends_of_pools)


@njit(cache=True, nogil=True)
def _write(floor, top, stack, sequence, X, ends_of_pools):
    """X from the stack of pools, cut at the floor; returns how many pools lie above it."""
    total, weight, end = stack
    X[:] = floor
    position = 0
    for t in range(top):
        level = total[t] / weight[t]
        if level <= floor:
            return t
        for k in range(position, end[t]):
            X[sequence[k]] = level
        position = end[t]
        ends_of_pools[t] = position
    return top


@njit(cache=True, nogil=True)
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
def _arrange(b, point, weights, rho, floor, total, table, sequence, known, room, bins, stack):
    """Collect in ``sequence`` the elements that may end above the floor, in parts that fall.

    Returns how many elements and parts. Part k ends at ``bins.size[k]`` now; it is still to be
    sorted unless it is settled. There is only one part where bins save too little.
    """
    kind, offset, params, outer, inner = table
    size = point.size
    height, seen, spare = room[0][:size], room[1][:size], room[2]
    if floor > -np.inf:
        for k in range(size):
            height[k] = point[k] - floor
        lowest = block_secant(kind, offset, params, outer, inner, b, total, 0.0) / rho
        upper = _fill_bins(height, point, weights, lowest, bins)
        used, idle = _settle_bins(b, upper, rho, floor, table, bins, stack)
        length = candidates(height, upper[used], sequence, known, seen) if used else 0
        if idle > _WORTH_PLACING * length:
            _place(height, upper, sequence[:length], spare, bins.size)
            return length, used
    else:
        length = candidates(point, floor, sequence, known, seen)
    bins.size[0] = length
    bins.settled[0] = False
    return length, 1


@_inlined
def _fill_bins(height, point, weights, lowest, bins):
    """Add up the elements with height > lowest in bins of equal relative width, from the top down.

    Returns the largest number of each bin, then ``lowest``. The last bin takes the rest.
    """
    mass, gain, members = bins.mass, bins.gain, bins.size
    bits = height.view(np.int64)  # in the same order as the numbers, where these are positive
    top = np.int64(-1)
    for e in range(height.size):
        top = max(top, bits[e])
    top >>= _BIN_SHIFT
    mass[0] = lowest  # only to read its bits
    number = max(0, min(top - (mass.view(np.int64)[0] >> _BIN_SHIFT) + 1, _BINS))
    limits = np.empty(number + 1, np.int64)
    for k in range(number):
        limits[k] = ((top - k + 1) << _BIN_SHIFT) - 1
        mass[k] = 0.0
        gain[k] = 0.0
        members[k] = 0
        bins.settled[k] = False
    for e in range(height.size):
        if height[e] > lowest:
            k = min(top - (bits[e] >> _BIN_SHIFT), number - 1)
            mass[k] += weights[e]
            gain[k] += weights[e] * point[e]
            members[k] += 1
    upper = limits.view(np.float64)
    upper[number] = lowest
    return upper


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
def _place(height, upper, sequence, spare, members):
    """Order ``sequence`` by bins, otherwise as it was; ``members`` become the ends of the bins."""
    bits = height.view(np.int64)
    top = upper.view(np.int64)[0] >> _BIN_SHIFT
    number = upper.size - 1
    position = 0
    for k in range(number):
        size = members[k]
        members[k] = position
        position += size
    for k in range(sequence.size):
        spare[k] = sequence[k]
    for e in spare[: sequence.size]:
        k = min(top - (bits[e] >> _BIN_SHIFT), number - 1)
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
