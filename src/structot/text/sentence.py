"""A sentence as the kernels see it, and many of them as flat arrays.

Notation: a pair (s, t) is two numbers of sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from structot._typing import Array
from structot.text._kernels import Corpus
from structot.text.phrases import Phrase, coverage


@dataclass(frozen=True, eq=False)
class Sentence:
    """Kept words, their rows among the vectors, weights of sum 1, and phrases (see `phrases`)."""

    words: tuple[str, ...]
    rows: Array
    weights: Array
    phrases: Sequence[Phrase]

    @property
    def key(self) -> bytes:
        """Equal for sentences that mean the same problem."""
        parts = [self.rows, self.weights, *(part for phrase in self.phrases for part in phrase)]
        sizes = np.array([len(part) for part in parts])
        return b"".join(part.tobytes() for part in (sizes, *parts))

    @property
    def coverage(self) -> Array:
        """In how many phrases each word is."""
        return coverage(self.phrases, len(self.words))


def pack(sentences: Sequence[Sentence], vectors: Callable[[Array], Array]) -> tuple[Corpus, Array]:
    """The sentences as flat arrays, and the vectors of their words only."""
    words = [sentence.rows for sentence in sentences]
    weights = [sentence.weights for sentence in sentences]
    members = [_joined([p.members for p in sentence.phrases]) for sentence in sentences]
    roles = [_joined([p.roles for p in sentence.phrases]) for sentence in sentences]
    begins = [starts([p.members.size for p in sentence.phrases]) for sentence in sentences]
    corpus, used = _corpus(words, weights, members, roles, begins)
    return corpus, vectors(used)


def restrict(corpus: Corpus, vectors: Array, pairs: Array) -> tuple[Corpus, Array, Array]:
    """The part of a corpus that some pairs need, and the pairs in its numbers."""
    sentences, renumbered = np.unique(pairs, return_inverse=True)

    def cut(values: Array, offset: Array) -> list[Array]:
        return [values[offset[s] : offset[s + 1]] for s in sentences]

    part, used = _corpus(
        cut(corpus.word, corpus.offset),
        cut(corpus.weight, corpus.offset),
        cut(corpus.member, corpus.member_offset),
        cut(corpus.role, corpus.member_offset),
        cut(corpus.begin, corpus.begin_offset),
    )
    return part, vectors[used], renumbered.reshape(pairs.shape).astype(np.int64)


def _corpus(
    words: list[Array],
    weights: list[Array],
    members: list[Array],
    roles: list[Array],
    begins: list[Array],
) -> tuple[Corpus, Array]:
    """One entry per sentence as flat arrays; the rows of the vectors that are used, in order."""
    used, word = np.unique(_joined(words), return_inverse=True)
    corpus = Corpus(
        word.astype(np.int64),
        np.concatenate([np.empty(0), *weights]),
        starts([len(w) for w in words]),
        _joined(members),
        _joined(roles),
        starts([len(m) for m in members]),
        _joined(begins),
        starts([len(b) for b in begins]),
    )
    return corpus, used


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)


def starts(sizes: Sequence[int] | Array) -> Array:
    """Where each of the parts of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
