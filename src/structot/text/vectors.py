"""What users pass as vectors, brought into one form.

Notation: a word is a string; a row is its number in the matrix of vectors (V, features).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._typing import Array
from structot.text.tokens import forms
from structot.text.weights import ENGLISH

# "The" at the beginning of a sentence is the same word as "the", whatever its own vector is. ("I"
# has its capital everywhere.)
_CAPITALIZED = {word.capitalize(): word for word in ENGLISH if word != "i" and word[0].isalpha()}
_SAMPLE = 1000  # words from which the mean distance of a larger vocabulary is taken
_LEAST, _MOST = 1e-140, 1e140  # sizes of vectors whose squares neither vanish nor overflow


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words and their vectors.

    A word is looked up as it stands, then in other spellings of it (see `tokens.forms`); a stop
    word with a capital in lower case first. Only as it stands if the vocabulary is ``exact``.

    Examples
    --------
    >>> words = Vocabulary.of((["a", "b"], [[0.0, 0.0], [3.0, 4.0]]))
    >>> words.row("B"), words.mean_distance()
    (1, 5.0)
    """

    index: Mapping[str, int]
    matrix: Array  # (V, features)
    normalize: bool = False
    exact: bool = False

    @classmethod
    def of(cls, vectors: Any, normalize: bool = False, exact: bool = False) -> Vocabulary:
        """From gensim's KeyedVectors, a mapping from words to vectors, or (words, matrix)."""
        if hasattr(vectors, "wv") and hasattr(vectors.wv, "key_to_index"):
            vectors = vectors.wv  # a trained model: its vectors
        if hasattr(vectors, "key_to_index") and hasattr(vectors, "vectors"):
            return cls(vectors.key_to_index, _matrix(vectors.vectors), normalize, exact)
        if isinstance(vectors, Mapping):
            if not vectors:
                raise ValueError("vectors is an empty mapping; pass at least one word.")
            return cls(
                {word: row for row, word in enumerate(vectors)},
                _matrix(list(vectors.values())),
                normalize,
                exact,
            )
        try:
            words, matrix = vectors
        except (TypeError, ValueError):
            raise ValueError(
                "vectors must be gensim KeyedVectors, a mapping from words to vectors, or a pair "
                f"(words, matrix); got {type(vectors).__name__}."
            ) from None
        index = {str(word): row for row, word in enumerate(words)}
        array = _matrix(matrix)
        if len(words) != len(array):
            raise ValueError(f"vectors has {len(words)} words, but {len(array)} rows of numbers.")
        if len(index) != len(words):
            raise ValueError("vectors names some word twice; keep one vector for each word.")
        return cls(index, array, normalize, exact)

    def row(self, word: str) -> int | None:
        """The row of a word, or None if it is unknown."""
        if self.exact:
            return self.index.get(word)
        row = self.index.get(_CAPITALIZED.get(word, word))
        if row is not None:
            return row
        return next((self.index[form] for form in forms(word) if form in self.index), None)

    def knows(self, word: str) -> bool:
        """Whether a word has a vector."""
        return self.row(word) is not None

    def rows(self, rows: Array) -> Array:
        """Vectors of some rows in double precision, of length 1 if so chosen."""
        vectors = np.ascontiguousarray(self.matrix[rows], dtype=np.float64)
        if not np.isfinite(vectors).all():
            bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            word = next(w for w, r in self.index.items() if r == rows[bad])
            raise ValueError(f"the vector of {word!r} has NaN or infinite entries; remove it.")
        largest = float(np.abs(vectors).max(initial=0.0))
        if largest and not _LEAST <= largest <= _MOST:
            raise ValueError(
                f"vectors has entries of size {largest:.1e}, whose squares leave the range of "
                "float64; multiply all vectors by one number."
            )
        if self.normalize:
            length = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors = vectors / np.where(length > 0, length, 1.0)
        return vectors

    def mean_distance(self) -> float:
        """Mean distance between two different words; of a large vocabulary, from a fixed sample."""
        rows = np.arange(len(self.matrix))
        if rows.size > _SAMPLE:
            rows = np.sort(np.random.default_rng(0).choice(rows, _SAMPLE, replace=False))
        if rows.size < 2:
            return 1.0
        X = self.rows(rows)
        X -= X.mean(axis=0)  # against cancellation: distances do not depend on the origin
        square = (X**2).sum(axis=1)
        distance = np.sqrt(np.maximum(square[:, None] + square - 2.0 * X @ X.T, 0.0))
        np.fill_diagonal(distance, 0.0)
        mean = float(distance.sum()) / (rows.size * (rows.size - 1))
        return mean if mean > 0 else 1.0


def _matrix(values: Any) -> Array:
    try:
        matrix = np.asarray(values)
    except ValueError:  # rows of several lengths
        matrix = np.empty(len(values), dtype=object)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu" or matrix.size == 0:
        raise ValueError(
            "vectors must hold one row of numbers per word, all of the same length; got an array "
            f"of shape {matrix.shape} and type {matrix.dtype}."
        )
    return matrix


def listed(name: str, sentences: Any) -> list:
    """Several sentences as a list; one string is a mistake, for its letters are none."""
    if isinstance(sentences, str):
        raise ValueError(f"{name} must be a list of sentences; got the string {sentences[:80]!r}.")
    return list(sentences)
