"""From sentences to phrases: the groups of words that should move together.

Notation: L words at positions 0 ... L-1; a phrase is an array of positions; phrases overlap. Every
word is in equally many phrases, n, so that no word counts more for its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from structot._checks import count, one_of
from structot._parsed import Parsed as Parsed
from structot.groups import ngrams

Array = np.ndarray


def contract(heads: Sequence[int], kept: Sequence[int]) -> list[int]:
    """The tree over some of its words, each under its nearest ancestor that is kept.

    Examples
    --------
    >>> contract([2, 3, 0], [0, 2])
    [2, 0]
    """
    number = {word: k + 1 for k, word in enumerate(kept)}
    new = []
    for word in kept:
        head = heads[word]
        while head and head - 1 not in number:
            head = heads[head - 1]
        new.append(number[head - 1] if head else 0)
    return new


def subtrees(heads: Sequence[int], n: int) -> list[Array]:
    """For every word the words at most n - 1 levels below it, and n - 1 phrases above the root.

    The phrases above the root are those of imagined heads of the root: with them every word is in
    exactly n phrases. A tree in which each word hangs on the one before gives the padded n-grams.

    Parameters
    ----------
    heads
        Numbers of the heads, counted from 1; 0 for a root.
    n
        Levels of a phrase.

    Examples
    --------
    >>> [p.tolist() for p in subtrees([2, 0, 2], 2)]
    [[1], [0], [0, 1, 2], [2]]
    """
    phrases: list[list[int]] = [[] for _ in range(n - 1 + len(heads))]
    for word in range(len(heads)):
        at, level = word, 0
        while level < n:
            phrases[n - 1 + at].append(word)
            level += 1
            if heads[at] == 0:
                break
            at = heads[at] - 1
        for above in range(n - level):
            phrases[n - 2 - above].append(word)
    return [np.array(phrase) for phrase in phrases if phrase]


def phrases_of(
    groups: Any, n: int, words: tuple[str, ...], heads: Sequence[int] | None
) -> list[Array]:
    """The phrases of a sentence; ``words`` and ``heads`` are those of the kept words."""
    if groups is None:
        return []
    if callable(groups):
        return _checked(groups(list(words)), words)
    if groups == "ngrams":
        return ngrams(len(words), n, padded=True)
    if heads is None:
        raise ValueError(
            f'groups="dependency" needs heads: pass structot.text.Parsed(tokens, heads) instead of '
            f"{' '.join(words)!r}."
        )
    return subtrees(heads, n)


def check_groups(groups: Any) -> str | Callable | None:
    """None, a function, or the name of a rule."""
    if groups is None or callable(groups):
        return groups
    if not isinstance(groups, str):
        raise ValueError(
            'groups must be "ngrams", "dependency", None, or a function from words to lists of '
            f"positions; got {groups!r}."
        )
    return one_of("groups", groups, ("ngrams", "dependency"))


def check_length(ngram: Any) -> int:
    """The n of n-grams, at least 1."""
    return count("ngram", ngram)


def _checked(found: Any, words: tuple[str, ...]) -> list[Array]:
    """What a user's function returned; a word in none of its phrases is a phrase of its own."""
    try:
        given = [np.asarray(list(phrase)) for phrase in found]
    except (TypeError, ValueError):
        given = [np.array("nonsense")]
    given = [phrase for phrase in given if phrase.size]
    # Masks, fractions and digits in strings could be read as positions, but are not meant so.
    if any(phrase.ndim != 1 or phrase.dtype.kind not in "iu" for phrase in given):
        raise ValueError(f"groups(words) must return lists of positions; got {found!r}.")
    phrases = [np.unique(phrase).astype(np.int64) for phrase in given]
    for phrase in phrases:
        if phrase[0] < 0 or phrase[-1] >= len(words):
            raise ValueError(
                f"groups(words) must return positions from 0 to {len(words) - 1} for "
                f"{' '.join(words)!r}; got {phrase.tolist()}."
            )
    covered = set(np.concatenate(phrases).tolist()) if phrases else set()
    return phrases + [np.array([i]) for i in range(len(words)) if i not in covered]
