"""Which of two samples points resemble: for a warning where they come from the wrong domain.

Whoever hands target points to a map of source points gets an answer of the right shape and the
wrong meaning. Nothing but the points themselves can tell.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist

from structot._typing import Array

# What each value does on the suite of families: docs/experiments/adaptation.md, "Constants".
_FEW = 5  # points in a batch below which nothing is said
_MANY = 500  # points of each sample that are looked at, evenly spaced; more only costs time
_SURPRISE = 0.5  # share of the points that is nearer to the other sample, beyond what is usual
_APART = 2.0  # ratio of spreads, or mean in spreads, of the median feature, of unlike units
_NOTHING = 1e-9  # deviations of the source: what is left of a feature that does not vary
_EXACT = 1e-4  # largest mean, and distance of a deviation from 1, of what a scaler has left

UNLIKE_UNITS = "Xs is standardised, every feature by itself, and Xt is in quite other units"


def share_near(X: Array, own: Array, other: Array) -> float:
    """The share of X that is nearer to ``other`` than to ``own``, less the same share of ``own``.

    Near 0 for points drawn like ``own``, up to 1 for points drawn like ``other`` where the two
    samples are apart; near 0 for any points where they are not.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> own, other = rng.normal(size=(50, 2)), rng.normal(size=(50, 2)) + 5.0
    >>> share_near(rng.normal(size=(50, 2)) + 5.0, own, other) > 0.9
    True
    """
    X, own, other = (_some(points) for points in (X, own, other))
    among = cdist(own, own)
    np.fill_diagonal(among, np.inf)
    usual = np.mean(cdist(own, other).min(axis=1) < among.min(axis=1, initial=np.inf))
    return float(np.mean(cdist(X, other).min(axis=1) < cdist(X, own).min(axis=1)) - usual)


def warn_about_domain(X: Array, own: Array, other: Array, text: str, stacklevel: int) -> None:
    """Warn where points that should be drawn like ``own`` are clearly drawn like ``other``."""
    if len(X) < _FEW or X is own or np.array_equal(X, own):
        return
    share = share_near(X, own, other)
    if share > _SURPRISE:
        warnings.warn(text, UserWarning, stacklevel=stacklevel)


def warn_about_units(Xs: Array, Xt: Array, stacklevel: int) -> None:
    """Warn where Xs came out of a scaler fitted to it and Xt clearly did not pass through."""
    if len(Xs) <= _FEW or len(Xt) <= _FEW or not off_standard(Xs) < _EXACT:
        return
    if apart(Xs, Xt) > _APART:
        warnings.warn(
            f"{UNLIKE_UNITS}: a scaler "
            "seems to have seen only the source. Let the target pass through it too: "
            "AdaptTo(Xt, preprocess=StandardScaler()) as the first step of the Pipeline.",
            UserWarning,
            stacklevel=stacklevel,
        )


def off_standard(X: Array) -> float:
    """The largest of |mean| and |deviation − 1| of a feature that varies; infinite if none does.

    Examples
    --------
    >>> off_standard(np.array([[1.0], [-1.0]])), off_standard(np.array([[4.0], [-2.0]]))
    (0.0, 2.0)
    """
    spread = X.std(axis=0)
    varies = spread > 0
    if not varies.any():
        return float("inf")
    return float(max(np.abs(X.mean(axis=0)).max(), np.abs(spread[varies] - 1.0).max()))


def apart(Xs: Array, Xt: Array) -> float:
    """How far the scales of two samples are from one another, 1 or less where they agree.

        max(exp med_f |log(t_f / s_f)|, med_f |mean(Xt)_f| / s_f),   s_f, t_f deviations, Xs centred

    Medians over the features that vary in both: one feature that hardly varied in the source, as a
    pixel at the margin, is large in the target after any scaler.

    Examples
    --------
    >>> X = np.array([[1.0], [-1.0]])
    >>> [round(apart(X, Y), 9) for Y in (X, 3.0 * X, X + 5.0)]
    [1.0, 3.0, 5.0]
    """
    s, t = Xs.std(axis=0), Xt.std(axis=0)
    varies = (s > 0) & (t > _NOTHING * s)
    if not varies.any():
        return 1.0
    s, t = s[varies], t[varies]
    ratio = np.exp(np.median(np.abs(np.log(t / s))))
    return float(max(ratio, np.median(np.abs(Xt.mean(axis=0)[varies]) / s)))


def _some(points: Array) -> Array:
    return points[:: -(-len(points) // _MANY)]
