"""Colour transfer: known answers, images of every kind, and the paper's claim on photographs."""

import numpy as np
import pytest

from structot import image as sot_image
from structot.image import ColorTransfer, sharpness, spread, transfer_colors

skimage_data = pytest.importorskip("skimage.data")


def blocks(colors, size=8):
    """Squares of one colour side by side, and their labels."""
    row = np.repeat(np.asarray(colors, float), size, axis=0)
    labels = np.repeat(np.arange(len(colors)), size)
    return np.tile(row, (size, 1, 1)), np.tile(labels, (size, 1))


# --------------------------------------------------------------------------------------------------
# Known answers
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", "emd"])
def test_flat_regions_take_the_nearest_flat_colours(method):
    source, labels = blocks([[0.1, 0.1, 0.1], [0.8, 0.8, 0.8]])
    target, others = blocks([[0.9, 0.7, 0.7], [0.2, 0.0, 0.3]])
    moved = transfer_colors(source, target, alpha=0.3, segments=(labels, others), method=method)
    expected, _ = blocks([[0.2, 0.0, 0.3], [0.9, 0.7, 0.7]])
    np.testing.assert_allclose(moved, expected, atol=1e-6)


def test_the_image_itself_is_its_own_palette_under_plain_transport():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (12, 10, 3), dtype=np.uint8)
    whole = np.zeros((12, 10))
    moved = transfer_colors(
        image, image, alpha=0.3, method="emd", segments=(whole, whole), n_samples=120
    )
    np.testing.assert_array_equal(moved, image)


def test_mean_colour_becomes_the_target_s():
    """Transport carries all mass: a sample of every pixel moves the mean to the target's mean."""
    rng = np.random.default_rng(1)
    source, target = rng.uniform(0.0, 0.4, (10, 10, 3)), rng.uniform(0.5, 0.9, (10, 10, 3))
    whole = np.zeros((10, 10))
    moved = transfer_colors(source, target, method="emd", segments=(whole, whole), n_samples=100)
    np.testing.assert_allclose(moved.mean(axis=(0, 1)), target.mean(axis=(0, 1)), atol=0.02)


def test_at_threshold_zero_a_region_moves_as_one():
    """Two shades of a region go to the mean of the target's two, and not each to its own."""
    source, target = np.tile([0.1, 0.2], (6, 3)), np.tile([0.6, 0.9], (6, 3))
    whole = np.zeros((6, 6))
    options = {"segments": (whole, whole), "tol": 1e-6}
    together = transfer_colors(source, target, alpha=0.0, **options)
    np.testing.assert_allclose(together, 0.75, atol=0.01)
    apart = transfer_colors(source, target, alpha=1.0, **options)
    np.testing.assert_allclose(apart, target, atol=0.01)


def test_the_answer_is_certified_and_repeatable():
    source, target = skimage_data.astronaut()[::8, ::8], skimage_data.coffee()[::8, ::8]
    options = {"alpha": 0.3, "n_samples": 80, "random_state": 3}
    first, second = (ColorTransfer.of(source, target, **options) for _ in range(2))
    assert first.result.gap <= 5e-2
    np.testing.assert_array_equal(first.image, second.image)
    other = transfer_colors(source, target, **{**options, "random_state": 4})
    assert (other != first.image).any()


# --------------------------------------------------------------------------------------------------
# Images of every kind
# --------------------------------------------------------------------------------------------------


def small(channels=3, dtype=np.uint8, shape=(14, 11), seed=0):
    rng = np.random.default_rng(seed)
    size = shape if channels == 0 else (*shape, channels)
    if np.dtype(dtype).kind == "f":
        return rng.uniform(size=size).astype(dtype)
    return rng.integers(0, np.iinfo(dtype).max, size, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4])
def test_shape_and_type_are_kept(channels, dtype):
    source, target = small(channels, dtype), small(3, np.uint8, (9, 17), seed=1)
    moved = transfer_colors(source, target, alpha=0.3, method="emd", n_samples=60)
    assert moved.dtype == dtype
    expected = {0: 3, 1: 3, 2: 4, 3: 3, 4: 4}[channels]  # a grey source takes colour
    assert moved.shape == (14, 11, expected)
    if channels in (2, 4):
        np.testing.assert_array_equal(moved[..., -1], source[..., -1])


@pytest.mark.parametrize("channels", [0, 1, 2])
def test_grey_to_grey_stays_grey(channels):
    source = small(channels)
    moved = transfer_colors(source, small(0, seed=1), method="emd", n_samples=60)
    assert moved.shape == source.shape


def test_depth_does_not_matter():
    source, target = small(3), small(3, seed=1)
    options = {"alpha": 0.3, "method": "emd", "n_samples": 60}
    bytes_ = transfer_colors(source, target, **options)
    words = transfer_colors(source.astype(np.uint16) * 257, target, **options)
    floats = transfer_colors(source / 255.0, target / 255.0, **options)
    np.testing.assert_allclose(words / 257.0, bytes_, atol=0.51)
    np.testing.assert_allclose(floats * 255.0, bytes_, atol=0.51)


def test_transparent_pixels_neither_give_nor_take_colours():
    source, target = small(4), small(4, seed=1)
    source[:7, :, 3], source[7:, :, 3] = 0, 255
    target[..., 3] = 255
    target[:7] = (255, 0, 0, 0)  # bright red, unseen
    target[7:, :, 0] = 0
    moved = transfer_colors(source, target, method="emd", n_samples=70)
    np.testing.assert_array_equal(moved[:7], source[:7])
    assert moved[7:, :, 0].max() <= 60  # interpolated displacements may miss 0, but there is no red


def test_lab_and_rgb_are_two_ways_to_measure():
    source, target = skimage_data.chelsea()[::10, ::10], skimage_data.coffee()[::10, ::10]
    options = {"method": "emd", "n_samples": 100}
    lab = transfer_colors(source, target, space="lab", **options)
    rgb = transfer_colors(source, target, **options)
    assert lab.dtype == np.uint8
    difference = np.abs(lab.astype(float) - rgb)
    assert 0 < difference.mean() < 40


@pytest.mark.parametrize("segments", ["felzenszwalb", "slic"])
def test_regions_do_not_depend_on_resolution(segments):
    picture = skimage_data.astronaut()[::4, ::4]
    larger = np.repeat(np.repeat(picture, 2, axis=0), 2, axis=1)
    counts = [
        ColorTransfer.of(p, p, method="emd", n_samples=100, segments=segments).source_segments.max()
        for p in (picture, larger)
    ]
    assert 0.5 < counts[1] / counts[0] < 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": np.zeros(5)}, "source must be an image"),
        ({"source": np.zeros((4, 4, 5))}, "1 to 4 channels"),
        ({"target": np.zeros((0, 4, 3))}, "target has no pixels"),
        ({"source": np.full((4, 4), 3.0)}, "between 0 and 1"),
        ({"source": np.full((4, 4), np.nan)}, "between 0 and 1"),
        ({"source": np.zeros((4, 4), np.int64)}, "uint8, uint16 or floats"),
        ({"target": np.zeros((4, 4, 4))}, "target is wholly transparent"),
        ({"segments": "grid"}, "segments"),
        ({"segments": (np.zeros((3, 3)), np.zeros((4, 4)))}, r"segments\[0\]"),
        ({"segments": 7}, "pair of label images"),
        ({"method": "sinkhorn"}, "method"),
        ({"space": "hsv"}, "space"),
        ({"alpha": -1.0}, "alpha"),
        ({"n_samples": 0}, "n_samples"),
        (
            {"n_samples": 3, "segments": (np.arange(16).reshape(4, 4), np.zeros((4, 4)))},
            "more samples or fewer segments",
        ),
    ],
)
def test_what_cannot_be_handled_is_refused(arguments, words):
    gradient = np.linspace(0, 1, 48).reshape(4, 4, 3)
    call = {"source": gradient, "target": gradient, **arguments}
    source, target = call.pop("source"), call.pop("target")
    with pytest.raises(ValueError, match=words):
        transfer_colors(source, target, **call)


# --------------------------------------------------------------------------------------------------
# Samples and measures
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_samples", [4, 37, 100, 1000])
def test_strata_keep_their_share_of_the_weight(n_samples):
    labels = np.repeat([0, 1, 2, 3], [1, 19, 30, 50]).reshape(10, 10)
    index, weight = sot_image._stratified(
        "source", labels, np.ones((10, 10), bool), n_samples, np.random.default_rng(0)
    )
    assert len(index) == min(n_samples, 100)
    assert len(set(index.tolist())) == len(index)
    shares = np.bincount(labels.ravel()[index], weight)
    np.testing.assert_allclose(shares, [0.01, 0.19, 0.3, 0.5])


def test_spread_is_the_deviation_within_regions():
    rng = np.random.default_rng(0)
    picture = rng.uniform(size=(6, 8, 3))
    labels = rng.integers(0, 4, (6, 8)) * 10
    total = sum(
        ((picture[labels == k] - picture[labels == k].mean(axis=0)) ** 2).sum()
        for k in np.unique(labels)
    )
    assert spread(picture, labels) == pytest.approx(np.sqrt(total / 48))


def test_sharpness_counts_steps_at_borders_only():
    flat, labels = blocks([[0.0, 0.0, 0.0], [0.3, 0.4, 0.0]])
    assert sharpness(flat, labels) == pytest.approx(0.5)
    noisy = flat.copy()
    noisy[:, 2] = 1.0  # a line inside the left region
    assert sharpness(noisy, labels) == pytest.approx(0.5)
    blurred = flat.copy()
    blurred[:, 7:9] = flat[:, 7:9].mean(axis=1, keepdims=True)
    assert sharpness(blurred, labels) == pytest.approx(0.0)
    assert sharpness(flat, np.zeros((8, 16))) == 0.0


@pytest.mark.parametrize(
    ("source", "target"), [("astronaut", "coffee"), ("chelsea", "coffee"), ("coffee", "rocket")]
)
def test_structure_is_more_uniform_than_emd_and_sharper_than_entropy(source, target):
    """The paper's Figure 2 as two numbers, in the regions of the source."""
    images = [getattr(skimage_data, name)()[::3, ::3] for name in (source, target)]
    answers = {
        method: ColorTransfer.of(*images, alpha=0.3, n_samples=250, method=method)
        for method in ("auto", "emd", "entropic")
    }
    regions = answers["auto"].source_segments
    uniform = {method: spread(answer.image, regions) for method, answer in answers.items()}
    sharp = {method: sharpness(answer.image, regions) for method, answer in answers.items()}
    assert uniform["auto"] < 0.97 * uniform["emd"]
    assert sharp["auto"] > 1.03 * sharp["entropic"]
    assert all(answer.result.converged for answer in answers.values())


def test_routes_keep_regions_together_and_more_of_the_shade_inside_than_groups():
    rng = np.random.default_rng(0)
    regions = np.repeat([[0, 1]], 12, axis=0).repeat(6, axis=1)
    shade = 0.2 * rng.random((12, 12, 1))
    source = np.clip(np.where(regions[..., None] == 0, 0.1, 0.7) + shade, 0, 1) * np.ones(3)
    target = np.clip(source * [0.5, 1.0, 0.2] + 0.1, 0, 1)
    options = {"segments": (regions, regions), "n_samples": 60, "random_state": 0}
    together, spread_out = (
        ColorTransfer.of(source, target, method=method, **options) for method in ("routes", "auto")
    )
    assert together.result.converged
    assert together.result.concentration > 0.99
    assert together.result.partners.mean() < spread_out.result.partners.mean()
    assert spread(together.image, regions) > spread(spread_out.image, regions)
