"""Choose an adaptation method without a single target label."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot import _checks
from structot._progress import progress_bar
from structot._typing import Array
from structot.adaptation import _output
from structot.adaptation._labels import class_labels
from structot.adaptation.criteria import CRITERIA, Adapted

Criterion = Callable[[Adapted], float]


@dataclass(frozen=True, eq=False)
class Selection:
    """What `select` found.

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
    >>> from structot.adaptation import StructuredTransport, select
    >>> from structot.datasets import clusters
    >>> data = clusters(30, seed=1)
    >>> found = select([StructuredTransport()], data.X, data.source_labels, data.Y)
    >>> found.names, found.best_name, found.scores.shape
    ((0,), 0, (1,))
    """

    names: tuple[Any, ...]
    scores: Array
    best: Any
    best_name: Any
    best_score: float


def select(
    candidates: Iterable[Any] | Mapping[Any, Any],
    Xs: Any,
    ys: Any,
    Xt: Any,
    *,
    criterion: str | Criterion = "bootstrap",
    classifier: Any = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Selection:
    """argmax over candidates of criterion(candidate fitted to Xs, ys, Xt).

    Parameters
    ----------
    candidates
        Estimators with POT's methods fit(Xs, ys, Xt) and transform(Xs), unfitted; a list, or a
        dictionary by name. They are copied, not changed.
    Xs, ys, Xt
        Source points, their labels (those without one are left out), target points.
    criterion
        A name of `structot.adaptation.criteria.CRITERIA`, or a function of an `Adapted`; greater is
        better.
    classifier
        Any scikit-learn classifier; the nearest neighbour by default.
    n_jobs
        Processes, as in joblib.
    progress
        Show a bar (on a terminal only).

    Returns
    -------
    Selection
        The scores and the best candidate.

    Examples
    --------
    >>> from structot.adaptation import StructuredTransport
    >>> from structot.datasets import clusters
    >>> data = clusters(40, seed=1)
    >>> grid = {charge: StructuredTransport(charge=charge) for charge in (0.0, 0.2)}
    >>> found = select(grid, data.X, data.source_labels, data.Y)
    >>> found.best_name in grid, found.scores.shape
    (True, (2,))
    """
    from joblib import Parallel, delayed

    named = _named(candidates)
    score = criterion
    if not callable(score):
        score = CRITERIA[_checks.one_of("criterion", score, CRITERIA)]
    source, target = _output.points("Xs", Xs), _output.points("Xt", Xt)
    labels = class_labels("ys", ys, len(source))
    if len(labels.classes) < 2:
        raise ValueError("ys names fewer than two classes; a criterion compares classes.")
    known = labels.known
    truth = np.asarray(labels.values[known].tolist())  # of one type, where gaps made it object
    pool = Parallel(n_jobs=n_jobs, return_as="generator")
    answers = pool(
        delayed(_score)(score, candidate, source[known], truth, target, classifier)
        for candidate in named.values()
    )
    scores = np.empty(len(named))
    with progress_bar("selection", progress, len(named)) as bar:
        for k, answer in enumerate(answers):
            scores[k] = answer
            bar.advance()
    if np.isnan(scores).all():
        raise ValueError("no candidate gave a finite map; widen the grid, e.g. a larger reg.")
    if np.isnan(scores).any():
        lost = [name for name, x in zip(named, scores, strict=True) if np.isnan(x)]
        warnings.warn(
            f"{len(lost)} candidates gave no finite map and were left out: {lost[:5]}.",
            UserWarning,
            stacklevel=2,
        )
    winner = int(np.nanargmax(scores))
    names = tuple(named)
    best = copy.deepcopy(named[names[winner]])
    return Selection(names, scores, best, names[winner], float(scores[winner]))


def _named(candidates: Iterable[Any] | Mapping[Any, Any]) -> dict[Any, Any]:
    if hasattr(candidates, "fit"):
        raise ValueError(
            f"candidates must be a list or dictionary; got one {type(candidates).__name__}. "
            "Put it in a list."
        )
    named = dict(candidates) if isinstance(candidates, Mapping) else dict(enumerate(candidates))
    if not named:
        raise ValueError("candidates is empty; pass at least one.")
    return named


def _score(
    criterion: Criterion, candidate: Any, Xs: Array, ys: Array, Xt: Array, classifier: Any
) -> float:
    """The score of one candidate; NaN where its map has entries that are not finite."""

    def train(X: Array, y: Array) -> Any:
        return _train(classifier, X, y)

    adapted = Adapted.of(candidate, Xs, ys, Xt, train)
    return float(criterion(adapted)) if adapted.is_finite() else float("nan")


def _train(classifier: Any, X: Array, y: Array) -> Any:
    from sklearn.base import clone
    from sklearn.dummy import DummyClassifier
    from sklearn.neighbors import KNeighborsClassifier

    if len(np.unique(y)) == 1:  # a bad map may leave one class only, which many models refuse
        return DummyClassifier().fit(X, y)
    model = KNeighborsClassifier(1) if classifier is None else clone(classifier)
    return model.fit(X, y)
