"""The sentences of one call: each prepared once, each pair solved once.

Notation: the place of a sentence is its number among the different ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from structot.solvers.batch.proofs import CONVERGED
from structot.solvers.solve import ConvergenceWarning
from structot.text.pairs import Answers
from structot.text.phrases import Parsed
from structot.text.sentence import Sentence
from structot.text.sentence_cost import SentenceCost

Array = np.ndarray


class DistinctSentences:
    """The different sentences behind a list of them, each prepared once."""

    def __init__(self, mover: SentenceCost, sentences: Sequence[Any]) -> None:
        self.mover = mover
        prepared: dict[Any, Sentence | None] = {}
        number: dict[bytes, int] = {}
        self.sentences: list[Sentence] = []
        self.place = np.empty(len(sentences), np.int64)  # -1 for an empty sentence
        for i, text in enumerate(sentences):
            name = text if isinstance(text, str | Parsed) else tuple(mover.tokens(text)[0])
            if name not in prepared:
                prepared[name] = mover.prepare(text)
            sentence = prepared[name]
            if sentence is None:
                self.place[i] = -1
                continue
            key = sentence.key
            if key not in number:
                number[key] = len(self.sentences)
                self.sentences.append(sentence)
            self.place[i] = number[key]
        # Both orders of a pair are the same problem: the smaller key goes first.
        keys = list(number)
        self.rank = np.empty(len(keys), np.int64)
        self.rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        mover.report_unknown()

    def distances(
        self, pairs: Array, n_jobs: int | None, tol: float, progress: bool = False
    ) -> Array:
        """The distance of every pair of numbers of the original list; NaN for empty sentences."""
        places = self.place[pairs].reshape(-1, 2)
        result = np.full(len(places), np.nan)
        full = (places >= 0).all(axis=1)
        if not full.any():
            return result
        different, where = np.unique(self._ordered(places[full]), axis=0, return_inverse=True)
        used, pairs = np.unique(different, return_inverse=True)
        pairs = pairs.reshape(-1, 2)
        mover, sentences = self.mover, [self.sentences[s] for s in used]
        found = mover.answers(sentences, pairs, tol=tol, n_jobs=n_jobs, progress=progress)
        _warn(found, tol)
        half = 0.5 * mover.self_terms(sentences, tol, n_jobs)
        value = found.value - (half[pairs[:, 0]] + half[pairs[:, 1]])
        same = pairs[:, 0] == pairs[:, 1]
        if mover.debias:
            value[same] = 0.0
        result[full] = value[where.ravel()]
        return result

    def _ordered(self, places: Array) -> Array:
        swap = self.rank[places[:, 0]] > self.rank[places[:, 1]]
        return np.where(swap[:, None], places[:, ::-1], places)


def _warn(found: Answers, tol: float) -> None:
    missed = np.flatnonzero(found.code != CONVERGED)
    if missed.size:
        warnings.warn(
            f"{missed.size} of {found.value.size} pairs missed the gap {tol:g}; the largest gap is "
            f"{found.gap[missed].max():.1e}. Their best certified values are returned.",
            ConvergenceWarning,
            stacklevel=4,
        )
