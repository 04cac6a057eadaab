"""The pieces of the experiment on sentences: what is compared, and what each task computes.

Notation: a choice is one way to measure distances; β a charge, α a threshold, n the length of
n-grams; d distances, y relatedness scores.
"""

from __future__ import annotations

import functools
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structot._typing import Array
from structot.concave import ThresholdSqrt
from structot.datasets.sick import Sick, glove, sick
from structot.groups import ngrams
from structot.text import Parsed, WordMover
from structot.text.presets import PRESETS
from structot.text.weights import FREQUENCIES, SMOOTH

APPENDIX = {
    "a": "I left my book in the hotel",
    "b": "I will book my hotel",
    "c": "I forgot my novel in the room",
}
NEGATION = dict.fromkeys(("no", "not", "n't", "nobody", "never", "nothing", "without"), 3.0)


@dataclass(frozen=True)
class Choice:
    """One distance: its family, the price (β or α), n-grams, and what WMD itself may choose.

    Families: ``wmd`` (plain), ``charge`` (phrases keep order), ``sets`` (phrases are sets, with a
    charge), ``concave`` (the paper's form). ``smooth`` is the a of the weights a/(a + p(w));
    ``exact`` looks words up as they stand, like gensim.
    """

    family: str = "wmd"
    price: float = 0.0
    ngram: int = 2
    groups: str = "ngrams"
    stop: bool = False
    weights: str = "count"
    normalize: bool = False
    smooth: float = SMOOTH
    active_voice: bool = True
    exact: bool = False

    @property
    def name(self) -> str:
        weights = f"sif{self.smooth:g}" if self.weights == "sif" else self.weights
        base = f"{'stop' if self.stop else 'all'}_{weights}_{'unit' if self.normalize else 'raw'}"
        base += ("" if self.active_voice else "_written") + ("_exact" if self.exact else "")
        if self.family == "wmd":
            return f"wmd_{base}"
        return f"{self.family}_{self.groups}{self.ngram}_{self.price:g}_{base}"

    def words(self) -> str:
        """For a table."""
        weights = f"weights {self.weights}"
        if self.weights == "sif":
            weights = f"stop words light (a = {self.smooth:g})"
        parts = ["stop words dropped" if self.stop else "all words"]
        parts += [] if self.stop and self.weights == "sif" else [weights]
        parts += ["vectors of length 1"] if self.normalize else []
        if self.family != "wmd":
            price = f"α = {self.price:g}" if self.family == "concave" else f"β = {self.price:g}"
            as_sets = ["as sets"] if self.family == "sets" else []
            voice = [] if self.active_voice else ["passives as written"]
            parts = [f"{self.groups} n = {self.ngram}", *as_sets, *voice, price, *parts]
        return ", ".join(parts)

    def plain(self) -> Choice:
        """Plain WMD with the same words."""
        return Choice(
            stop=self.stop, weights=self.weights, normalize=self.normalize, smooth=self.smooth
        )

    def shuffled(self) -> Choice:
        """The control: n-grams of the words in a random order."""
        return replace(self, groups="shuffled")


def preset() -> Choice:
    """What `WordMover` does when nothing is said."""
    values = PRESETS[None]
    named = {name: values[name] for name in ("groups", "weights", "normalize")}
    return Choice("charge", values["charge"], **named)


def windows_of_shuffled(words: list[str], n: int) -> list[Array]:
    """The padded n-grams of the words in an order that the words determine at random."""
    seed = zlib.crc32(" ".join(words).encode())
    order = np.random.default_rng(seed).permutation(len(words))
    return [order[window] for window in ngrams(len(words), n, padded=True)]


@functools.lru_cache(maxsize=2)
def load(data: str | None) -> tuple[Sick, tuple[Array, Array]]:
    """SICK and the vectors of its words, once per process."""
    return sick(data), glove("840b", data)


def mover(choice: Choice, vectors: Any, train: Sequence[Parsed] = (), **options: Any) -> WordMover:
    """The distance of a choice; inverse frequencies come from the training sentences."""
    groups: Any = None if choice.family == "wmd" else choice.groups
    if groups == "shuffled":
        groups = functools.partial(windows_of_shuffled, n=choice.ngram)
    weights: Any = choice.weights
    if weights == "sif":
        weights = {w: choice.smooth / (choice.smooth + p) for w, p in FREQUENCIES.items()}
    made = WordMover(
        vectors,
        ngram=choice.ngram,
        concave=ThresholdSqrt(choice.price, choice.price) if choice.family == "concave" else None,
        charge=choice.price if choice.family in ("charge", "sets") else 0.0,
        groups=groups,
        order=choice.family == "charge",
        active_voice=choice.active_voice,
        like="gensim" if choice.exact else None,
        stop_words="english" if choice.stop else None,
        weights=NEGATION if weights == "negation" else weights,
        normalize=choice.normalize,
        on_empty="nan",
        **options,
    )
    return made.fit(train) if choice.weights == "idf" else made


def measure(choice: Choice, data: str | None, pairs: Sick, tol: float = 1e-3) -> Array:
    """d of pairs; a sentence without words left is as far from the other as an average pair."""
    corpus, vectors = load(data)
    train = corpus.part("train")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no vector")
        distance = mover(choice, vectors, train.source + train.target)
        d = distance.distances(zip(pairs.source, pairs.target), tol=tol)
    return np.where(np.isnan(d), np.nanmean(d), d)


def smooth(d: Array, y: Array, at: Array, width: float, leave_out: bool = False) -> Array:
    """Kernel regression of y on d: Σ k((d_i - t)/width) y_i / Σ k, k Gaussian.

    Where nobody is near, the nearest neighbour; ``leave_out`` predicts each point from the others.
    """
    apart = np.abs(at[:, None] - d)
    if leave_out:
        np.fill_diagonal(apart, np.inf)
    weight = np.exp(-0.5 * (apart / width) ** 2)
    total = weight.sum(axis=1)
    alone = total < 1e-12
    nearest = y[np.argmin(apart, axis=1)]
    return np.where(alone, nearest, weight @ y / np.where(alone, 1.0, total))


def best_width(d: Array, y: Array) -> tuple[float, float]:
    """The width of least leave-one-out error, and that error (mean square)."""
    spread = float(np.std(d)) or 1.0
    errors = {}
    for share in (0.05, 0.1, 0.2, 0.35, 0.6, 1.0):
        error = y - smooth(d, y, d, share * spread, leave_out=True)
        errors[share * spread] = float(np.mean(error**2))
    width = min(errors, key=errors.__getitem__)
    return width, errors[width]


# --------------------------------------------------------------------------------------------------
# Tasks
# --------------------------------------------------------------------------------------------------


def grid(choice: Choice, data: str | None, count: int) -> dict[str, Any]:
    """Distances on a fixed random part of train, and the cross-validated error there."""
    index = train_part(load(data)[0], count)
    pairs = load(data)[0].part("train").take(index)
    d = measure(choice, data, pairs)
    return {"d": d, "y": pairs.score, "error": best_width(d, pairs.score)[1]}


def train_part(corpus: Sick, count: int) -> Array:
    """Positions of the pairs on which choices are made."""
    total = int((corpus.split == "train").sum())
    return np.random.default_rng(0).permutation(total)[:count]


def whole(choice: Choice, data: str | None, limit: int | None = None) -> dict[str, Any]:
    """Distances on all of train and test."""
    corpus = load(data)[0]
    found: dict[str, Any] = {}
    for split in ("train", "test"):
        pairs = corpus.part(split)
        pairs = pairs.take(np.arange(len(pairs))[:limit])
        found[split] = measure(choice, data, pairs)
        found[f"{split}_score"] = pairs.score
    return found


def draw(seed: int, choices: dict[str, Choice], data: str | None, size: int) -> dict[str, Any]:
    """Distances of the test pairs of one draw, by family."""
    test = load(data)[0].part("test")
    index = np.random.default_rng([seed, 1]).choice(len(test), min(size, len(test)), replace=False)
    pairs = test.take(index)
    return {
        "y": pairs.score,
        "choices": {family: choice.name for family, choice in choices.items()},
        **{family: measure(choice, data, pairs) for family, choice in choices.items()},
    }


def appendix(data: str | None) -> dict[str, Any]:
    """The three sentences of the paper's appendix: distances and alignments, plain and ours."""
    vectors = glove("6b", data)
    found: dict[str, Any] = {}
    plain: dict[str, Any] = {"groups": None, "weights": "count"}
    for name, options in (("wmd", plain), ("ours", {})):
        distance = WordMover(vectors, **options)
        for pair in ("ab", "ac", "bc"):
            why = distance.explain(APPENDIX[pair[0]], APPENDIX[pair[1]])
            found[f"{name}_{pair}"] = {
                "distance": why.distance,
                "gap": max(float(why.result.gap), 0.0),
                "moves": [[s, t, mass] for s, t, mass, _ in why.moves()],
                "kept": [" ".join(fate.words) for fate in why.kept()],
                "broken": [" ".join(fate.words) for fate in why.broken()],
                "plan": why.plan,
                "cost": why.cost,
                "source": list(why.source),
                "target": list(why.target),
            }
    return found
