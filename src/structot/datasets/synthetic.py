"""Generators of synthetic transport problems between labelled point clouds.

Notation
--------
X, Y    source points (n, d) and target points (m, d)
M       their squared Euclidean distances (n, m)
K, L    number of source and of target classes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from structot import _checks
from structot._typing import Array, Seed


@dataclass(frozen=True)
class ClusterProblem:
    """Two labelled point clouds, M_ij = ‖X_i − Y_j‖².

    Parameters
    ----------
    X, Y
        Source points (n, d) and target points (m, d), ordered by label.
    source_labels, target_labels
        Class of each point, integers from 0.

    Examples
    --------
    >>> from structot.datasets import clusters
    >>> problem = clusters(6, 4, n_classes=2)
    >>> problem.cost.shape
    (6, 4)
    """

    X: Array
    Y: Array
    source_labels: Array
    target_labels: Array

    @property
    def cost(self) -> Array:
        """Squared Euclidean cost M, shape (n, m)."""
        return cdist(self.X, self.Y, "sqeuclidean")


def clusters(
    n: int,
    m: int | None = None,
    n_classes: int = 3,
    *,
    n_target_classes: int | None = None,
    dimension: int = 2,
    spread: float = 1.0,
    separation: float = 4.0,
    shift: float = 2.0,
    rotation: float = 0.45,
    seed: Seed = 0,
) -> ClusterProblem:
    """Gaussian classes on a circle, the target turned and moved.

    X_i ~ N(c_k, spread² I) with c_k = separation · (cos 2πk/K, sin 2πk/K, 0, ...);  the target
    centres are turned by ``rotation`` steps of 2π/L and moved by ``shift``.

    A turn close to half a step puts each target class between two source classes, so that plain
    transport splits it between both; a structured cost keeps it whole. At n = 100 and three
    classes a block costs some 1e4 to 1e5 in all: α = 0.1 is then deep in the structured regime,
    α = 1e5 is the modular limit.

    Parameters
    ----------
    n, m
        Numbers of source and target points; m = n by default.
    n_classes, n_target_classes
        K and L; L = K by default. Class sizes differ by one at most.
    dimension
        Dimension of the points, at least 2. The centres lie in the first two coordinates.
    spread
        Standard deviation of a class in each coordinate.
    separation
        Radius of the circle of class centres.
    shift
        Length of the translation of the target, along the first coordinate. It adds shift² to the
        average cost and leaves the plain transport plan as it is.
    rotation
        Turn of the target, as a fraction of the angle between neighbouring target centres.
    seed
        Seed or generator.

    Returns
    -------
    ClusterProblem
        Points and labels, ordered by label, so that blocks show up in a picture of the plan.

    Examples
    --------
    >>> from structot.datasets import clusters
    >>> problem = clusters(10, 7, n_classes=3, seed=1)
    >>> problem.X.shape, problem.Y.shape
    ((10, 2), (7, 2))
    >>> problem.source_labels.tolist()
    [0, 0, 0, 0, 1, 1, 1, 2, 2, 2]
    """
    n, K = _sizes("n", n, "n_classes", n_classes)
    L = K if n_target_classes is None else n_target_classes
    m, L = _sizes("m", n if m is None else m, "n_target_classes", L)
    dimension = _checks.count("dimension", dimension, least=2)
    spread = _checks.nonnegative("spread", spread)
    separation = _checks.nonnegative("separation", separation)
    rng = np.random.default_rng(seed)
    source_labels, target_labels = _balanced_labels(n, K), _balanced_labels(m, L)
    X = _centres(K, dimension, separation, 0.0)[source_labels]  # (n, d)
    Y = _centres(L, dimension, separation, rotation)[target_labels]  # (m, d)
    X = X + spread * rng.standard_normal(X.shape)
    Y = Y + spread * rng.standard_normal(Y.shape)
    Y[:, 0] += shift
    return ClusterProblem(X, Y, source_labels, target_labels)


def two_moons(
    n: int,
    m: int | None = None,
    n_segments: int = 4,
    *,
    noise: float = 0.05,
    seed: Seed = 0,
) -> ClusterProblem:
    """One moon carried onto the other, in segments along the arc.

    X_i = (cos t_i, sin t_i) and Y_j = (1 − cos t_j, ½ − sin t_j) with t in [0, π], plus noise;
    labels number the ``n_segments`` neighbourhoods along each arc.

    Plain transport cuts across the arcs; groups made of the segments keep neighbours together.

    Parameters
    ----------
    n, m
        Numbers of source and target points; m = n by default.
    n_segments
        Number of segments, the same on both moons. Their sizes differ by one at most.
    noise
        Standard deviation of the noise in each coordinate.
    seed
        Seed or generator.

    Returns
    -------
    ClusterProblem
        Points in their order along the arc, labelled by segment.

    Examples
    --------
    >>> from structot.datasets import two_moons
    >>> two_moons(5, n_segments=2, noise=0.0).source_labels.tolist()
    [0, 0, 0, 1, 1]
    """
    _sizes("n", n, "n_segments", n_segments)
    m, n_segments = _sizes("m", n if m is None else m, "n_segments", n_segments)
    noise = _checks.nonnegative("noise", noise)
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, np.pi, n)
    s = np.linspace(0.0, np.pi, m)
    X = np.column_stack([np.cos(t), np.sin(t)])  # (n, 2)
    Y = np.column_stack([1.0 - np.cos(s), 0.5 - np.sin(s)])  # (m, 2)
    X = X + noise * rng.standard_normal(X.shape)
    Y = Y + noise * rng.standard_normal(Y.shape)
    return ClusterProblem(X, Y, _balanced_labels(n, n_segments), _balanced_labels(m, n_segments))


def cells(
    n: int,
    m: int | None = None,
    n_types: int = 5,
    *,
    n_genes: int = 60,
    proportions: tuple[Sequence[float], Sequence[float]] | None = None,
    depth: float = 300.0,
    contrast: float = 0.6,
    variation: float = 0.3,
    batch_effect: float = 0.5,
    dropout: float = 0.3,
    seed: Seed = 0,
) -> ClusterProblem:
    """Two batches of cells of the same types, seen by two instruments: X = log(1 + counts).

    A cell of type k in batch s counts gene g with Poisson noise of mean
    depth_i · exp(θ_kg + δ_sg + ε_ig) / Σ_g exp(θ_kg + δ_sg + ε_ig): θ the profile of the type, δ
    the effect of the batch on the gene, ε the variation from cell to cell; depth_i is log-normal
    around ``depth``. Every count is then lost (0) with probability ``dropout``. Counts are brought
    to the same total in every cell before the logarithm.

    The batch effect moves all cells of a batch, not all in the same way after the logarithm, so
    that the nearest cell of the other batch is often of another type; and the types have other
    proportions in the two batches.

    Parameters
    ----------
    n, m
        Numbers of cells in the two batches; m = n by default.
    n_types
        Number of types, present in both batches.
    n_genes
        Number of genes: the dimension of X and Y.
    proportions
        Of the types in the two batches, n_types positive numbers each. By default falling by a
        fifth from type to type in the first and rising in the same way in the second batch.
    depth
        Typical number of counts of a cell.
    contrast, variation, batch_effect
        Standard deviations of θ between types (around levels common to all of them), ε and δ.
    dropout
        Share of the counts that are lost, between 0 and 1.
    seed
        Seed or generator.

    Returns
    -------
    ClusterProblem
        Cells ordered by type; the labels are the types.

    Examples
    --------
    >>> from structot.datasets import cells
    >>> problem = cells(20, 30, n_types=3)
    >>> problem.X.shape, problem.Y.shape
    ((20, 60), (30, 60))
    """
    n, n_types = _sizes("n", n, "n_types", n_types)
    m, _ = _sizes("m", n if m is None else m, "n_types", n_types)
    n_genes = _checks.count("n_genes", n_genes)
    depth = _checks.positive("depth", depth)
    contrast = _checks.nonnegative("contrast", contrast)
    variation = _checks.nonnegative("variation", variation)
    batch_effect = _checks.nonnegative("batch_effect", batch_effect)
    dropout = _checks.nonnegative("dropout", dropout)
    if dropout >= 1:
        raise ValueError(f"dropout must be below 1, a share of the counts; got {dropout}.")
    falling = (0.8 ** np.arange(n_types)).tolist()
    first, second = (falling, falling[::-1]) if proportions is None else proportions
    labels = _labels_in(n, first, n_types), _labels_in(m, second, n_types)
    rng = np.random.default_rng(seed)
    base = rng.standard_normal(n_genes)
    profiles = base + contrast * rng.standard_normal((n_types, n_genes))
    batches = []
    for types in labels:
        level = profiles[types] + batch_effect * rng.standard_normal(n_genes)
        batches.append(_expression(rng, level, variation, depth, dropout))
    return ClusterProblem(batches[0], batches[1], *labels)


def _expression(
    rng: np.random.Generator, level: Array, variation: float, depth: float, dropout: float
) -> Array:
    """log(1 + counts at the same total) of cells with these mean log levels, (cells, genes)."""
    rate = np.exp(level + variation * rng.standard_normal(level.shape))
    own_depth = depth * np.exp(0.3 * rng.standard_normal((len(level), 1)))
    counts = rng.poisson(own_depth * rate / rate.sum(axis=1, keepdims=True)).astype(float)
    counts[rng.random(counts.shape) < dropout] = 0.0
    total = counts.sum(axis=1, keepdims=True)
    return np.log1p(np.divide(depth * counts, total, out=counts, where=total > 0))


def _labels_in(n: int, proportions: Sequence[float], n_classes: int) -> Array:
    """Sorted labels in these proportions, every class at least once."""
    share = np.asarray(proportions, float)
    if share.shape != (n_classes,) or not (np.isfinite(share) & (share > 0)).all():
        raise ValueError(
            f"proportions must hold {n_classes} positive numbers for each batch, one per type; "
            f"got {proportions!r}."
        )
    counts = 1 + np.floor((n - n_classes) * share / share.sum()).astype(int)
    # What rounding down has left goes to those it has cost most.
    missed = (n - n_classes) * share / share.sum() - (counts - 1)
    counts[np.argsort(-missed, kind="stable")[: n - counts.sum()]] += 1
    return np.repeat(np.arange(n_classes, dtype=np.int64), counts)


def target_shift(
    proportions: tuple[float, float, float] = (0.7, 0.2, 0.1),
    n: int = 150,
    m: int = 300,
    *,
    noise: float = 0.9,
    turn: float = 40.0,
    shift: tuple[float, float] = (2.0, 1.0),
    seed: Seed = 0,
) -> ClusterProblem:
    """Three classes in equal parts, and the same classes turned, moved and in other proportions.

    Centres (0, 0), (4, 0) and (2, 3.5); the target is turned about their mean and moved by
    ``shift``. Marginals that must hold carry points of rare target classes into the frequent one.

    Parameters
    ----------
    proportions
        Shares of the target classes, the most frequent first. Which class that is the seed draws;
        the others follow in their order.
    n, m
        Numbers of source and target points.
    noise
        Standard deviation of a class in each coordinate.
    turn
        Angle in degrees.
    shift
        Translation of the target.
    seed
        Seed or generator.

    Examples
    --------
    >>> from structot.datasets import target_shift
    >>> problem = target_shift((0.7, 0.2, 0.1), seed=0)
    >>> sorted(np.bincount(problem.target_labels).tolist())
    [30, 60, 210]
    """
    n, _ = _sizes("n", n, "classes", 3)
    m, _ = _sizes("m", m, "classes", 3)
    shares = _checks.as_weights("proportions", proportions, 3)
    rng = np.random.default_rng(seed)
    frequent = int(rng.integers(3))
    counts = np.zeros(3, int)
    counts[(frequent + np.arange(3)) % 3] = np.floor(m * shares / shares.sum() + 0.5)
    counts[frequent] += m - counts.sum()
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 3.5]])
    source_labels = _balanced_labels(n, 3)
    target_labels = np.repeat(np.arange(3, dtype=np.int64), counts)
    X = centres[source_labels] + noise * rng.standard_normal((n, 2))
    Y = centres[target_labels] + noise * rng.standard_normal((m, 2))
    angle, middle = np.radians(turn), centres.mean(axis=0)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    Y = (Y - middle) @ rotation.T + middle + np.asarray(shift)
    return ClusterProblem(X, Y, source_labels, target_labels)


def _balanced_labels(n: int, n_classes: int) -> Array:
    """Sorted labels 0 … n_classes − 1 whose counts differ by one at most, larger classes first."""
    counts = np.full(n_classes, n // n_classes)
    counts[: n % n_classes] += 1
    return np.repeat(np.arange(n_classes, dtype=np.int64), counts)


def _centres(n_classes: int, dimension: int, radius: float, rotation: float) -> Array:
    """Corners of a regular polygon turned by ``rotation`` steps, padded with zeros to (K, d)."""
    angle = 2.0 * np.pi * (np.arange(n_classes) + rotation) / n_classes
    centres = np.zeros((n_classes, dimension))
    centres[:, 0] = radius * np.cos(angle)
    centres[:, 1] = radius * np.sin(angle)
    return centres


def _sizes(name: str, size: int, classes_name: str, classes: int) -> tuple[int, int]:
    """A number of points and of classes among them, none of which is empty."""
    size, classes = _checks.count(name, size), _checks.count(classes_name, classes)
    if classes > size:
        raise ValueError(
            f"{classes_name} is {classes}, but {name} is {size}; no class may be empty."
        )
    return size, classes
