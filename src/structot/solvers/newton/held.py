"""Newton directions where dual terms have kinks: some potentials are held, others end at a bound.

Notation. (H + diag(D)) s = g the system of a Newton step of the multipliers z = (p, q) of the
marginals. `entropic/bounded.py` answers the same question for the smooth dual, by the best step
within the domain.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from structot._typing import Array
from structot.marginals import Marginals

# Curvature that holds a multiplier where it is, in units of the largest.
_HOLDS = 1e12
# Rounds in which multipliers that end at a bound are held as well.
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
    """A direction of ascent: s on the free multipliers, 0 on those that are held.

    What leaves the domain with a step is brought back by `Marginals.clip`. Only where the rest of
    the step would then lead down, it is computed anew with these multipliers held: to do that in
    any case takes twice the time, and more steps.

    Parameters
    ----------
    solve, times
        solve(X, D) is (H + diag(D))⁻¹ X for several right sides, the columns of X; times(x) is H x.
    held
        The multipliers that stay; the held rows of a partial problem move together.
    largest
        The size of the diagonal of H.
    """
    z, n = np.concatenate(point), point[0].size
    still = held
    for _ in range(_ROUNDS):
        s = _free_direction(solve, times, g, D, marginals, held, still, largest)
        end = np.concatenate(marginals.clip(z[:n] + s[:n], z[n:] + s[n:], held)) - z
        beyond = ~still & (np.abs(end) < np.abs(s))
        if g @ end > 0.0:
            return s
        if not beyond.any():
            break
        still = still | beyond
    # Even that leads nowhere: the gradient, as if every multiplier moved alone, does.
    return np.where(held, 0.0, g / (largest + D))


def _free_direction(
    solve: Callable[[Array, Array], Array],
    times: Callable[[Array], Array],
    g: Array,
    D: Array,
    marginals: Marginals,
    held: Array,
    still: Array,
    largest: float,
) -> Array:
    """s with 0 on what stays; what is held is part of that."""
    if not still.any():
        return solve(g[:, None], D)[:, 0]
    firm = np.where(still, _HOLDS * max(largest, float(D.max())), D)
    side = np.where(still, 0.0, g)[:, None]
    if not marginals.both_partial:
        return np.where(still, 0.0, solve(side, firm)[:, 0])
    # The held rows of a partial problem share one multiplier, which moves: one more unknown, by a
    # second solution with the same matrix. The held columns share another; it stays, since only
    # differences matter.
    group = np.where(np.arange(g.size) < marginals.a.size, held, False).astype(float)
    column = times(group) + D * group
    size = float(group @ column)
    column[still] = 0.0
    s, along = np.where(still, 0.0, solve(np.column_stack([side, column]), firm).T)
    left = size - float(column @ along)
    if left <= 1e-10 * size:
        return s
    step = (float(g @ group) - float(column @ s)) / left
    return s + step * (group - along)
