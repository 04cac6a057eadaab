"""Word Mover's Distance that hears who did what to whom.

Notation as in `sentence_cost`: M_ij the distance between the vectors of two words, U_k and V_l the
phrases of both sentences, each word in n of them, β the charge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from structot._typing import Array
from structot.text.distinct import DistinctSentences
from structot.text.explain import Explanation, explain
from structot.text.search import Neighbors, SentenceIndex
from structot.text.sentence_cost import SentenceCost, Text
from structot.text.tokens import WordCoverage
from structot.text.vectors import listed
from structot.text.weights import Frequencies


class WordMover(SentenceCost):
    """d(s, t) = f(s, t) - f(s, s)/2 - f(t, t)/2,  f = min_{P in U(a,b)} <M, P> + Σ_B β/n · max_B P.

    Moving the words of one sentence onto those of another, where every phrase that is taken apart
    costs extra. A block B holds the pairs of words that stand at the same place of two phrases,
    {(i, j), (i+1, j+1), ...} for windows of n words: words that move in step share its price β/n,
    and every pair of words is in n blocks. A sentence and itself are at distance 0 exactly, and
    two sentences are at least as far apart as in the plain Word Mover's Distance, farther if the
    words stand in another order. With ``order=False`` phrases are sets: all pairs of words of two
    phrases form a block, at β/n². With ``concave=g`` the paper's form instead: F(S) = Σ_kl unit ·
    g(Σ_{S in U_k × V_l} M/n² / unit). Without phrases, or with ``charge=0`` or a linear g, it is
    the plain Word Mover's Distance.

    Parameters
    ----------
    vectors
        Word vectors: gensim ``KeyedVectors``, a mapping, or ``(words, matrix)``. A word is looked
        up as it stands, then in lower case, with straight or curly apostrophes, with composed or
        decomposed accents; an English stop word with a capital, "The", in lower case first.
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
        as `Parsed`; head stands against head, and dependent against dependent of the same relation,
        where a passive verb counts as the active one ("eggs are eaten by men": men do, eggs
        suffer; see ``active_voice``). None: plain WMD. Or a function from words to lists of
        positions, in the order that counts.
    stop_words
        Words to leave out: None, ``"english"``, or any words; upper and lower case alike. Phrases
        are formed from the words that are left. Note that `weights` "sif" makes stop words light
        already, and who did what to whom may hang on them.
    weights
        ``"sif"``: smooth inverse frequency a/(a + p(w)), p from `fit`, or else from a small table
        of English words; ``"count"``: every position the same; ``"uniform"``: every different word
        the same; ``"idf"``: after `fit`; or a mapping (1 for a word that it does not name, 0 drops
        a word).
    tokenizer
        From a string to words; needed for scripts without spaces. By default runs of letters,
        marks and digits; "don't" stays whole or is split as the vocabulary knows it.
    oov
        Words without a vector: ``"skip"`` counts them in ``unknown`` and reports each of them once;
        ``"raise"`` is an error. See `coverage`.
    order
        Whether words of a phrase must keep their order; True for the fixed charge.
    active_voice
        Read a passive that names its agent like the active voice, so that "the cat is chased by
        the dog" is near "the dog chases the cat". Windows then run from the agent over the verb to
        who suffers; words and weights stay. For n-grams in order by a rule for English alone (see
        `structot.text.voice`): a form of "be" or "get", a participle, "by" and an agent; False for
        other languages, or for the order as written. Of parsed sentences the relations tell.
    like
        ``"gensim"``: the settings of gensim's ``wmdistance`` (no phrases, weights by count, words
        as they stand, infinite for sentences without words) unless said otherwise.
    unit
        What prices are measured in; by default the mean distance between words of the vocabulary.
    debias
        Return d; else f itself. With ``order=False`` d is no metric: sentences of other lengths
        with nearly the same words may come out below 0.
    normalize
        Bring the vectors to length 1 first; True unless said otherwise, as in gensim.
    on_empty
        For a sentence without known words: ``"raise"``, or ``"nan"`` or ``"inf"`` as the distance.

    Examples
    --------
    >>> import numpy as np
    >>> words = ["dogs", "cats", "chase", "see"]
    >>> vectors = (words, np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]]))
    >>> mover = WordMover(vectors)
    >>> mover.distance("dogs chase cats", "dogs chase cats")
    0.0
    >>> mover.distance("dogs chase cats", "cats chase dogs") > 0.01
    True
    >>> WordMover(vectors, like="gensim").distance("dogs chase cats", "cats chase dogs")
    0.0
    """

    def __repr__(self) -> str:
        price = f"charge={self.charge:g}" if self.concave is None else f"concave={self.concave!r}"
        like = "" if self.like is None else f", like={self.like!r}"
        return (
            f"WordMover(<{len(self._vocabulary.index)} words>, ngram={self.ngram}, {price}{like})"
        )

    def fit(self, corpus: Iterable[Text]) -> WordMover:
        """Learn how frequent each word is, for ``weights`` "sif" and "idf"; returns itself."""
        documents = [self.tokens(text)[0] for text in listed("corpus", corpus)]
        if not documents:
            raise ValueError("corpus is empty; pass the sentences that tell which words are rare.")
        self._learned = Frequencies.of(documents)
        self._self_terms.clear()
        return self

    def coverage(self, texts: Iterable[Text]) -> WordCoverage:
        """How many words of some texts have a vector, and which have none.

        Examples
        --------
        >>> WordMover({"dogs": [1.0], "bark": [2.0]}).coverage(["Dogs bark", "zebras bark"])
        WordCoverage: 75.00 % of 4 words in 2 texts have a vector; 0 texts left without words
          1 word has no vector (1 different: 'zebras')
        """
        unknown: Counter[str] = Counter()
        total, empty = 0, []
        every = listed("texts", texts)
        for number, text in enumerate(every):
            words = [word for word in self.tokens(text)[0] if word.lower() not in self._stop]
            missing = [word for word in words if not self._vocabulary.knows(word)]
            unknown.update(missing)
            total += len(words)
            if len(missing) == len(words):
                empty.append(number)
        return WordCoverage(len(every), total, unknown, tuple(empty))

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
        return self._solved(pairs, n_jobs, tol, progress)[1]

    def bounds(
        self,
        pairs: Iterable[tuple[Text, Text]],
        n_jobs: int | None = None,
        tol: float = 1e-3,
        progress: bool = False,
    ) -> tuple[Array, Array]:
        """What is proved of the distances of a list of pairs: lower and upper bounds, (pairs,)."""
        lower, _, upper = self._solved(pairs, n_jobs, tol, progress)
        return lower, upper

    def _solved(
        self, pairs: Iterable[tuple[Text, Text]], n_jobs: int | None, tol: float, progress: bool
    ) -> Array:
        # A string is one sentence, not a pair of them, although it may have two letters.
        every = [(pair,) if isinstance(pair, str) else tuple(pair) for pair in pairs]
        if any(len(pair) != 2 for pair in every):
            raise ValueError("pairs must hold two sentences each.")
        distinct = DistinctSentences(self, [sentence for pair in every for sentence in pair])
        numbers = np.arange(2 * len(every)).reshape(-1, 2)
        return distinct.bounds(numbers, n_jobs, tol, progress)

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
        X = listed("X", X)
        if Y is None:
            distinct = DistinctSentences(self, X)
            rows, columns = np.triu_indices(len(X))
            D = np.zeros((len(X), len(X)))
            half = np.stack([rows, columns], 1)
            _, distances, _ = distinct.bounds(half, n_jobs, tol, progress)
            D[rows, columns] = D[columns, rows] = distances
            return D
        Y = listed("Y", Y)
        distinct = DistinctSentences(self, X + Y)
        pairs = np.indices((len(X), len(Y))).reshape(2, -1).T + [0, len(X)]
        _, distances, _ = distinct.bounds(pairs, n_jobs, tol, progress)
        return distances.reshape(len(X), len(Y))

    def nearest(
        self, query: Text, corpus: Sequence[Text], k: int = 10, tol: float = 1e-3
    ) -> Neighbors:
        """The k sentences of a corpus nearest to a query; for more queries see `index`."""
        return self.index(corpus).nearest(query, k, tol)

    def index(self, corpus: Sequence[Text]) -> SentenceIndex:
        """A corpus prepared for many searches; see `structot.text.search.SentenceIndex`."""
        return SentenceIndex(self, corpus)

    def explain(self, s: Text, t: Text, tol: float = 1e-4) -> Explanation:
        """Why two sentences are as far apart as they are; see `structot.text.explain`."""
        return explain(self, s, t, tol)
