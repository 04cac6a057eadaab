"""Colour transfer: the colours of one image carried to another, regions staying together.

Pixels are points in colour space. A stratified sample of the source pixels (x_i, weight a_i, region
U_k) is carried onto one of the target (y_j, b_j, V_l) by the plan P of

    min_{P in U(a,b)} f(P),   F(S) = Σ_kl T_kl g( M(S ∩ U_k × V_l) / T_kl ),   M_ij = |x_i - y_j|²,

T_kl the total cost of a block, so that one region of the source takes its colours from few regions
of the target. Every pixel moves by the displacement Σ_j P_ij y_j / a_i - x_i of the samples of its
own region that are nearest to it in colour.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot import _checks
from structot._extras import optional
from structot._pixels import Pixels, pixel_labels
from structot._typing import Array, Seed
from structot.concave import ThresholdSqrt
from structot.groups import superpixels
from structot.result import Result
from structot.solvers.solve import METHODS, solve
from structot.structures.groups import Groups
from structot.structures.routes import Routes

__all__ = ["ColorTransfer", "sharpness", "spread", "transfer_colors"]

PLAIN_METHODS = ("emd", "entropic")  # without structure, for comparison
ROUTES = "routes"
SPACES = ("rgb", "lab")
SEGMENTATIONS = ("felzenszwalb", "slic")

_SEGMENTED_PIXELS = 300_000  # regions of a larger image are found on a reduced copy
_NEIGHBOURS = 4  # samples whose displacements a pixel averages
_SMOOTHING = 0.01  # g beyond its threshold, in block units: nearly flat, yet increasing
_PIXELS_AT_A_TIME = 200_000  # pixels mapped at a time


def transfer_colors(source: Any, target: Any, *, alpha: float = 0.3, **options: Any) -> Array:
    """The source image in the colours of the target image.

    Parameters
    ----------
    source, target
        Images (height, width), (height, width, 1 to 4): grey, grey and alpha, RGB, RGB and alpha;
        8 or 16 bit or floats from 0 to 1; of any two sizes. Grey images count as RGB. Transparent
        pixels are not sampled, the alpha channel of the source is kept.
    alpha
        Share of a block's total cost up to which it costs the full price. At 0 the colours of a
        region move as one, at 1 the plan is that of plain transport.
    **options
        As in `ColorTransfer.of`: n_samples, segments, n_segments, space, method, reg, tol,
        time_limit, random_state.

    Returns
    -------
    Array
        Shape and type of the source; RGB if the source is grey and the target is not.

    Examples
    --------
    >>> grey, red = np.full((8, 8, 3), 0.5), np.zeros((6, 9, 3))
    >>> red[..., 0] = 1.0
    >>> transfer_colors(grey, red, alpha=0.3)[0, 0].round(6).tolist()
    [1.0, 0.0, 0.0]
    """
    return ColorTransfer.of(source, target, alpha=alpha, **options).image


@dataclass(frozen=True, eq=False)
class ColorTransfer:
    """A recoloured image and how it came about.

    Attributes
    ----------
    image
        The source with new colours: its size, its number type, its alpha channel.
    result
        The certified plan between the samples.
    source_segments, target_segments
        The region of every pixel.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> photo, palette = rng.random((6, 6, 3)), rng.random((6, 6, 3))
    >>> found = ColorTransfer.of(photo, palette, method="emd", segments="slic", random_state=0)
    >>> found.image.shape, found.result.converged
    ((6, 6, 3), True)
    """

    image: Array
    result: Result
    source_segments: Array
    target_segments: Array

    @classmethod
    def of(
        cls,
        source: Any,
        target: Any,
        *,
        alpha: float = 0.3,
        n_samples: int = 1000,
        segments: str | tuple[Any, Any] = "felzenszwalb",
        n_segments: int = 50,
        space: str = "rgb",
        method: str = "auto",
        reg: float = 0.1,
        tol: float = 5e-2,
        time_limit: float | None = None,
        random_state: Seed = 0,
    ) -> ColorTransfer:
        """As `transfer_colors`, with the plan, its certificate and the regions.

        Parameters
        ----------
        source, target, alpha
            As in `transfer_colors`.
        n_samples
            Sampled pixels of each image, from every region in proportion to its size, one at least.
        segments
            ``"felzenszwalb"``, ``"slic"``, or a pair of label images (source, target).
        n_segments
            About how many regions: with ``"felzenszwalb"`` none is smaller than a quarter of an
            n_segments-th of the image, with ``"slic"`` their number.
        space
            ``"rgb"``, or ``"lab"`` for distances nearer to those an eye sees.
        method
            ``"auto"`` or a method of `solve` for the structured plan; ``"routes"`` for a price on
            routes between regions (`Routes`, with its own charge; ``alpha`` is not used), which
            keeps more of the light and shade inside a region; ``"emd"`` for plain transport,
            ``"entropic"`` for plain transport with entropy.
        reg
            Weight of that entropy, as a share of the mean cost.
        tol, time_limit
            Certified relative gap at which to stop, and seconds after which to stop anyway.
        random_state
            Seed or generator of the sample.

        Examples
        --------
        >>> stripes = np.zeros((8, 8))
        >>> stripes[:, 4:] = 1.0
        >>> ColorTransfer.of(stripes, 1 - stripes, segments=(stripes, stripes)).result.converged
        True
        """
        _checks.one_of("method", method, (*METHODS, *PLAIN_METHODS, ROUTES))
        _checks.one_of("space", space, SPACES)
        n_samples = _checks.count("n_samples", n_samples)
        rng = np.random.default_rng(random_state)
        images = [Pixels.of("source", source), Pixels.of("target", target)]
        # Every region needs a sample: with few samples there are few regions.
        n_segments = min(_checks.count("n_segments", n_segments), max(n_samples // 4, 1))
        labels = _segments(images, segments, n_segments)
        colors = [_to_space(image.rgb, space) for image in images]
        (i, a), (j, b) = (
            _stratified(name, label, image.visible, n_samples, rng)
            for name, label, image in zip(("source", "target"), labels, images, strict=True)
        )
        x, y = colors[0].reshape(-1, 3)[i], colors[1].reshape(-1, 3)[j]
        xs, ys = labels[0].ravel()[i], labels[1].ravel()[j]
        M = np.sum((x[:, None] - y[None]) ** 2, axis=2)
        options = {"tol": tol, "time_limit": time_limit, **_model(method, M, xs, ys, alpha, reg)}
        result = solve(M, a, b, **options)
        displacement = result.plan @ y / result.plan.sum(axis=1, keepdims=True) - x
        moved = _displaced(colors[0].reshape(-1, 3), labels[0].ravel(), x, xs, displacement)
        rgb = _from_space(moved.reshape(colors[0].shape), space)
        grey = images[0].grey and images[1].grey
        return cls(images[0].like(rgb, grey), result, labels[0], labels[1])


def _model(method: str, M: Array, xs: Array, ys: Array, alpha: float, reg: float) -> dict[str, Any]:
    """What `solve` is asked for: entropy, a structure between the regions xs and ys, or neither."""
    if method == "entropic":
        return {"reg": _checks.positive("reg", reg) * (float(M.mean()) or 1.0)}
    if method == "emd":
        return {}
    if method == ROUTES:
        return {"structure": Routes(xs, ys)}
    g = ThresholdSqrt(_checks.nonnegative("alpha", alpha), scale=_SMOOTHING)
    return {"structure": Groups(xs, ys, g, units="block"), "method": method}


def spread(image: Any, segments: Any) -> float:
    """√( 1/N Σ_p |c_p - mean of p's region|² ): how far colours lie from those of their region.

    The smaller, the more uniform the regions; 0 when each has one colour. RGB from 0 to 1.

    Parameters
    ----------
    image
        As in `transfer_colors`.
    segments
        The label of every pixel.

    Examples
    --------
    >>> spread([[0.0, 0.0, 1.0, 1.0]], [[0, 0, 1, 1]])
    0.0
    """
    colors, labels = _measured(image, segments)
    number = np.unique(labels.ravel(), return_inverse=True)[1].ravel()
    values = colors.reshape(-1, 3)
    count = np.bincount(number)
    mean = np.stack([np.bincount(number, values[:, c]) / count for c in range(3)], axis=1)
    return float(np.sqrt(np.mean(np.sum((values - mean[number]) ** 2, axis=1))))


def sharpness(image: Any, segments: Any) -> float:
    """Mean of |c_p - c_q| over neighbouring pixels p, q in different regions: the step at borders.

    The larger, the sharper regions stand out against each other; noise inside a region, which
    raises the gradient of an image without making it any sharper, does not count. Arguments as in
    `spread`.

    Examples
    --------
    >>> round(sharpness([[0.0, 0.5, 1.0, 1.0]], [[0, 0, 1, 1]]), 3)  # a step of 0.5 in R, G and B
    0.866
    """
    colors, labels = _measured(image, segments)
    steps = []
    for axis in (0, 1):
        border = np.diff(labels, axis=axis) != 0
        steps.append(np.linalg.norm(np.diff(colors, axis=axis), axis=2)[border])
    every = np.concatenate(steps)
    return float(every.mean()) if every.size else 0.0


def _measured(image: Any, segments: Any) -> tuple[Array, Array]:
    colors = Pixels.of("image", image).rgb
    return colors, pixel_labels("segments", segments, colors.shape[:2])


def _to_space(rgb: Array, space: str) -> Array:
    return rgb if space == "rgb" else _lab().rgb2lab(rgb) / 100.0


def _from_space(values: Array, space: str) -> Array:
    if space == "rgb":
        return values
    with warnings.catch_warnings():  # a mixture of colours may lie outside RGB: it is clipped
        warnings.simplefilter("ignore", UserWarning)
        return _lab().lab2rgb(values * 100.0)


def _lab() -> Any:
    return optional("skimage.color", 'space="lab"')


# --------------------------------------------------------------------------------------------------
# Regions, samples, and the way back to every pixel
# --------------------------------------------------------------------------------------------------


def _segments(images: list[Pixels], segments: Any, n_segments: int) -> list[Array]:
    """One label image per image."""
    if isinstance(segments, str):
        _checks.one_of("segments", segments, SEGMENTATIONS)
        return [_regions(image.rgb, segments, n_segments) for image in images]
    if not isinstance(segments, tuple | list) or len(segments) != 2:
        raise ValueError(
            "segments must be 'felzenszwalb', 'slic' or a pair of label images (source, target); "
            f"got {type(segments).__name__}."
        )
    found = []
    for k, (value, image) in enumerate(zip(segments, images, strict=True)):
        labels = pixel_labels(f"segments[{k}]", value, image.rgb.shape[:2])
        found.append(np.unique(labels, return_inverse=True)[1].reshape(labels.shape))
    return found


def _regions(rgb: Array, method: str, n_segments: int) -> Array:
    """Superpixels, of a large image those of a reduced copy."""
    height, width = rgb.shape[:2]
    step = int(np.ceil(np.sqrt(height * width / _SEGMENTED_PIXELS)))
    small = rgb[::step, ::step]
    pixels = small.shape[0] * small.shape[1]
    if method == "slic":
        labels = superpixels(small, min(n_segments, pixels), "slic")
    else:
        # Both options in proportion to the pixels: a larger copy of an image has the same regions.
        labels = superpixels(
            small,
            method="felzenszwalb",
            scale=max(pixels / 1000.0, 1.0),
            min_size=-(-pixels // (4 * n_segments)),
        )
    whole = np.repeat(np.repeat(labels, step, axis=0), step, axis=1)
    return whole[:height, :width]


def _stratified(
    name: str, labels: Array, visible: Array, n_samples: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Indices of sampled pixels and their weights, which sum to 1, and in each region to its share.

    A region gets samples in proportion to its pixels, at least one and at most all of them.
    """
    shown = np.flatnonzero(visible.ravel())
    shown = shown[rng.permutation(shown.size)]
    shown = shown[np.argsort(labels.ravel()[shown], kind="stable")]
    regions, start, size = np.unique(labels.ravel()[shown], return_index=True, return_counts=True)
    n_samples = min(n_samples, shown.size)
    if regions.size > n_samples:
        raise ValueError(
            f"{name} has {regions.size} segments, but n_samples is {n_samples}; "
            "pass more samples or fewer segments."
        )
    share = size / shown.size * n_samples
    quota = np.clip(np.floor(share), 1, size).astype(int)
    # What rounding left over goes to the regions that are furthest below their share.
    while (missing := n_samples - int(quota.sum())) != 0:
        room = quota < size if missing > 0 else quota > 1
        order = np.argsort(np.where(room, np.sign(missing) * (quota - share), np.inf))
        chosen = order[: min(abs(missing), int(room.sum()))]
        quota[chosen] += np.sign(missing)
    index = np.concatenate([shown[s : s + q] for s, q in zip(start, quota, strict=True)])
    weight = np.repeat(size / quota, quota)
    return index, weight / weight.sum()


def _displaced(
    colors: Array, labels: Array, x: Array, sample_labels: Array, displacement: Array
) -> Array:
    """Every pixel moved as the nearest samples of its own region are, nearer ones counting more."""
    from scipy.spatial import cKDTree

    moved = np.array(colors)
    order = np.argsort(labels, kind="stable")
    regions, start = np.unique(labels[order], return_index=True)
    for region, pixels in zip(regions, np.split(order, start[1:]), strict=True):
        members = np.flatnonzero(sample_labels == region)
        if members.size == 0:  # a region that is wholly transparent
            continue
        tree = cKDTree(x[members])
        count = min(_NEIGHBOURS, members.size)
        for part in np.array_split(pixels, -(-pixels.size // _PIXELS_AT_A_TIME)):
            distance, near = tree.query(colors[part], k=np.arange(1, count + 1), workers=-1)
            weight = 1.0 / (distance + 1e-3)
            weight /= weight.sum(axis=1, keepdims=True)
            moved[part] += np.einsum("pk,pkc->pc", weight, displacement[members][near])
    return moved
