"""Scores of an adaptation that need no target label; greater is better.

None of them sees the truth: each says that a labelling of the target is stable, well separated or
explained by the source, which right labellings are and some wrong ones are too. How far each can be
trusted was measured, and those that chose worse than a random pick are not offered:
docs/experiments/adaptation.md.

Notation
--------
Xs, ys      source points and labels; Xt target points without labels; T the map between them
h           a classifier trained on (T(Xs), ys)
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._typing import Array

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


def separation(x: Adapted) -> float:
    """Silhouette of the target points under the labels h(Xt); -1 where there is one class only."""
    from sklearn.metrics import silhouette_score

    labels = x.labels()
    if not 1 < len(np.unique(labels)) < len(labels):
        return -1.0
    return float(silhouette_score(x.Xt, labels))


CRITERIA: dict[str, Callable[[Adapted], float]] = {
    "bootstrap": bootstrap,
    "importance": importance,
    "separation": separation,
}
