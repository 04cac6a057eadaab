"""Maps of points: barycentres, medoids, points that were not seen, batches."""

from __future__ import annotations

import warnings

import numpy as np
import ot
import pytest
from scipy.spatial.distance import cdist

pytest.importorskip("sklearn")

from structot.adaptation import StructuredTransport, mapping
from structot.adaptation.mapping import PointMap, barycenters, medoids
from structot.datasets import clusters

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(15, 3)), RNG.normal(size=(12, 3)) + 1.0
P = RNG.dirichlet(np.ones(15 * 12)).reshape(15, 12)


def test_barycentres_minimise_the_squared_cost():
    images = barycenters(P, Y)
    cost = (P * cdist(images, Y, "sqeuclidean")).sum(axis=1)
    for step in 0.01 * RNG.normal(size=(20, 1, 3)):
        assert (cost <= (P * cdist(images + step, Y, "sqeuclidean")).sum(axis=1)).all()


@pytest.mark.parametrize("cells", [1, 40, 1 << 22])
def test_medoids_by_brute_force(monkeypatch, cells):
    monkeypatch.setattr(mapping, "_ENTRIES_AT_A_TIME", cells)
    images = medoids(P, Y, "cityblock")
    for i in range(15):
        costs = [sum(P[i, j] * abs(y - Y[j]).sum() for j in range(12)) for y in Y]
        assert np.array_equal(images[i], Y[int(np.argmin(costs))])


@pytest.mark.parametrize("how", ["nearest", "smooth"])
def test_fitted_points_reach_their_images(how):
    move = PointMap.of(P, X, Y)
    assert np.array_equal(move(X, how), barycenters(P, Y))


@pytest.mark.parametrize("how", ["nearest", "smooth"])
def test_a_shift_is_continued_outside_the_sample(how):
    """If every fitted point moves by the same vector, so does every other point."""
    shift = np.array([1.0, -2.0, 0.5])
    move = PointMap.of(np.eye(15) / 15, X, X + shift)
    new = RNG.normal(size=(50, 3))
    np.testing.assert_allclose(move(new, how), new + shift, atol=1e-12)


def test_nearest_follows_the_nearest_point_and_agrees_with_pot():
    move = PointMap.of(P, X, Y)
    new = RNG.normal(size=(40, 3))
    peer = ot.da.EMDTransport().fit(Xs=X, Xt=Y)
    peer.coupling_ = P
    np.testing.assert_allclose(move(new, "nearest"), peer.transform(Xs=new), atol=1e-12)


def test_smooth_is_continuous_and_nearest_is_not():
    sample = RNG.normal(size=(40, 2))
    move = PointMap.of(np.eye(40), sample, RNG.normal(size=(40, 2)))
    line = np.linspace(-1.5, 1.5, 20001)[:, None] * np.array([[1.0, 0.3]])
    step = np.linalg.norm(line[1] - line[0])
    jumps = {
        how: np.linalg.norm(np.diff(move(line, how), axis=0), axis=1).max() / step
        for how in ("nearest", "smooth")
    }
    assert jumps["nearest"] > 1000
    assert jumps["smooth"] < 100


@pytest.mark.parametrize("how", ["nearest", "smooth"])
def test_batches_change_nothing(monkeypatch, how):
    move = PointMap.of(P, X, Y)
    new = RNG.normal(size=(33, 3))
    whole = move(new, how)
    assert np.array_equal(move(new, how, batch_size=7), whole)
    monkeypatch.setattr(mapping, "_ENTRIES_AT_A_TIME", 100)
    assert np.array_equal(move(new, how), whole)


def test_memory_does_not_grow_with_the_number_of_points(monkeypatch):
    monkeypatch.setattr(mapping, "_ENTRIES_AT_A_TIME", 1000)
    widths = []
    real = mapping.cdist
    monkeypatch.setattr(mapping, "cdist", lambda A, B: widths.append(len(A) * len(B)) or real(A, B))
    PointMap.of(P, X, Y)(RNG.normal(size=(500, 3)), "smooth")
    assert max(widths) <= 1000


def test_points_that_coincide_have_one_image():
    """Two equal points are one point of twice the mass: the map is a function."""
    twice, plan = np.vstack([X, X[:4]]), np.vstack([P, P[5:9]])
    move = PointMap.of(plan, twice, Y)
    merged = P.copy()
    merged[:4] += P[5:9]
    expected = barycenters(merged, Y)
    for how in ("nearest", "smooth"):
        np.testing.assert_allclose(move(X, how), expected, atol=1e-12)


def test_rows_without_mass_have_no_image():
    empty = P.copy()
    empty[2] = 0.0
    move = PointMap.of(empty, X, Y)
    near = cdist(X[[2]], np.delete(X, 2, axis=0)).argmin()
    image = barycenters(np.delete(P, 2, axis=0), Y)[near]
    expected = image + X[2] - np.delete(X, 2, axis=0)[near]
    np.testing.assert_allclose(move(X[[2]], "nearest")[0], expected)


@pytest.mark.parametrize("count", [2, 5, 11])
def test_smooth_is_continuous_with_few_points(count):
    sample = RNG.normal(size=(count, 1))
    move = PointMap.of(np.eye(count), sample, RNG.normal(size=(count, 1)))
    line = np.linspace(-2.0, 2.0, 200001)[:, None]
    assert np.abs(np.diff(move(line, "smooth"), axis=0)).max() < 1e-2


@pytest.mark.parametrize("how", ["nearest", "smooth"])
def test_fitted_points_at_distance_zero_keep_their_own_images(how):
    """Under the cosine a point and its double are at distance 0, and yet two points."""
    sample = np.vstack([X, 2.0 * X])
    plan = np.vstack([P, P[::-1]])
    move = PointMap.of(plan, sample, Y, "cosine")
    assert np.array_equal(move(sample, how), medoids(plan, Y, "cosine"))


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_metrics_that_are_euclidean_after_a_linear_map_have_barycentres(metric):
    data = clusters(20, 25, rotation=0.2)
    stretched = [points * [1.0, 30.0] for points in (data.X, data.Y)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt = StructuredTransport(metric=metric, cost_scale=None).fit(
            stretched[0], data.source_labels, stretched[1]
        )
    np.testing.assert_allclose(adapt.cost_, cdist(*stretched, metric), rtol=1e-9)
    expected = barycenters(adapt.coupling_, stretched[1])
    np.testing.assert_allclose(adapt.transform(stretched[0]), expected)


def test_features_in_unlike_units_are_scaled_by_default_and_others_are_not():
    rng = np.random.default_rng(0)
    sample, other = rng.normal(size=(2, 40, 10))
    ys = np.arange(40) % 2
    even = StructuredTransport().fit(sample, ys, other)
    assert even.metric_ == "euclidean"
    units = 10.0 ** rng.uniform(-4, 4, 10)
    odd = StructuredTransport().fit(sample * units, ys, other * units)
    assert odd.metric_ == "seuclidean"
    alike = StructuredTransport(metric="seuclidean").fit(sample, ys, other)
    np.testing.assert_allclose(odd.cost_, alike.cost_, rtol=1e-9)
    # A feature that is constant in both samples, as many pixels are, has no say and no NaN.
    flat = [np.column_stack([x, np.full(40, 7.0)]) for x in (sample * units, other * units)]
    same = StructuredTransport().fit(flat[0], ys, flat[1])
    np.testing.assert_allclose(same.cost_, odd.cost_, rtol=1e-9)
    # Images: many features that hardly vary, which should hardly count.
    image = rng.normal(size=(80, 100)) * np.where(np.arange(100) < 40, 1.0, 1e-3)
    assert StructuredTransport().fit(image[:40], ys, image[40:]).metric_ == "euclidean"


def test_short_names_of_euclidean_metrics_are_euclidean():
    assert all(mapping.is_euclidean(name) for name in ("euclid", "Euclidean", "sqe", "se"))
    assert not any(mapping.is_euclidean(name) for name in ("cityblock", "cosine", abs))


def test_one_fitted_point():
    move = PointMap.of(np.ones((1, 12)) / 12, X[:1], Y)
    expected = Y.mean(axis=0) + X - X[0]
    for how in ("nearest", "smooth"):
        np.testing.assert_allclose(move(X, how), expected)


def test_other_metrics_map_to_target_points_and_say_so():
    data = clusters(20, 25, rotation=0.2)
    with pytest.warns(UserWarning, match="weighted medoids"):
        adapt = StructuredTransport(metric="cityblock").fit(data.X, data.source_labels, data.Y)
    moved = adapt.transform(data.X)
    assert cdist(moved, data.Y).min(axis=1).max() == 0
    best = (adapt.coupling_ @ cdist(data.Y, data.Y, "cityblock")).min(axis=1)
    paid = (adapt.coupling_ * cdist(moved, data.Y, "cityblock")).sum(axis=1)
    np.testing.assert_allclose(paid, best)


@pytest.mark.parametrize("how", ["nearest", "smooth"])
def test_estimator_maps_new_points_both_ways(how):
    data = clusters(30, 40, rotation=0.1, seed=3)
    adapt = StructuredTransport(out_of_sample=how).fit(data.X, data.source_labels, data.Y)
    new = clusters(200, rotation=0.1, seed=4)
    near = [
        cdist(adapt.transform(Xs=new.X), new.Y).min(axis=1).mean(),
        cdist(adapt.inverse_transform(Xt=new.Y), new.X).min(axis=1).mean(),
    ]
    assert max(near) < cdist(new.X, new.Y).min(axis=1).mean()
    expected = barycenters(adapt.coupling_.T, data.X)
    np.testing.assert_allclose(adapt.inverse_transform(data.Y), expected)
