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
from structot.concave import Concave, as_concave
from structot.concave.base import CUSTOM, LINEAR, STEP
from structot.result import Result
from structot.solvers.batch.proofs import CONVERGED, LIMIT
from structot.solvers.batch.solver import solve_batch
from structot.solvers.solve import ConvergenceWarning, solve
from structot.structures import Coverage, Groups, Modular
from structot.structures.base import Structure
from structot.text import pairs as _pairs
from structot.text import phrases
from structot.text import vectors as _vectors
from structot.text._kernels import Model, costs
from structot.text.pairs import Answers
from structot.text.sentence import Sentence, pack

Array = np.ndarray
Text = Any  # a string, a list of tokens, or `Parsed`


class SentenceCost:
    """f(s, t) of two sentences; `structot.text.WordMover` says what its parameters mean."""

    def __init__(
        self,
        vectors: Any,
        ngram: int = 2,
        concave: Any = None,
        charge: float = 0.4,
        groups: Any = "ngrams",
        stop_words: Any = None,
        weights: Any = "count",
        tokenizer: Any = None,
        oov: str = "skip",
        *,
        unit: float | None = None,
        debias: bool = True,
        normalize: bool = False,
        on_empty: str = "raise",
    ) -> None:
        self.vectors = vectors
        self.ngram = phrases.check_length(ngram)
        self.concave: Concave | None = None if concave is None else as_concave(concave)
        self.charge = nonnegative("charge", charge)
        self.groups = phrases.check_groups(groups)
        self.stop_words = stop_words
        self.weights = _vectors.check_weights(weights)
        self.tokenizer = tokenizer
        self.oov = one_of("oov", oov, ("skip", "raise"))
        self.debias = bool(debias)
        self.normalize = bool(normalize)
        self.on_empty = one_of("on_empty", on_empty, ("raise", "nan"))
        self.unknown: Counter[str] = Counter()
        self._vocabulary = _vectors.Vocabulary.of(vectors, self.normalize)
        self.unit = self._vocabulary.mean_distance() if unit is None else positive("unit", unit)
        self._split = _vectors.check_tokenizer(tokenizer)
        self._stop = _vectors.stop_list(stop_words)
        self._idf: tuple[dict[str, float], float] | None = None
        self._reported = False
        self._self_terms: dict[tuple[bytes, float, float], float] = {}

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

    def prepare(self, sentence: Text) -> Sentence | None:
        """Words, rows, weights and phrases of a sentence; None if it is empty and may be."""
        tokens, heads = self.tokens(sentence)
        kept, rows = self._known(tokens, sentence)
        words = tuple(tokens[i] for i in kept)
        weights = _vectors.word_weights(self.weights, words, self._idf)
        if (weights == 0).any():
            used = np.flatnonzero(weights > 0)
            kept, rows = [kept[i] for i in used], [rows[i] for i in used]
            words, weights = tuple(words[i] for i in used), weights[used]
        if not words:
            if self.on_empty == "nan":
                return None
            raise ValueError(
                f"no word of the sentence {_shown(sentence)} has a vector and counts; leave it "
                'out, or pass on_empty="nan".'
            )
        tree = None if heads is None else phrases.contract(heads, kept)
        return Sentence(
            words,
            np.array(rows, dtype=np.int64),
            weights / math.fsum(weights),
            phrases.phrases_of(self.groups, self.ngram, words, tree),
        )

    def tokens(self, sentence: Text) -> tuple[list[str], Sequence[int] | None]:
        """The words of a sentence, and their heads if it came with them."""
        if isinstance(sentence, phrases.Parsed):
            return list(sentence.tokens), sentence.heads
        if isinstance(sentence, str):
            return [str(word) for word in self._split(sentence)], None
        words = sentence if isinstance(sentence, Sequence | np.ndarray) else [None]
        if all(isinstance(word, str) for word in words):
            return [str(word) for word in words], None
        raise ValueError(
            f"a sentence must be a string, a list of words, or Parsed; got {_shown(sentence)}."
        )

    def _known(self, tokens: list[str], sentence: Text) -> tuple[list[int], list[int]]:
        """Positions and rows of the words that are no stop words and have a vector."""
        kept, rows = [], []
        for i, word in enumerate(tokens):
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
        """Warn of unknown words, the first time there are some; all are counted in ``unknown``."""
        if self.unknown and not self._reported:
            self._reported = True
            common = ", ".join(repr(word) for word, _ in self.unknown.most_common(5))
            more = ", ..." if len(self.unknown) > 5 else ""
            warnings.warn(
                f"{self.unknown.total()} words have no vector and were left out "
                f"({len(self.unknown)} different ones: {common}{more}). "
                "Later ones are only counted, in the attribute unknown.",
                stacklevel=4,
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
        """f(s, s) of every sentence, from the cache where it was needed before."""
        if not self.debias or self.is_plain or self.concave is not None:
            return np.zeros(len(sentences))  # staying where one is costs nothing without a charge
        price = self.model.price
        keys = [(sentence.key, tol, price) for sentence in sentences]
        new = {key: s for key, s in zip(keys, sentences) if key not in self._self_terms}
        if new:
            same = np.repeat(np.arange(len(new)), 2).reshape(-1, 2)
            found = self.answers(list(new.values()), same, tol=tol, n_jobs=n_jobs)
            self._self_terms.update(zip(new, found.value.tolist()))
        return np.array([self._self_terms[key] for key in keys])

    def structure(self, s: Sentence, t: Sentence) -> Structure | None:
        """F of two sentences: of M for a fixed charge, of M in units of `unit` for a concave g."""
        if self.is_plain:
            return None
        if self.concave is None:
            return Modular() + Coverage(s.phrases, t.phrases, self.price(s, t))
        return Groups(s.phrases, t.phrases, self.concave, units="cost", equal_coverage=True)

    def price(self, s: Sentence, t: Sentence) -> float:
        """β/n² in units of the cost, n² the mean number of blocks that hold a pair of words."""
        return self.charge * self.unit / float(s.coverage.mean() * t.coverage.mean())

    def solve(self, s: Sentence, t: Sentence, tol: float) -> Result:
        """The answer of `structot.solve` for two sentences, in plain units of the cost."""
        M, structure = self.cost(s, t), self.structure(s, t)
        if structure is None:
            return _scaled(solve(M, s.weights, t.weights, tol=tol), self.model.unit)
        unit = 1.0 if self.concave is None else self.unit
        return _scaled(solve(M / unit, s.weights, t.weights, structure=structure, tol=tol), unit)


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
