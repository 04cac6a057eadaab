"""Handwritten digits: MNIST and USPS from a data folder or OpenML, shifted 8×8 digits.

Images are float32 arrays (n, side, side) with ink near 1 and paper near 0; labels are 0 to 9.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structot._extras import optional
from structot._files import whole_file
from structot._progress import progress_bar
from structot._typing import Array, Seed
from structot.datasets._folder import find, folder


@dataclass(frozen=True, eq=False)
class Digits:
    """Images (n, side, side) in [0, 1] and labels 0 to 9, in the usual two parts.

    Examples
    --------
    >>> import numpy as np
    >>> images, labels = np.zeros((2, 8, 8)), np.array([3, 7])
    >>> Digits(images, labels, images, labels).x_train.shape
    (2, 8, 8)
    """

    x_train: Array
    y_train: Array
    x_test: Array
    y_test: Array


@dataclass(frozen=True)
class _Origin:
    """What a data set must look like, and where OpenML keeps it."""

    name: str
    openml_id: int
    side: int
    counts_train: tuple[int, ...]
    counts_test: tuple[int, ...]
    first_label: int  # OpenML's label of the digit 0
    checksum: str = ""  # of the training images as bytes; empty where publishers round differently

    @property
    def file(self) -> str:
        return f"{self.name}.npz"


_MNIST = _Origin(
    "mnist",
    554,
    28,
    (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    0,
    "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
)
_USPS = _Origin(
    "usps",
    41082,
    16,
    (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
    (359, 264, 198, 166, 200, 160, 170, 147, 166, 177),
    1,
)


def mnist(data: str | os.PathLike | None = None, *, download: bool = True) -> Digits:
    """MNIST: 60 000 training and 10 000 test digits of 28×28 pixels.

    Parameters
    ----------
    data
        Folder that holds ``mnist.npz`` (arrays x_train, y_train, x_test, y_test); by default the
        one named by STRUCTOT_DATA, else a cache in the home folder.
    download
        Fetch it from OpenML (needs scikit-learn and a network) and keep it in the data folder when
        it is not there yet.

    Examples
    --------
    >>> mnist("nowhere", download=False)
    Traceback (most recent call last):
        ...
    FileNotFoundError: mnist.npz is not in the data folder nowhere. Put it there, ...
    """
    return _load(_MNIST, data, download)


def usps(data: str | os.PathLike | None = None, *, download: bool = True) -> Digits:
    """USPS: 7291 training and 2007 test digits of 16×16 pixels, in ``usps.npz``; as `mnist`.

    Examples
    --------
    >>> usps("no such folder", download=False)
    Traceback (most recent call last):
    ...
    FileNotFoundError: ...
    """
    return _load(_USPS, data, download)


def _load(origin: _Origin, data: str | os.PathLike | None, download: bool) -> Digits:
    try:
        path = find(origin.file, data)
    except FileNotFoundError as missing:
        if not download:
            raise
        path = _download(origin, folder(data), missing)
    with np.load(path, allow_pickle=False) as file:
        absent = {"x_train", "y_train", "x_test", "y_test"} - set(file.files)
        if absent:
            raise ValueError(f"{path} lacks the arrays {', '.join(sorted(absent))}; replace it.")
        arrays = {name: file[name] for name in ("x_train", "y_train", "x_test", "y_test")}
    _check(origin, arrays, str(path))
    for part in ("x_train", "x_test"):
        scale = np.float32(255.0) if arrays[part].dtype == np.uint8 else np.float32(1.0)
        arrays[part] = arrays[part].astype(np.float32) / scale
    return Digits(**arrays)


def _check(origin: _Origin, arrays: dict[str, Array], where: str) -> None:
    """Shapes, class counts and, where it is known, the checksum of the training images."""
    parts = (("train", origin.counts_train), ("test", origin.counts_test))
    for part, counts in parts:
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        shape = (sum(counts), origin.side, origin.side)
        found = np.bincount(labels.astype(np.int64), minlength=10)
        if images.shape != shape or not np.array_equal(found, counts):
            raise ValueError(
                f"{where} is not the {origin.name.upper()} expected: its {part} images have shape "
                f"{images.shape} and class counts {found.tolist()}, expected {shape} and "
                f"{list(counts)}. Delete it and fetch it again."
            )
    images = np.ascontiguousarray(arrays["x_train"])
    if origin.checksum and hashlib.sha256(images.tobytes()).hexdigest() != origin.checksum:
        raise ValueError(
            f"{where} is damaged: the checksum of its training images differs from that of "
            f"{origin.name.upper()}. Delete it and fetch it again."
        )


def _download(origin: _Origin, where: Path, missing: FileNotFoundError) -> Path:
    """Fetch from OpenML, check, and keep as npz; the error of the missing file if that fails."""
    try:
        fetch_openml = optional("sklearn.datasets", "To download it instead one").fetch_openml
    except ModuleNotFoundError as error:
        raise FileNotFoundError(f"{missing} {error}") from None
    path = where / origin.file
    with progress_bar(origin.name, counted=False, lasting=True) as bar:
        bar.note(f"fetching it from OpenML (data set {origin.openml_id}); this takes a minute")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a retry is no news; a failure is an error below
                bunch = fetch_openml(
                    data_id=origin.openml_id, as_frame=False, parser="liac-arff", n_retries=1
                )
        except OSError as error:  # no network, no such host, refused, interrupted
            raise FileNotFoundError(f"{missing} Downloading it failed: {error}.") from error
        arrays = _from_openml(origin, bunch.data, bunch.target)
        _check(origin, arrays, f"OpenML data set {origin.openml_id}")
        with whole_file(path) as aside:
            np.savez_compressed(aside, **arrays)  # type: ignore[arg-type]
        bar.note(f"kept in {path}")
    return path


def _from_openml(origin: _Origin, pixels: Any, target: Any) -> dict[str, Array]:
    """OpenML's table, training part first, as images; USPS comes in [-1, 1] with labels 1 to 10."""
    images = np.asarray(pixels, np.float64).reshape(-1, origin.side, origin.side)
    labels = np.asarray(target).astype(float).astype(np.int64) - origin.first_label
    if images.min() < 0:
        images = ((images + 1.0) / 2.0).astype(np.float32)
    else:
        images = images.astype(np.uint8)
    cut = sum(origin.counts_train)
    labels = labels.astype(np.uint8)
    return {
        "x_train": images[:cut],
        "y_train": labels[:cut],
        "x_test": images[cut:],
        "y_test": labels[cut:],
    }


def resize(images: Array, side: int) -> Array:
    """Square images at another size, each new pixel the average over the area it covers.

    Examples
    --------
    >>> resize(np.arange(16.0).reshape(1, 4, 4), 2)[0].tolist()
    [[2.5, 4.5], [10.5, 12.5]]
    """
    old = images.shape[-1]
    edges = np.linspace(0, old, side + 1)
    low, high = edges[:-1, None], edges[1:, None]
    pixel = np.arange(old)[None, :]
    overlap = np.clip(np.minimum(high, pixel + 1) - np.maximum(low, pixel), 0, None)
    R = (overlap * side / old).astype(images.dtype)  # (side, old), rows sum to 1
    return np.asarray(R @ images @ R.T)


@dataclass(frozen=True, eq=False)
class ShiftedDigits:
    """Two domains of 8×8 digits in [0, 1]: as they are, and shifted.

    Examples
    --------
    >>> from structot.datasets import shifted_digits
    >>> digits = shifted_digits()
    >>> digits.x_source.shape[1:] == digits.x_target.shape[1:]
    True
    """

    x_source: Array
    y_source: Array
    x_target: Array
    y_target: Array


def shifted_digits(
    *,
    rotation: float = 20.0,
    blur: float = 0.5,
    invert: bool = True,
    noise: float = 0.1,
    seed: Seed = 0,
) -> ShiftedDigits:
    """scikit-learn's 8×8 digits and a shifted copy: turned, blurred, inverted, noisy.

    The target is  noise + invert(blur(rotate(image)))  of the second half of the images, so that no
    target image is the copy of a source image. Needs no download.

    Parameters
    ----------
    rotation
        Degrees, counter-clockwise.
    blur
        Standard deviation of a Gaussian blur in pixels.
    invert
        Swap ink and paper.
    noise
        Standard deviation of Gaussian noise added to each pixel; values are cut to [0, 1].
    seed
        Seed or generator of the noise.

    Examples
    --------
    >>> data = shifted_digits()
    >>> data.x_source.shape, data.x_target.shape
    ((898, 8, 8), (899, 8, 8))
    """
    from scipy.ndimage import gaussian_filter, rotate

    bunch = optional("sklearn.datasets", "shifted_digits").load_digits()
    images, labels = bunch.images.astype(np.float32) / 16.0, bunch.target
    cut = len(images) // 2
    shifted = rotate(images[cut:], rotation, axes=(2, 1), reshape=False, order=1)
    shifted = gaussian_filter(shifted, (0.0, blur, blur))
    if invert:
        shifted = 1.0 - shifted
    rng = np.random.default_rng(seed)
    shifted = shifted + noise * rng.standard_normal(shifted.shape).astype(np.float32)
    return ShiftedDigits(images[:cut], labels[:cut], np.clip(shifted, 0.0, 1.0), labels[cut:])
