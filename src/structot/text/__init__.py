"""Distances between sentences that hear who did what to whom.

from structot.text import WordMover
mover = WordMover(vectors)                  # gensim KeyedVectors, a mapping, (words, matrix)
mover.distance("a dog runs", "a cat sleeps")

The first distance after installation compiles the kernels (up to a minute); later ones, also of
other processes, find them in a cache.
"""

from structot.text.explain import Explanation, PhraseFate, PhrasePair
from structot.text.phrases import Parsed
from structot.text.search import Neighbors, SentenceIndex
from structot.text.tokens import WordCoverage
from structot.text.word_mover import WordMover

__all__ = [
    "Explanation",
    "Neighbors",
    "Parsed",
    "PhraseFate",
    "PhrasePair",
    "SentenceIndex",
    "WordCoverage",
    "WordMover",
]
