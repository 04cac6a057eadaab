"""Overlapping groups, hierarchies and coverage of any sets: values, layers, and answers."""

from __future__ import annotations

import itertools

import numpy as np
import ot
import pytest
from brute_force import is_submodular, tabulate
from problems import moved
from subset_program import subset_optimum

import structot as sot
from structot.structures._grouping import Grouping

Array = np.ndarray

PAIRS = [[0, 1], [1, 2]]


def overlapping_value(
    M: Array, source: list[list[int]], target: list[list[int]], g: object, mask: Array
) -> float:
    """Σ_kl g(M(S ∩ U_k × V_l)) from its definition."""
    return sum(
        float(g(M[np.ix_(k, t)][mask[np.ix_(k, t)]].sum()))  # type: ignore[operator]
        for k in source
        for t in target
    )


@pytest.mark.parametrize(
    ("groups", "size", "layers"),
    [
        (sot.groups.ngrams(9, 2), 9, 2),
        (sot.groups.ngrams(9, 3), 9, 3),
        (sot.groups.ngrams(9, 3, padded=True), 9, 3),
        ([[0, 2], [1, 3]], 4, 1),
        ([[0, 1, 2], [0], [1], [2]], 3, 2),
        ([[0, 1, 2, 3]] * 4, 4, 4),
    ],
)
def test_colouring_is_disjoint_complete_and_small(groups: list, size: int, layers: int) -> None:
    grouping = Grouping.of("source", groups, size)
    assert len(grouping.layers) == layers
    found = {
        frozenset(np.flatnonzero(layer.number == local).tolist()): int(k)
        for layer in grouping.layers
        for local, k in enumerate(layer.group)
    }
    assert set(found) == {frozenset(map(int, g)) for g in groups}
    count = sum((layer.number >= 0).astype(int) for layer in grouping.layers)
    assert count.tolist() == grouping.coverage.tolist()
    assert sorted(k for layer in grouping.layers for k in layer.group) == list(range(len(groups)))


def test_a_point_in_no_group_is_its_own() -> None:
    grouping = Grouping.of("source", [[0, 1], [1, 2], []], 5)
    assert grouping.count == 4  # two groups, two points alone; the empty one is left out
    assert grouping.coverage.tolist() == [1, 2, 1, 1, 1]


@pytest.mark.parametrize("g", [sot.concave.Sqrt(), sot.concave.Truncation(1.0)])
def test_value_is_the_definition(g: sot.concave.Concave) -> None:
    M = np.random.default_rng(0).uniform(0, 2, (3, 3))
    F = sot.Groups(PAIRS, [[0, 1, 2], [2]], g, units="cost").bind(M)
    table = tabulate(F.value, np.ones((3, 3), bool))
    masks = table.masks((3, 3))
    want = [overlapping_value(M, PAIRS, [[0, 1, 2], [2]], g, mask) for mask in masks]
    np.testing.assert_allclose(table.values, want, rtol=1e-12)
    assert is_submodular(table)


def test_equal_coverage_with_a_linear_function_is_plain_transport() -> None:
    rng = np.random.default_rng(1)
    M = rng.uniform(0, 1, (7, 6))
    bigrams = sot.Groups(
        sot.groups.ngrams(7, 2),
        sot.groups.ngrams(6, 3),
        sot.concave.Linear(),
        equal_coverage=True,
        units="cost",
    )
    result = sot.solve(M, structure=bigrams)
    assert result.method == "exact"
    weights = np.full(7, 1 / 7), np.full(6, 1 / 6)
    assert result.value == pytest.approx(ot.emd2(*weights, M), rel=1e-12)
    # And without it every pair is paid for once per block that holds it.
    double = sot.Groups(
        sot.groups.ngrams(7, 2, padded=True), None, sot.concave.Linear(), units="cost"
    )
    assert sot.solve(M, structure=double).value == pytest.approx(2 * result.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_solve_agrees_with_the_program_over_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = moved(rng.uniform(0, 1, (3, 3)))
    M[0, 0] = 0.0 if seed % 2 else M[0, 0]
    a, b = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    structures = [
        sot.Groups(PAIRS, [[0, 1], [0, 2]], sot.concave.Sqrt(), units="cost"),
        sot.Groups(PAIRS, PAIRS, sot.concave.Truncation(0.5), units="block"),
        sot.Modular() + sot.Coverage(PAIRS, PAIRS, weights=0.2),
        sot.Coverage.of_sets(rng.random((4, 3, 3)) < 0.5, rng.uniform(0, 1, 4)) + sot.Modular(),
        sot.Hierarchy(
            [[0, 1, 2], [0, 0, 1]], [[0, 1, 1], [0, 0, 0]], sot.concave.Sqrt(), units="cost"
        ),
    ]
    for structure in structures:
        result = sot.solve(M, a, b, structure=structure, tol=1e-6)
        best = subset_optimum(M, a, b, structure).value
        assert result.converged
        assert result.lower_bound - 1e-9 <= best <= result.value + 1e-9
        assert sot.certificate.verify(M, a, b, structure, result).holds()


def test_linear_program_and_splitting_agree_on_overlapping_groups() -> None:
    rng = np.random.default_rng(5)
    M = moved(rng.uniform(0.1, 1, (8, 9)))
    g = sot.concave.PiecewiseLinear([0.2, 0.6], [1.0, 0.5, 0.2])
    groups = sot.Groups(sot.groups.ngrams(8, 2), sot.groups.ngrams(9, 3), g, units="cost")
    exact = sot.solve(M, structure=groups, method="linear_program", tol=1e-8)
    split = sot.solve(M, structure=groups, tol=1e-5)
    assert split.method == "splitting"
    assert split.value == pytest.approx(exact.value, rel=2e-5)


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_sentences_with_phrases_on_both_sides(n: int, seed: int) -> None:
    """8 to 15 words a side: converged, and the proof holds."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 16, 2)
    words = rng.normal(size=(30, 10))
    x, y = (words[rng.integers(0, 30, size)] for size in lengths)
    M = moved(np.linalg.norm(x[:, None] - y[None], axis=2))  # repeated words: zero costs
    phrases = [sot.groups.ngrams(int(size), n, padded=True) for size in lengths]
    fixed = sot.Modular() + sot.Coverage(*phrases, weights=0.4 * M.mean() / n**2)
    concave = sot.Groups(
        *phrases, sot.concave.ThresholdSqrt(1.0), equal_coverage=True, units="cost"
    )
    for structure in (fixed, concave):
        result = sot.solve(M, structure=structure, tol=1e-4)
        assert result.converged
        assert sot.certificate.verify(M, None, None, structure, result).holds()


def test_hierarchy_of_one_level_is_groups() -> None:
    rng = np.random.default_rng(2)
    M = rng.uniform(0, 1, (6, 5))
    ys, yt = [0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 1]
    g = sot.concave.ThresholdSqrt(0.5)
    one = sot.Hierarchy([ys], [yt], g, units="cost").bind(M)
    groups = sot.Groups(ys, yt, g, units="cost").bind(M)
    P = rng.random((6, 5))
    assert one.extension(P) == groups.extension(P)
    same = sot.solve(M, structure=sot.Hierarchy([ys], [yt], g, units="cost"), tol=1e-8)
    assert same.method == "newton"
    assert same.value == pytest.approx(
        sot.solve(M, structure=sot.Groups(ys, yt, g, units="cost"), tol=1e-8).value
    )


def test_hierarchy_sums_its_levels() -> None:
    rng = np.random.default_rng(3)
    M = rng.uniform(0, 1, (4, 4))
    fine, coarse = [0, 1, 2, 3], [0, 0, 1, 1]
    g = sot.concave.Sqrt()
    F = sot.Hierarchy([fine, coarse], [coarse, coarse], g, weights=[2.0, 0.5], units="cost").bind(M)
    want = (
        2.0 * sot.Groups(fine, coarse, g, units="cost")
        + 0.5 * sot.Groups(coarse, coarse, g, units="cost")
    ).bind(M)
    P = rng.random((4, 4))
    assert F.extension(P) == pytest.approx(want.extension(P))
    default = sot.Hierarchy([fine, coarse], concave=sot.concave.Linear(), units="cost")
    assert sot.solve(M, structure=default).value == pytest.approx(sot.solve(M).value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0, 0, 1], [0, 1, 1]],), "points 0 and 1 share a group in level 0.*coarser level 1"),
        (([[0, 0, 1]], [[0, 0, 1], [0, 0, 0]]), "levels_target has 2 levels"),
        (([0, 0, 1],), r"For a single level pass \[levels_source\]"),
        (([],), "levels_source must be a list of groupings"),
    ],
)
def test_bad_hierarchies(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sot.Hierarchy(*arguments).bind(np.ones((3, 3)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0]}, "weights must be 2 finite numbers"),
        ({"weights": [1.0, np.inf]}, "weights must be 2 finite numbers"),
        ({"weights": [1.0, -1.0]}, "none negative"),
        ({"concave": [sot.concave.Sqrt()]}, "concave has 1 functions for 2 levels"),
    ],
)
def test_bad_hierarchy_options(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sot.Hierarchy([[0, 1], [0, 0]], **options)


def test_coverage_by_singletons_is_plain_transport() -> None:
    rng = np.random.default_rng(4)
    M = rng.uniform(0, 1, (5, 4))
    singletons = np.eye(20, dtype=bool).reshape(20, 5, 4)
    result = sot.solve(M, structure=sot.Coverage.of_sets(singletons, M.ravel()))
    assert result.value == pytest.approx(sot.solve(M).value, rel=1e-12)


def test_coverage_of_blocks_as_sets_is_coverage() -> None:
    rng = np.random.default_rng(6)
    M = rng.uniform(0, 1, (4, 4))
    groups, prices = [[0, 1], [1, 2, 3]], rng.uniform(0, 1, (2, 2))
    masks = np.zeros((4, 4, 4), bool)
    for s, (k, t) in enumerate(itertools.product(groups, groups)):
        masks[s][np.ix_(k, t)] = True
    one = sot.Coverage(groups, groups, weights=prices).bind(M)
    two = sot.Coverage.of_sets(masks, prices.ravel()).bind(M)
    for P in rng.random((5, 4, 4)):
        assert one.extension(P) == pytest.approx(two.extension(P), rel=1e-12)


def test_coverage_of_disjoint_sets_runs_newton_beside_a_linear_part() -> None:
    rng = np.random.default_rng(7)
    M = rng.uniform(0, 1, (6, 6))
    label = rng.integers(0, 4, (6, 6))
    masks = np.stack([label == s for s in range(3)])  # label 3 is in no set
    structure = sot.Modular() + sot.Coverage.of_sets(masks, [0.5, 1.0, 0.2])
    result = sot.solve(M, structure=structure, tol=1e-7)
    assert result.method == "newton"
    assert result.converged
    split = sot.solve(M, structure=structure, method="splitting", tol=1e-5)
    assert split.value == pytest.approx(result.value, rel=2e-5)


def test_sets_of_pairs_are_sets_of_masks() -> None:
    """Equal sets count twice, an empty one never, and a pair in no set costs nothing more."""
    sets = [
        np.array([[0, 1], [1, 2]]),
        np.array([[0, 1]]),
        np.array([[0, 1]]),
        np.empty((0, 2), int),
    ]
    masks = np.zeros((4, 3, 3), bool)
    for mask, pairs in zip(masks, sets):
        mask[tuple(pairs.T)] = True
    prices, P = [0.5, 1.0, 0.25, 7.0], np.random.default_rng(3).random((3, 3))
    one = sot.Coverage.of_sets(sets, prices).bind(np.ones((3, 3)))
    two = sot.Coverage.of_sets(masks, prices).bind(np.ones((3, 3)))
    expected = 0.5 * max(P[0, 1], P[1, 2]) + 1.25 * P[0, 1]
    assert one.extension(P) == pytest.approx(expected)
    assert two.extension(P) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("masks", "weights", "message"),
    [
        (np.ones((2, 3)), 1.0, "sets must hold at least one set: Boolean masks"),
        ([], 1.0, "sets must hold at least one set"),
        (3, 1.0, "sets must hold at least one set"),
        ([[[0, 1, 2]]], 1.0, r"int64 of shape \(1, 3\)"),
        ([[[0, 3]]], 1.0, r"pair \(0, 3\), but M has shape"),
        ([[[0, 1]], [[-1, 0]]], 1.0, r"pair \(-1, 0\), but M has shape"),
        (np.ones((2, 3, 3), bool), [1.0], "1 prices for 2 sets"),
        (np.ones((1, 3, 3), bool), -1.0, "not negative"),
        (np.ones((1, 2, 3), bool), 1.0, "they must agree"),
    ],
)
def test_bad_sets(masks: object, weights: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sot.Coverage.of_sets(masks, weights).bind(np.ones((3, 3)))


def test_forbidden_pairs_stay_forbidden_under_overlaps() -> None:
    M = np.random.default_rng(8).uniform(0, 1, (4, 4))
    M[0, 3] = M[2, 1] = np.inf
    structure = sot.Modular() + sot.Coverage([[0, 1], [1, 2], [2, 3]], [[0, 1, 2], [2, 3]], 0.1)
    F = structure.bind(M)
    assert len(F.layers) > 1
    K = F.greedy(np.random.default_rng(0).random((4, 4)))
    assert np.array_equal(np.isinf(K), np.isinf(M))
    result = sot.solve(M, structure=structure)
    assert result.converged
    assert result.plan[np.isinf(M)].tolist() == [0.0, 0.0]


def test_a_price_without_a_ground_cost_has_a_scale() -> None:
    """M = 0: the optimum of the fixed charge alone is certified, not lost in rounding."""
    charge = sot.Coverage([0, 0, 1], [0, 1, 1], weights=[[0.0, 3.0], [3.0, 0.0]])
    result = sot.solve(np.zeros((3, 3)), [0.5, 0.25, 0.25], [0.75, 0.125, 0.125], structure=charge)
    assert result.converged
    assert result.value == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize(
    "groups",
    [
        [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]],  # one-hot rows
        [[0, 1], [1, 0], [0, 1], [1, 0]],  # one-hot rows of two classes
        [(0, 1), (0, 2), (0, 1), (1, 2)],  # labels made of two numbers
    ],
)
def test_what_looks_like_labels_is_not_taken_for_indices(groups) -> None:
    with pytest.raises(ValueError, match=r"np\.argmax\(rows, 1\)"):
        sot.Groups(groups).bind(np.ones((4, 2)))


def test_groups_may_repeat_where_they_mean_it() -> None:
    X = np.array([[0.0], [0.1], [5.0], [5.1]])
    sot.Groups(sot.groups.neighborhoods(X, 1)).bind(np.ones((4, 2)))
    sot.Groups(sot.groups.ngrams(2, 3, padded=True)).bind(np.ones((2, 2)))


def test_a_column_of_labels_is_one_label_per_point() -> None:
    M = np.arange(6.0).reshape(3, 2)
    flat, column = (sot.Groups(ys).bind(M) for ys in ([0, 0, 1], np.array([[0], [0], [1]])))
    assert column.extension(M) == flat.extension(M)
