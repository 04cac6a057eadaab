"""Synthetic problems: sizes, balance, seeds, and the geometry that makes plain transport mix."""

import numpy as np
import ot
import pytest

from structot.datasets import cells, clusters, target_shift, two_moons


@pytest.mark.parametrize(
    ("n", "m", "K", "L"), [(100, None, 3, None), (60, 110, 5, 7), (1, 1, 1, 1)]
)
def test_sizes_and_balance(n, m, K, L):
    problem = clusters(n, m, K, n_target_classes=L, dimension=3)
    m, L = m or n, L or K
    assert problem.X.shape == (n, 3)
    assert problem.Y.shape == (m, 3)
    for labels, size in ((problem.source_labels, K), (problem.target_labels, L)):
        counts = np.bincount(labels)
        assert counts.size == size
        assert np.ptp(counts) <= 1
        assert np.all(np.diff(labels) >= 0)


def test_seed_decides_everything():
    first, again, other = clusters(20, seed=1), clusters(20, seed=1), clusters(20, seed=2)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.Y, again.Y)
    assert not np.array_equal(first.X, other.X)


def test_plain_transport_mixes_classes_and_blocks_have_the_promised_cost():
    problem = clusters(100)
    weight = np.full(100, 0.01)
    P = ot.emd(weight, weight, problem.cost)
    same = problem.source_labels[:, None] == problem.target_labels[None, :]
    assert 0.4 < P[same].sum() < 0.7
    K = np.eye(3)[problem.source_labels]
    L = np.eye(3)[problem.target_labels]
    totals = K.T @ problem.cost @ L
    assert 1e4 < totals.min() < totals.max() < 2e5


def test_shift_leaves_the_plain_plan_alone():
    near, far = clusters(30, shift=0.0), clusters(30, shift=9.0)
    weight = np.full(30, 1 / 30)
    plans = [ot.emd(weight, weight, problem.cost) for problem in (near, far)]
    np.testing.assert_allclose(*plans, atol=1e-12)


def test_moons_without_noise_lie_on_their_circles():
    problem = two_moons(9, 13, noise=0.0)
    np.testing.assert_allclose(np.hypot(*problem.X.T), 1.0)
    np.testing.assert_allclose(np.hypot(*(problem.Y - [1.0, 0.5]).T), 1.0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: clusters(0), "n must be .* got 0"),
        (lambda: clusters(5, 2, 3), "n_target_classes is 3"),
        (lambda: clusters(5, n_classes=0), "n_classes must be .* got 0"),
        (lambda: clusters(5, dimension=1), "dimension must be .* got 1"),
        (lambda: clusters(5, spread=-1.0), "spread must be .* got -1"),
        (lambda: clusters(5, separation=float("nan")), "separation is NaN"),
        (lambda: two_moons(5, noise=-0.1), "noise must be .* got -0.1"),
    ],
)
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()


def test_cells_have_the_proportions_and_losses_asked_for():
    problem = cells(90, 120, n_types=3, proportions=([1, 2, 6], [1, 1, 1]), dropout=0.5)
    assert np.bincount(problem.source_labels) == pytest.approx([10, 20, 60], abs=1)
    assert np.bincount(problem.target_labels).tolist() == [40, 40, 40]
    whole = cells(90, 120, n_types=3, proportions=([1, 2, 6], [1, 1, 1]), dropout=0.0)
    assert (problem.X == 0).mean() > (whole.X == 0).mean() + 0.3
    assert np.isfinite(problem.X).all()


def test_cells_of_a_type_are_nearer_to_each_other_and_batches_lie_apart():
    problem = cells(150, 150, seed=1)
    same = problem.source_labels[:, None] == problem.target_labels
    assert problem.cost[same].mean() < problem.cost[~same].mean()
    still = cells(150, 150, batch_effect=0.0, seed=1)
    assert still.cost.mean() < problem.cost.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": 1.0}, "dropout must be below 1"),
        ({"proportions": ([1, 1], [1, 1, 1])}, "proportions must hold 3 positive numbers"),
        ({"proportions": ([1, 1, 0], [1, 1, 1])}, "proportions must hold 3 positive numbers"),
        ({"depth": 0.0}, "depth"),
    ],
)
def test_cells_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        cells(9, n_types=3, **options)


def test_target_shift_has_its_proportions_and_moves_its_centres():
    frequent = set()
    for seed in range(20):
        problem = target_shift((0.9, 0.05, 0.05), seed=seed, noise=0.0)
        counts = np.bincount(problem.target_labels)
        assert sorted(counts.tolist()) == [15, 15, 270]
        assert np.bincount(problem.source_labels).tolist() == [50, 50, 50]
        frequent.add(int(counts.argmax()))
        sides = ((problem.X, problem.source_labels), (problem.Y, problem.target_labels))
        first, second = (np.array([P[y == k][0] for k in range(3)]) for P, y in sides)
        np.testing.assert_allclose(second.mean(axis=0) - first.mean(axis=0), [2.0, 1.0])
        arm, turned = first[1] - first[0], second[1] - second[0]
        assert arm @ turned == pytest.approx(16 * np.cos(np.radians(40)))
    assert frequent == {0, 1, 2}
