"""Word order: copies of sentences with their words moved, and who hears the difference.

Notation: a copy has the words of a sentence in another order; β a charge, a the smoothing of the
weights a/(a + p(w)); an accuracy is the share of paraphrases nearer than their copies, ties ½.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from structot._typing import Array
from structot.datasets.sick import Sick
from structot.experiments._sentence_tasks import Choice, load, mover, preset
from structot.text import Parsed, WordMover
from structot.transport import emd

GOOD = 4.5  # from this score on the second sentence is a paraphrase of the first
SHUFFLES = 3
TIE = 1e-4  # of the unit: differences below it are ties
KINDS = ("shuffled", "reversed", "roles")
CHANGES = ("A verb B", "reversed", "adjacent words", "first and last word")
_SUBJECTS = ("nsubj", "nsubjpass")
_OBJECTS = ("dobj", "iobj", "pobj")


def shuffled(sentence: Parsed, rng: np.random.Generator) -> Parsed | None:
    """A copy in another order. The tree stays with the positions: a parser would give it anew."""
    tokens = sentence.tokens
    if len(set(tokens)) == 1:
        return None
    while True:
        new = tuple(tokens[i] for i in rng.permutation(len(tokens)))
        if new != tokens:
            return replace(sentence, tokens=new)


def backwards(sentence: Parsed) -> Parsed | None:
    """The sentence read backwards."""
    new = tuple(reversed(sentence.tokens))
    return None if new == tuple(sentence.tokens) else replace(sentence, tokens=new)


def roles_swapped(sentence: Parsed) -> Parsed | None:
    """Subject and object have changed places; None where there are no two different ones.

    The subject is the first one, the object the last one outside its subtree that does not hold it.
    """
    assert sentence.relations is not None
    places = range(len(sentence.tokens))
    for i in (p for p in places if sentence.relations[p] in _SUBJECTS):
        for j in (p for p in reversed(places) if sentence.relations[p] in _OBJECTS):
            apart = i not in _above(sentence, j) and j not in _above(sentence, i)
            if apart and sentence.tokens[i].lower() != sentence.tokens[j].lower():
                new = list(sentence.tokens)
                new[i], new[j] = new[j], new[i]
                return replace(sentence, tokens=new)
    return None


def _above(sentence: Parsed, word: int) -> set[int]:
    """The heads of a word up to the root."""
    found: set[int] = set()
    while sentence.heads[word]:
        word = sentence.heads[word] - 1
        found.add(word)
    return found


def is_passive(sentence: Parsed) -> bool:
    """Whether some verb is passive."""
    assert sentence.relations is not None
    return any(name in ("nsubjpass", "auxpass") for name in sentence.relations)


# --------------------------------------------------------------------------------------------------
# Tasks
# --------------------------------------------------------------------------------------------------


def paraphrases(split: str, data: str | None, limit: int | None) -> Sick:
    """The pairs of a split that mean the same."""
    part = load(data)[0].part(split)
    return part.take(np.flatnonzero(part.score >= GOOD)[:limit])


def order(
    method: str, price: float, split: str, data: str | None, limit: int | None = None
) -> dict[str, Any]:
    """For each paraphrase and kind of copy, the share of copies that are farther (NaN: none)."""
    pairs, vectors = paraphrases(split, data, limit), load(data)[1]
    rows: list[tuple[int, str, Parsed]] = []
    for k, target in enumerate(pairs.target):
        rng = np.random.default_rng(k)
        copies = [("shuffled", shuffled(target, rng)) for _ in range(SHUFFLES)]
        copies += [("reversed", backwards(target)), ("roles", roles_swapped(target))]
        rows += [(k, kind, copy) for kind, copy in copies if copy is not None]
    left = [*pairs.source, *(pairs.source[k] for k, _, _ in rows)]
    right = [*pairs.target, *(copy for _, _, copy in rows)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no vector")
        unit, d = _distances(method, price, vectors, left, right)
    base, found = d[: len(pairs)], {}
    kinds, number = np.array([kind for _, kind, _ in rows]), np.array([k for k, _, _ in rows])
    ahead = d[len(pairs) :] - base[number]
    wins = np.where(np.abs(ahead) <= TIE * unit, 0.5, ahead > 0)
    for kind in KINDS:
        chosen = kinds == kind
        total = np.bincount(number[chosen], wins[chosen], len(pairs))
        count = np.bincount(number[chosen], minlength=len(pairs))
        found[kind] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    voices = [is_passive(s) == is_passive(t) for s, t in zip(pairs.source, pairs.target)]
    return {**found, "same_voice": np.array(voices)}


def _distances(
    method: str, price: float, vectors: Any, left: Sequence[Parsed], right: Sequence[Parsed]
) -> tuple[float, Array]:
    """The unit, and the distances of one way to hear order; words are those of the preset."""
    if method == "position":
        return positional(price, vectors, left, right)
    groups = "dependency" if method == "dependency" else "ngrams"
    family = method if method in ("wmd", "sets") else "charge"
    choice = replace(preset(), family=family, price=price, groups=groups)
    distance = mover(replace(choice, active_voice=method != "written"), vectors)
    return distance.unit, distance.distances(zip(left, right), tol=1e-4)


def positional(
    price: float, vectors: Any, left: Sequence[Parsed], right: Sequence[Parsed]
) -> tuple[float, Array]:
    """Plain transport with the cost M_ij + price · unit · |i/n - j/m|: order without structure."""
    plain = mover(preset().plain(), vectors)
    prepared = {s: plain.prepare(s) for s in {*left, *right}}
    d = np.empty(len(left))
    for k, (x, y) in enumerate(zip(left, right)):
        s, t = prepared[x], prepared[y]
        assert s is not None  # paraphrases have known words
        assert t is not None
        M = plain.cost(s, t)
        places = [(np.arange(size) + 0.5) / size for size in M.shape]
        M += price * plain.unit * np.abs(np.subtract.outer(*places))
        d[k] = emd(M, s.weights, t.weights).value
    return plain.unit, d


def _copy(kind: str, sentence: Parsed, seed: int) -> Parsed | None:
    if kind == "shuffled":
        return shuffled(sentence, np.random.default_rng(seed))
    return backwards(sentence) if kind == "reversed" else roles_swapped(sentence)


def candidate(choice: Choice, data: str | None, limit: int | None = None) -> dict[str, Any]:
    """What a preset is chosen by, on train: ρ of -d, and accuracies against moved words."""
    corpus, vectors = load(data)
    train = corpus.part("train")
    train = train.take(np.arange(len(train))[:limit])
    good = paraphrases("train", data, limit)
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no vector")
        distance = mover(choice, vectors)
        d = distance.distances(zip(train.source, train.target))
        known = ~np.isnan(d)
        found["spearman"] = float(spearmanr(-d[known], train.score[known]).statistic)
        base = distance.distances(zip(good.source, good.target))
        for kind in KINDS:
            copies = [_copy(kind, t, k) for k, t in enumerate(good.target)]
            own = [k for k, copy in enumerate(copies) if copy is not None]
            ahead = distance.distances([(good.source[k], copies[k]) for k in own]) - base[own]
            wins = np.where(np.abs(ahead) <= TIE * distance.unit, 0.5, ahead > 0)
            found[kind] = float(wins[~np.isnan(ahead)].mean())
    return found


def heard(choice: Choice, data: str | None, limit: int | None = None) -> dict[str, Any]:
    """Copies of the test sentences with kept words moved: distances and their certified errors."""
    corpus, vectors = load(data)
    test = corpus.part("test")
    every = list(dict.fromkeys((*test.source, *test.target)))[:limit]
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no vector")
        distance = mover(choice, vectors)
        pairs = {kind: _changed(kind, every, distance, rng) for kind in CHANGES}
        several = list(zip(test.source, test.target))[:limit]
        mean = float(np.nanmean(distance.distances(several)))
        found: dict[str, Any] = {"mean_distance": mean}
        for kind, listed in pairs.items():
            lower, upper = distance.bounds(listed)
            # Above the certified error upper - lower is the same as a lower bound above 0.
            audible = (upper > 1e-3 * mean) & (lower > 0)
            found[kind] = {"heard": float(audible.mean()), "cases": len(listed)}
            found[kind] |= {"smallest": float(upper.min()), "median": float(np.median(upper))}
        themselves = distance.distances([(s, s) for s in every])
        found["themselves"] = float(np.nanmax(np.abs(themselves)))
        back = distance.distances([(t, s) for s, t in several])
        there = distance.distances(several)
        found["asymmetry"] = float(np.nanmax(np.abs(back - there)))
    return found


def _changed(
    kind: str, every: Sequence[Parsed], distance: WordMover, rng: np.random.Generator
) -> list[tuple[list[str], list[str]]]:
    """Pairs of word lists, before and after; words that are different have different vectors."""
    pairs = []
    for sentence in every:
        prepared = distance.prepare(sentence)
        if prepared is None:
            continue
        words, rows = list(prepared.words), prepared.rows.tolist()
        if kind == "A verb B":
            pairs += _triples(sentence, distance)
            continue
        new = list(range(len(words)))
        if kind == "reversed":
            new = new[::-1] if len(words) > 2 else new
        elif kind == "first and last word":
            new[0], new[-1] = new[-1], new[0]
        elif len(words) > 1:
            places = [k for k in range(len(words) - 1) if rows[k] != rows[k + 1]]
            if places:
                k = int(rng.choice(places))
                new[k], new[k + 1] = new[k + 1], new[k]
        if [rows[k] for k in new] != rows:
            pairs.append((words, [words[k] for k in new]))
    return pairs


def _triples(sentence: Parsed, distance: WordMover) -> list[tuple[list[str], list[str]]]:
    """(subject, verb, object) of a sentence, and with the roles reversed."""
    assert sentence.relations is not None
    found = []
    for verb, word in enumerate(sentence.tokens):
        own = [k for k, head in enumerate(sentence.heads) if head == verb + 1]
        subjects = [k for k in own if sentence.relations[k] == "nsubj"]
        objects = [k for k in own if sentence.relations[k] == "dobj"]
        if subjects and objects:
            A, B = sentence.tokens[subjects[0]].lower(), sentence.tokens[objects[0]].lower()
            prepared = distance.prepare([A, word, B])
            if prepared is not None and len(set(prepared.rows.tolist())) == 3:
                found.append(([A, word, B], [B, word, A]))
    return found
