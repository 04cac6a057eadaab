"""What `WordMover` does when nothing is said, and what it does when it is to be like another.

The first preset is to be a good measure of relatedness that hears who did what to whom. It was
chosen on the training pairs of SICK; docs/experiments/sentences.md shows the choice, and how it
does on the test pairs.
"""

from __future__ import annotations

from typing import Any

from structot._checks import one_of


class _Unset:
    """The value of an argument that was not given."""

    def __repr__(self) -> str:
        return "<as in like>"


UNSET: Any = _Unset()

PRESETS: dict[str | None, dict[str, Any]] = {
    None: {
        "charge": 0.8,
        "groups": "ngrams",
        "weights": "sif",
        "normalize": True,
        "on_empty": "raise",
        "exact": False,
    },
    "gensim": {
        "charge": 0.0,
        "groups": None,
        "weights": "count",
        "normalize": True,
        "on_empty": "inf",
        "exact": True,
    },
}


def chosen(like: Any, **given: Any) -> dict[str, Any]:
    """The values of a preset, but for those that were given.

    Examples
    --------
    >>> chosen("gensim", charge=UNSET, groups="ngrams")["groups"]
    'ngrams'
    """
    if like is not None:
        one_of("like", like, ("gensim",))
    return PRESETS[like] | {name: x for name, x in given.items() if x is not UNSET}
