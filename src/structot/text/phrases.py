"""From sentences to phrases: the groups of words that should move together.

Notation: L words at positions 0 ... L-1; phrases overlap. Every word is in equally many phrases, n,
so that no word counts more for its place. In each of its phrases a word has a role: the place in a
window, the way down from the head of a subtree. Of two phrases only words of the same role form
pairs that share a price; without order all roles are the same.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from structot._checks import count, one_of
from structot._parsed import Parsed as Parsed
from structot._typing import Array
from structot.groups import ngrams

# Relations that a passive verb has to its words, and those of who or what suffers what it says.
_PASSIVE = frozenset({"nsubjpass", "nsubj:pass", "auxpass", "aux:pass"})
_OBJECT = frozenset({"dobj", "obj", "nsubjpass", "nsubj:pass"})


class Phrase(NamedTuple):
    """Positions of words, and the role of each of them, a number."""

    members: Array
    roles: Array


class Tree(NamedTuple):
    """Heads counted from 1, 0 for a root; and the relations of words to their heads, if known."""

    heads: Sequence[int]
    relations: Sequence[str] | None = None

    def contract(self, kept: Sequence[int]) -> Tree:
        """The tree over some of its words, each under its nearest ancestor that is kept.

        The relation to an ancestor names all steps on the way.

        Examples
        --------
        >>> Tree([2, 3, 0], ["pobj", "prep", "root"]).contract([0, 2])
        Tree(heads=[2, 0], relations=['prep/pobj', 'root'])
        """
        number = {word: k + 1 for k, word in enumerate(kept)}
        heads, relations = [], []
        for word in kept:
            head = self.heads[word]
            steps = [] if self.relations is None else [self.relations[word]]
            while head and head - 1 not in number:
                if self.relations is not None:
                    steps.append(self.relations[head - 1])
                head = self.heads[head - 1]
            heads.append(number[head - 1] if head else 0)
            relations.append("/".join(reversed(steps)))
        return Tree(heads, None if self.relations is None else relations)

    def in_active_voice(self, words: Sequence[str]) -> Tree:
        """The same tree with who does as the subject, and who suffers as the object.

        Relations are those of Stanford or Universal Dependencies. The subject of a passive verb is
        its object, and who stands behind "by" its subject.

        Examples
        --------
        >>> passive = Tree([3, 3, 0, 3, 4], ["nsubjpass", "auxpass", "root", "prep", "pobj"])
        >>> passive.in_active_voice(["eggs", "are", "eaten", "by", "men"])
        Tree(heads=[3, 3, 0, 5, 3], relations=['obj', 'auxpass', 'root', 'case', 'nsubj'])
        """
        if self.relations is None:
            return self
        heads, names = list(self.heads), list(self.relations)
        passive = {head for head, name in zip(self.heads, self.relations) if name in _PASSIVE}
        for word, name in enumerate(self.relations):
            above = self.heads[word] - 1
            below_passive = above >= 0 and self.heads[above] in passive
            if below_passive and name == "case" and words[word].lower() == "by":
                names[above] = "nsubj"  # verb -> man -> by
            elif below_passive and words[above].lower() == "by":
                heads[word], names[word] = self.heads[above], "nsubj"  # verb -> by -> man
                heads[above], names[above] = word + 1, "case"
            elif name in _OBJECT:
                names[word] = "obj"
        return Tree(heads, names)

    def labels(self) -> list[tuple[str, int]]:
        """What tells a word from the others of its head: its relation, and the how-manyeth it is.

        Without relations the side of the head stands for it. Words are counted from the head
        outwards on the left, and from left to right else.
        """
        found: list[tuple[str, int]] = [("", 0)] * len(self.heads)
        number: dict[tuple[int, str], int] = {}
        left = [w for w, head in enumerate(self.heads) if w + 1 < head]
        for word in (*reversed(left), *(w for w in range(len(self.heads)) if w not in left)):
            head = self.heads[word]
            side = "left" if word + 1 < head else "right"
            name = side if self.relations is None else self.relations[word]
            found[word] = name, number.get((head, name), 0)
            number[head, name] = found[word][1] + 1
        return found


@functools.lru_cache(maxsize=256)
def windows(length: int, n: int) -> tuple[Phrase, ...]:
    """The padded n-grams; the role of a word is its place in the window.

    Examples
    --------
    >>> [phrase.roles.tolist() for phrase in windows(3, 2)]
    [[1], [0, 1], [0, 1], [0]]
    """
    found = ngrams(length, n, padded=True)
    return tuple(Phrase(members, members - start) for start, members in enumerate(found, 1 - n))


def subtrees(tree: Tree, n: int) -> tuple[Phrase, ...]:
    """For every word the words at most n - 1 levels below it, and n - 1 phrases above the root.

    The phrases above the root are those of imagined heads of the root: with them every word is in
    exactly n phrases. A tree in which each word hangs on the one before gives the padded n-grams.
    The role of a word is the way down to it, every step with its relation.

    Parameters
    ----------
    tree
        Heads and relations.
    n
        Levels of a phrase.

    Examples
    --------
    >>> [phrase.members.tolist() for phrase in subtrees(Tree([2, 0, 2]), 2)]
    [[1], [0], [0, 1, 2], [2]]
    """
    heads, label = tree.heads, tree.labels()
    above = ("right" if tree.relations is None else "above", 0)  # every step above a root
    phrases: list[list[int]] = [[] for _ in range(n - 1 + len(heads))]
    roles: list[list[int]] = [[] for _ in phrases]
    for word in range(len(heads)):
        at = word
        way: tuple[tuple[str, int], ...] = ()
        for _ in range(n):
            phrases[n - 1 + at].append(word)
            roles[n - 1 + at].append(_number(way))
            way = (label[at] if at >= 0 else above, *way)
            at = (heads[at] if at >= 0 else at) - 1
    return tuple(Phrase(np.array(p), np.array(r)) for p, r in zip(phrases, roles) if p)


def _number(way: tuple) -> int:
    """The same number for the same way in all sentences of all processes; 0 for no step."""
    if not way:
        return 0
    return int.from_bytes(hashlib.blake2b(repr(way).encode(), digest_size=7).digest(), "big")


def phrases_of(
    groups: Any,
    n: int,
    words: tuple[str, ...],
    tree: Tree | None,
    order: bool = True,
    reading: Array | None = None,
) -> tuple[Phrase, ...]:
    """The phrases of a sentence; ``words`` and ``tree`` are those of the kept words.

    Windows run along the positions ``reading``; None is from left to right.
    """
    if groups is None:
        return ()
    if callable(groups):
        found = _checked(groups(list(words)), words)
    elif groups == "ngrams":
        found = windows(len(words), n)
        if reading is not None:
            found = tuple(Phrase(reading[p.members], p.roles) for p in found)
    elif tree is None:
        raise ValueError(
            f'groups="dependency" needs heads: pass structot.text.Parsed(tokens, heads) instead of '
            f"{' '.join(words)!r}."
        )
    else:
        found = subtrees(tree, n)
    return found if order else tuple(Phrase(p.members, np.zeros_like(p.roles)) for p in found)


def blocks_between(
    source: Sequence[Phrase], target: Sequence[Phrase], shape: tuple[int, int]
) -> list[Array]:
    """The sets of pairs (i, j) that share a price, arrays (pairs, 2): the same role in two phrases.

    A pair that is in fewer of them than its words have phrases is a set of its own for the rest.
    `structot.text._kernels` has the compiled twin.
    """
    sets, held = [], np.zeros(shape, int)
    for U in source:
        for V in target:
            r, c = np.nonzero(U.roles[:, None] == V.roles)
            if r.size:
                sets.append(np.stack([U.members[r], V.members[c]], axis=1))
                held[U.members[r], V.members[c]] += 1
    rows, columns = (coverage(side, size) for side, size in zip((source, target), shape))
    for i, j in np.argwhere(held < np.maximum.outer(rows, columns)):
        sets += [np.array([[i, j]])] * int(max(rows[i], columns[j]) - held[i, j])
    return sets


def coverage(phrases: Sequence[Phrase], size: int) -> Array:
    """In how many phrases each word is."""
    return np.bincount(np.concatenate([p.members for p in phrases]), minlength=size)


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


def _checked(found: Any, words: tuple[str, ...]) -> tuple[Phrase, ...]:
    """What a user's function returned; the role of a word is its place in the list.

    A word in none of its phrases is a phrase of its own.
    """
    try:
        given = [np.asarray(list(phrase)) for phrase in found]
    except (TypeError, ValueError):
        given = [np.array("nonsense")]
    given = [phrase for phrase in given if phrase.size]
    # Masks, fractions and digits in strings could be read as positions, but are not meant so.
    if any(phrase.ndim != 1 or phrase.dtype.kind not in "iu" for phrase in given):
        raise ValueError(f"groups(words) must return lists of positions; got {found!r}.")
    phrases = []
    for phrase in given:
        if phrase.min() < 0 or phrase.max() >= len(words):
            raise ValueError(
                f"groups(words) must return positions from 0 to {len(words) - 1} for "
                f"{' '.join(words)!r}; got {phrase.tolist()}."
            )
        members = np.array(list(dict.fromkeys(phrase.tolist())), dtype=np.int64)
        phrases.append(Phrase(members, np.arange(members.size)))
    covered = {word for phrase in phrases for word in phrase.members.tolist()}
    alone = [i for i in range(len(words)) if i not in covered]
    return (*phrases, *(Phrase(np.array([i]), np.zeros(1, np.int64)) for i in alone))
