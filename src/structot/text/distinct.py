"""The sentences of one call: each prepared once, each pair solved once.

Notation: the place of a sentence is its number among the different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structot._typing import Array
from structot.solvers.batch.proofs import CONVERGED
from structot.solvers.solve import ConvergenceWarning
from structot.text._warnings import warn
from structot.text.pairs import Answers
from structot.text.phrases import Parsed
from structot.text.sentence import Sentence
from structot.text.sentence_cost import SentenceCost


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
        mover.report_unknown()

    def bounds(self, pairs: Array, n_jobs: int | None, tol: float, progress: bool = False) -> Array:
        """For pairs of numbers of the original list the rows of `solve_distinct`.

        NaN or infinite, as `on_empty` says, where a sentence has no words.
        """
        places = np.sort(self.place[pairs].reshape(-1, 2), axis=1)
        result = np.full((3, len(places)), np.inf if self.mover.on_empty == "inf" else np.nan)
        full = (places >= 0).all(axis=1)
        if full.any():
            different, where = np.unique(places[full], axis=0, return_inverse=True)
            used, pairs = np.unique(different, return_inverse=True)
            sentences, pairs = [self.sentences[s] for s in used], pairs.reshape(-1, 2)
            found = solve_distinct(self.mover, sentences, pairs, tol, n_jobs, progress)
            result[:, full] = found[:, where.ravel()]
        return result


def solve_distinct(
    mover: SentenceCost,
    sentences: Sequence[Sentence],
    pairs: Array,
    tol: float,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Array:
    """Rows for pairs of sentences: a certified lower bound, the distance, an upper bound.

    Both orders of a pair are the same problem, solved with the smaller key first. A sentence and
    itself are at distance 0 if debiased.
    """
    keys = [sentence.key for sentence in sentences]
    rank = np.empty(len(keys), np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    swap = rank[pairs[:, 0]] > rank[pairs[:, 1]]
    pairs = np.where(swap[:, None], pairs[:, ::-1], pairs)
    found = mover.answers(sentences, pairs, tol=tol, n_jobs=n_jobs, progress=progress)
    _warn(found, tol)
    half = 0.5 * mover.self_terms(sentences, tol, n_jobs)
    own = half[:, pairs[:, 0]] + half[:, pairs[:, 1]]
    rows = np.stack([found.lower_bound - own[0], found.value - own[0], found.value - own[1]])
    if mover.debias:
        if mover.keeps_order:
            rows = np.maximum(rows, 0.0)  # below 0 by rounding only
        rows[:, [keys[s] == keys[t] for s, t in pairs]] = 0.0
    return rows


def _warn(found: Answers, tol: float) -> None:
    missed = np.flatnonzero(found.code != CONVERGED)
    if missed.size:
        warn(
            f"{missed.size} of {found.value.size} pairs missed the gap {tol:g}; the largest gap is "
            f"{found.gap[missed].max():.1e}. Their best certified values are returned.",
            ConvergenceWarning,
        )
