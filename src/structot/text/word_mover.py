"""Word Mover's Distance that knows which words belong together.

Notation. A sentence is a row of words with weights a (or b); M_ij the distance between the vectors
of word i of the one and word j of the other; U_k, V_l the phrases of both, each word in n of them;
β the charge, f the Lovász extension of F. All prices are in units of `unit`, all results are not.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structot._checks import nonnegative, one_of, positive
from structot._compilation import announce
from structot.concave import Concave, as_concave
from structot.concave.base import CUSTOM, LINEAR, STEP
from structot.text import batch, phrases
from structot.text import vectors as _vectors
from structot.text._blocks import Model
from structot.text._plans import costs
from structot.text.batch import Answers, Sentence
from structot.text.book import Book

if TYPE_CHECKING:
    from structot.text.explain import Explanation
    from structot.text.search import Neighbors

Array = np.ndarray
Text = Any  # a string, a list of tokens, or `Parsed`

_SLOW_CHUNK = 32  # pairs that go to a worker at a time where g is a Python function


class WordMover:
    """f(s, t) = min_{P in U(a,b)} <M, P> + Σ_kl β/n² · max_{U_k × V_l} P.

    Moving the words of one sentence onto those of another, where every pair of phrases that
    exchanges words costs a fixed charge: neighbours that stay neighbours share it. With
    ``concave=g`` the paper's form instead: F(S) = Σ_kl unit · g(Σ_{S in U_k × V_l} M/n² / unit).
    Without phrases, or with ``charge=0`` or a linear g, it is the plain Word Mover's Distance.
    Phrases are sets: a sentence read backwards has the same n-grams, and is at distance 0.

    Parameters
    ----------
    vectors
        Word vectors: gensim ``KeyedVectors``, a mapping, or ``(words, matrix)``. A word is looked
        up as it stands, then in lower case.
    ngram
        n: length of the windows of ``groups="ngrams"``, levels of the subtrees of
        ``"dependency"``. Every word is in n phrases.
    concave
        g, from `structot.concave` or any concave function (in Python: a second or two per pair,
        as nothing is compiled); None is the fixed charge.
    charge
        β, in units of ``unit``; not used with ``concave``.
    groups
        ``"ngrams"``: windows, shorter at both ends. ``"dependency"``: subtrees of sentences given
        as `Parsed`. None: plain WMD. Or a function from words to lists of positions.
    stop_words
        Words to leave out: None, ``"english"``, or any words; upper and lower case alike. Phrases
        are formed from the words that are left.
    weights
        ``"count"``: every position the same; ``"uniform"``: every different word the same;
        ``"idf"``: after `fit`; or a mapping (1 for a word that it does not name, 0 drops a word).
    tokenizer
        From a string to words; by default runs of letters and digits.
    oov
        Words without a vector: ``"skip"`` counts them in ``unknown`` and reports them once;
        ``"raise"`` is an error.
    unit
        What prices are measured in; by default the mean distance between words of the vocabulary.
    debias
        Return f(s,t) - f(s,s)/2 - f(t,t)/2, so that equal sentences are at 0; else f itself. It
        is no metric: sentences of other lengths with nearly the same words may come out below 0.
    normalize
        Bring the vectors to length 1 first, as gensim's ``wmdistance`` does by default.
    on_empty
        For a sentence without known words: ``"raise"``, or ``"nan"`` for NaN.

    Examples
    --------
    >>> import numpy as np
    >>> words = ["dogs", "cats", "chase", "see"]
    >>> mover = WordMover((words, np.array([[0, 0], [0, 1], [5, 0], [5, 2]])))
    >>> mover.distance("dogs chase cats", "dogs chase cats")
    0.0
    >>> mover.distance("dogs chase cats", "cats dogs chase") > 0
    True
    >>> WordMover(mover.vectors, groups=None).distance("dogs chase cats", "cats dogs chase")
    0.0
    """

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

    def __repr__(self) -> str:
        price = f"charge={self.charge:g}" if self.concave is None else f"concave={self.concave!r}"
        return f"WordMover(<{len(self._vocabulary.index)} words>, ngram={self.ngram}, {price})"

    def fit(self, corpus: Iterable[Text]) -> WordMover:
        """Learn in how many sentences each word occurs, for ``weights="idf"``; returns itself."""
        documents = [self.tokens(text)[0] for text in _vectors.listed("corpus", corpus)]
        if not documents:
            raise ValueError("corpus is empty; pass the sentences that tell which words are rare.")
        self._idf = _vectors.inverse_frequencies(documents)
        self._self_terms.clear()
        return self

    # ----------------------------------------------------------------------------------------------
    # Distances
    # ----------------------------------------------------------------------------------------------

    def distance(self, s: Text, t: Text, tol: float = 1e-3) -> float:
        """The distance between two sentences, f certified to the relative gap ``tol``."""
        return float(self.distances([(s, t)], tol=tol)[0])

    def wmdistance(self, document1: Text, document2: Text) -> float:
        """`distance` under the name that gensim gives it."""
        return self.distance(document1, document2)

    def distances(
        self,
        pairs: Iterable[tuple[Text, Text]],
        n_jobs: int | None = None,
        tol: float = 1e-3,
        progress: bool = False,
    ) -> Array:
        """The distances of a list of pairs, shape (pairs,); see `pairwise` for the arguments."""
        listed = [(pair,) if isinstance(pair, str) else tuple(pair) for pair in pairs]
        if any(len(pair) != 2 for pair in listed):
            raise ValueError("pairs must hold two sentences each.")
        book = Book(self, [sentence for pair in listed for sentence in pair])
        numbers = np.arange(2 * len(listed)).reshape(-1, 2)
        return book.distances(numbers, n_jobs, tol, progress)

    def pairwise(
        self,
        X: Sequence[Text],
        Y: Sequence[Text] | None = None,
        n_jobs: int | None = None,
        tol: float = 1e-3,
        progress: bool = False,
    ) -> Array:
        """All distances between the sentences of X and those of Y (or of X), shape (|X|, |Y|).

        Parameters
        ----------
        X, Y
            Sentences. With Y=None the matrix is symmetric and half of it is computed.
        n_jobs
            As in joblib, whose ``parallel_config`` is honoured (``backend="dask"`` spreads the work
            over a cluster). None: the threads of this process; 1: one of them.
        tol
            Certified relative gap of f for every pair.
        progress
            Show a bar, if somebody watches a terminal.
        """
        X = _vectors.listed("X", X)
        if Y is None:
            book = Book(self, X)
            rows, columns = np.triu_indices(len(X))
            D = np.zeros((len(X), len(X)))
            D[rows, columns] = book.distances(np.stack([rows, columns], 1), n_jobs, tol, progress)
            D[columns, rows] = D[rows, columns]
            return D
        Y = _vectors.listed("Y", Y)
        book = Book(self, X + Y)
        pairs = np.indices((len(X), len(Y))).reshape(2, -1).T + [0, len(X)]
        return book.distances(pairs, n_jobs, tol, progress).reshape(len(X), len(Y))

    def nearest(
        self, query: Text, corpus: Sequence[Text], k: int = 10, tol: float = 1e-3
    ) -> Neighbors:
        """The k sentences of a corpus nearest to a query; see `structot.text.search.nearest`."""
        from structot.text.search import nearest

        return nearest(self, query, corpus, k, tol)

    def explain(self, s: Text, t: Text, tol: float = 1e-4) -> Explanation:
        """Why two sentences are as far apart as they are; see `structot.text.explain`."""
        from structot.text.explain import explain

        return explain(self, s, t, tol)

    # ----------------------------------------------------------------------------------------------
    # From sentences to problems
    # ----------------------------------------------------------------------------------------------

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
        options: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
        if model.kind == CUSTOM:
            return _in_python(self, sentences, pairs, tol, **options)
        corpus, vectors = batch.pack(sentences, self.rows)
        found = batch.solve(corpus, vectors, pairs, model, tol=tol, **options)
        if model.kind == LINEAR:
            slope = model.unit
            return Answers(slope * found.value, slope * found.lower_bound, found.n_iter, found.code)
        return found

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


def _in_python(
    mover: WordMover, sentences: Sequence[Sentence], pairs: Array, tol: float, **options: Any
) -> Answers:
    """The same for a g without compiled form: one `solve` per pair, slower."""

    def job(chunk: Array) -> batch.Job:
        problems = [
            (mover.cost(sentences[s], sentences[t]), sentences[s], sentences[t]) for s, t in chunk
        ]
        return _solve_in_python, (problems, mover.concave, mover.unit, tol)

    def here(chunk: Array) -> Array:
        function, arguments = job(chunk)
        return function(*arguments)

    return batch.collect(pairs, here, job, size=_SLOW_CHUNK, **options)


def _solve_in_python(problems: list, g: Concave, unit: float, tol: float) -> Array:
    """One row (value, bound, iterations, code) per problem (M, s, t)."""
    from structot.text.explain import solve_concave

    results = [solve_concave(M, s, t, g, unit, tol) for M, s, t in problems]
    return np.array([(r.value, r.lower_bound, r.n_iter, not r.converged) for r in results])


def _shown(sentence: Any) -> str:
    text = repr(list(sentence.tokens) if isinstance(sentence, phrases.Parsed) else sentence)
    return text if len(text) <= 200 else f"{text[:200]}..."
