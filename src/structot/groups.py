"""From data to groups: windows of words, neighbourhoods, superpixels, clusters.

Each helper but one returns what `Groups` and `Coverage` take as a side: a list of index arrays,
whose groups may overlap, or one label per point; `diagonals` returns sets of pairs. What they
return depends on the data alone: ties are broken by index, and labels are numbered in the order in
which they appear.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structot import _checks
from structot._extras import optional
from structot._typing import Array

__all__ = ["clusters", "diagonals", "neighborhoods", "ngrams", "superpixels"]

METHODS = ("felzenszwalb", "slic")
# Trials to make Felzenszwalb's method give about as many segments as asked for.
_TRIALS = 20


def ngrams(length: int, n: int, padded: bool = False) -> list[Array]:
    """The windows {t, ..., t + n - 1} of n words in a row of ``length`` words.

    Parameters
    ----------
    length
        Number of words.
    n
        Words in a window. In a shorter text the one window holds all of its words.
    padded
        Also the windows that reach over either end, cut there, so that every word is in exactly n
        of them: length + n - 1 windows. Then no word counts less for standing near an end.

    Returns
    -------
    list of Array
        One array of indices per window, in the order of the text.

    Examples
    --------
    >>> [w.tolist() for w in ngrams(4, 2)]
    [[0, 1], [1, 2], [2, 3]]
    >>> [w.tolist() for w in ngrams(3, 2, padded=True)]
    [[0], [0, 1], [1, 2], [2]]
    """
    length, n = _checks.count("length", length), _checks.count("n", n)
    if padded:
        starts = range(1 - n, length)
        return [np.arange(max(t, 0), min(t + n, length)) for t in starts]
    return [np.arange(t, min(t + n, length)) for t in range(max(length - n, 0) + 1)]


def diagonals(source: int, target: int, n: int = 2) -> list[Array]:
    """The sets {(i, j), (i + 1, j + 1), ...} of at most n pairs: windows that keep their order.

    Two rows of words, each cut into padded windows of n. Of two windows only those pairs of words
    form a set that stand at the same place of both. Every pair is in exactly n sets, so that
    ``Coverage.of_sets(diagonals(L, K, n), price / n)`` charges a pair that moves alone the price,
    and pairs that move in step share most of it.

    Parameters
    ----------
    source, target
        Numbers of words, or of points in any two sequences.
    n
        Length of the windows.

    Returns
    -------
    list of Array
        One array (pairs, 2) of rows and columns per set. Sets at the ends may be equal.

    Examples
    --------
    >>> [d.tolist() for d in diagonals(2, 2, 2)]
    [[[0, 0]], [[0, 1]], [[1, 0]], [[0, 0], [1, 1]], [[0, 1]], [[1, 0]], [[1, 1]]]
    """
    source, target = _checks.count("source", source), _checks.count("target", target)
    n = _checks.count("n", n)
    found = []
    for i in range(1 - n, source):
        for j in range(1 - n, target):
            first, last = max(0, -i, -j), min(n, source - i, target - j)
            if first < last:
                step = np.arange(first, last)
                found.append(np.stack([i + step, j + step], axis=1))
    return found


def neighborhoods(X: object, k: int) -> list[Array]:
    """For every point, the point itself and its k nearest neighbours in the Euclidean distance.

    Parameters
    ----------
    X
        Points, shape (n, features).
    k
        Neighbours beside the point itself; all other points if there are fewer. Of equally near
        ones those with the smaller index are taken, so that the answer is unique also with
        duplicates.

    Returns
    -------
    list of Array
        One array of k + 1 indices per point: itself, then its neighbours from near to far.

    Examples
    --------
    >>> [g.tolist() for g in neighborhoods([[0.0], [1.0], [3.0]], 1)]
    [[0, 1], [1, 0], [2, 1]]
    """
    from scipy.spatial import cKDTree

    points = _checks.as_points("X", X)
    k = min(_checks.count("k", k, least=0), len(points) - 1)
    tree = cKDTree(points)
    reach = tree.query(points, k=[k + 1])[0][:, 0]
    # A tree returns any of equally distant points. All points up to that distance are therefore
    # sorted anew, by distance and index; the slack covers the rounding of both ways to measure.
    inside = tree.query_ball_point(points, reach * (1 + 1e-9))
    groups = []
    for i, found in enumerate(inside):
        near = np.setdiff1d(np.asarray(found, int), [i])
        square = np.sum((points[near] - points[i]) ** 2, axis=1)
        groups.append(np.append(i, near[np.argsort(square, kind="stable")[:k]]))
    return groups


def superpixels(
    image: object,
    n_segments: int | None = None,
    method: str = "felzenszwalb",
    *,
    scale: float = 100.0,
    sigma: float = 0.8,
    min_size: int = 20,
    compactness: float = 10.0,
) -> Array:
    """Connected regions of like colour: the label of every pixel.

    Parameters
    ----------
    image
        Shape (height, width) or (height, width, channels); integers 0 to 255 or floats 0 to 1.
    n_segments
        About how many regions. None: as many as ``scale`` gives with ``"felzenszwalb"``, 100 with
        ``"slic"``. With ``"felzenszwalb"`` the scale that comes nearest is searched for.
    method
        ``"felzenszwalb"``: regions grow along the image's own edges; ``"slic"``: regions of about
        equal size. Both from scikit-image.
    scale, min_size
        Of ``"felzenszwalb"``: larger means fewer regions; the least number of pixels of one.
    sigma
        Width of the blur before segmentation, in pixels.
    compactness
        Of ``"slic"``: larger means squarer regions.

    Returns
    -------
    Array
        Labels 0, 1, ... of shape (height, width); ``.ravel()`` gives one label per pixel.

    Examples
    --------
    >>> image = np.zeros((8, 8, 3))
    >>> image[:, 4:] = 1.0
    >>> superpixels(image, min_size=4, sigma=0.0)[0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    method = _checks.one_of("method", method, METHODS)
    picture = _image(image)
    if n_segments is not None:
        n_segments = _checks.count("n_segments", n_segments)
    segmentation = optional("skimage.segmentation", "superpixels")
    channel = None if picture.ndim == 2 else -1
    sigma = _checks.nonnegative("sigma", sigma)
    if method == "slic":
        options = {"compactness": _checks.positive("compactness", compactness), "sigma": sigma}
        labels = segmentation.slic(picture, n_segments or 100, channel_axis=channel, **options)
        return _renumbered(labels)

    def cut(scale: float) -> Array:
        size = _checks.count("min_size", min_size)
        options: dict[str, Any] = {"sigma": sigma, "min_size": size, "channel_axis": channel}
        return segmentation.felzenszwalb(picture, scale=scale, **options)

    scale = _checks.positive("scale", scale)
    return _renumbered(cut(scale) if n_segments is None else _nearest_cut(cut, n_segments))


def clusters(X: object, k: int, *, linkage: str = "ward") -> Array:
    """Labels of k clusters by agglomeration, by default Ward's: least growth of Σ |x - mean|².

    Parameters
    ----------
    X
        Points, shape (n, features).
    k
        Number of clusters, at most the number of points.
    linkage
        ``"ward"``, ``"complete"``, ``"average"`` or ``"single"``, as in scikit-learn.

    Returns
    -------
    Array
        One label 0 ... k - 1 per point, numbered in the order in which they appear.

    Examples
    --------
    >>> clusters([[0.0], [9.0], [0.1], [9.2]], 2).tolist()
    [0, 1, 0, 1]
    """
    points = _checks.as_points("X", X)
    k = _checks.count("k", k)
    linkage = _checks.one_of("linkage", linkage, ("ward", "complete", "average", "single"))
    if k > len(points):
        raise ValueError(f"k must be at most the number of points, {len(points)}; got {k}.")
    if len(points) == 1:
        return np.zeros(1, int)
    method = optional("sklearn.cluster", "clusters").AgglomerativeClustering(k, linkage=linkage)
    return _renumbered(method.fit_predict(points))


def _image(image: object) -> Array:
    """Floats between 0 and 1, (height, width) or (height, width, channels)."""
    picture = np.asarray(image)
    if picture.ndim not in (2, 3) or picture.size == 0:
        raise ValueError(
            "image must have shape (height, width) or (height, width, channels); "
            f"got {picture.shape}."
        )
    whole = picture.dtype.kind in "iub"
    largest = 1.0 if picture.dtype.kind == "b" or not whole else 255.0
    values = picture.astype(float) / largest
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        raise ValueError(
            f"image must hold integers 0 to 255 or floats 0 to 1; got {picture.dtype} values from "
            f"{picture.min()} to {picture.max()}. Divide floats by 255 if they come from bytes."
        )
    return values


def _nearest_cut(cut: Any, n_segments: int) -> Array:
    """The segmentation with the number of regions nearest to the wanted one: bisection in scale.

    The number of regions falls with the scale, only roughly: the best of all trials is kept.
    """
    low, high = 1e-2, 1e6
    best, distance = np.zeros(0), np.inf
    for _ in range(_TRIALS):
        scale = float(np.sqrt(low * high))
        labels = cut(scale)
        found = int(labels.max()) + 1
        if abs(found - n_segments) < distance:
            best, distance = labels, abs(found - n_segments)
        if found == n_segments:
            break
        low, high = (scale, high) if found > n_segments else (low, scale)
    return best


def _renumbered(labels: Array) -> Array:
    """The same labels as 0, 1, ... in the order in which they appear."""
    _, first, inverse = np.unique(labels.ravel(), return_index=True, return_inverse=True)
    rank = np.empty(first.size, int)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse].reshape(labels.shape)
