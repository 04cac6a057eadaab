"""Reverse validation: choose an adaptation method without a single target label.

Notation
--------
Xs, ys      source points and labels; Xt target points without labels
T, R        the map from source to target, and the way back
h, r        classifiers trained on (T(Xs), ys) and on (R(Xt), h(Xt))
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._labels import Labels
from structot._progress import progress_bar
from structot._typing import Array
from structot.adaptation import _output
from structot.adaptation._labels import class_labels


@dataclass(frozen=True, eq=False)
class ReverseValidation:
    """What `reverse_validation` found.

    Attributes
    ----------
    names, scores
        One entry per candidate, in the order given; NaN for one that gave no usable map.
    best
        A fresh, unfitted copy of the candidate with the highest score, the first of equals.
    best_name, best_score
        Its name and score.

    Examples
    --------
    >>> from structot.adaptation import StructuredTransport, reverse_validation
    >>> from structot.datasets import clusters
    >>> data = clusters(30, seed=1)
    >>> found = reverse_validation([StructuredTransport()], data.X, data.source_labels, data.Y)
    >>> found.names, found.best_name, found.scores.shape
    ((0,), 0, (1,))
    """

    names: tuple[Any, ...]
    scores: Array
    best: Any
    best_name: Any
    best_score: float


def reverse_validation(
    estimators: Iterable[Any] | Mapping[Any, Any],
    Xs: Any,
    ys: Any,
    Xt: Any,
    *,
    classifier: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> ReverseValidation:
    """score = accuracy on (Xs, ys) of r, trained on (R(Xt), h(Xt)), h trained on (T(Xs), ys).

    Train on the mapped source, label the target with it, map the target back with those labels, and
    see how well they explain the source. A map that mixes the classes loses them on the way.

    Parameters
    ----------
    estimators
        Candidates with POT's methods fit(Xs, ys, Xt) and transform(Xs), unfitted; a list, or a
        dictionary by name. They are copied, not changed.
    Xs, ys, Xt
        Source points, their labels (missing ones by mask, None or NaN), target points.
    classifier
        Any scikit-learn classifier; the nearest neighbour by default.
    n_jobs
        Processes, as in joblib.
    progress
        Show a bar (on a terminal only).

    Returns
    -------
    ReverseValidation
        The scores and the best candidate.

    Examples
    --------
    >>> from structot.adaptation import StructuredTransport
    >>> from structot.datasets import clusters
    >>> data = clusters(40, seed=1)
    >>> grid = {charge: StructuredTransport(charge=charge) for charge in (0.0, 0.05)}
    >>> found = reverse_validation(grid, data.X, data.source_labels, data.Y)
    >>> found.best_name in grid, found.scores.shape
    (True, (2,))
    """
    from joblib import Parallel, delayed

    if hasattr(estimators, "fit"):
        raise ValueError(
            f"estimators must be a list or dictionary; got one {type(estimators).__name__}. "
            "Put it in a list."
        )
    named = dict(estimators) if isinstance(estimators, Mapping) else dict(enumerate(estimators))
    if not named:
        raise ValueError("estimators is empty; pass at least one candidate.")
    source, target = _output.points("Xs", Xs), _output.points("Xt", Xt)
    labels = class_labels("ys", ys, len(source))
    if len(labels.classes) < 2:
        raise ValueError("ys names fewer than two classes; reverse validation compares classes.")
    pool = Parallel(n_jobs=n_jobs, return_as="generator")
    answers = pool(
        delayed(_score)(estimator, source, ys, labels, target, classifier)
        for estimator in named.values()
    )
    scores = np.empty(len(named))
    with progress_bar("reverse validation", progress, len(named)) as bar:
        for k, score in enumerate(answers):
            scores[k] = score
            bar.advance()
    if np.isnan(scores).all():
        raise ValueError("no candidate gave a finite map; widen the grid, e.g. a larger reg.")
    if np.isnan(scores).any():
        lost = [name for name, score in zip(named, scores, strict=True) if np.isnan(score)]
        warnings.warn(
            f"{len(lost)} candidates gave no finite map and were left out: {lost[:5]}.",
            UserWarning,
            stacklevel=2,
        )
    winner = int(np.nanargmax(scores))
    names = tuple(named)
    best = copy.deepcopy(named[names[winner]])
    return ReverseValidation(names, scores, best, names[winner], float(scores[winner]))


def _score(estimator: Any, Xs: Array, ys: Any, labels: Labels, Xt: Array, classifier: Any) -> float:
    """The score of one candidate; NaN where a map has entries that are not finite."""
    known = labels.known
    truth = np.asarray(labels.values[known].tolist())  # of one type, where gaps made it object
    there = copy.deepcopy(estimator).fit(Xs=Xs, ys=ys, Xt=Xt)
    mapped = np.asarray(there.transform(Xs=Xs))[known]
    if not np.isfinite(mapped).all():
        return float("nan")
    guess = _train(classifier, mapped, truth).predict(Xt)
    back = copy.deepcopy(estimator).fit(Xs=Xt, ys=guess, Xt=Xs)
    returned = np.asarray(back.transform(Xs=Xt))
    if not np.isfinite(returned).all():
        return float("nan")
    return float(np.mean(_train(classifier, returned, guess).predict(Xs[known]) == truth))


def _train(classifier: Any, X: Array, y: Array) -> Any:
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier
    from sklearn.neighbors import KNeighborsClassifier

    if len(np.unique(y)) == 1:  # a bad map may leave one class only, which many models refuse
        return DummyClassifier().fit(X, y)
    model = KNeighborsClassifier(1) if classifier is None else clone(classifier)
    return model.fit(X, y)
