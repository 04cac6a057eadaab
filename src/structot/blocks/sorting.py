"""A stable sort that is fast for what is nearly in order, as one prox after the other finds it."""

import numpy as np
from numba import njit

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
