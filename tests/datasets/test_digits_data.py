"""Digit loaders: the data folder, damaged and foreign files, downloads, the shifted copy."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from structot.datasets import _folder, digits, mnist, shifted_digits, usps

COUNTS_TRAIN, COUNTS_TEST = tuple(range(1, 11)), (1,) * 10


def tiny(side=4, kind=np.uint8):
    """A data set that looks like MNIST, with 55 training and 10 test images."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), COUNTS_TRAIN), np.repeat(np.arange(10), COUNTS_TEST)
    images = [rng.integers(0, 256, (len(y), side, side)).astype(kind) for y in labels]
    names = ("x_train", "y_train", "x_test", "y_test")
    parts = (images[0], labels[0].astype(np.uint8), images[1], labels[1].astype(np.uint8))
    return dict(zip(names, parts, strict=True))


@pytest.fixture
def small(monkeypatch):
    """MNIST replaced by the tiny data set."""
    arrays = tiny()
    checksum = hashlib.sha256(arrays["x_train"].tobytes()).hexdigest()
    origin = replace(
        digits._MNIST, side=4, counts_train=COUNTS_TRAIN, counts_test=COUNTS_TEST, checksum=checksum
    )
    monkeypatch.setattr(digits, "_MNIST", origin)
    return arrays


def test_folder_by_argument_variable_and_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("STRUCTOT_DATA", str(tmp_path / "env"))
    assert _folder.folder(tmp_path) == tmp_path
    assert _folder.folder() == tmp_path / "env"
    monkeypatch.delenv("STRUCTOT_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert _folder.folder() == tmp_path / "structot"


def test_checksum_of_a_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    right = hashlib.sha256(b"abc").hexdigest()
    assert _folder.check_sha256(path, right) == path
    with pytest.raises(ValueError, match="damaged or another file"):
        _folder.check_sha256(path, "0" * 64)


@pytest.mark.parametrize("read", [mnist, usps])
def test_a_missing_file_is_named_with_the_ways_to_give_it(read, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\.npz is not in the data folder.*STRUCTOT_DATA"):
        read(tmp_path, download=False)


def test_reading_scales_pixels(small, tmp_path):
    np.savez(tmp_path / "mnist.npz", **small)
    data = mnist(tmp_path)
    np.testing.assert_allclose(data.x_train, small["x_train"] / 255.0, rtol=1e-6)
    assert data.x_train.dtype == np.float32
    assert np.array_equal(data.y_test, small["y_test"])


def test_damaged_and_foreign_files_are_refused(small, tmp_path):
    path = tmp_path / "mnist.npz"
    changed = small["x_train"].copy()
    changed[3, 1, 2] ^= 1
    np.savez(path, **{**small, "x_train": changed})
    with pytest.raises(ValueError, match="checksum of its training images"):
        mnist(tmp_path)
    np.savez(path, **{**small, "y_train": small["y_train"][::-1] * 0})
    with pytest.raises(ValueError, match="not the MNIST expected"):
        mnist(tmp_path)
    np.savez(path, x_train=changed)
    with pytest.raises(ValueError, match="lacks the arrays x_test, y_test, y_train"):
        mnist(tmp_path)


def openml(arrays, labels_from=0, low=0.0, high=255.0):
    """What fetch_openml returns: one table, training part first, labels as text."""
    images = np.concatenate([arrays["x_train"], arrays["x_test"]]).astype(float)
    labels = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(int) + labels_from
    pixels = low + (high - low) * images.reshape(len(images), -1) / 255.0
    return SimpleNamespace(data=pixels, target=labels.astype(str))


def test_a_download_is_checked_kept_and_read_again(small, tmp_path, monkeypatch, capsys):
    datasets = pytest.importorskip("sklearn.datasets")
    calls = []
    monkeypatch.setattr(
        datasets, "fetch_openml", lambda **options: calls.append(options) or openml(small)
    )
    first = mnist(tmp_path / "new")
    again = mnist(tmp_path / "new")
    assert len(calls) == 1
    assert calls[0]["data_id"] == 554
    assert np.array_equal(first.x_train, again.x_train)
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["mnist.npz"]
    assert "mnist: fetching it from OpenML" in capsys.readouterr().err
    monkeypatch.setattr(
        datasets, "fetch_openml", lambda **options: openml({**small, "y_test": small["y_test"] * 0})
    )
    with pytest.raises(ValueError, match="OpenML data set 554 is not the MNIST"):
        mnist(tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_usps_of_openml_is_brought_to_our_range(tmp_path, monkeypatch):
    datasets = pytest.importorskip("sklearn.datasets")
    arrays = tiny(16)
    origin = replace(digits._USPS, counts_train=COUNTS_TRAIN, counts_test=COUNTS_TEST)
    monkeypatch.setattr(digits, "_USPS", origin)
    monkeypatch.setattr(datasets, "fetch_openml", lambda **options: openml(arrays, 1, -1.0, 1.0))
    data = usps(tmp_path)
    np.testing.assert_allclose(data.x_train, arrays["x_train"] / 255.0, atol=1e-6)
    assert np.array_equal(data.y_train, arrays["y_train"])


def test_without_a_network_the_message_says_so(tmp_path, monkeypatch):
    datasets = pytest.importorskip("sklearn.datasets")

    def refuse(**options):
        raise OSError("no route to host")

    monkeypatch.setattr(datasets, "fetch_openml", refuse)
    with pytest.raises(FileNotFoundError, match=r"Put it there.*failed: no route to host"):
        mnist(tmp_path)


def test_resize_keeps_the_mean_and_inverts_enlargement():
    images = np.random.default_rng(0).random((5, 28, 28))
    small = digits.resize(images, 16)
    np.testing.assert_allclose(small.mean(axis=(1, 2)), images.mean(axis=(1, 2)))
    large = np.kron(small, np.ones((1, 3, 3)))
    np.testing.assert_allclose(digits.resize(large, 16), small)
    assert digits.resize(images.astype(np.float32), 16).dtype == np.float32


def test_shifted_digits():
    pytest.importorskip("sklearn")
    plain = shifted_digits(rotation=0.0, blur=0.0, invert=False, noise=0.0)
    inverted = shifted_digits(rotation=0.0, blur=0.0, noise=0.0)
    np.testing.assert_allclose(inverted.x_target, 1.0 - plain.x_target, atol=1e-6)
    quarter = shifted_digits(rotation=90.0, blur=0.0, invert=False, noise=0.0)
    turned = np.rot90(plain.x_target, 1, axes=(1, 2))
    np.testing.assert_allclose(quarter.x_target, turned, atol=1e-5)
    first, again = shifted_digits(seed=1), shifted_digits(seed=1)
    assert np.array_equal(first.x_target, again.x_target)
    assert not np.array_equal(first.x_target, shifted_digits(seed=2).x_target)
    assert first.x_target.min() >= 0.0
    assert first.x_target.max() <= 1.0
