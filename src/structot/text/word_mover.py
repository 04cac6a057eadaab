"""Word Mover's Distance that knows which words belong together.

Notation as in `sentence_cost`: M_ij the distance between the vectors of two words, U_k and V_l the
phrases of both sentences, each word in n of them, β the charge.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from structot.text import vectors as _vectors
from structot.text.distinct import DistinctSentences
from structot.text.explain import Explanation, explain
from structot.text.search import Neighbors, nearest
from structot.text.sentence_cost import SentenceCost, Text

Array = np.ndarray


class WordMover(SentenceCost):
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
        distinct = DistinctSentences(self, [sentence for pair in listed for sentence in pair])
        numbers = np.arange(2 * len(listed)).reshape(-1, 2)
        return distinct.distances(numbers, n_jobs, tol, progress)

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
            distinct = DistinctSentences(self, X)
            rows, columns = np.triu_indices(len(X))
            D = np.zeros((len(X), len(X)))
            D[rows, columns] = distinct.distances(
                np.stack([rows, columns], 1), n_jobs, tol, progress
            )
            D[columns, rows] = D[rows, columns]
            return D
        Y = _vectors.listed("Y", Y)
        distinct = DistinctSentences(self, X + Y)
        pairs = np.indices((len(X), len(Y))).reshape(2, -1).T + [0, len(X)]
        return distinct.distances(pairs, n_jobs, tol, progress).reshape(len(X), len(Y))

    def nearest(
        self, query: Text, corpus: Sequence[Text], k: int = 10, tol: float = 1e-3
    ) -> Neighbors:
        """The k sentences of a corpus nearest to a query; see `structot.text.search.nearest`."""
        return nearest(self, query, corpus, k, tol)

    def explain(self, s: Text, t: Text, tol: float = 1e-4) -> Explanation:
        """Why two sentences are as far apart as they are; see `structot.text.explain`."""
        return explain(self, s, t, tol)
