"""The Fujishige–Wolfe algorithm on polytopes whose nearest point is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from brute_force import descent, excess, members, tabulate
from hypothesis import given, settings
from hypothesis import strategies as st

from structot.concave import Sqrt, Truncation
from structot.structures import ChainCut, Groups, LogDet, Structure
from structot.submodular import Oracle, min_norm_point
from structot.submodular.base import Submodular
from structot.submodular.min_norm_point import Corral

Array = np.ndarray


def ones(shape: tuple[int, int]) -> Array:
    return np.ones(shape, bool)


def rank_function(vectors: Array) -> Oracle:
    """The rank of the chosen vectors: a matroid, with many equal vertices."""
    return Oracle(
        lambda S: np.linalg.matrix_rank(vectors[S.ravel()]) if S.any() else 0.0, (1, len(vectors))
    )


def random_cut(rng: np.random.Generator, size: int) -> Oracle:
    """Of a weighted graph on the edges: submodular, not monotone, F(all) = 0."""
    W = np.triu(rng.uniform(0, 1, (size, size)), 1)
    return Oracle(lambda S: float(W[np.ix_(S.ravel(), ~S.ravel())].sum()
                                  + W[np.ix_(~S.ravel(), S.ravel())].sum()), (1, size))  # fmt: skip


def coverage(rng: np.random.Generator, size: int) -> Oracle:
    """How many of 6 things the chosen random sets cover."""
    sets = rng.random((size, 6)) < 0.4
    return Oracle(lambda S: float(sets[S.ravel()].any(axis=0).sum()), (1, size))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(1, 7),
    kind=st.sampled_from(["rank", "cut", "coverage"]),
    weighted=st.booleans(),
)
def test_variational_inequality(seed: int, size: int, kind: str, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    F: Submodular
    if kind == "rank":
        F = rank_function(rng.integers(-1, 2, (size, 3)).astype(float))
    else:
        F = random_cut(rng, size) if kind == "cut" else coverage(rng, size)
    table = tabulate(F.value, ones(F.shape))
    Z = rng.normal(size=F.shape)
    c = rng.uniform(0.1, 3, F.shape) if weighted else np.ones(F.shape)
    K = min_norm_point(F, Z, weights=c if weighted else None)
    assert excess(table, K) <= 1e-9
    assert descent(table, K, c * (K - Z)) <= 1e-8


def test_known_answers() -> None:
    simplex = Oracle(lambda S: min(S.sum(), 1), (2, 3))
    assert min_norm_point(simplex) == pytest.approx(np.full((2, 3), 1 / 6))
    Z = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert min_norm_point(simplex, Z) == pytest.approx(Z / 2, abs=1e-12)
    modular = Oracle(lambda S: float((S * Z).sum()), (2, 3))
    assert min_norm_point(modular, 5 - Z) == pytest.approx(Z)
    # The permutahedron of (3, 2, 1): projecting a point whose order is strict and spread wide.
    steps = Oracle(lambda S: float(sum((3, 2, 1)[: S.sum()])), (1, 3))
    assert min_norm_point(steps, np.array([[0.0, 90.0, 30.0]])).ravel() == pytest.approx([1, 3, 2])
    assert min_norm_point(steps).ravel() == pytest.approx([2, 2, 2])


def test_single_edge_and_points_inside() -> None:
    F = Oracle(lambda S: 4.0 * S.sum(), (1, 1))
    assert min_norm_point(F).tolist() == [[4.0]]
    G = Groups([0, 0], [0, 0, 0], Sqrt(), units="cost").bind(np.arange(1.0, 7.0).reshape(2, 3))
    rng = np.random.default_rng(0)
    inside = np.mean([G.greedy(rng.normal(size=(2, 3))) for _ in range(4)], axis=0)
    assert min_norm_point(G, inside) == pytest.approx(inside, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_answer_scales_with_the_function(scale: float) -> None:
    rng = np.random.default_rng(1)
    M, Z = rng.uniform(0.1, 1, (3, 4)), rng.normal(size=(3, 4))
    F = Groups([0, 0, 0], [0, 0, 1, 1], Truncation(0.3), units="block").bind(scale * M)
    K = min_norm_point(F, scale * Z)
    np.testing.assert_allclose(K, F.project(scale * Z), rtol=0, atol=1e-6 * scale)


def test_forbidden_pairs_are_left_out() -> None:
    M = np.array([[1.0, np.inf, 0.5], [0.3, 0.7, 0.0]])
    F = Groups([0, 0], [0, 0, 0], Sqrt(), units="cost").bind(M)
    Z = np.array([[0.1, np.nan, 0.5], [1.0, -1.0, 0.2]])
    K = min_norm_point(F, Z)
    assert K[0, 1] == np.inf
    table = tabulate(F.value, F.allowed)
    assert excess(table, K) <= 1e-9
    assert descent(table, K, np.where(F.allowed, K - Z, 0.0)) <= 1e-9


def test_forty_edges_agree_with_divide_and_conquer() -> None:
    rng = np.random.default_rng(2)
    M = rng.uniform(0.1, 2, (5, 8))
    F = Groups([0, 0, 0, 1, 1], np.arange(8) % 2, Sqrt(), units="cost").bind(M)
    Z = rng.normal(size=M.shape)
    np.testing.assert_allclose(min_norm_point(F, Z), F.project(Z), rtol=0, atol=1e-6)
    c = 1 / M
    np.testing.assert_allclose(
        min_norm_point(F, Z, weights=c), F.project(Z, "cost"), rtol=0, atol=1e-6
    )


def features(size: int, seed: int) -> LogDet:
    rng = np.random.default_rng(seed)
    return LogDet(rng.normal(size=(size, 4)), rng.normal(size=(size, 3)))


def wolfe_gap(F: Submodular, K: Array, Z: Array, c: Array) -> float:
    """max ⟨x, K - K'⟩ / |x|² over K' in B(F), x = K - Z in the metric c; by one greedy vertex."""
    x = c * (K - Z)
    return float(np.sum(x * (K - F.greedy(-x))) / np.sum(x * (K - Z)))


@pytest.mark.parametrize("structure", [ChainCut(0.3, along="rows"), features(10, 0)])
@pytest.mark.parametrize("seed", range(3))
def test_it_goes_on_where_the_distance_no_longer_falls(structure: Structure, seed: int) -> None:
    """A gap ε shortens |x|² by about ε²: nothing in floating point, long before ε is rounding."""
    rng = np.random.default_rng(seed)
    F = structure.bind(np.ones((10, 10)))
    Z, c = 0.3 * rng.normal(size=F.shape), rng.uniform(0.3, 3, F.shape)
    assert wolfe_gap(F, min_norm_point(F, Z, weights=c, tol=1e-13), Z, c) <= 2e-13


def test_beginning_at_an_earlier_corral_changes_no_answer() -> None:
    rng = np.random.default_rng(4)
    F = features(6, 1).bind(np.ones((6, 6)))
    corral = Corral()
    Z = rng.normal(size=F.shape)
    for _ in range(4):
        Z = Z + 0.05 * rng.normal(size=F.shape)
        warm = min_norm_point(F, Z, tol=1e-13, corral=corral)
        np.testing.assert_allclose(warm, min_norm_point(F, Z, tol=1e-13), rtol=0, atol=1e-6)
    # The vertices and shares that are kept span the answer.
    assert corral.vertices is not None
    assert corral.share is not None
    assert (corral.share > 0).all()
    np.testing.assert_allclose(corral.share @ corral.vertices, warm.ravel(), atol=1e-12)


def test_iterations_are_limited() -> None:
    """One major cycle from the first vertex moves to a point between two vertices, no farther."""
    steps = Oracle(lambda S: float(sum((3, 2, 1)[: S.sum()])), (1, 3))
    K = min_norm_point(steps, max_iter=1).ravel()
    corners = np.array(list(itertools.permutations([3.0, 2.0, 1.0])))
    lines = [
        np.linalg.norm(a + t * (b - a) - K)
        for a, b in itertools.combinations(corners, 2)
        for t in [np.clip((K - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)]
    ]
    assert min(lines) == pytest.approx(0.0, abs=1e-12)
    sums = members(3) @ K
    assert sums[-1] == pytest.approx(6.0)


def test_a_hull_as_large_as_the_space_can_lose_a_corner():
    """Features that hardly count make F nearly modular: the hull fills the space and shrinks."""
    rng = np.random.default_rng(0)
    for sigma in (1.0, 50.0, 1e4):
        F = LogDet(rng.normal(size=(3, 2)), None, sigma=sigma).bind(np.ones((3, 1)))
        corral = Corral()
        for _ in range(60):
            Z = rng.normal(size=(3, 1)) * F.value(np.ones((3, 1), bool))
            K = min_norm_point(F, Z, corral=corral)
            assert F.excess(K) <= 1e-9 * np.abs(K).sum()
