"""Distances between sentences that know which words belong together.

from structot.text import WordMover
mover = WordMover(vectors)                  # gensim KeyedVectors, a mapping, (words, matrix)
mover.distance("a dog runs", "a cat sleeps")

The first distance after installation compiles the kernels (up to a minute); later ones, also of
other processes, find them in a cache.
"""

from structot.text.explain import Explanation, PhrasePair
from structot.text.phrases import Parsed, subtrees
from structot.text.search import Neighbors
from structot.text.word_mover import WordMover

__all__ = ["Explanation", "Neighbors", "Parsed", "PhrasePair", "WordMover", "subtrees"]
