"""Criteria without target labels that the suite found wanting; kept to show it.

They are compared with those of `structot.adaptation.criteria`, and are functions of the same kind.

Notation
--------
h           a classifier trained on the carried source points
Q           shares of the classes in the mass of each target point (m, classes), from the plan
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from structot._typing import Array
from structot.adaptation.criteria import Adapted

_TEMPERATURE = 0.05  # of similarities in `density`, as its authors have it
_SEED = 0


def _shares(x: Adapted) -> Array:
    """Q; rows without mass are even."""
    member = np.equal.outer(x.ys, np.unique(x.ys)).astype(float)
    mass = np.asarray(x.fitted.coupling_).T @ member
    total = mass.sum(axis=1, keepdims=True)
    return np.where(total > 0, mass / np.where(total > 0, total, 1.0), 1.0 / mass.shape[1])


def reverse(x: Adapted) -> float:
    """Accuracy on the source of a classifier trained on the target carried back with labels h(Xt).

    Zhong et al. (2010), Bruzzone and Marconcini (2010).
    """
    guess = x.labels()
    back = copy.deepcopy(x.candidate).fit(Xs=x.Xt, ys=guess, Xt=x.Xs)
    returned = np.asarray(back.transform(Xs=x.Xt))
    if not np.isfinite(returned).all():
        return float("nan")
    return float(np.mean(x.train(returned, guess).predict(x.Xs) == x.ys))


def entropy(x: Adapted) -> float:
    """Σ Q log Q / m: how sure the plan is of the classes."""
    Q = _shares(x)
    return float(np.mean(np.sum(Q * np.log(np.maximum(Q, 1e-300)), axis=1)))


def density(x: Adapted) -> float:
    """Soft neighbourhood density (Saito et al., 2021): entropy of similarities of rows of Q."""
    Q = _shares(x)
    Q = Q / np.linalg.norm(Q, axis=1, keepdims=True)
    similar = Q @ Q.T / _TEMPERATURE
    np.fill_diagonal(similar, -np.inf)
    S = softmax(similar, axis=1)
    return float(-np.mean(np.sum(S * np.log(np.maximum(S, 1e-300)), axis=1)))


def agreement(x: Adapted) -> float:
    """How many target points get the same class from the plan and from the classifier h."""
    return float(np.mean(np.unique(x.ys)[_shares(x).argmax(axis=1)] == x.labels()))


def mixed(x: Adapted) -> float:
    """Mixed validation (Hu et al., 2023): h on mixtures of target points, by the heavier label."""
    rng, labels = np.random.default_rng(_SEED), x.labels()
    other = rng.permutation(len(labels))
    share = 0.6  # of the heavier point
    points = share * x.Xt + (1.0 - share) * x.Xt[other]
    return float(np.mean(x.train(x.moved, x.ys).predict(points) == labels))


def coherence(x: Adapted) -> float:
    """Σ_k max_l P(U_k, V_l) for target groups V_l made of the labels h(Xt): mass that agrees."""
    labels, P = x.labels(), np.asarray(x.fitted.coupling_)
    return float(P[np.equal.outer(x.ys, labels)].sum() / P.sum())


def partners(x: Adapted) -> float:
    """Minus the mean effective number of partners of a source point, exp of its row's entropy."""
    P = np.asarray(x.fitted.coupling_)
    rows = P / np.maximum(P.sum(axis=1, keepdims=True), 1e-300)
    return float(-np.mean(np.exp(-np.sum(rows * np.log(np.maximum(rows, 1e-300)), axis=1))))


REJECTED: dict[str, Callable[[Adapted], float]] = {
    "agreement": agreement,
    "coherence": coherence,
    "density": density,
    "entropy": entropy,
    "mixed": mixed,
    "partners": partners,
    "reverse": reverse,
}
