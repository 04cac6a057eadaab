"""Nearest sentences without solving every pair: cheap lower bounds first.

Notation. f(s, t) <= D is needed for t to be among the k nearest when the k-th distance so far is D.
Centroid bound: |Σ a x - Σ b y| <= plain WMD <= f for a fixed charge. Relaxed bound: for a K in B(F)
each word goes where K is least, <P, K> >= Σ a_i min_j K_ij, improved by c-transforms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structot._checks import count
from structot.concave.base import CUSTOM
from structot.text import pairs as _pairs
from structot.text.distinct import DistinctSentences
from structot.text.sentence import pack
from structot.text.sentence_cost import SentenceCost
from structot.text.vectors import listed

Array = np.ndarray

_FIRST = 32  # candidates solved at once, doubled while bounds do not settle the rest


class Neighbors(NamedTuple):
    """The nearest sentences: positions in the corpus, distances, and how many pairs were solved.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> mover = WordMover((["cat", "dog"], [[0.0, 0.0], [1.0, 0.0]]))
    >>> mover.nearest("cat", ["dog", "cat"], 1).indices
    array([1])
    """

    indices: Array
    distances: Array
    n_solved: int


def nearest(
    mover: SentenceCost, query: Any, corpus: Sequence[Any], k: int = 10, tol: float = 1e-3
) -> Neighbors:
    """The k sentences of ``corpus`` with the least distance from ``query``, nearest first.

    A pair is skipped only when a proved lower bound of its distance exceeds the k-th best distance
    found, so that the answer is that of solving all pairs. Ties go to the earlier sentence;
    empty sentences are never near.

    Parameters
    ----------
    mover
        The distance, e.g. a `WordMover`.
    query, corpus
        A sentence, and the sentences to search.
    k
        How many; all of them if there are fewer.
    tol
        Certified relative gap of f, as in `WordMover.distances`.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> mover = WordMover({"a": [0.0], "b": [1.0], "c": [5.0]})
    >>> nearest(mover, "a", ["c", "b", "a b"], k=2).indices.tolist()
    [2, 1]
    """
    k = count("k", k)
    distinct = DistinctSentences(mover, [query, *listed("corpus", corpus)])
    if distinct.place[0] < 0:
        raise ValueError(f"query {query!r} has no known word; there is nothing to compare.")
    candidates = np.flatnonzero(distinct.place[1:] >= 0)
    k = min(k, candidates.size)
    if k == 0:
        return Neighbors(np.empty(0, int), np.empty(0), 0)
    search = _Search(distinct, candidates, k, tol)
    if mover.concave is None or mover.is_plain:
        search.bound = search.centroid_bounds()
        search.solve(np.argsort(search.bound, kind="stable")[:k])  # a first k-th distance
    open_ = np.flatnonzero(search.is_open())
    search.bound[open_] = np.maximum(search.bound[open_], search.relaxed_bounds(open_))
    size = max(_FIRST, k)
    while (open_ := np.flatnonzero(search.is_open())).size:
        search.solve(open_[np.argsort(search.bound[open_], kind="stable")[:size]])
        size *= 2
    best = np.argsort(search.distance, kind="stable")[:k]
    return Neighbors(candidates[best], search.distance[best], search.n_solved)


class _Search:
    """Candidates with their bounds, and the distances of those that were solved."""

    def __init__(self, distinct: DistinctSentences, candidates: Array, k: int, tol: float) -> None:
        self.distinct, self.k, self.tol = distinct, k, tol
        self.numbers = 1 + candidates  # in the list, where the query is number 0
        self.places = distinct.place[self.numbers]
        self.bound = np.full(candidates.size, -np.inf)
        self.distance = np.full(candidates.size, np.inf)
        self.n_solved = 0
        half = 0.5 * distinct.mover.self_terms(distinct.sentences, tol)
        self.own = half[distinct.place[0]] + half[self.places]
        self.corpus, self.vectors = pack(distinct.sentences, distinct.mover.rows)
        model = distinct.mover.model
        self.slope = model.unit if distinct.mover.is_plain else 1.0
        # Weights have sum 1, so that centroids may be taken around any origin.
        self.vectors_around = self.vectors - self.vectors.mean(axis=0)
        self.size = self.slope * np.abs(self.vectors_around).max() + model.price

    def is_open(self) -> Array:
        """Which candidates are not solved and not proved to be too far."""
        limit = np.partition(self.distance, self.k - 1)[self.k - 1]
        # Bounds and values carry rounding errors: a margin keeps ties in.
        near = self.bound <= limit + 1e-9 * (self.size + abs(limit)) if limit < np.inf else True
        return np.isinf(self.distance) & near

    def solve(self, chosen: Array) -> None:
        """Fill in the distances of some candidates."""
        pairs = np.stack([np.zeros_like(chosen), self.numbers[chosen]], axis=1)
        self.distance[chosen] = self.distinct.distances(pairs, None, self.tol)
        self.n_solved += len(chosen)

    def centroid_bounds(self) -> Array:
        """|Σ a x - Σ b y|, less the self terms."""
        offset, word = self.corpus.offset, self.corpus.word
        centers = np.stack(
            [
                sentence.weights @ self.vectors_around[word[offset[s] : offset[s + 1]]]
                for s, sentence in enumerate(self.distinct.sentences)
            ]
        )
        apart = np.linalg.norm(centers[self.places] - centers[self.distinct.place[0]], axis=1)
        return self.slope * apart - self.own

    def relaxed_bounds(self, chosen: Array) -> Array:
        """Relaxed transport, less the self terms."""
        model = self.distinct.mover.model
        if model.kind == CUSTOM:
            return np.full(chosen.size, -np.inf)
        places = self.places[chosen]
        pairs = np.stack([np.full_like(places, self.distinct.place[0]), places], axis=1)
        relaxed = _pairs.lower_bounds(self.corpus, self.vectors, pairs, model)
        return self.slope * relaxed - self.own[chosen]
