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

# Guesses per step, and what is rounding in their consequences.
_GUESSES, _NOTHING = 10, 1e-10


class Model(NamedTuple):
    """φ near a point: H + diag(D), its gradient, and what can be done with H.

    solve(X, still) has the solutions for the columns of X on what does not stay, 0 on what does.
    """

    solve: Callable[..., Array]
    times: Callable[[Array], Array]
    g: Array
    D: Array


class Bounded(NamedTuple):
    """A step, what stands (1 at the upper end, -1 at the lower, 0 none), and its slope of φ."""

    s: Array
    standing: Array
    slope: float


def bounded_step(
    model: Model,
    marginals: Marginals,
    point: tuple[Array, Array],
    standing: Array | None,
    stiffer: Callable[[Array], Model | None],
) -> Bounded:
    """The step, from a guess of what stands.

    ``stiffer(s)`` is a model that follows φ better along s, None if this one does.
    """
    z, n = np.concatenate(point), point[0].size
    low, high = marginals.ends(*point)
    low, high = low - z, high - z
    rows = np.arange(z.size) < n
    # What the rows at the level leave behind together, which fixes the level.
    rest = marginals.left_behind if marginals.both_partial else None
    if standing is None:
        standing = (high <= 0.0).astype(np.int8) - (low >= 0.0)
    guesses = 0
    while True:
        if rest is not None and not standing[:n].any():
            standing[int(np.argmin(high[:n]))] = 1
        end = np.where(standing > 0, high, np.where(standing < 0, low, 0.0))
        lifts = rows if rest is not None else None
        s, rise = _standing_step(model, standing != 0, end, lifts, rest)
        guesses += 1
        push = model.g - model.times(s) - model.D * s
        top = high + rise * rows
        little = _NOTHING * float(np.abs(s).max())
        weak = _NOTHING * float(np.abs(model.g).max())
        above = np.where(standing > 0, push > -weak, s > top + little)
        below = np.where(standing < 0, push < weak, s < low - little)
        last, standing = standing, above.astype(np.int8) - below
        if guesses < _GUESSES and not np.array_equal(last, standing):
            continue
        # Cut where the last guess was wrong still.
        s = np.clip(s, low, top)
        following = stiffer(s)
        if following is None:
            break
        model, guesses = following, 0
    slope = float(model.g @ s) - (0.0 if rest is None else rest * rise)
    return Bounded(s, standing, slope)


def _standing_step(
    model: Model, still: Array, end: Array, rows: Array | None, rest: float | None
) -> tuple[Array, float]:
    """The best step to ``end`` where ``still``, and by how much the level of the rows rises."""
    solve, times, g, D = model
    side = g - times(end)
    if rest is None or rows is None:
        return end + solve(side[:, None], still)[:, 0], 0.0
    # One more unknown, the level, by a second solution with the same matrix.
    group = (still & rows).astype(float)
    column = times(group) + D * group
    size = float(group @ column)
    s, along = solve(np.column_stack([side, column]), still).T
    s = s + end
    across = np.where(still, 0.0, column)
    left = size - float(across @ along)
    if left <= 1e-10 * size:
        return s, 0.0
    # s moves what stands to its end: the rest of its lines follows from the whole of H.
    missing = float(group @ (g - times(s) - D * s)) - rest
    rise = missing / left
    return s + rise * (group - along), rise
