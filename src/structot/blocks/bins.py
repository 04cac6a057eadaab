"""What sums over bins of elements say about a prox before anything is sorted.

Notation as in `kernels.py`. Bins go from the greatest height V - floor down.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from structot.concave.kernels import block_secant

BINS = 256  # at most
_BIN_SHIFT = 49  # of the 52 bits of a mantissa these are dropped: eight bins per octave
_PER_BIN = 8  # elements of a block per bin of equal width
# Bins of relative width are found from the bits of a number alone: those of equal width are for
# heights so close together that there would be this many times more of them.
_MANY_MORE = 4
_COARSE = 4  # bins of `all_low`
_ROUNDING = 1e-12  # bound for the error of a sum, relative to the sum of its absolute terms

# For steps that take many arrays: with blocks of a few elements, to pass these on is the main work.
inlined = njit(cache=True, nogil=True, inline="always")


class Bins(NamedTuple):
    """Sums over the elements of each bin, and whether it is settled (see ``settle_bins``)."""

    mass: np.ndarray  # sum of w
    gain: np.ndarray  # sum of w V
    net: np.ndarray  # gain - (increase of g) / rho
    size: np.ndarray  # number of elements
    settled: np.ndarray


@inlined
def push_and_merge(gain, mass, stop, top, stack):
    """Put an element, ending at ``stop``, on the stack of ``top`` pools, as a pool of its own, and
    merge pools until their values fall; returns their number.
    """
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


@inlined
def all_low(b, s, size, w, V, rho, floor, total, table, bins):
    """Whether all elements are certain to end at the floor: so they do in many blocks whose prices
    are nearly worth paying, and to sort them would be the main work.

    It is so if the sum of w height is at most g(w(S)) / rho for all sets S of the highest. To take
    the first elements of a bin for as high as its upper limit makes the sum linear in w(S), and g
    is concave: the ends of bins are enough, and often that of a single one.
    """
    kind, offset, params, outer, inner = table
    lowest = block_secant(kind, offset, params, outer, inner, b, total, 0.0) / rho
    top, high = _height_and_weight(s, size, w, V, floor, lowest)
    if top <= lowest:
        return True
    sure = (1.0 - _ROUNDING) / rho
    if top <= sure * block_secant(kind, offset, params, outer, inner, b, 0.0, high):
        return True
    mass, gain = bins.mass, bins.gain
    width = (top - lowest) / _COARSE
    density = 1.0 / width
    for k in range(_COARSE):
        mass[k] = 0.0
        gain[k] = 0.0
    for e in range(s, s + size):
        height = V[e] - floor
        if height > lowest:
            k = min(np.int64((top - height) * density), _COARSE - 1)
            mass[k] += w[e]
            gain[k] += w[e] * height
    weight = 0.0
    below = 0.0
    for k in range(_COARSE):
        if mass[k] > 0.0:
            weight += mass[k]
            most = below + (top - k * width) * mass[k]
            slope = block_secant(kind, offset, params, outer, inner, b, 0.0, weight)
            if not most <= sure * slope * weight:
                return False
            below += gain[k]
    return True


@njit(cache=True, nogil=True, fastmath={"reassoc", "nnan", "nsz"})
def _height_and_weight(s, size, w, V, floor, lowest):
    """The greatest height above the floor, and the weight of all elements higher than ``lowest``.

    The order of this sum is free: what hangs on it leaves room for rounding.
    """
    top = -np.inf
    weight = 0.0
    for e in range(s, s + size):
        height = V[e] - floor
        top = max(top, height)
        weight += w[e] if height > lowest else 0.0
    return top, weight


@inlined
def fill_bins(height, point, weights, lowest, bins):
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
    number = max(0, min((top >> _BIN_SHIFT) - (mass.view(np.int64)[0] >> _BIN_SHIFT) + 1, BINS))
    equal = min(BINS, height.size // _PER_BIN)
    density = 0.0
    if 1 < number < equal // _MANY_MORE:
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


@inlined
def _bin_of(x, bits, upper, density):
    """The number of the bin of an element of height x."""
    if density > 0.0:
        k = np.int64((upper[0] - x) * density)
    else:
        k = (upper.view(np.int64)[0] >> _BIN_SHIFT) - (bits >> _BIN_SHIFT)
    return min(k, upper.size - 2)


@inlined
def settle_bins(b, upper, rho, floor, table, bins, stack):
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
            top = push_and_merge(net[k], mass[k], k + 1, top, stack)
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
def place(height, upper, density, sequence, spare, members):
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
