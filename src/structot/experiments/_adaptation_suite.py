"""Families of adaptation problems, none like another, on which defaults are chosen and reported.

A family is a few cases: a data set and a shift, from which a seed draws one problem. What
needs files takes MNIST and USPS from the data folder; everything else ships with scikit-learn or
is made here. The simulated shifts are of the kinds (covariates, class proportions, concept, lost
dimension) that the adaptation literature uses.

Notation
--------
Xs, ys, Xt      a source sample with labels and a target sample without
queries, truth  points of the target domain on which a classifier is scored, and their labels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from structot._typing import Array
from structot.datasets.synthetic import clusters

SAMPLE = 100  # points per domain
QUERIES = 500  # at most
_POOL = 6000  # images of each digit data set that are drawn from
_FEATURES = 600  # random rectified features


@dataclass(frozen=True, eq=False)
class Draw:
    """One adaptation problem; ``scaled``: the classifier standardises its features first."""

    Xs: Array
    ys: Array
    Xt: Array
    queries: Array
    truth: Array
    scaled: bool = False


@dataclass(frozen=True)
class Case:
    """A data set with a shift, by name; `draw` makes the problem of a seed."""

    family: str
    name: str
    make: Callable[..., Draw]
    arguments: tuple[Any, ...] = ()
    needs_data: bool = False

    @property
    def key(self) -> str:
        """For file names."""
        return f"{FAMILIES.index(self.family)}-{self.name.replace(' ', '-')}"

    def draw(self, seed: int, data: str | None) -> Draw:
        """The problem of this seed; the same for every method."""
        rng = np.random.default_rng([seed, *map(ord, f"{self.family}/{self.name}")])
        if self.needs_data:
            return self.make(rng, data, *self.arguments)
        return self.make(rng, *self.arguments)


# ---- MNIST and USPS ------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _images(data: str | None, name: str) -> tuple[Array, Array]:
    """Some thousand training images (count, 16, 16) and their labels."""
    from structot.datasets import digits

    found = getattr(digits, name)(data)
    images = found.x_train[:_POOL]
    if images.shape[1] != 16:
        images = digits.resize(images, 16)
    return images.astype(np.float64), found.y_train[:_POOL].astype(np.int64)


def _pick(labels: Array, balanced: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """Indices of a sample and of queries, disjoint; the sample equally many per class, or not."""
    order = rng.permutation(len(labels))
    if balanced:
        classes = np.unique(labels)
        each = SAMPLE // len(classes)
        sample = np.concatenate([order[labels[order] == c][:each] for c in classes])
    else:
        sample = order[:SAMPLE]
    rest = np.setdiff1d(order, sample)
    return sample, rng.permutation(rest)[:QUERIES]


def _digits(
    rng: np.random.Generator,
    data: str | None,
    source: str,
    target: str,
    balanced: bool,
    features: Callable[[Array], Array],
) -> Draw:
    (first, y_first), (second, y_second) = (_images(data, name) for name in (source, target))
    i, _ = _pick(y_first, balanced, rng)
    j, q = _pick(y_second, balanced, rng)
    Xs, Xt, queries = features(first[i]), features(second[j]), features(second[q])
    return Draw(Xs, y_first[i], Xt, queries, y_second[q])


def pixels(images: Array, blur: float = 0.0) -> Array:
    """Images as vectors of norm 1, blurred by some pixels if asked for."""
    from scipy.ndimage import gaussian_filter

    if blur:
        images = gaussian_filter(images, (0.0, blur, blur))
    flat = images.reshape(len(images), -1)
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


def _blurred(images: Array) -> Array:
    return pixels(images, 1.0)


def _gradients(images: Array) -> Array:
    """Histograms of oriented gradients: sparse, many features."""
    from skimage.feature import hog

    return np.array([hog(x, 8, (4, 4), (2, 2), feature_vector=True) for x in images])


def _rectified(images: Array) -> Array:
    """max(0, W x) with one random W: as a layer of a network leaves it, most entries zero."""
    flat = pixels(images)
    W = np.random.default_rng(0).normal(size=(flat.shape[1], _FEATURES))
    return np.maximum(flat @ W - 0.5, 0.0)


# ---- scikit-learn's 8×8 digits -------------------------------------------------------------------


def _small_digits(rng: np.random.Generator, change: str) -> Draw:
    from scipy.ndimage import grey_dilation, rotate
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images, labels = bunch.images / 16.0, bunch.target
    order = rng.permutation(len(images))
    first, second = np.array_split(order, 2)
    i, _ = _pick(labels[first], True, rng)
    j, q = _pick(labels[second], False, rng)
    moved = images[second]
    if change == "turned":
        moved = rotate(moved, 25.0, axes=(2, 1), reshape=False, order=1)
    elif change == "thick":
        moved = grey_dilation(moved, (1, 2, 2))
    elif change == "faint":
        moved = 0.5 * moved + 0.25 + 0.15 * rng.standard_normal(moved.shape)
    else:  # half of the pixels lost
        moved = moved * (rng.random(moved.shape[1:]) < 0.5)
    flat = moved.reshape(len(moved), -1)
    Xs = images[first[i]].reshape(len(i), -1)
    return Draw(Xs, labels[first[i]], flat[j], flat[q], labels[second[q]])


# ---- scikit-learn's tables with batch effects ----------------------------------------------------


def _table(rng: np.random.Generator, name: str, change: str) -> Draw:
    """Two random halves in the units of the table, one of them measured in another laboratory."""
    from sklearn import datasets

    bunch = getattr(datasets, f"load_{name}")()
    order = rng.permutation(len(bunch.target))
    first, second = (part[:SAMPLE] for part in np.array_split(order, 2))
    center, scale = bunch.data.mean(axis=0), bunch.data.std(axis=0)
    moved = (bunch.data[second] - center) / scale
    size = moved.shape[1]
    if change == "gain":
        moved = moved * np.exp(0.6 * rng.standard_normal(size)) + 1.2 * rng.standard_normal(size)
    elif change == "turn":
        moved = moved @ _turn(size, 0.9, rng)
    else:  # half of the features not measured: everywhere the mean
        moved = moved * (rng.permutation(size) >= size // 2)
    Xt, yt = moved * scale + center, bunch.target[second]
    return Draw(bunch.data[first], bunch.target[first], Xt, Xt, yt, scaled=True)


def _turn(size: int, angle: float, rng: np.random.Generator) -> Array:
    """A rotation by ``angle`` in each of size // 2 random orthogonal planes."""
    basis, _ = np.linalg.qr(rng.standard_normal((size, size)))
    turn = np.eye(size)
    for k in range(size // 2):
        plane = slice(2 * k, 2 * k + 2)
        turn[plane, plane] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return basis @ turn @ basis.T


# ---- made here -----------------------------------------------------------------------------------


def _gaussians(rng: np.random.Generator, classes: int, dimension: int, rotation: float) -> Draw:
    """Gaussian classes; in the plane the target is turned, beyond it bent by a random map."""
    size = SAMPLE + QUERIES
    if dimension == 2:
        made = clusters(SAMPLE, size, classes, rotation=rotation, shift=3.0, seed=rng)
        X, Y, ys, yt = made.X, made.Y, made.source_labels, made.target_labels
    else:
        centers = 1.2 * rng.standard_normal((classes, dimension))
        ys, yt = rng.integers(classes, size=SAMPLE), rng.integers(classes, size=size)
        X = centers[ys] + rng.standard_normal((SAMPLE, dimension))
        Y = centers[yt] + rng.standard_normal((size, dimension))
        Y = Y @ _turn(dimension, rotation, rng) * np.exp(0.3 * rng.standard_normal(dimension))
        Y = Y + rng.standard_normal(dimension)
    order = rng.permutation(size)
    j, q = order[:SAMPLE], order[SAMPLE:]
    return Draw(X, ys, Y[j], Y[q], yt[q])


def _simulated(rng: np.random.Generator, change: str) -> Draw:
    """Two classes of four blobs each in the plane, and one kind of shift between the domains."""
    size = SAMPLE + QUERIES
    blobs = np.array([[x, y] for x in (0.0, 1.0, 2.0, 3.0) for y in (0.0, 1.0)])
    classes = np.array([0, 1, 1, 0, 0, 1, 1, 0])  # a chessboard

    def draw(count: int, chance: Array) -> tuple[Array, Array]:
        blob = rng.choice(8, count, p=chance / chance.sum())
        return blobs[blob] + 0.22 * rng.standard_normal((count, 2)), classes[blob]

    even = np.ones(8)
    chance = {
        "covariates": np.linspace(0.1, 1.9, 8),
        "proportions": np.where(classes == 0, 0.35, 1.65),
    }.get(change, even)
    X, ys = draw(SAMPLE, even)
    Y, yt = draw(size, chance)
    if change == "concept":
        Y = Y * [1.3, 0.8] + [0.5, 0.6]
    elif change == "lost dimension":
        X, Y = np.column_stack([X, X[:, :1] * 0.0]), np.column_stack([Y, Y[:, :1] * 0.0])
        Y = Y @ _turn(3, 0.5, rng)
    return Draw(X, ys, Y[:SAMPLE], Y[SAMPLE:], yt[SAMPLE:])


_WAYS = (("mnist", "usps"), ("usps", "mnist"))
CASES = (
    *(
        Case("MNIST ↔ USPS", f"{s}-{t}-{name}", _digits, (s, t, even, see), True)
        for s, t in _WAYS
        for name, even, see in (
            (("balanced", True, pixels), ("random-blurred", False, _blurred))
            if s == "mnist"
            else (("random", False, pixels), ("balanced-blurred", True, _blurred))
        )
    ),
    *(
        Case("image features", f"{s}-{t}-{name}", _digits, (s, t, False, see), True)
        for name, see in (("gradients", _gradients), ("rectified", _rectified))
        for s, t in _WAYS
    ),
    *(
        Case("8×8 digits", change, _small_digits, (change,))
        for change in ("turned", "thick", "faint", "lost")
    ),
    *(
        Case(title, change, _table, (name, change))
        for title, name in (("wine", "wine"), ("cancer", "breast_cancer"), ("iris", "iris"))
        for change in ("gain", "turn", "missing")
    ),
    *(
        Case("Gaussian classes", f"{k}-{d}d-{turn}", _gaussians, (k, d, turn))
        for k, d, turn in ((3, 2, 0.2), (3, 2, 0.4), (5, 10, 0.7), (10, 30, 0.9))
    ),
    *(
        Case("simulated shifts", change, _simulated, (change,))
        for change in ("covariates", "proportions", "concept", "lost dimension")
    ),
)
TABLES = ("wine", "cancer", "iris")  # the families whose features are in unlike units
FAMILIES = tuple(dict.fromkeys(case.family for case in CASES))
