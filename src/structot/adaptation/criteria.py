"""Scores of an adaptation that need no target label; greater is better.

None of them sees the truth: each says that a labelling of the target is confident, stable, well
separated or consistent, which right labellings are and some wrong ones are too. How far each can be
trusted was measured: docs/experiments/adaptation.md.

Notation
--------
Xs, ys      source points and labels; Xt target points without labels; T the map between them
h           a classifier trained on (T(Xs), ys)
Q           shares of the classes in the mass of each target point (m, classes), from the plan
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from structot._typing import Array

_TEMPERATURE = 0.05  # of similarities in `density`, as its authors have it
_ROUNDS = 2  # of resampling
_SEED = 0  # resampling is the same for every candidate, and in every call


@dataclass(frozen=True, eq=False)
class Adapted:
    """A candidate, fitted, and what it makes of the two samples. Source labels are all known."""

    candidate: Any  # unfitted
    fitted: Any
    Xs: Array
    ys: Array
    Xt: Array
    moved: Array  # T(Xs)
    train: Callable[[Array, Array], Any]  # points and labels -> a fitted classifier

    @classmethod
    def of(cls, candidate: Any, Xs: Array, ys: Array, Xt: Array, train: Any) -> Adapted:
        """Fit a copy of the candidate."""
        fitted = copy.deepcopy(candidate).fit(Xs=Xs, ys=ys, Xt=Xt)
        return cls(candidate, fitted, Xs, ys, Xt, np.asarray(fitted.transform(Xs=Xs)), train)

    def is_finite(self) -> bool:
        """Whether the map has no NaN."""
        return bool(np.isfinite(self.moved).all())

    def labels(self) -> Array:
        """h(Xt)."""
        return np.asarray(self.train(self.moved, self.ys).predict(self.Xt))

    def shares(self) -> Array:
        """Q; rows without mass are even."""
        member = np.equal.outer(self.ys, np.unique(self.ys)).astype(float)
        mass = np.asarray(self.fitted.coupling_).T @ member
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
    Q = x.shares()
    return float(np.mean(np.sum(Q * np.log(np.maximum(Q, 1e-300)), axis=1)))


def density(x: Adapted) -> float:
    """Soft neighbourhood density (Saito et al., 2021): entropy of similarities of rows of Q."""
    Q = x.shares()
    Q = Q / np.linalg.norm(Q, axis=1, keepdims=True)
    similar = Q @ Q.T / _TEMPERATURE
    np.fill_diagonal(similar, -np.inf)
    S = softmax(similar, axis=1)
    return float(-np.mean(np.sum(S * np.log(np.maximum(S, 1e-300)), axis=1)))


def agreement(x: Adapted) -> float:
    """How many target points get the same class from the plan and from the classifier h."""
    return float(np.mean(np.unique(x.ys)[x.shares().argmax(axis=1)] == x.labels()))


def separation(x: Adapted) -> float:
    """Silhouette of the target points under the labels h(Xt); -1 where there is one class only."""
    from sklearn.metrics import silhouette_score

    labels = x.labels()
    if not 1 < len(np.unique(labels)) < len(labels):
        return -1.0
    return float(silhouette_score(x.Xt, labels))


def bootstrap(x: Adapted) -> float:
    """How many labels h(Xt) stay when source and target are resampled."""
    rng, first, kept = np.random.default_rng(_SEED), x.labels(), []
    for _ in range(_ROUNDS):
        i = np.concatenate(
            [rng.choice(g, len(g)) for g in (np.flatnonzero(x.ys == c) for c in np.unique(x.ys))]
        )
        j = rng.choice(len(x.Xt), len(x.Xt))
        again = Adapted.of(x.candidate, x.Xs[i], x.ys[i], x.Xt[j], x.train)
        if not again.is_finite():
            return float("nan")
        kept.append(np.mean(again.train(again.moved, again.ys).predict(x.Xt) == first))
    return float(np.mean(kept))


def importance(x: Adapted) -> float:
    """Deep embedded validation (You et al., 2019): weighted risk of held-out source points.

    A logistic regression tells carried source points from target points; its odds weigh the errors
    of h on the half of the source it was not trained on, with a control variate.
    """
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(_SEED)
    half = rng.permutation(len(x.ys)) % 2 == 0
    both = np.vstack([x.moved, x.Xt])
    both = (both - both.mean(axis=0)) / np.where(both.std(axis=0) > 0, both.std(axis=0), 1.0)
    domain = np.repeat([0, 1], [len(x.moved), len(x.Xt)])
    odds = LogisticRegression(C=0.1, max_iter=200).fit(both, domain)
    p = odds.predict_proba(both[: len(x.moved)][~half])[:, 1]
    weight = p / np.maximum(1.0 - p, 1e-3) * len(x.moved) / len(x.Xt)
    wrong = x.train(x.moved[half], x.ys[half]).predict(x.moved[~half]) != x.ys[~half]
    risk = weight * wrong
    variance = weight.var()
    slope = -np.cov(risk, weight, ddof=0)[0, 1] / variance if variance > 0 else 0.0
    return float(-(risk.mean() + slope * (weight.mean() - 1.0)))


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


CRITERIA: dict[str, Callable[[Adapted], float]] = {
    "agreement": agreement,
    "bootstrap": bootstrap,
    "coherence": coherence,
    "density": density,
    "entropy": entropy,
    "importance": importance,
    "mixed": mixed,
    "partners": partners,
    "reverse": reverse,
    "separation": separation,
}
