"""Compiled kernels over disjoint blocks of edges: sort, pool, project.

Notation. The edges of all blocks stand one block after the other: block b owns positions
``start[b]:start[b+1]``. ``w`` are weights inside g (also the metric), ``V`` the point to be
projected, ``g_b(x) = outer_b * g(inner_b * x)`` the concave function of block b, packed in a
``ConcaveTable``. Every kernel treats the blocks ``first <= b < last``, so that several threads can
share the work; none keeps state, all release the GIL. The NumPy twins are in ``_reference.py``.
"""

import numpy as np
from numba import njit

from structot.concave._kernels import block_secant

_BINS = 256  # of _sellable; 49 of the 52 bits of a mantissa leave eight bins per octave
_BIN_SHIFT = 49
_INSERTION_MOVES = 6  # moves per element before insertion sort gives way to merging


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

    Elements that must end at the floor are not sorted (see ``_sellable``); ``totals`` are the
    weights of whole blocks. X may be V itself. On entry ``order[start[b]:][:count[b]]`` is the
    order of the last call, the seed of this one; on exit the order of the elements that were
    sorted. Pool t of block b (those above the floor only, ``pools[b]`` of them) ends at position
    ``pool[start[b] + t]`` of that order.
    """
    kind, offset, params, outer, inner = table
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    seen = np.zeros(longest, np.uint8)
    total = np.empty(longest)
    weight = np.empty(longest)
    end = np.empty(longest, np.int64)
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        sequence = order[s : s + size]
        point = V[s : s + size]
        weights = w[s : s + size]
        level = floor
        if floor > -np.inf:
            for k in range(size):
                total[k] = point[k] - floor
            level += _sellable(b, total[:size], weights, rho, totals[b], table)
        length = _candidates(point, level, sequence, count[b], seen[:size])
        sort_descending(point, sequence[:length], spare[:length])
        count[b] = length
        cumulative = 0.0
        top = 0
        for k in range(length):
            e = sequence[k]
            slope = block_secant(kind, offset, params, outer, inner, b, cumulative, weights[e])
            cumulative += weights[e]
            total[top] = weights[e] * point[e] - slope * weights[e] / rho
            weight[top] = weights[e]
            end[top] = k + 1
            # A later value above an earlier one violates the order: average the two pools.
            while top > 0 and total[top] * weight[top - 1] > total[top - 1] * weight[top]:
                total[top - 1] += total[top]
                weight[top - 1] += weight[top]
                end[top - 1] = end[top]
                top -= 1
            top += 1
        for k in range(size):
            X[s + k] = floor
        position = 0
        found = 0
        for t in range(top):
            level = total[t] / weight[t]
            if level <= floor:
                break
            for k in range(position, end[t]):
                X[s + sequence[k]] = level
            position = end[t]
            pool[s + found] = position
            found += 1
        pools[b] = found


@njit(cache=True, nogil=True)
def _sellable(b, point, weights, rho, total, table):
    """A level such that every element with point <= level ends at zero or below.

    The elements are counted in bins of equal relative width, eight to an octave. Let those above a
    level weigh W. The ones below come after them in the order, and end at zero if no run of them
    is worth its price: sum of w * point <= (g(W') - g(W)) / rho up to every later weight W'. It is
    enough to check this at the ends of bins, with the upper end of each for its points, since g is
    concave in between.
    """
    kind, offset, params, outer, inner = table
    lowest = block_secant(kind, offset, params, outer, inner, b, total, 0.0) / rho
    bits = point.view(np.int64)
    top = np.int64(-1)
    for e in range(point.size):
        if point[e] > lowest:
            top = max(top, bits[e] >> _BIN_SHIFT)
    if top < 0:
        return lowest
    heap = np.zeros(_BINS)
    for e in range(point.size):
        if point[e] > lowest:
            heap[min(top - (bits[e] >> _BIN_SHIFT), _BINS - 1)] += weights[e]
    ends = np.empty(_BINS, np.int64)
    for k in range(_BINS):
        ends[k] = ((top - k + 1) << _BIN_SHIFT) - 1
    upper = ends.view(np.float64)  # the largest number of each bin
    above = np.sum(heap)
    level = lowest
    debt = 0.0  # the most that a run of bins from here downwards is worth beyond its price
    for k in range(_BINS - 1, -1, -1):
        if heap[k] > 0.0:
            above = max(above - heap[k], 0.0)
            slope = block_secant(kind, offset, params, outer, inner, b, above, heap[k]) / rho
            debt = max(0.0, debt + heap[k] * (upper[k] - slope))
        if debt == 0.0:
            level = max(lowest, upper[k])
    return level


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
        for k in range(size):
            e = s + order[k]
            K[e] = w[e] * block_secant(kind, offset, params, outer, inner, b, cumulative, w[e])
            cumulative += w[e]


@njit(cache=True, nogil=True)
def extension_blocks(first, last, start, w, P, table, order, count):
    """f(P) for P >= 0 over some blocks; only positive entries are sorted, from the last order on.

    Zeros add nothing, whatever their order.
    """
    kind, offset, params, outer, inner = table
    longest = 0
    for b in range(first, last):
        longest = max(longest, start[b + 1] - start[b])
    spare = np.empty(longest, np.int32)
    seen = np.zeros(longest, np.uint8)
    value = 0.0
    for b in range(first, last):
        s, size = start[b], start[b + 1] - start[b]
        sequence = order[s : s + size]
        point = P[s : s + size]
        length = _candidates(point, 0.0, sequence, count[b], seen[:size])
        sort_descending(point, sequence[:length], spare[:length])
        count[b] = length
        cumulative = 0.0
        for k in range(length):
            e = sequence[k]
            h = w[s + e]
            value += (
                point[e] * h * block_secant(kind, offset, params, outer, inner, b, cumulative, h)
            )
            cumulative += h
    return value


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
