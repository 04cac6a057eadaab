"""Nearest sentences without solving every pair: cheap lower bounds first.

Notation. d(s, t) <= D is needed for t to be among the k nearest when the k-th distance so far is D.
Relaxed bound: for a K in B(F) each word goes where K is least, <P, K> >= Σ a_i min_j K_ij, improved
by c-transforms, both ways round. Where order is kept K = M and the least charge of both sentences
is added (see `SentenceCost.keeps_order`). Distances between the words of a query and all words of
the corpus are taken once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structot._checks import count
from structot._compilation import announce
from structot._typing import Array
from structot.concave.base import CUSTOM, LINEAR
from structot.solvers.batch.workers import over_chunks
from structot.text import pairs as _pairs
from structot.text._kernels import Model
from structot.text.distinct import DistinctSentences, solve_distinct
from structot.text.sentence import Sentence, pack
from structot.text.sentence_cost import SentenceCost
from structot.text.vectors import listed

_FIRST = 16  # candidates solved at once, at least
_PART = 8  # else this part of those that the bounds leave open


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


class SentenceIndex:
    """A corpus prepared for searches; from `WordMover.index`.

    A pair is skipped only when a proved lower bound of its distance exceeds the k-th best distance
    found, so that the answer is that of solving all pairs. Ties go to the earlier sentence;
    empty sentences are never near.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> index = WordMover({"a": [0.0], "b": [1.0], "c": [5.0]}, normalize=False).index(
    ...     ["c", "b", "a b"]
    ... )
    >>> index.nearest("a", k=2).indices.tolist()
    [2, 1]
    """

    def __init__(self, mover: SentenceCost, corpus: Sequence[Any]) -> None:
        self.mover = mover
        distinct = DistinctSentences(mover, listed("corpus", corpus))
        self.candidates = np.flatnonzero(distinct.place >= 0)
        self.places = distinct.place[self.candidates]
        self.sentences = distinct.sentences
        self.corpus, self.vectors = pack(self.sentences, mover.rows)
        self._self_terms: dict[tuple[float, float], Array] = {}

    def __len__(self) -> int:
        return len(self.candidates)

    def self_terms(self, tol: float) -> Array:
        """f(s, s) of every different sentence, found once."""
        key = tol, self.mover.model.price
        if key not in self._self_terms:
            self._self_terms[key] = self.mover.self_terms(self.sentences, tol)[0]
        return self._self_terms[key]

    def nearest(self, query: Any, k: int = 10, tol: float = 1e-3) -> Neighbors:
        """The k sentences with the least distance from the query, nearest first.

        Parameters
        ----------
        query
            A sentence.
        k
            How many; all of them if there are fewer.
        tol
            Certified relative gap of f, as in `WordMover.distances`.
        """
        k = min(count("k", k), len(self))
        sentence = DistinctSentences(self.mover, [query]).sentences
        if not sentence:
            raise ValueError(f"query {query!r} has no known word; there is nothing to compare.")
        if k == 0:
            return Neighbors(np.empty(0, int), np.empty(0), 0)
        search = _Search(self, sentence[0], tol)
        search.run(k)
        distance = search.distance[self.places]
        best = np.argsort(distance, kind="stable")[:k]
        return Neighbors(self.candidates[best], distance[best], int(search.is_solved.sum()))

    def nearest_many(
        self, queries: Sequence[Any], k: int = 10, tol: float = 1e-3, progress: bool = False
    ) -> list[Neighbors]:
        """`nearest` for each of several sentences; ``progress`` shows a bar on a terminal."""
        chunks = [[query] for query in listed("queries", queries)]

        def here(chunk: list[Any]) -> Neighbors:
            return self.nearest(chunk[0], k, tol)

        def job(chunk: list[Any]) -> Any:
            return here, (chunk,)

        return over_chunks(chunks, here, job, n_jobs=1, progress=progress, noun="queries")


class _Search:
    """The different sentences with bounds of their distances, and the distances of the solved."""

    def __init__(self, index: SentenceIndex, query: Sentence, tol: float) -> None:
        self.index, self.query, self.tol = index, query, tol
        mover, size = index.mover, len(index.sentences)
        self.distance = np.full(size, np.inf)
        self.is_solved = np.zeros(size, bool)
        half, halves = 0.5 * mover.self_terms([query], tol)[0, 0], 0.5 * index.self_terms(tol)
        self.own = half + halves
        self.least = self.own + np.abs(half - halves) if mover.keeps_order else 0.0
        self.bound = self._bounds()
        self.size = float(np.abs(self.bound).max(initial=0.0)) + mover.model.price

    def _bounds(self) -> Array:
        """Relaxed transport with the least charge, less the self terms."""
        index, mover = self.index, self.index.mover
        model = mover.model
        if model.kind == CUSTOM:
            return np.full(len(index.sentences), -np.inf)
        announce()
        slope = model.unit if mover.is_plain else 1.0
        if mover.keeps_order:
            model = Model(LINEAR, np.empty(0), 1.0, 0.0)
        own, rows = pack([self.query], mover.rows)
        relaxed = _pairs.lower_bounds(own, rows, index.corpus, index.vectors, model)
        return slope * relaxed + self.least - self.own

    def run(self, k: int) -> None:
        """Solve sentences in the order of their bounds until the rest is proved to be too far."""
        index = self.index
        order = np.argsort(self.bound[index.places], kind="stable")
        self.solve(index.places[order[:k]])  # a first k-th distance
        while True:
            limit = np.partition(self.distance[index.places], k - 1)[k - 1]
            # Bounds and values carry rounding errors: a margin keeps ties in.
            near = self.bound <= limit + 1e-9 * (self.size + abs(limit))
            open_ = np.flatnonzero(near & ~self.is_solved)
            if open_.size == 0:
                return
            size = max(_FIRST, open_.size // _PART)
            self.solve(open_[np.argsort(self.bound[open_], kind="stable")[:size]])

    def solve(self, places: Array) -> None:
        """Fill in the distances of some sentences."""
        places = np.unique(places)
        sentences = [self.query, *(self.index.sentences[place] for place in places)]
        pairs = np.stack([np.zeros(places.size, int), 1 + np.arange(places.size)], axis=1)
        self.distance[places] = solve_distinct(self.index.mover, sentences, pairs, self.tol)[1]
        self.is_solved[places] = True
