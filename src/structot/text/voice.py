"""English passives in the order of the active voice, by a rule over the words alone.

    [the cat]  is  being   chased  up a tree   by   the dog
     patient       helper   verb     rest           agent

is read as "being by | the dog | is chased | the cat | up a tree": what the active voice has no
place for goes to the front, and windows of words run from who does to who suffers. No word is
changed or left out, only the places that they are read from. Notation: a position is the place of
a word in the text; all words are in lower case.

The rule is a light one, for English. It asks for a form of "be" or "get", a participle, and an
agent behind "by"; all else stays as it is. It knows no grammar: "was painted by the river" is a
passive to it. "Is not being chased" and "is being not chased" read the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FINITE = _words("am is are was were isn't aren't wasn't weren't ain't get gets got")
_HELPERS = _FINITE | _words("be been being getting gotten")  # the last one makes the passive
_SHORT = _words("'s 're 'm")  # helpers as well, or of the owner: the dog 's tail
_MODALS = _words(
    """will would shall should can could may might must won't wouldn't shouldn't can't couldn't
    has have had hasn't haven't hadn't"""
)
_VERBS = _HELPERS | _SHORT | _MODALS
# What stands in a verb group without being a verb; words in -ly as well.
_ADVERBS = _words("not n't never ever also always often still just now soon already almost to")
_IRREGULAR = _words(
    """beaten begun bent bet bitten blown borne bought bound bred broken brought built burnt burst
    cast caught chosen clung cut dealt done drawn driven drunk dug eaten fed felt flown
    forbidden forgiven forgotten fought found frozen given ground grown heard held hewn hidden hit
    hung hurt kept knit known laid leapt learnt led left lent let lit lost made met mown paid put
    quit read ridden rung said sawn seen sent set sewn shaken shaven shod shone shorn shot shown
    shrunk shut slain slit slung sold sought sown spelt spent spilt split spoken spread spun
    stolen stood stricken strung struck stuck stung sung sunk swept sworn swum swung taken
    taught thrown told torn trodden understood woken won worn wound woven written wrung"""
)
_PREFIXES = ("re", "un", "over", "out", "mis", "under", "with", "up", "fore")
_ENDS_IN_EED = _words("agreed decreed freed guaranteed refereed")
_NO_PARTICIPLES = _words("bed hundred kindred naked red sacred shed sled wicked")
# Somebody rests there: "by the river" behind them is a place.
_RESTING = _words(
    """anchored camped docked gathered located moored parked perched placed positioned seated
    situated stationed stood stranded"""
)
_PARTICLES = _words("up down off out away over back around along apart through")
_PREPOSITIONS = _PARTICLES | _words(
    """about above across after against among at before behind below beneath beside between beyond
    by during for from in inside into near next of on onto outside past to toward towards under
    underneath until upon with within without"""
)
_RELATIVE = _words("who whom whose which that")
_SUBORDINATE = _words(
    "although as because but if since so though unless when whenever where whereas while"
)
_DETERMINERS = _words(
    """a an the no some any each every this these those another my your his her its our their one
    two three four five six several many few all both"""
)
# Behind "by" these say how or when.
_MEANS = _words(
    """accident air bike boat bus car chance contrast default definition design email far foot hand
    land law mail means mistake nature phone plane post proxy rail sea ship surprise taxi train"""
)
_TIMES = _words(
    """afternoon dawn day deadline dusk end evening midnight month morning night noon now sunset
    then time today tomorrow tonight way week weekend year monday tuesday wednesday thursday friday
    saturday sunday january february april june july august september october november december"""
)


class Passive(NamedTuple):
    """Where its parts are: each begins at its position, and the agent ends before ``end``."""

    patient: int
    group: int  # all verbs
    helper: int
    rest: int
    by: int
    end: int

    def as_active(self) -> list[int]:
        """The positions from ``patient`` to ``end`` in the order of the active voice."""
        verbs = [k for k in range(self.group, self.rest) if k != self.helper]
        return [
            self.helper,
            self.by,
            *range(self.by + 1, self.end),
            *verbs,
            *range(self.patient, self.group),
            *range(self.rest, self.by),
        ]


def reading_order(words: Sequence[str]) -> list[int]:
    """All positions of a sentence, passives with an agent in the order of the active voice.

    Examples
    --------
    >>> words = "the cat is chased by the dog".split()
    >>> " ".join(words[k] for k in reading_order(words))
    'is by the dog chased the cat'
    >>> reading_order("the cat sits by the dog".split())
    [0, 1, 2, 3, 4, 5]
    """
    text = [word.lower().replace("’", "'") for word in words]
    order, done = list(range(len(text))), 0
    for helper in range(len(text)) if "by" in text else ():
        found = _passive(text, helper)
        if found is not None and found.patient >= done:
            order[found.patient : found.end] = found.as_active()
            done = found.end
    return order


def is_participle(word: str) -> bool:
    """Whether a word looks like the participle of a passive.

    Examples
    --------
    >>> [is_participle(word) for word in ("chased", "eaten", "rewritten", "red", "speed")]
    [True, True, True, False, False]
    """
    if word.endswith("ed"):
        regular = not word.endswith("eed") and word not in _NO_PARTICIPLES
        return regular or word in _ENDS_IN_EED
    stems = [word, *(word[len(p) :] for p in _PREFIXES if word.startswith(p))]
    return any(stem in _IRREGULAR for stem in stems)


def _passive(text: list[str], helper: int) -> Passive | None:
    """The passive whose last helper is at a position, if there is one and its agent is named."""
    verb = _after_adverbs(text, helper + 1)
    if text[helper] not in _HELPERS | _SHORT or not is_participle(_word(text, verb)):
        return None
    happens = text[helper] in ("being", "getting")
    if text[verb] in _RESTING and not happens:
        return None
    rest = verb + 1
    while _word(text, rest) in ("and", "or") and is_participle(_word(text, rest + 1)):
        rest += 2  # opened and drunk
    if _word(text, rest) in _PARTICLES and _word(text, rest + 1) in _PREPOSITIONS:
        rest += 1  # picked up by, pulled out of; but: held over her head
    by = _by(text, rest, happens)
    if by is None:
        return None
    group = helper
    while group and (_is_adverb(text[group - 1]) or text[group - 1] in _VERBS):
        group -= 1
    is_finite = any(word in _FINITE | _SHORT | _MODALS for word in text[group : helper + 1])
    patient = _subject(text, group) if is_finite else _noun_phrase(text, group)
    if patient is None:
        return None
    return Passive(patient, group, helper, rest, by, _agent_end(text, by + 1))


def _by(text: list[str], rest: int, happens: bool) -> int | None:
    """Where the "by" of an agent is, behind a verb.

    Between them other words may stand if something happens ("is being held over his head by"); in
    a state they are likely to be a place ("is covered in leaves by the road").
    """
    by = rest if happens else _after_adverbs(text, rest)
    while happens and by < len(text) and text[by] != "by":
        if _ends_clause(text, by) or text[by].endswith("ing"):
            return None
        by += 1
    if _word(text, by) != "by":
        return None
    agent = text[by + 1 : _agent_end(text, by + 1)]
    if not agent or agent[0][0].isdigit() or not _TIMES.isdisjoint(agent):
        return None
    if (len(agent) == 1 and agent[0] in _MEANS) or agent[0].endswith(("self", "selves")):
        return None
    is_means = agent[0].endswith("ing") and not agent[0].endswith("thing")  # by running
    return None if is_means else by


def _agent_end(text: list[str], start: int) -> int:
    """Where the noun phrase of an agent ends: before a preposition other than "of", or a verb."""
    end = start
    while end < len(text) and not _ends_clause(text, end):
        if text[end] in _MODALS or (text[end] in _PREPOSITIONS and text[end] != "of"):
            break
        end += 1
    return end


def _ends_clause(text: list[str], at: int) -> bool:
    """Whether another clause begins here; at an "and", if it has a verb of its own."""
    if text[at] in ("and", "or"):
        return any(word in _FINITE for word in text[at:])
    return _is_mark(text[at]) or text[at] in _RELATIVE | _SUBORDINATE | _HELPERS


def _subject(text: list[str], group: int) -> int:
    """Where the subject of a finite verb group begins; at ``group`` for "a ball that is ..."."""
    start = group
    if start and _is_mark(text[start - 1]):  # A boy, who wears blue, is ...
        marks = [k for k in range(start - 1) if _is_mark(text[k])]
        start = marks[-1] if marks else start
    while start and not _begins_clause(text, start, group):
        start -= 1
    return start


def _begins_clause(text: list[str], start: int, group: int) -> bool:
    """Whether what stands before a position belongs to another clause."""
    before = text[start - 1]
    if before in _RELATIVE:
        return start == group or (before == "that" and text[start] in _DETERMINERS)
    if before in ("and", "or"):  # the clause before it has a verb of its own
        verbs = sum(word in _FINITE for word in text[:start])
        return verbs > sum(word in _RELATIVE for word in text[:start])
    return _is_mark(before) or before in _SUBORDINATE


def _noun_phrase(text: list[str], group: int) -> int | None:
    """Where the noun phrase before "being chased" begins: there is [no cat] being chased."""
    start = group
    while start and not (_ends_clause(text, start - 1) or text[start - 1].endswith("ing")):
        if text[start - 1] in ("and", "or"):
            break
        start -= 1
        if text[start] in _DETERMINERS and _word(text, start - 1) not in _PREPOSITIONS:
            return start
    if start == group or any(map(is_participle, text[start:group])):
        return None
    return start


def _after_adverbs(text: list[str], at: int) -> int:
    while at < len(text) and _is_adverb(text[at]):
        at += 1
    return at


def _is_adverb(word: str) -> bool:
    return word in _ADVERBS or word.endswith("ly")


def _is_mark(word: str) -> bool:
    return not any(letter.isalnum() for letter in word)


def _word(text: list[str], at: int) -> str:
    """The word at a position, or none beyond the ends."""
    return text[at] if 0 <= at < len(text) else ""
