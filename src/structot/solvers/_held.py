"""Newton directions where dual terms have kinks: some potentials are held, others end at a bound.

Notation. (H + diag(D)) s = g the system of a Newton step of the multipliers z = (p, q) of the
marginals; the *room* of a multiplier is how far it may move before its dual term ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structot._typing import Array
from structot.marginals import Marginals

# Curvature that holds a multiplier where it is, in units of the largest.
_HOLDS = 1e12
# Rounds in which further multipliers are found to end at their bounds.
_ROUNDS = 8


def held_direction(
    solve: Callable[[Array, Array], Array],
    times: Callable[[Array], Array],
    g: Array,
    D: Array,
    marginals: Marginals,
    point: tuple[Array, Array],
    held: Array,
    largest: float,
) -> Array:
    """A direction of ascent: s on the free multipliers; what would leave its room goes to its end.

    Parameters
    ----------
    solve, times
        solve(x, D) is (H + diag(D))⁻¹ x, times(x) is H x.
    held
        The multipliers that stay.
    largest
        The size of the diagonal of H.
    """

    def solve_free(x: Array, fast: Array) -> Array:
        if not fast.any():
            return solve(x, D)
        firm = np.where(fast, _HOLDS * max(largest, float(D.max())), D)
        return np.where(fast, 0.0, solve(np.where(fast, 0.0, x), firm))

    low, high = marginals.room(*point)
    fixed = np.zeros_like(g)
    fast = held.copy()
    for _ in range(_ROUNDS):
        s = np.where(fast, fixed, solve_free(g, fast))
        beyond = ~fast & ((s < low) | (s > high))
        if not beyond.any():
            break
        end = np.clip(s, low, high)
        fixed[beyond] = np.where(g[beyond] * end[beyond] > 0.0, end[beyond], 0.0)
        fast |= beyond
    if not marginals.levels:
        return s
    # The held rows of a partial problem share one multiplier, which moves, and takes those along
    # that have come up to it: one more unknown, by a second solution with the same matrix. The held
    # columns share another; it stays, since only differences matter.
    joined = held | (fast & (fixed > 0.0))
    group = np.where(np.arange(g.size) < point[0].size, joined, False).astype(float)
    column = times(group) + D * group
    size = float(group @ column)
    column[fast] = 0.0
    along = solve_free(column, fast)
    left = size - float(column @ along)
    if left <= 1e-10 * size:
        return s
    step = (float(g @ group) - float(column @ s)) / left
    return s - step * along + step * group
