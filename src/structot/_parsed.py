"""A sentence with its dependency tree, which data sets supply and distances of texts take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Parsed"]


@dataclass(frozen=True)
class Parsed:
    """A sentence with its dependency tree.

    Parameters
    ----------
    tokens
        The words.
    heads
        For each word the number of its head, counted from 1; 0 for the root (as in CoNLL files).
    relations
        For each word its relation to its head ("nsubj", "dobj", ...), where the parser gives one.

    Examples
    --------
    >>> Parsed(["dogs", "bark"], [2, 0], ["nsubj", "root"]).heads
    (2, 0)
    """

    tokens: Sequence[str]
    heads: Sequence[int]
    relations: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", tuple(str(token) for token in self.tokens))
        object.__setattr__(self, "heads", tuple(int(head) for head in self.heads))
        size = len(self.tokens)
        if self.relations is not None:
            object.__setattr__(self, "relations", tuple(str(name) for name in self.relations))
            if len(self.relations) != size:
                raise ValueError(f"relations has {len(self.relations)} entries for {size} tokens.")
        if len(self.heads) != size:
            raise ValueError(f"heads has {len(self.heads)} entries for {size} tokens.")
        if any(not 0 <= head <= size for head in self.heads):
            raise ValueError(
                f"heads must be numbers from 1 to {size}, or 0 for the root; got {self.heads}."
            )
        for word in range(1, size + 1):
            above = word
            for _ in range(size):  # enough steps to leave the tree by its root
                above = above and self.heads[above - 1]
            if above:
                raise ValueError(f"heads has a cycle through word {word}: {self.heads}.")
