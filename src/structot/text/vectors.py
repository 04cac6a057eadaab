"""What users pass as vectors, sentences and weights, brought into one form.

Notation: a word is a string; a row is its number in the matrix of vectors (V, features).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._checks import nonnegative

Array = np.ndarray

# Words without content of their own. Negation is content, so that "no" and "not" are not here.
ENGLISH = frozenset(
    """a an the this that these those there here is are was were be been being am do does did has
    have had having will would can could shall should may might must to of in on at by for from with
    into onto over under up down out off near as and or but if than then so such it its he she they
    them his her their him we us our you your i my me who which what when where while some any each
    very just also s 's . , ; : ! ? - -- ( ) " ' ` `` ''""".split()  # noqa: SIM905
)

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_SAMPLE = 1000  # words from which the mean distance of a larger vocabulary is taken
_LEAST, _MOST = 1e-140, 1e140  # sizes of vectors whose squares neither vanish nor overflow


def split_words(text: str) -> list[str]:
    """The default tokenizer: runs of letters and digits, with inner apostrophes and hyphens.

    Examples
    --------
    >>> split_words("The dog isn't well-trained, is it?")
    ['The', 'dog', "isn't", 'well-trained', 'is', 'it']
    """
    return _WORD.findall(text)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """Words and their vectors. A word is looked up as it stands, then in lower case.

    Examples
    --------
    >>> words = Vocabulary.of((["a", "b"], [[0.0, 0.0], [3.0, 4.0]]))
    >>> words.row("B"), words.mean_distance()
    (1, 5.0)
    """

    index: Mapping[str, int]
    matrix: Array  # (V, features)
    normalize: bool = False

    @classmethod
    def of(cls, vectors: Any, normalize: bool = False) -> Vocabulary:
        """From gensim's KeyedVectors, a mapping from words to vectors, or (words, matrix)."""
        if hasattr(vectors, "wv") and hasattr(vectors.wv, "key_to_index"):
            vectors = vectors.wv  # a trained model: its vectors
        if hasattr(vectors, "key_to_index") and hasattr(vectors, "vectors"):
            return cls(vectors.key_to_index, _matrix(vectors.vectors), normalize)
        if isinstance(vectors, Mapping):
            if not vectors:
                raise ValueError("vectors is an empty mapping; pass at least one word.")
            return cls(
                {word: row for row, word in enumerate(vectors)},
                _matrix(list(vectors.values())),
                normalize,
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
        return cls(index, array, normalize)

    def row(self, word: str) -> int | None:
        """The row of a word, or None if it is unknown."""
        row = self.index.get(word)
        return self.index.get(word.lower()) if row is None else row

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


def stop_list(stop_words: Any) -> frozenset[str]:
    """The words to leave out, in lower case: None, ``"english"``, or any words."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise ValueError(f'stop_words must be None, "english" or words; got {stop_words!r}.')
        return ENGLISH
    return frozenset(str(word).lower() for word in stop_words)


def inverse_frequencies(documents: Iterable[Iterable[str]]) -> tuple[dict[str, float], float]:
    """idf(w) = log((1 + N) / (1 + documents with w)) + 1, and its value for a word never seen.

    Examples
    --------
    >>> idf, unseen = inverse_frequencies([["a", "b"], ["a"]])
    >>> idf["a"], round(unseen, 3)
    (1.0, 2.099)
    """
    count: dict[str, int] = {}
    total = 0
    for words in documents:
        total += 1
        for word in {word.lower() for word in words}:
            count[word] = count.get(word, 0) + 1
    idf = {w: float(np.log((1 + total) / (1 + c))) + 1.0 for w, c in count.items()}
    return idf, float(np.log(1 + total)) + 1.0


def word_weights(
    weights: Any, words: tuple[str, ...], idf: tuple[dict[str, float], float] | None
) -> Array:
    """One weight per position, not yet of sum 1; ``words`` are the kept ones."""
    names = [word.lower() for word in words]
    if isinstance(weights, Mapping):
        given = [weights.get(word, weights.get(name, 1.0)) for word, name in zip(words, names)]
        values = np.array([nonnegative(f"weights[{w!r}]", x) for w, x in zip(words, given)])
        return values / (values.max(initial=0.0) or 1.0)  # their sum must not overflow
    if weights == "idf":
        if idf is None:
            raise ValueError('weights="idf" needs a corpus first: call fit(corpus).')
        return np.array([idf[0].get(name, idf[1]) for name in names])
    if weights == "uniform":
        return np.array([1.0 / names.count(name) for name in names])
    return np.ones(len(names))


def check_weights(weights: Any) -> Any:
    """A mapping, or the name of a rule."""
    known = isinstance(weights, str) and weights in ("uniform", "count", "idf")
    if known or isinstance(weights, Mapping):
        return weights
    raise ValueError(
        'weights must be "uniform", "count", "idf" or a mapping from words to numbers; '
        f"got {weights!r}."
    )


def listed(name: str, sentences: Any) -> list:
    """Several sentences as a list; one string is a mistake, for its letters are none."""
    if isinstance(sentences, str):
        raise ValueError(f"{name} must be a list of sentences; got the string {sentences[:80]!r}.")
    return list(sentences)


def check_tokenizer(tokenizer: Any) -> Callable[[str], Iterable[str]]:
    """A function from text to words."""
    if tokenizer is None:
        return split_words
    if not callable(tokenizer):
        raise ValueError(f"tokenizer must be a function from text to words; got {tokenizer!r}.")
    return tokenizer
