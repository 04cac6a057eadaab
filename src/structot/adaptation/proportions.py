"""Class proportions of the target: given, those of the source, or estimated without a label.

The estimate is the maximum likelihood of the class weights t in a mixture of the classes where a
transport has carried them,

    max_t  Σ_j b_j log Σ_k t_k q_k(Y_j),    q_k(y) = mean over i in class k of exp(−|T(X_i) − y|/h),

by expectation maximisation, in turns with the transport of a source reweighted to t. It helps where
classes stay apart in the target; where they do not, it is as noisy as the labels of the plan.

Notation
--------
t           shares of the classes, summing to 1
T           barycentric map of the plan
h           a width, of the spread of the distances
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from structot import _checks
from structot._labels import Labels
from structot._typing import Array
from structot.adaptation._model import spread
from structot.adaptation.mapping import PointMap

_ROUNDS = 10  # of transport and mixture in turns, at most
_SETTLED = 0.01  # change of the shares in a round, in total, that ends it
_WIDTH = 0.4  # h
_STEPS = 200  # of expectation maximisation, far more than it needs
_LEAST = 0.1  # of the share of an average class: no class is given up


def check_proportions(value: Any) -> None:
    """Refuse a word that is none; numbers are checked where the classes are known."""
    if value is None or isinstance(value, str):
        _checks.one_of("proportions", value, ("source", "estimate"))


def class_shares(
    value: Any,
    plan: Callable[[Array], Array],
    source: Array | None,
    target: Array | None,
    a: Array,
    b: Array,
    ys: Labels,
) -> Array:
    """Class weights of the source in the transport, by whatever way was asked for."""
    start = given_shares(value, a, ys)
    if not (isinstance(value, str) and value == "estimate"):
        return start
    if source is None or target is None:
        raise ValueError("proportions='estimate' needs points; metric='precomputed' has none.")
    return estimated_shares(plan, source, target, b, ys, start)


def given_shares(value: Any, a: Array, ys: Labels) -> Array:
    """The class shares to begin with: those asked for, or those of the source weights."""
    if isinstance(value, str):
        totals = np.bincount(ys.number[ys.known], a[ys.known], len(ys.classes))
        if not totals.sum() > 0:
            raise ValueError("sample_weight_source gives all labelled points the weight 0.")
        return np.asarray(totals / totals.sum())
    names = ys.classes.tolist()
    if isinstance(value, Mapping):
        strange = [key for key in value if key not in names]
        missing = [key for key in names if key not in value]
        if strange or missing:
            raise ValueError(
                f"proportions must name every class of ys, {names!r}; missing {missing!r}, "
                f"unknown {strange!r}."
            )
        value = [value[key] for key in names]
    found = _checks.as_array("proportions", value, 1)
    if found.size != len(names):
        raise ValueError(
            f"proportions has {found.size} weights, but ys has {len(names)} classes; pass one per "
            "class in sorted order, or a dictionary."
        )
    checked = _checks.as_weights("proportions", found, len(names))
    return checked / checked.sum()


def reweighted(a: Array, ys: Labels, t: Array) -> Array:
    """Source weights whose classes have the shares t; points of no class keep theirs."""
    known = ys.known
    totals = np.bincount(ys.number[known], a[known], len(ys.classes))
    lost = [
        repr(x) for x, w, s in zip(ys.classes.tolist(), totals, t, strict=True) if s > 0 and w <= 0
    ]
    if lost:
        raise ValueError(f"proportions: the points of class {', '.join(lost)} have no weight.")
    factor = np.divide(t, totals, out=np.zeros_like(t), where=totals > 0)
    result = a.copy()
    result[known] *= a[known].sum() * factor[ys.number[known]]
    return result


def estimated_shares(
    plan: Callable[[Array], Array], X: Array, Y: Array, b: Array, ys: Labels, start: Array
) -> Array:
    """The estimate of the module's formula.

    Parameters
    ----------
    plan
        From class shares to the transport plan of the source reweighted to them.
    X, Y, b
        Source points, target points and their weights.
    ys, start
        Source labels, and shares to begin with.
    """
    t, known = start, ys.known
    least = _LEAST / len(t)
    for _ in range(_ROUNDS):
        P = plan(t)
        images = PointMap.of(P, X, Y)(X, "nearest")[known]
        found = _mixture(cdist(images, Y), b, ys.number[known], t)
        found = np.maximum(found, least)
        found /= found.sum()
        change, t = np.abs(found - t).sum(), found
        if change < _SETTLED:
            break
    return t


def _mixture(distance: Array, b: Array, number: Array, t: Array) -> Array:
    """Weights t of the classes by expectation maximisation."""
    unit = spread(distance) or 1.0
    logs = -distance / (_WIDTH * unit)
    density = np.array(
        [logsumexp(logs[number == k], axis=0) - np.log((number == k).sum()) for k in range(len(t))]
    )
    density = np.exp(density - density.max(axis=0))  # (classes, m), each column up to a factor
    for _ in range(_STEPS):
        joint = t[:, None] * density
        t = (joint / joint.sum(axis=0)) @ b
    return np.asarray(t)
