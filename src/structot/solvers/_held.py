"""Newton directions where dual terms have kinks: some potentials are held, others end at a bound.

Notation. (H + diag(D)) s = g the system of a Newton step of the multipliers z = (p, q) of the
marginals; the *room* of a multiplier is how far it may move before its dual term ends.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structot._typing import Array
from structot.marginals import Marginals, Partial

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
    low, high = marginals.room(*point)
    fixed = np.zeros_like(g)
    fast = held.copy()
    for _ in range(_ROUNDS):
        if not fast.any():
            s = solve(g, D)
        else:
            firm = np.where(fast, _HOLDS * max(largest, float(D.max())), D)
            s = np.where(fast, fixed, solve(np.where(fast, 0.0, g), firm))
        beyond = ~fast & ((s < low) | (s > high))
        if not beyond.any():
            break
        end = np.clip(s, low, high)
        fixed[beyond] = np.where(g[beyond] * end[beyond] > 0.0, end[beyond], 0.0)
        fast |= beyond
    if not all(isinstance(side, Partial) for side in marginals.sides):
        return s
    return _with_group(solve, times, g, D, s, held, firm if fast.any() else D, point[0].size)


def _with_group(
    solve: Callable[[Array, Array], Array],
    times: Callable[[Array], Array],
    g: Array,
    D: Array,
    s: Array,
    held: Array,
    firm: Array,
    n: int,
) -> Array:
    """The direction of a partial problem, whose held rows share one multiplier that moves.

    One more unknown, by a second solution with the same matrix. The held columns share another; it
    stays, since only differences matter.
    """
    group = np.where(np.arange(g.size) < n, held, False).astype(float)
    if not group.any():
        return s
    column = times(group) + D * group
    size = float(group @ column)
    column[held] = 0.0
    along = np.where(held, 0.0, solve(column, firm))
    left = size - float(column @ along)
    if left <= 1e-10 * size:
        return s
    step = (float(g @ group) - float(column @ s)) / left
    return s - step * along + step * group
