"""Compiled kernels over disjoint blocks of edges: sort, pool, project.

Notation. The edges of all blocks stand one block after the other: block b owns positions
``start[b]:start[b+1]``. ``w`` are weights inside g (also the metric), ``V`` the point to be
projected, ``g_b(x) = outer_b * g(inner_b * x)`` the concave function of block b, packed in a
``ConcaveTable``. Every kernel treats the blocks ``first <= b < last``, so that several threads can
share the work; none keeps state, all release the GIL. The NumPy twins are in ``_reference.py``.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave._kernels import block_secant, secant

_BINS = 256  # of _fill_bins; 49 of the 52 bits of a mantissa leave eight bins per octave
_BIN_SHIFT = 49
_WORTH_PLACING = 0.25  # share of elements in settled bins that makes up for placing all by bins
_ROUNDING = 1e-12  # bound for the error of a sum, relative to the sum of its absolute terms
_FEW = 32  # elements of a block that are sorted faster than bins are filled
_INSERTION_MOVES = 6  # moves per element before insertion sort gives way to merging

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
def sort_descending(keys, order, spare):
    """Sort ``order`` in place so that ``keys[order]`` falls; fast when it nearly does already.

    Insertion sort while the total number of moves stays linear in the length, then merging of the
    runs that are left: O(n) for a nearly sorted start, O(n log n) always, stable.
    """
    size = order.size
    budget = _INSERTION_MOVES * size
    done = size
    for i in range(1, size):
        item = order[i]
        key = keys[item]
        j = i - 1
        while j >= 0 and keys[order[j]] < key:
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = item
        budget -= i - 1 - j
        if budget < 0:
            done = i + 1
            break
    if done < size:
        _merge_runs(keys, order, spare, done)


@njit(cache=True, nogil=True)
def _merge_runs(keys, order, spare, sorted_length):
    """Natural merge sort: the first run is known, short later runs are made 16 long first."""
    size = order.size
    bounds = np.empty(size // 16 + 3, np.int64)
    bounds[0] = 0
    bounds[1] = sorted_length
    runs = 1
    while bounds[runs] < size:
        low = bounds[runs]
        high = low + 1
        while high < size and keys[order[high]] <= keys[order[high - 1]]:
            high += 1
        stop = min(size, low + 16)
        while high < stop:
            item = order[high]
            key = keys[item]
            j = high - 1
            while j >= low and keys[order[j]] < key:
                order[j + 1] = order[j]
                j -= 1
            order[j + 1] = item
            high += 1
        runs += 1
        bounds[runs] = high
    source, target = order, spare
    while runs > 1:
        merged = 0
        for r in range(0, runs, 2):
            low = bounds[r]
            middle = bounds[min(r + 1, runs)]
            high = bounds[min(r + 2, runs)]
            i, j = low, middle
            for k in range(low, high):
                if j >= high or (i < middle and keys[source[i]] >= keys[source[j]]):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
            merged += 1
            bounds[merged] = high
        runs = merged
        source, target = target, source
    if source is not order:
        for k in range(size):
            order[k] = source[k]


@njit(cache=True, nogil=True)
def prox_blocks(first, last, start, w, V, rho, floor, totals, table, order, count, X, pool, pools):
    """X = max(floor, argmin f(X) + rho/2 sum w (X - V)^2), with the pools that produced it.

    Elements that must end at the floor are left out, and those deep inside a pool are not sorted
    (see ``_settle_bins``); ``totals`` are the weights of whole blocks. X may be V itself. On entry
    ``order[start[b]:][:count[b]]`` is the order of the last call, the seed of this one; on exit the
    elements that were not left out, pool after pool. Pool t of block b (those above the floor only,
    ``pools[b]`` of them) ends at position ``pool[start[b] + t]`` of that order.
    """
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
    total, weight, end = stack
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        if size <= _FEW:
            count[b], top = _pool_few(b, s, size, w, V, rho, floor, totals[b], table, order, stack)
        else:
            sequence = order[s : s + size]
            point = V[s : s + size]
            weights = w[s : s + size]
            known = count[b]
            count[b], parts = _arrange(
                b, point, weights, rho, floor, totals[b], table, sequence, known, room, bins, stack
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
        for k in range(size):
            X[s + k] = floor
        position = 0
        found = 0
        for t in range(top):
            level = total[t] / weight[t]
            if level <= floor:
                break
            for k in range(position, end[t]):
                X[s + order[s + k]] = level
            position = end[t]
            pool[s + found] = position
            found += 1
        pools[b] = found


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
        length = _candidates(height, upper[used], sequence, known, seen) if used else 0
        if idle > _WORTH_PLACING * length:
            _place(height, upper, sequence[:length], spare, bins.size)
            return length, used
    else:
        length = _candidates(point, floor, sequence, known, seen)
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
def _candidates(point, level, sequence, known, seen):
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
def add_exactly(high, low, x):
    """high + x, and low plus the rounding error of that: together the sum in twice the digits."""
    total = high + x
    part = total - high
    return total, low + ((high - (total - part)) + (x - part))


@njit(cache=True, nogil=True)
def single_blocks(first, last, start, w, table, K):
    """K = F({e}): what every edge costs alone."""
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        for e in range(start[b], start[b + 1]):
            K[e] = w[e] * block_secant(kind, offset, params, outer, inner, b, 0.0, w[e])


@njit(cache=True, nogil=True)
def greedy_blocks(first, last, start, w, P, table, K):
    """Edmonds' vertex: K_(k) = g(W_k) - g(W_k-1) along P sorted downwards."""
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        order = np.arange(size).astype(np.int32)
        sort_descending(P[s : s + size], order, np.empty(size, np.int32))
        cumulative = 0.0
        lost = 0.0
        for k in range(size):
            e = s + order[k]
            below = cumulative + lost
            K[e] = w[e] * block_secant(kind, offset, params, outer, inner, b, below, w[e])
            cumulative, lost = add_exactly(cumulative, lost, w[e])


@njit(cache=True, nogil=True)
def extension_blocks(first, last, start, w, P, table, order, count):
    """f(P) for P >= 0 over some blocks; only positive entries are sorted, from the last order on.

    Zeros add nothing, whatever their order. Sums carry their rounding errors along: the value is
    right to a few units in the last place however many edges there are.
    """
    kind, offset, params, outer, inner = table
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    seen = np.zeros(longest, np.uint8)
    value = 0.0
    error = 0.0
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        sequence = order[s : s + size]
        point = P[s : s + size]
        length = _candidates(point, 0.0, sequence, count[b], seen[:size])
        sort_descending(point, sequence[:length], spare[:length])
        count[b] = length
        cumulative = 0.0
        lost = 0.0
        for k in range(length):
            e = sequence[k]
            h = w[s + e]
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative + lost, h)
            value, error = add_exactly(value, error, point[e] * h * slope)
            cumulative, lost = add_exactly(cumulative, lost, h)
    return value + error


@njit(cache=True, nogil=True)
def entropy_blocks(first, last, start, w, Z, table, K):
    """K = argmin over the base polytope of sum K log(K/Z) - K + Z, for Z > 0.

    Order by Z/w downwards; K = Z t, t the increasing isotonic regression of dg/Z, weights Z.
    """
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        order = np.arange(size).astype(np.int32)
        ratio = Z[s : s + size] / w[s : s + size]
        sort_descending(ratio, order, np.empty(size, np.int32))
        gain = np.empty(size)
        weight = np.empty(size)
        end = np.empty(size, np.int64)
        cumulative = 0.0
        top = 0
        for k in range(size):
            e = s + order[k]
            gain[top] = w[e] * block_secant(kind, offset, params, outer, inner, b, cumulative, w[e])
            cumulative += w[e]
            weight[top] = Z[e]
            end[top] = k + 1
            while top > 0 and gain[top] * weight[top - 1] <= gain[top - 1] * weight[top]:
                gain[top - 1] += gain[top]
                weight[top - 1] += weight[top]
                end[top - 1] = end[top]
                top -= 1
            top += 1
        position = 0
        for t in range(top):
            for k in range(position, end[t]):
                e = s + order[k]
                K[e] = Z[e] * gain[t] / weight[t]
            position = end[t]


@njit(cache=True, nogil=True)
def best_prefix(b, base, w, shift, order, table):
    """The prefix of ``order`` that minimises g(base + w(S)) - g(base) + shift(S), and the minimum.

    Sorted by -shift/w downwards some minimiser is a prefix: for each line above g the best set is
    {shift + slope * w < 0}, and g is the infimum of its lines.
    """
    kind, offset, params, outer, inner = table
    best, length = 0.0, 0
    total = 0.0
    cumulative = base
    for k in range(order.size):
        e = order[k]
        total += shift[e] + w[e] * block_secant(
            kind, offset, params, outer, inner, b, cumulative, w[e]
        )
        cumulative += w[e]
        if total < best:
            best, length = total, k + 1
    return length, best


@njit(cache=True, nogil=True)
def minimize_blocks(first, last, start, w, shift, table, inside, minimum):
    """Per block, a set that minimises F(S) + shift(S), and the minimum."""
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        weights, costs = w[s : s + size], shift[s : s + size]
        order = np.arange(size).astype(np.int32)
        sort_descending(-costs / weights, order, np.empty(size, np.int32))
        length, minimum[b] = best_prefix(b, 0.0, weights, costs, order, table)
        for k in range(size):
            inside[s + order[k]] = k < length


@njit(cache=True, nogil=True)
def euclidean_blocks(first, last, start, w, Z, table, K):
    """K = argmin over the base polytope of |K - Z|^2 by divide and conquer.

    With lam = (F(A) - Z(A))/|A|, Z + lam is the answer on A if no set S inside A has
    F(S) < (Z + lam)(S); otherwise the minimiser S splits A in two independent problems: F
    restricted to S, and F contracted by S, which is again concave-of-sum from base + w(S) on.
    """
    kind, offset, params, outer, inner = table
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        weights, point = w[s : s + size], Z[s : s + size]
        order = np.arange(size).astype(np.int32)
        spare = np.empty(size, np.int32)
        key = np.empty(size)
        shift = np.empty(size)
        # Open problems as (low, high, base): the elements order[low:high] on top of weight base.
        low = np.empty(2 * size + 2, np.int64)
        high = np.empty(2 * size + 2, np.int64)
        base = np.empty(2 * size + 2)
        low[0], high[0], base[0] = 0, size, 0.0
        open_problems = 1 if size else 0
        while open_problems:
            open_problems -= 1
            i, j, below = low[open_problems], high[open_problems], base[open_problems]
            subset = order[i:j]
            mass = 0.0
            target = 0.0
            for e in subset:
                mass += weights[e]
                target += point[e]
            whole = mass * block_secant(kind, offset, params, outer, inner, b, below, mass)
            lam = (whole - target) / (j - i)
            magnitude = abs(whole)
            for e in subset:
                shift[e] = -(point[e] + lam)
                key[e] = -shift[e] / weights[e]
                magnitude += abs(shift[e])
            sort_descending(key, subset, spare[i:j])
            length, minimum = best_prefix(b, below, weights, shift, subset, table)
            if length == 0 or length == j - i or minimum > -1e-14 * magnitude:
                for e in subset:
                    K[s + e] = point[e] + lam
                continue
            inside = 0.0
            for k in range(length):
                inside += weights[subset[k]]
            low[open_problems], high[open_problems], base[open_problems] = i, i + length, below
            open_problems += 1
            low[open_problems], high[open_problems] = i + length, j
            base[open_problems] = below + inside
            open_problems += 1
