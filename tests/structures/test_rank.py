"""Rank and volume of edge features: greedy kernels, known answers, numerical care."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structot import solve
from structot.structures import Coverage, LogDet, Modular, Rank

Array = np.ndarray

pytestmark = pytest.mark.kernels


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def indicators(labels: list[int]) -> Array:
    return np.eye(max(labels) + 1)[labels]


def features(X: Array, Y: Array, mask: Array) -> Array:
    i, j = np.nonzero(mask)
    return np.hstack([X[i], Y[j]])


# ------------------------------------------------------------------------------------------ greedy


@given(seed=st.integers(0, 10**6), sigma=st.sampled_from([0.01, 1.0, 30.0]))
def test_volume_gains_are_differences_of_determinants(seed: int, sigma: float) -> None:
    """Along the greedy order each K is log det with the edge less log det without it."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(3, 2)), rng.normal(size=(4, 3))
    F = LogDet(X, Y, sigma).bind(np.ones((3, 4)))
    P = rng.random((3, 4))
    K = F.greedy(P)
    before, S = 0.0, np.zeros((3, 4), bool)
    for e in np.argsort(-P.ravel()):
        S.ravel()[e] = True
        Phi = features(X, Y, S) / sigma
        now = np.linalg.slogdet(np.eye(5) + Phi.T @ Phi)[1]
        assert K.ravel()[e] == pytest.approx(now - before, rel=1e-7, abs=1e-9)
        before = now


@given(seed=st.integers(0, 10**6), dimension=st.integers(1, 4))
def test_rank_gains_are_differences_of_ranks(seed: int, dimension: int) -> None:
    """Small whole numbers make many features dependent, exactly."""
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(-1, 2, (3, dimension)), rng.integers(-1, 2, (3, 2))
    F = Rank(X, Y).bind(np.ones((3, 3)))
    P = rng.random((3, 3))
    K = F.greedy(P)
    assert set(np.unique(K)) <= {0.0, 1.0}
    S = np.zeros((3, 3), bool)
    for e in np.argsort(-P.ravel()):
        S.ravel()[e] = True
        assert K[S].sum() == np.linalg.matrix_rank(features(X, Y, S))


def test_rank_is_free_of_the_units_of_every_feature(rng: np.random.Generator) -> None:
    """Scaling features, or mixing those of one side, leaves the rank of every set."""
    X, Y = rng.integers(-1, 2, (4, 3)).astype(float), rng.integers(-1, 2, (3, 2)).astype(float)
    F = Rank(X, Y).bind(np.ones((4, 3)))
    scaled = Rank(X * [1e-12, 1.0, 1e9], Y * 1e-7).bind(np.ones((4, 3)))
    mixed = Rank(X @ rng.normal(size=(3, 3)), Y).bind(np.ones((4, 3)))
    for _ in range(100):
        S = rng.random((4, 3)) < rng.random()
        assert F.value(S) == scaled.value(S) == mixed.value(S)


def test_nearly_dependent_features_need_the_second_pass() -> None:
    """Features within 1e-7 of a plane are three directions; within 1e-13 they are two."""
    base = np.array([[1.0, 0.0, 0.0], [1.0, 1e-7, 0.0], [1.0, 0.0, 1e-7], [1.0, 1e-7, 1e-7]])
    M = np.ones((4, 1))
    # Scaled by column they are well apart: only angles inside a feature's own units count.
    assert Rank(base).bind(M).value(np.ones((4, 1), bool)) == 3.0
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    assert Rank(base @ turn).bind(M).value(np.ones((4, 1), bool)) == 3.0
    tiny = base.copy()
    tiny[:, 2] *= 1e-6
    assert Rank(tiny @ turn).bind(M).value(np.ones((4, 1), bool)) == 2.0
    assert Rank(base @ turn, tol=1e-5).bind(M).value(np.ones((4, 1), bool)) == 1.0


def test_volume_of_many_features_is_compressed_exactly(rng: np.random.Generator) -> None:
    """With more features than points only inner products matter."""
    X, Y = rng.normal(size=(3, 50)), rng.normal(size=(2, 80))
    F = LogDet(X, Y, 2.0).bind(np.ones((3, 2)))
    S = np.array([[1, 0], [1, 1], [0, 1]], bool)
    Phi = features(X, Y, S) / 2.0
    assert F.value(S) == pytest.approx(np.linalg.slogdet(np.eye(4) + Phi @ Phi.T)[1], rel=1e-12)


def test_volume_survives_an_ill_conditioned_factor(rng: np.random.Generator) -> None:
    """σ = 1e-6: the factor spans twelve orders of magnitude, the gains keep eight digits."""
    X = np.hstack([rng.normal(size=(6, 1)), 1e-6 * rng.normal(size=(6, 1))])
    F = LogDet(X, None, 1e-6).bind(np.ones((6, 1)))
    A = np.eye(2) + X.T @ X / 1e-12
    exact = np.log(A[0, 0] * A[1, 1] - A[0, 1] ** 2)
    assert F.value(np.ones((6, 1), bool)) == pytest.approx(exact, rel=1e-8)


# ----------------------------------------------------------------------------------- known answers


def test_indicators_on_one_side_are_coverage(rng: np.random.Generator) -> None:
    """Rank of group indicators of the sources = number of source groups touched."""
    labels = [0, 1, 0, 2]
    M = rng.random((4, 3))
    F = Rank(indicators(labels)).bind(M)
    G = Coverage(labels, [0, 0, 0]).bind(M)
    for _ in range(50):
        S = rng.random((4, 3)) < rng.random()
        assert F.value(S) == G.value(S)
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3))
    results = [
        solve(M, a, b, structure=Modular() + 0.3 * structure, tol=1e-6)
        for structure in (Rank(indicators(labels)), Coverage(labels, [0, 0, 0]))
    ]
    assert results[0].value == pytest.approx(results[1].value, rel=3e-6)


def test_indicators_on_both_sides_lose_one_per_component(rng: np.random.Generator) -> None:
    """Groups touched less connected components: the rank of a bipartite incidence matrix."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, cols = [0, 1, 2, 0], [0, 1, 1]
    F = Rank(indicators(rows), indicators(cols)).bind(np.ones((4, 3)))
    for _ in range(50):
        S = rng.random((4, 3)) < rng.random()
        i, j = np.nonzero(S)
        i, j = np.array(rows)[i], 3 + np.array(cols)[j]
        touched = np.union1d(i, j)
        graph = coo_array((np.ones(i.size), (i, j)), shape=(5, 5))
        components = connected_components(graph, directed=False)[0] - (5 - touched.size)
        assert F.value(S) == touched.size - components
        both = len(np.unique(i)) + len(np.unique(j))
        assert F.value(S) < both or not S.any()


def test_one_feature_pays_for_the_largest_entry() -> None:
    """All features on one line: F = 1 for every non-empty set, so f(P) = max P."""
    P = np.array([[0.1, 0.4], [0.3, 0.2]])
    assert Rank([[1.0], [2.0]]).bind(np.ones((2, 2))).extension(P) == pytest.approx(0.4)


def test_volume_tends_to_a_linear_cost_for_large_sigma(rng: np.random.Generator) -> None:
    """σ² log det(I + ΦΦᵀ/σ²) -> Σ |φ|²: no pair helps another."""
    X, Y = rng.normal(size=(3, 2)), rng.normal(size=(3, 2))
    P = rng.random((3, 3))
    squares = np.sum(X**2, axis=1)[:, None] + np.sum(Y**2, axis=1)
    sigma = 1e4
    f = (sigma**2 * LogDet(X, Y, sigma)).bind(np.ones((3, 3))).extension(P)
    assert f == pytest.approx(float(np.sum(P * squares)), rel=1e-6)


# --------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("structure", [Rank, LogDet])
def test_bad_features_are_refused(structure: type) -> None:
    with pytest.raises(ValueError, match="both None"):
        structure(None, None)
    with pytest.raises(ValueError, match=r"source_features must have 2 dimension"):
        structure([1.0, 2.0], None)
    with pytest.raises(ValueError, match="target_features must be finite"):
        structure(None, [[np.nan]])
    with pytest.raises(ValueError, match="3 rows, but there are 2 points"):
        structure(np.ones((3, 1)), None).bind(np.ones((2, 2)))
    with pytest.raises(ValueError, match="no columns"):
        structure(np.ones((3, 0)), np.ones((2, 1)))


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="sigma must be positive"):
        LogDet([[1.0]], sigma=0.0)
    with pytest.raises(ValueError, match="tol must be below 1"):
        Rank([[1.0]], tol=2.0)


def test_repr() -> None:
    assert repr(Rank(np.ones((3, 2)))) == "Rank(<(3, 2)>, None)"
    assert repr(LogDet(None, np.ones((3, 2)), 0.5)) == "LogDet(None, <(3, 2)>, sigma=0.5)"
