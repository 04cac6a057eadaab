"""Newton's step of the multipliers where their domain has ends: the best one within it.

Notation. z = (p, q) the multipliers of the marginals, g the gradient of φ inside of their domain,
H + diag(D) its negative Hessian there. A multiplier that comes to an end of its domain *stands*
there; in a partial problem the rows end at a level that moves with the step. The step solves

    max  g·s - s·(H + diag(D)) s / 2,    z + s in the domain,

by guessing what stands: a multiplier that is pushed back from its end is let go, one that would
leave the domain is stopped, until the guess is its own consequence. Most guesses are right at once,
since they are those of the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from structot._typing import Array
from structot.marginals import Marginals

# Curvature that lets a multiplier stand, in units of the largest.
_HOLDS = 1e12
# Guesses per step, and what is rounding in their consequences.
_GUESSES, _NOTHING = 10, 1e-10


class Model(NamedTuple):
    """φ near a point: solve(X, D) is (H + diag(D))⁻¹ X for the columns of X, times(x) is H x."""

    solve: Callable[[Array, Array], Array]
    times: Callable[[Array], Array]
    g: Array
    D: Array
    largest: float  # of the diagonal of H


class Bounded(NamedTuple):
    """A step, what stands (1 at the upper end, -1 at the lower, 0 none), and its slope of φ."""

    s: Array
    standing: Array
    slope: float


def bounded_step(
    model: Model, marginals: Marginals, point: tuple[Array, Array], standing: Array | None
) -> Bounded:
    """The step, from a guess of what stands."""
    z, n = np.concatenate(point), point[0].size
    low, high = marginals.ends(*point)
    low, high = low - z, high - z
    rows = np.arange(z.size) < n
    # What the rows at the level leave behind together, which fixes the level.
    rest = marginals.left_behind if marginals.levels else None
    if standing is None:
        standing = (high <= 0.0).astype(np.int8) - (low >= 0.0)
    for _ in range(_GUESSES):
        if rest is not None and not standing[:n].any():
            standing[int(np.argmin(high[:n]))] = 1
        end = np.where(standing > 0, high, np.where(standing < 0, low, 0.0))
        lifts = rows if rest is not None else None
        s, rise = _standing_step(model, standing != 0, end, lifts, rest)
        push = model.g - model.times(s) - model.D * s
        top = high + rise * rows
        little = _NOTHING * float(np.abs(s).max())
        weak = _NOTHING * float(np.abs(model.g).max())
        above = np.where(standing > 0, push > -weak, s > top + little)
        below = np.where(standing < 0, push < weak, s < low - little)
        following = above.astype(np.int8) - below
        if np.array_equal(following, standing):
            break
        standing = following
    # Cut where the last guess was wrong still.
    s = np.clip(s, low, top)
    slope = float(model.g @ s) - (0.0 if rest is None else rest * rise)
    return Bounded(s, standing, slope)


def _standing_step(
    model: Model, still: Array, end: Array, rows: Array | None, rest: float | None
) -> tuple[Array, float]:
    """The best step to ``end`` where ``still``, and by how much the level of the rows rises."""
    solve, times, g, D, largest = model
    if not still.any():
        return solve(g[:, None], D)[:, 0], 0.0
    firm = np.where(still, _HOLDS * max(largest, float(D.max())), D)
    side = np.where(still, 0.0, g - times(end))
    if rest is None or rows is None:
        return end + np.where(still, 0.0, solve(side[:, None], firm)[:, 0]), 0.0
    # One more unknown, the level, by a second solution with the same matrix.
    group = (still & rows).astype(float)
    column = times(group) + D * group
    size = float(group @ column)
    across = np.where(still, 0.0, column)
    s, along = np.where(still, 0.0, solve(np.column_stack([side, across]), firm).T)
    s = s + end
    left = size - float(column @ along)
    if left <= 1e-10 * size:
        return s, 0.0
    rise = (float(g @ group) - float(column @ s) - rest) / left
    return s + rise * (group - along), rise
