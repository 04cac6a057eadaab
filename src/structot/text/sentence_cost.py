"""The cost of moving one sentence onto another: from words to problems with certified answers.

Notation. A sentence is a row of words with weights a (or b); M_ij the distance between the vectors
of word i of the one and word j of the other; U_k, V_l the phrases of both, each word in n of them;
β the charge, f the Lovász extension of F. All prices are in units of `unit`, all results are not.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structot._checks import nonnegative, one_of, positive
from structot._compilation import announce
from structot._typing import Array
from structot.concave import Concave, as_concave
from structot.concave.base import CUSTOM, LINEAR, STEP
from structot.result import Result
from structot.solvers.batch.proofs import CONVERGED, LIMIT
from structot.solvers.batch.solver import solve_batch
from structot.solvers.solve import ConvergenceWarning, solve
from structot.structures import Coverage, Groups, Modular
from structot.structures.base import Structure
from structot.text import pairs as _pairs
from structot.text import phrases, tokens
from structot.text import weights as _weights
from structot.text._kernels import Model, costs
from structot.text._warnings import warn
from structot.text.pairs import Answers
from structot.text.presets import UNSET, chosen
from structot.text.sentence import Sentence, pack, starts
from structot.text.vectors import Vocabulary
from structot.text.voice import reading_order

Text = Any  # a string, a list of tokens, or `Parsed`


class SentenceCost:
    """f(s, t) of two sentences; `structot.text.WordMover` says what its parameters mean."""

    def __init__(
        self,
        vectors: Any,
        ngram: int = 2,
        concave: Any = None,
        charge: float = UNSET,
        groups: Any = UNSET,
        stop_words: Any = None,
        weights: Any = UNSET,
        tokenizer: Any = None,
        oov: str = "skip",
        *,
        order: bool | None = None,
        active_voice: bool = True,
        like: str | None = None,
        unit: float | None = None,
        debias: bool = True,
        normalize: bool = UNSET,
        on_empty: str = UNSET,
    ) -> None:
        given = {"charge": charge, "groups": groups, "weights": weights}
        preset = chosen(like, **given, normalize=normalize, on_empty=on_empty)
        self.vectors = vectors
        self.like = like
        self.ngram = phrases.check_length(ngram)
        self.concave: Concave | None = None if concave is None else as_concave(concave)
        self.order = self.concave is None if order is None else bool(order)
        if self.order and self.concave is not None:
            raise ValueError(
                "order=True is for the fixed charge: with a concave function equal words cost "
                "nothing wherever they go; leave out concave, or pass order=False."
            )
        self.active_voice = bool(active_voice)
        self.charge = nonnegative("charge", preset["charge"])
        self.groups = phrases.check_groups(preset["groups"])
        self.stop_words = stop_words
        self.weights = _weights.check_weights(preset["weights"])
        self.tokenizer = tokenizer
        self.oov = one_of("oov", oov, ("skip", "raise"))
        self.debias = bool(debias)
        self.normalize = bool(preset["normalize"])
        self.on_empty = one_of("on_empty", preset["on_empty"], ("raise", "nan", "inf"))
        self.unknown: Counter[str] = Counter()
        self._vocabulary = Vocabulary.of(vectors, self.normalize, preset["exact"])
        self.unit = self._vocabulary.mean_distance() if unit is None else positive("unit", unit)
        self._split = tokens.check_tokenizer(tokenizer, self._vocabulary.knows)
        self._stop = _weights.stop_list(stop_words)
        self._learned: _weights.Frequencies | None = None
        self._reported: set[str] = set()
        self._self_terms: dict[tuple[bytes, float, float], tuple[float, float]] = {}

    @property
    def is_plain(self) -> bool:
        """Whether f is the plain Word Mover's Distance, up to a factor."""
        return self.model.kind == LINEAR

    @property
    def model(self) -> Model:
        """F of a block for the compiled kernels; of kind LINEAR where the problem is plain WMD."""
        plain = self.groups is None or (self.concave is None and self.charge == 0)
        if plain:
            return Model(LINEAR, np.empty(0), 1.0, 0.0)
        if self.concave is None:
            return Model(STEP, np.empty(0), 1.0, self.charge * self.unit)
        if self.concave.is_linear:
            return Model(LINEAR, np.empty(0), float(self.concave.slope(0.0)), 0.0)
        kind, params = self.concave.pack()
        return Model(kind, params, self.unit, 0.0)

    @property
    def keeps_order(self) -> bool:
        """Whether each word has each of its n roles once, so that staying put costs least.

        For every phrase U_k and word i in it, the blocks of U_k hold all pairs of i in different
        sets: together they cost at least a_i. So f(s, t) is at least plain WMD plus β/n Σ_k max a
        over U_k, with equality for a sentence and itself; and the same holds for the phrases of t.
        """
        return self.order and not self.is_plain and isinstance(self.groups, str)

    def prepare(self, sentence: Text) -> Sentence | None:
        """Words, rows, weights and phrases of a sentence; None if it is empty and may be."""
        split, tree = self.tokens(sentence)
        kept, rows = self._known(split, sentence)
        words = tuple(split[i] for i in kept)
        weights = _weights.word_weights(self.weights, words, self._learned)
        if (weights == 0).any():
            used = np.flatnonzero(weights > 0)
            kept, rows = [kept[i] for i in used], [rows[i] for i in used]
            words, weights = tuple(words[i] for i in used), weights[used]
        if not words:
            if self.on_empty != "raise":
                return None
            raise ValueError(
                f"no word of the sentence {_shown(sentence)} has a vector and counts; leave it "
                'out, or pass on_empty="nan" or "inf".'
            )
        tree = None if tree is None else tree.contract(kept)
        reading = self._reading(split, kept)
        return Sentence(
            words,
            np.array(rows, dtype=np.int64),
            weights / math.fsum(weights),
            phrases.phrases_of(self.groups, self.ngram, words, tree, self.order, reading),
        )

    def _reading(self, words: list[str], kept: list[int]) -> Array | None:
        """In which order windows run along the kept words; None is from left to right.

        Positions count among the kept words, but the voice is told from all of them: "by" may be a
        stop word, or have no vector.
        """
        if not (self.active_voice and self.order and self.groups == "ngrams"):
            return None
        number = {position: k for k, position in enumerate(kept)}
        return np.array([number[k] for k in reading_order(words) if k in number])

    def tokens(self, sentence: Text) -> tuple[list[str], phrases.Tree | None]:
        """The words of a sentence, and its tree if it came with one."""
        if isinstance(sentence, phrases.Parsed):
            tree = phrases.Tree(sentence.heads, sentence.relations)
            if self.active_voice:
                tree = tree.in_active_voice(sentence.tokens)
            return list(sentence.tokens), tree
        if isinstance(sentence, str):
            return [str(word) for word in self._split(sentence)], None
        words = sentence if isinstance(sentence, Sequence | np.ndarray) else [None]
        if all(isinstance(word, str) for word in words):
            return [str(word) for word in words], None
        raise ValueError(
            f"a sentence must be a string, a list of words, or Parsed; got {_shown(sentence)}."
        )

    def _known(self, words: list[str], sentence: Text) -> tuple[list[int], list[int]]:
        """Positions and rows of the words that are no stop words and have a vector."""
        kept, rows = [], []
        for i, word in enumerate(words):
            if word.lower() in self._stop:
                continue
            row = self._vocabulary.row(word)
            if row is not None:
                kept.append(i)
                rows.append(row)
            elif self.oov == "raise":
                raise ValueError(
                    f'the word {word!r} of {_shown(sentence)} has no vector; pass oov="skip" to '
                    "leave such words out."
                )
            else:
                self.unknown[word] += 1
        return kept, rows

    def report_unknown(self) -> None:
        """One warning for the unknown words that none was given for; ``unknown`` counts all."""
        new = Counter({w: c for w, c in self.unknown.items() if w not in self._reported})
        if new:
            self._reported |= set(new)
            warn(
                f"{tokens.named(new)}. They are left out, and each of them is reported once; "
                "coverage(texts) counts those of a corpus."
            )

    def answers(
        self,
        sentences: Sequence[Sentence],
        pairs: Array,
        *,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> Answers:
        """f of pairs of prepared sentences, with the certificates; nothing is debiased."""
        announce()
        tol, model = positive("tol", tol), self.model
        options: dict[str, Any] = {"tol": tol, "n_jobs": n_jobs, "progress": progress}
        if model.kind == CUSTOM:
            return self._answers_in_python(sentences, pairs, **options)
        corpus, vectors = pack(sentences, self.rows)
        found = _pairs.solve(corpus, vectors, pairs, model, **options)
        return found.scaled(model.unit) if model.kind == LINEAR else found

    def _answers_in_python(
        self, sentences: Sequence[Sentence], pairs: Array, **options: Any
    ) -> Answers:
        """The same for a g without compiled form: slower, by `structot.solve`."""
        chosen = [(sentences[s], sentences[t]) for s, t in pairs]
        with warnings.catch_warnings():
            # Whoever asked is told of all pairs at once.
            warnings.simplefilter("ignore", ConvergenceWarning)
            results = solve_batch(
                [self.cost(s, t) / self.unit for s, t in chosen],
                [s.weights for s, _ in chosen],
                [t.weights for _, t in chosen],
                structures=[self.structure(s, t) for s, t in chosen],
                **options,
            )
        table = np.array([(r.value, r.lower_bound, r.n_iter, r.converged) for r in results])
        code = np.where(table[:, 3] == 1.0, CONVERGED, LIMIT)
        return Answers(table[:, 0], table[:, 1], table[:, 2].astype(int), code).scaled(self.unit)

    def rows(self, rows: Array) -> Array:
        """Vectors of some rows of the vocabulary, as distances are taken between them."""
        return self._vocabulary.rows(rows)

    def cost(self, s: Sentence, t: Sentence) -> Array:
        """M_ij = |x_i - y_j|."""
        x, y = self.rows(s.rows), self.rows(t.rows)
        rows = np.arange(len(x) + len(y))
        return costs(np.concatenate([x, y]), rows[: len(x)], rows[len(x) :])

    def self_terms(
        self, sentences: Sequence[Sentence], tol: float, n_jobs: int | None = None
    ) -> Array:
        """f(s, s) of every sentence and a lower bound of it, shape (2, sentences)."""
        if not self.debias or self.is_plain or self.concave is not None:
            return np.zeros((2, len(sentences)))  # without a charge, staying put costs nothing
        price = self.model.price
        if self.keeps_order:
            least = np.array([_largest_weights(sentence) for sentence in sentences])
            return np.tile(price / self.ngram * least, (2, 1))
        keys = [(sentence.key, tol, price) for sentence in sentences]
        new = {key: s for key, s in zip(keys, sentences) if key not in self._self_terms}
        if new:
            same = np.repeat(np.arange(len(new)), 2).reshape(-1, 2)
            found = self.answers(list(new.values()), same, tol=tol, n_jobs=n_jobs)
            pairs = zip(found.value.tolist(), found.lower_bound.tolist())
            self._self_terms.update(zip(new, pairs))
        return np.array([self._self_terms[key] for key in keys]).T

    def structure(self, s: Sentence, t: Sentence) -> Structure | None:
        """F of two sentences: of M for a fixed charge, of M in units of `unit` for a concave g."""
        if self.is_plain:
            return None
        if self.concave is None:
            sets = self.blocks(s, t)
            return Modular() + Coverage.of_sets(sets, self.price(sets, s, t))
        rows, columns = ([phrase.members for phrase in x.phrases] for x in (s, t))
        return Groups(rows, columns, self.concave, units="cost", equal_coverage=True)

    def blocks(self, s: Sentence, t: Sentence) -> list[Array]:
        """The sets of pairs of words that share a price, arrays (pairs, 2)."""
        return phrases.blocks_between(s.phrases, t.phrases, (len(s.words), len(t.words)))

    def price(self, blocks: list[Array], s: Sentence, t: Sentence) -> float:
        """The price of a block: β over the mean number of blocks that hold a pair of words."""
        held = sum(len(block) for block in blocks) / (len(s.words) * len(t.words))
        return self.charge * self.unit / held

    def solve(self, s: Sentence, t: Sentence, tol: float) -> Result:
        """The answer of `structot.solve` for two sentences, in plain units of the cost."""
        M, structure = self.cost(s, t), self.structure(s, t)
        if structure is None:
            return _scaled(solve(M, s.weights, t.weights, tol=tol), self.model.unit)
        unit = 1.0 if self.concave is None else self.unit
        return _scaled(solve(M / unit, s.weights, t.weights, structure=structure, tol=tol), unit)


def _largest_weights(sentence: Sentence) -> float:
    """Σ_k max a over the phrases U_k."""
    members = np.concatenate([phrase.members for phrase in sentence.phrases])
    begin = starts([phrase.members.size for phrase in sentence.phrases])
    return float(np.maximum.reduceat(sentence.weights[members], begin[:-1]).sum())


def _scaled(result: Result, unit: float) -> Result:
    """The same answer with costs in another unit."""
    if unit == 1.0:
        return result
    u, v = result.potentials
    trace = replace(
        result.trace, value=unit * result.trace.value, lower_bound=unit * result.trace.lower_bound
    )
    names = ("value", "value_structured", "value_linear", "lower_bound", "atol", "worst_cost")
    scaled = {name: unit * getattr(result, name) for name in names}
    return replace(result, potentials=(unit * u, unit * v), trace=trace, **scaled)


def _shown(sentence: Any) -> str:
    text = repr(list(sentence.tokens) if isinstance(sentence, phrases.Parsed) else sentence)
    return text if len(text) <= 200 else f"{text[:200]}..."
