"""Which of two samples points resemble: for a warning where they come from the wrong domain.

Whoever hands target points to a map of source points gets an answer of the right shape and the
wrong meaning. Nothing but the points themselves can tell.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist

from structot._typing import Array

_FEW = 5  # points below which nothing is said
_MANY = 500  # points of each sample that are looked at
_SURPRISE = 0.5  # share of points beyond what is usual
_APART = 2.0  # ratio of spreads, or distance of means in spreads, of samples in unlike units
_EXACT = 1e-6  # a mean of 0 and a deviation of 1 to this are no accident


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
    if len(Xs) <= _FEW or len(Xt) <= _FEW:
        return
    spread = Xs.std(axis=0)
    varies = spread > 0
    centred = np.abs(Xs.mean(axis=0)).max() < _EXACT
    if not (varies.any() and centred and np.abs(spread[varies] - 1.0).max() < _EXACT):
        return
    ratio = np.sqrt(Xt.var(axis=0).mean() / Xs.var(axis=0).mean())
    distance = np.sqrt((Xt.mean(axis=0) ** 2).mean() / Xs.var(axis=0).mean())
    if not (1.0 / _APART < ratio < _APART) or distance > _APART:
        warnings.warn(
            "Xs is standardised (mean 0, deviation 1) and Xt is in quite other units: a scaler "
            "seems to have seen only the source. Let the target pass through it too: "
            "AdaptTo(Xt, preprocess=StandardScaler()) as the first step of the Pipeline.",
            UserWarning,
            stacklevel=stacklevel,
        )


def _some(points: Array) -> Array:
    return points[:: -(-len(points) // _MANY)]
