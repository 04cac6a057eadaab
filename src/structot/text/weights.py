"""How much each word of a sentence weighs.

Notation: p(w) the share of a word among all words of a language or a corpus; a weight belongs to a
position, and those of a sentence are brought to the sum 1 later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._checks import nonnegative
from structot._typing import Array

RULES = ("sif", "count", "uniform", "idf")
# a in a / (a + p(w)): a word this frequent weighs one half. Chosen on the training pairs of SICK
# (docs/experiments/sentences.md).
SMOOTH = 1e-3

# Words without content of their own, and how many of a thousand English words they are: rounded
# from wordfreq 3.1 (Speer 2022), a mean over encyclopedia, subtitles, news, books and the web.
# Negation is content, so that "no" and "not" are not here.
_FREQUENT = """the 54 to 27 and 26 of 25 a 23 in 19 i 12 is 12 that 10 for 10 you 9.6 it 8.9 on 8.1
with 7.1 this 6.6 was 6.6 be 6.2 as 5.9 are 5.5 have 5.1 at 5 he 4.9 by 4.6 from 4.3 but 4.3 my 3.7
or 3.5 we 3.5 an 3.4 your 3.4 so 3.3 his 3.2 they 3.2 me 3 if 3 can 2.9 will 2.8 just 2.7 up 2.4
out 2.4 what 2.4 has 2.3 when 2.3 do 2.2 were 2.2 who 2.2 had 2.1 their 2.1 there 2 her 2 which 2
been 1.9 would 1.9 she 1.8 some 1.6 them 1.6 also 1.6 its 1.4 our 1.4 than 1.4 into 1.3 him 1.3
over 1.2 then 1.2 any 1.2 could 1.2 these 1.1 us 1.1 where 1 very 1 should .98 may .96 here .93
did .91 being .89 off .85 those .79 down .76 while .72 s .72 such .69 am .6 does .55 under .54
each .49 must .48 might .46 having .39 near .2 shall .11 onto .059"""
_MARKS = "'s . , ; : ! ? - -- ( ) \" ' ` `` ''".split()  # noqa: SIM905
_TABLE = _FREQUENT.split()
FREQUENCIES: dict[str, float] = {
    **{word: float(share) / 1000 for word, share in zip(_TABLE[::2], _TABLE[1::2])},
    **dict.fromkeys(_MARKS, 0.05),  # as frequent as the most frequent words
}
ENGLISH = frozenset(FREQUENCIES)


@dataclass(frozen=True)
class Frequencies:
    """What a corpus says of its words, in lower case.

    Attributes
    ----------
    share
        p(w), of all words of the corpus.
    idf
        log((1 + N) / (1 + documents with w)) + 1, N the number of documents.
    unseen
        The same for a word never seen.

    Examples
    --------
    >>> learned = Frequencies.of([["a", "b"], ["a"]])
    >>> learned.idf["a"], round(learned.unseen, 3), round(learned.share["a"], 3)
    (1.0, 2.099, 0.667)
    """

    share: Mapping[str, float]
    idf: Mapping[str, float]
    unseen: float

    @classmethod
    def of(cls, documents: Iterable[Iterable[str]]) -> Frequencies:
        """Count the words of some documents."""
        every: Counter[str] = Counter()
        within: Counter[str] = Counter()
        total = 0
        for words in documents:
            names = [word.lower() for word in words]
            every.update(names)
            within.update(set(names))
            total += 1
        size = max(every.total(), 1)
        idf = {w: float(np.log((1 + total) / (1 + c))) + 1.0 for w, c in within.items()}
        share = {w: c / size for w, c in every.items()}
        return cls(share, idf, float(np.log(1 + total)) + 1.0)


def stop_list(stop_words: Any) -> frozenset[str]:
    """The words to leave out, in lower case: None, ``"english"``, or any words."""
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise ValueError(f'stop_words must be None, "english" or words; got {stop_words!r}.')
        return ENGLISH
    return frozenset(str(word).lower() for word in stop_words)


def word_weights(weights: Any, words: tuple[str, ...], learned: Frequencies | None) -> Array:
    """One weight per position, not yet of sum 1; ``words`` are the kept ones."""
    names = [word.lower() for word in words]
    if isinstance(weights, Mapping):
        given = [weights.get(word, weights.get(name, 1.0)) for word, name in zip(words, names)]
        values = np.array([nonnegative(f"weights[{w!r}]", x) for w, x in zip(words, given)])
        return values / (values.max(initial=0.0) or 1.0)  # their sum must not overflow
    if weights == "sif":
        share = FREQUENCIES if learned is None else learned.share
        return np.array([SMOOTH / (SMOOTH + share.get(name, 0.0)) for name in names])
    if weights == "idf":
        if learned is None:
            raise ValueError('weights="idf" needs a corpus first: call fit(corpus).')
        return np.array([learned.idf.get(name, learned.unseen) for name in names])
    if weights == "uniform":
        return np.array([1.0 / names.count(name) for name in names])
    return np.ones(len(names))


def check_weights(weights: Any) -> Any:
    """A mapping, or the name of a rule."""
    if isinstance(weights, Mapping) or (isinstance(weights, str) and weights in RULES):
        return weights
    rules = ", ".join(f'"{rule}"' for rule in RULES)
    raise ValueError(
        f"weights must be {rules} or a mapping from words to numbers; got {weights!r}."
    )
