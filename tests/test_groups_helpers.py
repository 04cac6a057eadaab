"""From data to groups: windows, neighbourhoods, superpixels, clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structot import solve
from structot.concave import Linear, Sqrt
from structot.groups import clusters, diagonals, neighborhoods, ngrams, superpixels
from structot.structures import Coverage, Groups

Array = np.ndarray

# -------------------------------------------------------------------------------------- n-grams


@given(length=st.integers(1, 12), n=st.integers(1, 6))
def test_ngrams_are_the_windows(length: int, n: int) -> None:
    plain = [w.tolist() for w in ngrams(length, n)]
    if length >= n:
        assert plain == [list(range(t, t + n)) for t in range(length - n + 1)]
    else:
        assert plain == [list(range(length))]


@given(length=st.integers(1, 12), n=st.integers(1, 6))
def test_padded_ngrams_cover_every_word_n_times(length: int, n: int) -> None:
    windows = ngrams(length, n, padded=True)
    assert np.bincount(np.concatenate(windows), minlength=length).tolist() == [n] * length
    assert len(windows) == length + n - 1
    for w in windows:
        assert 0 < w.size <= n
        assert (np.diff(w) == 1).all()


def test_padded_windows_with_linear_g_are_plain_transport() -> None:
    """Every pair is in n · n blocks: with the cost shared among them, g(x) = x is plain OT."""
    M = np.random.default_rng(0).random((5, 4))
    windows = Groups(
        ngrams(5, 2, True), ngrams(4, 2, True), Linear(), equal_coverage=True, units="cost"
    )
    assert solve(M, structure=windows).value == pytest.approx(solve(M).value, rel=1e-4)


@given(source=st.integers(1, 7), target=st.integers(1, 7), n=st.integers(1, 4))
def test_diagonals_hold_every_pair_n_times_and_step_by_one(
    source: int, target: int, n: int
) -> None:
    held = np.zeros((source, target), int)
    for pairs in diagonals(source, target, n):
        assert 0 < len(pairs) <= n
        assert (np.diff(pairs, axis=0) == 1).all()
        held[tuple(pairs.T)] += 1
    assert (held == n).all()


def test_a_charge_on_diagonals_is_total_variation() -> None:
    """For n = 2: Σ max(x, y) = Σ x + half the variation along each diagonal, ends at 0."""
    P = np.random.default_rng(1).random((4, 5))
    F = Coverage.of_sets(diagonals(4, 5), 1.0).bind(np.ones((4, 5)))
    lines = [np.pad(np.diagonal(P, k), 1) for k in range(-3, 5)]
    variation = sum(np.abs(np.diff(line)).sum() for line in lines)
    assert F.extension(P) == pytest.approx(P.sum() + variation / 2)


# -------------------------------------------------------------------------------- neighbourhoods


@given(seed=st.integers(0, 10**6), n=st.integers(1, 20), k=st.integers(0, 8), whole=st.booleans())
def test_neighbourhoods_against_a_full_sort(seed: int, n: int, k: int, whole: bool) -> None:
    """By distance, then by index, itself first; whole numbers make ties and duplicates."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, 2)).astype(float) if whole else rng.normal(size=(n, 2))
    groups = neighborhoods(X, k)
    assert len(groups) == n
    for i, group in enumerate(groups):
        square = np.sum((X - X[i]) ** 2, axis=1)
        square[i] = -1.0
        assert group.tolist() == np.argsort(square, kind="stable")[: k + 1].tolist()


def test_neighbourhoods_are_groups() -> None:
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(8, 2)), rng.normal(size=(7, 2))
    M = np.sum((X[:, None] - Y) ** 2, axis=2)
    structure = Groups(
        neighborhoods(X, 2), neighborhoods(Y, 2), Sqrt(), equal_coverage=True, units="cost"
    )
    assert solve(M, structure=structure, tol=1e-3).converged


# ----------------------------------------------------------------------------------- superpixels


def quarters() -> Array:
    image = np.zeros((16, 20, 3))
    image[:8, :10] = [1.0, 0.0, 0.0]
    image[:8, 10:] = [0.0, 1.0, 0.0]
    image[8:, :10] = [0.0, 0.0, 1.0]
    return image


def agree(labels: Array, image: Array) -> bool:
    """Whether regions are exactly the areas of one colour."""
    colors = np.unique(image.reshape(-1, 3), axis=0, return_inverse=True)[1].ravel()
    pairs = np.unique(np.stack([labels.ravel(), colors]), axis=1).shape[1]
    return pairs == len(np.unique(labels)) == len(np.unique(colors))


@pytest.mark.parametrize("n_segments", [None, 4])
def test_felzenszwalb_finds_flat_regions(n_segments: int | None) -> None:
    pytest.importorskip("skimage")
    labels = superpixels(quarters(), n_segments, sigma=0.0, min_size=4)
    assert labels.shape == (16, 20)
    assert agree(labels, quarters())
    # Numbered in the order in which they appear.
    assert list(dict.fromkeys(labels.ravel().tolist())) == [0, 1, 2, 3]


def test_slic_and_the_number_of_segments() -> None:
    pytest.importorskip("skimage")
    rng = np.random.default_rng(2)
    image = np.clip(quarters() + 0.2 * rng.random((16, 20, 3)), 0, 1)
    few, many = superpixels(image, 4, "slic"), superpixels(image, 40, "slic")
    assert few.max() < many.max()
    assert few.min() == many.min() == 0


def test_bytes_and_floats_give_the_same_regions() -> None:
    pytest.importorskip("skimage")
    floats = quarters()
    whole = (255 * floats).astype(np.uint8)
    assert np.array_equal(superpixels(whole, sigma=0.0), superpixels(floats, sigma=0.0))
    assert superpixels(floats[:, :, 0], sigma=0.0, min_size=4).max() == 1  # grey


# -------------------------------------------------------------------------------------- clusters


def test_clusters_find_separated_points_and_do_not_depend_on_their_order() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(3)
    truth = rng.permutation(np.repeat([0, 1, 2], 8))
    X = 10.0 * truth[:, None] + rng.normal(size=(24, 2))
    labels = clusters(X, 3)
    assert len(np.unique(np.stack([labels, truth]), axis=1).T) == 3
    assert labels[0] == 0
    order = rng.permutation(24)
    again = clusters(X[order], 3)
    same = labels[order][:, None] == labels[order]
    assert np.array_equal(again[:, None] == again, same)


# ------------------------------------------------------------------------------------- bad input


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="length must be a whole number"):
        ngrams(0, 2)
    with pytest.raises(ValueError, match="n must be a whole number"):
        ngrams(3, 1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k must be a whole number"):
        neighborhoods(np.ones((3, 2)), -1)
    with pytest.raises(ValueError, match="finite points"):
        neighborhoods([[np.nan, 1.0]], 1)
    with pytest.raises(
        ValueError, match=r"X must have shape \(points, features\); got shape \(2,\)"
    ):
        clusters([1.0, 2.0], 1)
    with pytest.raises(ValueError, match="at most the number of points, 2"):
        clusters([[1.0], [2.0]], 3)
    with pytest.raises(ValueError, match="linkage must be one of"):
        clusters([[1.0], [2.0]], 1, linkage="wart")
    with pytest.raises(ValueError, match="image must have shape"):
        superpixels(np.ones(4))
    with pytest.raises(ValueError, match="floats 0 to 1"):
        superpixels(np.full((4, 4), 200.0))
    with pytest.raises(ValueError, match="Did you mean 'slic'"):
        superpixels(np.ones((4, 4)), method="slick")
