"""Coverage, Modular, and what + and * of structures give."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import is_submodular, tabulate
from hypothesis import given
from hypothesis import strategies as st

from structot.concave import Sqrt
from structot.structures import Combination, Coverage, Groups, Modular

Array = np.ndarray

M = np.random.default_rng(0).uniform(0.1, 2.0, (4, 3))
ROWS, COLS = np.array([0, 1, 0, 1]), np.array([0, 0, 1])
BLOCKS = [
    np.ix_(*pair) for pair in (([0, 2], [0, 1]), ([0, 2], [2]), ([1, 3], [0, 1]), ([1, 3], [2]))
]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


# --------------------------------------------------------------------------------------- coverage


@given(
    entries=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=12, max_size=12),
    units=st.sampled_from(["cost", "block"]),
    single=st.booleans(),
)
def test_extension_is_the_sum_of_maxima(entries: list, units: str, single: bool) -> None:
    """f(P) = Σ price · max over the block, for P >= 0."""
    P = np.array(entries).reshape(4, 3)
    prices = np.full(4, 0.7) if single else np.array([1.0, 0.0, 2.0, 0.5])
    weights = 0.7 if single else prices.reshape(2, 2)
    F = Coverage(ROWS, COLS, weights, units=units).bind(M)
    if units == "block":
        prices = prices * [M[block].sum() for block in BLOCKS]
    expected = sum(c * P[block].max() for c, block in zip(prices, BLOCKS, strict=True))
    assert F.extension(P) == pytest.approx(expected)
    mask = P > 0.3
    touched = sum(c * mask[block].any() for c, block in zip(prices, BLOCKS, strict=True))
    assert F.value(mask) == pytest.approx(touched)


def test_coverage_counts_free_pairs_and_not_forbidden_ones() -> None:
    cost = np.array([[0.0, np.inf], [np.inf, np.inf]])
    F = Coverage([0, 0], [0, 0], 3.0).bind(cost)
    assert F.value(np.array([[True, False], [False, False]])) == 3.0
    assert F.greedy(np.zeros((2, 2))).tolist() == [[3.0, np.inf], [np.inf, np.inf]]
    assert is_submodular(tabulate(Coverage(ROWS, COLS).bind(M[:, :2].repeat(2, 1)[:, :3]).value,
                                  np.eye(4, 3, dtype=bool)))  # fmt: skip


@pytest.mark.parametrize("rho", [0.3, 2.0])
def test_prox_of_coverage_is_a_cap(rng, rho: float) -> None:
    """min c·max(X) + rho/2 |X - V|²: X = min(V, t) with rho Σ (V - t)₊ = c."""
    V = rng.normal(size=(3, 4))
    X = Coverage([0, 0, 0], np.zeros(4), 1.5).bind(np.ones((3, 4))).prox(V, rho)
    t = X.max()
    np.testing.assert_allclose(X, np.minimum(V, t), atol=1e-13)
    assert rho * np.maximum(V - t, 0).sum() == pytest.approx(1.5)


def test_weights_belong_to_groups_in_sorted_order() -> None:
    F = Coverage(["b", "a", None], ["y", "x"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]).bind(
        np.ones((3, 2))
    )
    alone = [
        [F.value(np.eye(6, dtype=bool)[2 * i + j].reshape(3, 2)) for j in (0, 1)] for i in range(3)
    ]
    assert alone == [[4.0, 3.0], [2.0, 1.0], [6.0, 5.0]]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Coverage([0, 0], weights=[1.0, 2.0]), r"weights must be one number or an array"),
        (lambda: Coverage([0, 0], weights=-1.0), "weights must be finite and not negative"),
        (lambda: Coverage([0, 0], weights=np.nan), "weights must be finite"),
        (lambda: Coverage([0, 0], weights=np.inf), "weights must be finite"),
        (lambda: Coverage([0, 0], weights="dear"), "weights must be a numeric array"),
        (lambda: Coverage([0, 0], weights=[[1.0], [1.0, 2.0]]), "weights must be a numeric array"),
        (lambda: Coverage([0, 0], units="kilo"), "units must be one of"),
        (
            lambda: Coverage([0, 1], [0, 0], np.ones((3, 1))).bind(np.ones((2, 2))),
            r"weights has shape \(3, 1\), but there are 2 source and 1 target groups",
        ),
        (lambda: Coverage([0]).bind(np.ones((2, 2))), "source has 1 labels.*2 points"),
        (
            lambda: Coverage(None, [0, 1, 2]).bind(np.ones((2, 2))),
            "target has 3 labels.*2 points",
        ),
    ],
)
def test_bad_coverage(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


# ---------------------------------------------------------------------------------------- modular


def test_modular_is_the_cost(rng) -> None:
    F = Modular().bind(M)
    assert not F.layers
    P = rng.uniform(size=M.shape)
    assert F.extension(P) == pytest.approx((M * P).sum())
    C = rng.uniform(size=M.shape)
    assert Modular(C).bind(M).extension(P) == pytest.approx((C * P).sum())
    cost = M.copy()
    cost[0, 0] = np.inf
    assert Modular(C).bind(cost).greedy(P)[0, 0] == np.inf


def test_bad_modular() -> None:
    with pytest.raises(ValueError, match=r"Modular\(cost=...\) has shape \(2, 2\), but M has"):
        Modular(np.ones((2, 2))).bind(M)
    with pytest.raises(ValueError, match=r"cost must not be negative; got -1.0 at \(0, 0\)"):
        Modular([[-1.0]])
    with pytest.raises(ValueError, match=r"cost is NaN at \(0, 1\)"):
        Modular([[1.0, np.nan]])


# -------------------------------------------------------------------------------- sums, scalings


def test_sums_add_and_factors_scale(rng) -> None:
    a, b, c = Modular(), Groups(ROWS, COLS, Sqrt()), Coverage(ROWS, COLS, 0.3)
    F = (a + 2 * b + c * 0.5).bind(M)
    assert len(F.layers) > 1
    for P in rng.uniform(size=(3, *M.shape)):
        parts = [s.bind(M).extension(P) for s in (a, b, c)]
        assert F.extension(P) == pytest.approx(np.dot([1, 2, 0.5], parts))
    for _ in range(5):
        mask = rng.random(M.shape) < 0.5
        parts = [s.bind(M).value(mask) for s in (a, b, c)]
        assert F.value(mask) == pytest.approx(np.dot([1, 2, 0.5], parts))


def test_factors_multiply_through_nested_sums(rng) -> None:
    a, b = Modular(), Groups(ROWS, COLS, Sqrt())
    nested = 2.0 * (a + 3.0 * (b + a))
    assert isinstance(nested, Combination)
    assert [f for f, _ in nested.terms] == [2.0, 6.0, 6.0]
    P = rng.uniform(size=M.shape)
    expected = 8 * (M * P).sum() + 6 * b.bind(M).extension(P)
    assert nested.bind(M).extension(P) == pytest.approx(expected)


@pytest.mark.parametrize("factor", [2, np.float64(2.0), np.int64(2), np.float32(2.0)])
def test_numpy_scalars_are_factors(factor) -> None:
    for structure in (factor * Groups(ROWS), Groups(ROWS) * factor):
        assert repr(structure) == "2 * Groups([0, 1, 0, 1], concave=ThresholdSqrt(1.0))"


def test_one_layer_stays_a_fast_one() -> None:
    assert (2.0 * Groups(ROWS, COLS)).bind(M).linear is None
    assert not (0.0 * Modular() + Groups(ROWS, COLS)).bind(M).linear.any()
    assert not (0.0 * Groups(ROWS, COLS)).bind(M).layers
    assert not (3.0 * Modular()).bind(M).layers


def test_scaling_equals_scaling_the_price(rng) -> None:
    V = rng.normal(size=M.shape)
    scaled, dear = (3 * Coverage(ROWS, COLS, 0.5)).bind(M), Coverage(ROWS, COLS, 1.5).bind(M)
    np.testing.assert_allclose(scaled.prox(V, 2.0), dear.prox(V, 2.0), atol=1e-14)
    np.testing.assert_allclose(scaled.project(V), dear.project(V), atol=1e-14)
    cut = scaled.prox(V, 2.0, nonnegative=True)
    np.testing.assert_allclose(cut, dear.prox(V, 2.0, nonnegative=True), atol=1e-14)
    # The scaled twin shares arrays with the first function and must leave it as it was.
    base = Coverage(ROWS, COLS, 0.5).bind(M)
    before = base.project(V)
    base.scaled(7.0).project(V)
    assert (base.project(V) == before).all()


def test_scaled_groups_skip_with_the_scaled_slope(rng) -> None:
    """f scaled by c with rho is f with rho/c: also where elements end at zero unsorted."""
    V = rng.uniform(0, 1, M.shape)
    for factor in (4.0, 0.25):
        F, G = (factor * Groups(ROWS, COLS)).bind(M), Groups(ROWS, COLS).bind(M)
        cut = F.prox(V, 8.0, nonnegative=True)
        expected = G.prox(V, 8.0 / factor, nonnegative=True)
        np.testing.assert_allclose(cut, expected, atol=1e-13)
        assert cut.any()


def test_bad_operands() -> None:
    with pytest.raises(ValueError, match="factor of a structure must be zero or positive"):
        -1.0 * Modular()
    with pytest.raises(ValueError, match="factor of a structure is NaN"):
        np.nan * Modular()
    with pytest.raises(ValueError, match="factor of a structure must be a number; got 'two'"):
        Modular() * "two"
    with pytest.raises(TypeError):
        Modular() + 1.0
    with pytest.raises(TypeError):
        Modular() * Modular()


def test_repr() -> None:
    structure = Modular() + 0.5 * Coverage(["a", "b"], weights=0.1, units="block")
    assert repr(structure) == ("Modular() + 0.5 * Coverage(['a', 'b'], weights=0.1, units='block')")
    assert repr(Modular(np.ones((2, 3)))) == "Modular(<cost (2, 3)>)"
    assert repr(Coverage([0], [1], np.ones((1, 1)))) == "Coverage([0], [1], weights=<(1, 1)>)"


def test_sum_adds_structures() -> None:
    a, b = Modular(), Groups(ROWS, COLS)
    assert repr(sum([a, b])) == repr(a + b)
    with pytest.raises(TypeError):
        1 + a
