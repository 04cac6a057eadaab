"""How near elements are to leaving their pool: what a prox will do next.

Notation. F(S) = g(w(S)) the function of one block, f its extension; X >= 0 with its pools as a prox
leaves them behind, K a subgradient of f at X. The pool B of an element e comes after the set S of
all higher ones. Since K(A) <= F(S + A) - F(S) for all A in B, with equality for A = B,

    up   = F(S + e) - F(S) - K_e >= 0,      down = K_e - F(S + B) + F(S + B - e) >= 0:

so far K_e must rise, or fall, until e leaves its pool upwards, or downwards, and moves alone. Where
X = 0 there is only the way up, from the set S of all that is positive. The smaller of the two is
the *distance* of e. The *reach*, in the same unit, is what K is expected to move in one step: e is
loose to a share that falls with distance / reach.
"""

import math

from numba import njit

from structot.blocks.bins import inlined
from structot.concave.kernels import block_secant

# Where a bound for the distance is more than so many times the reach, it is good enough.
_FAR = 16.0
# What is farther than so many times the reach will not leave its pool within it.
BEYOND = 300.0


@njit(cache=True, nogil=True)
def loosen_blocks(first, last, edges, K, pools, reach, table):
    """K_e becomes the share to which e is loose, in blocks with pools; 1 in a pool of one element.

    The share is at least (1 + distance / reach)^-3/2: exactly that within `_FAR` reaches; farther
    away a lower bound takes the place of the distance, and beyond `BEYOND` the share is 0.
    """
    start, w = edges.start, edges.w
    X, order = pools.X, pools.order
    for b in range(first, last):
        if pools.n_pools[b] == 0:
            continue
        s = start[b]
        heaviest = 0.0
        for e in range(s, start[b + 1]):
            heaviest = max(heaviest, w[e])
        low = 0
        above = 0.0
        for t in range(pools.n_pools[b]):
            high = pools.end[s + t]
            below = above
            for k in range(low, high):
                below += w[s + order[s + k]]
            if high - low == 1:
                K[s + order[s + low]] = 1.0
            else:
                _loosen_pool(b, s, low, high, w, K, order, reach, (above, below, heaviest), table)
            low, above = high, below
        least = _slope(b, above, heaviest, table)
        for e in range(s, start[b + 1]):
            if X[e] <= 0.0:
                up = w[e] * least - K[e]
                if up < _FAR * reach:
                    up = w[e] * _slope(b, above, w[e], table) - K[e]
                K[e] = _share(up, reach)


@inlined
def _loosen_pool(b, s, low, high, w, K, order, reach, weights, table):
    """The same for one pool of several, between the weights ``above`` and ``below``."""
    above, below, heaviest = weights
    heaviest = min(heaviest, below - above)
    steep = _slope(b, above, heaviest, table)
    flat = _slope(b, below - heaviest, heaviest, table)
    for k in range(low, high):
        e = s + order[s + k]
        up, down = w[e] * steep - K[e], K[e] - w[e] * flat
        if up < _FAR * reach:
            up = w[e] * _slope(b, above, w[e], table) - K[e]
        if down < _FAR * reach:
            down = K[e] - w[e] * _slope(b, max(below - w[e], above), w[e], table)
        K[e] = _share(min(up, down), reach)


@inlined
def _slope(b, x, h, table):
    kind, offset, params, outer, inner = table
    return block_secant(kind, offset, params, outer, inner, b, x, h)


@inlined
def _share(distance, reach):
    far = 1.0 + max(distance, 0.0) / reach
    if far > BEYOND:
        return 0.0
    return 1.0 / (far * math.sqrt(far))
