"""From text to words, in the spelling that the vocabulary knows.

Notation: a joiner is an apostrophe or a hyphen between two letters; `knows` tells whether a word
has a vector.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Knows = Callable[[str], bool]

# What is typed for an apostrophe, and for a hyphen: one letter each. A soft hyphen is none.
_STRAIGHT = str.maketrans("’ʼ＇‘‐‑", "''''--", "\u00ad")
_CURLY = str.maketrans("'", "’")
_WORD = re.compile(r"\w+(?:['-]\w+)*")
_JOINERS = "\u200c\u200d"  # between the letters of a word in Persian and in scripts of India
_STEMS = {"ca": "can", "wo": "will", "sha": "shall"}  # of can't, won't, shan't
_UNSEGMENTED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")


def split_words(text: str, knows: Knows | None = None) -> list[str]:
    """The default tokenizer: runs of letters, marks and digits of any script, in the form NFC.

    A word with an inner apostrophe or hyphen stays whole if the vocabulary knows it, and else is
    split as the vocabulary knows the parts; without a vocabulary it stays whole. Curly apostrophes
    are straight ones.

    Examples
    --------
    >>> split_words("The dog isn’t well-trained, is it?")
    ['The', 'dog', "isn't", 'well-trained', 'is', 'it']
    >>> split_words("the woman's dog isn't well-trained", {"is", "not", "woman"}.__contains__)
    ['the', 'woman', 'dog', 'is', 'not', 'well-trained']
    """
    text = unicodedata.normalize("NFC", text).translate(_STRAIGHT)
    words = (_WORD if text.isascii() else _pattern(text)).findall(text)
    if knows is None:
        return words
    return [part for word in words for part in known_parts(word, knows)]


def _pattern(text: str) -> re.Pattern[str]:
    """Words with the combining marks of this text, which are no letters for Python."""
    inside = {c for c in text if unicodedata.category(c)[0] == "M" or c in _JOINERS}
    letters = rf"\w[\w{''.join(map(re.escape, sorted(inside)))}]*"
    return re.compile(f"{letters}(?:['-]{letters})*")


def known_parts(word: str, knows: Knows) -> list[str]:
    """A word with joiners as the vocabulary knows it: whole, or in parts.

    Examples
    --------
    >>> known_parts("don't", {"do", "n't"}.__contains__)
    ['do', "n't"]
    >>> known_parts("rock-n-roll", {"rock", "roll"}.__contains__)
    ['rock', 'n', 'roll']
    """
    if not ("'" in word or "-" in word) or knows(word):
        return [word]
    splits = [parts for parts in _splits(word) if any(map(knows, parts))]
    whole = [parts for parts in splits if all(map(knows, parts))]
    return (whole or splits or [[word]])[0]


def _splits(word: str) -> Iterator[list[str]]:
    """Ways to split a word at its last apostrophe, or at all joiners; the best ones first."""
    if word.lower().endswith("n't"):
        stem = word[:-3]
        stem = _STEMS.get(stem.lower(), stem)
        yield [stem, word[-3:]]
        yield [stem, "not"]
    if "'" in word:
        head, _, tail = word.rpartition("'")
        yield [head, f"'{tail}"]  # woman 's
        yield [f"{head}'", tail]  # l' homme
        if tail.lower() == "s":
            yield [head]
    yield re.split("['-]", word)


def forms(word: str) -> Iterator[str]:
    """The spellings under which a vocabulary may hold a word: as it stands, then in lower case.

    Examples
    --------
    >>> list(dict.fromkeys(forms("Don’t")))
    ['Don’t', "Don't", 'don’t', "don't"]
    """
    for case in (word, word.lower()):
        yield case
        composed = unicodedata.normalize("NFC", case)
        yield composed
        yield composed.translate(_STRAIGHT)
        yield composed.translate(_CURLY)
        yield unicodedata.normalize("NFD", case)


@dataclass(frozen=True)
class WordCoverage:
    """How many of the words of some texts have a vector.

    Attributes
    ----------
    n_texts, n_words
        Texts, and words in them that are no stop words.
    unknown
        The words without a vector, with their counts.
    empty
        Positions of the texts of which no word is left.

    Examples
    --------
    >>> from structot.text import WordMover
    >>> found = WordMover({"dogs": [1.0], "bark": [2.0]}).coverage(["Dogs bark", "zebras bark"])
    >>> found.n_words, dict(found.unknown)
    (4, {'zebras': 1})
    """

    n_texts: int
    n_words: int
    unknown: Counter[str]
    empty: tuple[int, ...]

    @property
    def share(self) -> float:
        """Share of the words that have a vector; 1 where there are no words."""
        return 1.0 - self.unknown.total() / max(self.n_words, 1)

    def __repr__(self) -> str:
        lines = [
            f"WordCoverage: {100 * self.share:.2f} % of {_counted(self.n_words, 'word')} in "
            f"{_counted(self.n_texts, 'text')} have a vector; "
            f"{_counted(len(self.empty), 'text')} left without words"
        ]
        if self.unknown:
            lines.append(f"  {named(self.unknown)}")
        return "\n".join(lines)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def named(unknown: Counter[str]) -> str:
    """How many unknown words, and the most frequent ones, for a message."""
    common = ", ".join(repr(word) for word, _ in unknown.most_common(5))
    more = ", ..." if len(unknown) > 5 else ""
    words = "word has" if unknown.total() == 1 else "words have"
    text = f"{unknown.total()} {words} no vector ({len(unknown)} different: {common}{more})"
    if any(map(_is_unsegmented, unknown)):
        text += "; scripts without spaces need a tokenizer= of their own"
    return text


def _is_unsegmented(word: str) -> bool:
    return not word.isascii() and any(
        unicodedata.name(letter, "").startswith(_UNSEGMENTED) for letter in word
    )


def check_tokenizer(tokenizer: Any, knows: Knows) -> Callable[[str], Iterable[str]]:
    """A function from text to words."""
    if tokenizer is None:
        return functools.partial(split_words, knows=knows)
    if not callable(tokenizer):
        raise ValueError(f"tokenizer must be a function from text to words; got {tokenizer!r}.")
    return tokenizer
