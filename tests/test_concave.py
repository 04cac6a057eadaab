"""The scalar concave functions: g against decimal arithmetic, kernels against NumPy."""

from __future__ import annotations

import dataclasses
import doctest
import math
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structot import concave
from structot.concave import (
    Concave,
    Custom,
    Discount,
    Linear,
    Log,
    PiecewiseLinear,
    Power,
    Sqrt,
    ThresholdSqrt,
    Truncation,
    as_concave,
    kernels,
    pack_table,
)
from structot.concave.base import CUSTOM, LOG

# ------------------------------------------------------------- reference in decimal arithmetic


def _threshold(alpha: float, scale: float, x: Decimal) -> Decimal:
    if x <= Decimal(alpha):
        return x
    a, s = Decimal(alpha), Decimal(scale)
    return a + s * (((x - a) / s + Decimal("0.25")).sqrt() - Decimal("0.5"))


def _piecewise(breaks: tuple[float, ...], slopes: tuple[float, ...], x: Decimal) -> Decimal:
    total, start = Decimal(0), Decimal(0)
    for end, slope in zip([*map(Decimal, breaks), Decimal("inf")], slopes, strict=True):
        total += Decimal(slope) * max(min(x, end) - start, Decimal(0))
        start = end
    return total


def exact(g: Concave, x: Decimal) -> Decimal:
    match g:
        case ThresholdSqrt():
            return _threshold(g.alpha, g.scale, x)
        case Sqrt():
            return x.sqrt()
        case Power():
            return x ** Decimal(g.p) if x else Decimal(0)
        case Log():
            return Decimal(g.scale) * (1 + x / Decimal(g.scale)).ln()
        case Discount():
            rate = Decimal(g.d) / (1 - Decimal(g.d))
            return (1 + rate * x).ln() / rate if rate else x
        case Truncation():
            return min(x, Decimal(g.alpha))
        case PiecewiseLinear():
            return _piecewise(tuple(g.breaks), tuple(g.slopes), x)
    return x


def exact_secant(g: Concave, x: float, h: float) -> float:
    with localcontext() as context:
        context.prec = 80
        start, step = Decimal(x), Decimal(h)
        return float((exact(g, start + step) - exact(g, start)) / step)


SMOOTH: list[Concave] = [
    ThresholdSqrt(0.7),
    ThresholdSqrt(0.0),
    ThresholdSqrt(2.0, 1e-3),
    ThresholdSqrt(1e-3, 50.0),
    ThresholdSqrt(math.inf),
    Sqrt(),
    Power(0.5),
    Power(0.03),
    Power(0.9),
    Power(1.0),
    Log(1.0),
    Log(1e-4),
    Log(1e5),
    Discount(0.0),
    Discount(0.75),
    Discount(0.999),
    Linear(),
]
KINKED: list[Concave] = [
    Truncation(1.3),
    Truncation(0.0),
    Truncation(math.inf),
    PiecewiseLinear([0.5, 2.0, 40.0], [3.0, 1.1, 0.25, 0.1]),
    PiecewiseLinear([1e-3, 1.0], [1e6, 0.5, 0.0]),
    PiecewiseLinear([], [2.5]),
]
FAMILIES = SMOOTH + KINKED
by_family = pytest.mark.parametrize("g", FAMILIES, ids=repr)


def sample(g: Concave, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points over 16 decades and around kinks, steps from 1e-17 to 1e3 of the point."""
    rng = np.random.default_rng(seed)
    x = 10.0 ** rng.uniform(-8, 8, n)
    kinks = np.array([getattr(g, "alpha", 1.0), *getattr(g, "breaks", ())], dtype=float)
    kinks = kinks[(kinks > 0) & np.isfinite(kinks)]
    if kinks.size:
        x[::2] = rng.choice(kinks, n)[::2] * (1 - 10.0 ** rng.uniform(-17, 0, n)[::2])
    h = x * 10.0 ** rng.uniform(-17, 3, n)
    x[::7] = 0.0
    h = np.where(x == 0, 10.0 ** rng.uniform(-12, 6, n), h)
    return x, h


# ------------------------------------------------------------------------- value, slope, secant


@by_family
def test_secant_matches_decimal_arithmetic(g: Concave) -> None:
    x, h = sample(g, 120, 0)
    expected = [exact_secant(g, *pair) for pair in zip(x, h, strict=True)]
    np.testing.assert_allclose(g.secant(x, h), expected, rtol=1e-13, atol=0)


@by_family
def test_value_matches_decimal_arithmetic(g: Concave) -> None:
    x, _ = sample(g, 60, 1)
    with localcontext() as context:
        context.prec = 60
        expected = [float(exact(g, Decimal(t))) for t in x]
    np.testing.assert_allclose(g(x), expected, rtol=1e-13, atol=0)


@by_family
def test_slope_is_the_limit_of_secants(g: Concave) -> None:
    x, _ = sample(g, 60, 2)
    x = x[x > 0]
    step = 1e-30
    right = [exact_secant(g, t, step * t) for t in x]
    np.testing.assert_allclose(g.slope(x), right, rtol=1e-13)
    np.testing.assert_allclose(g.secant(x, 0.0), right, rtol=1e-13)
    with localcontext() as context:
        context.prec = 80
        low = [Decimal(t) * (1 - Decimal(step)) for t in x]
        left = [
            float((exact(g, Decimal(t)) - exact(g, s)) / (Decimal(t) - s))
            for t, s in zip(x, low, strict=True)
        ]
    np.testing.assert_allclose(g.slope(x, "left"), left, rtol=1e-13)
    assert g.slope(0.0, "left") == g.slope(0.0, "right") == g.secant(0.0, 0.0)


@pytest.mark.parametrize("g", [Sqrt(), Power(0.5), Power(0.03)], ids=repr)
def test_slope_at_zero_may_be_infinite(g: Concave) -> None:
    assert g.slope(0.0) == math.inf


@pytest.mark.kernels
@pytest.mark.parametrize("p", [0.03, 0.5, 0.9])
def test_power_secant_when_the_step_dwarfs_the_point(p: float) -> None:
    g, x, h = Power(p), 1e-305, 1e10  # h / x overflows
    kind, params = g.pack()
    assert g.secant(x, h) == pytest.approx(exact_secant(g, x, h), rel=1e-13)
    assert kernels.secant(kind, params, x, h) == pytest.approx(g.secant(x, h), rel=1e-14)


@given(
    g=st.sampled_from(FAMILIES),
    x=st.one_of(st.just(0.0), st.floats(1e-9, 1e9)),
    h=st.floats(1e-12, 1e6),
    k=st.floats(1e-12, 1e6),
)
@settings(max_examples=400, deadline=None)
def test_concave_and_monotone(g: Concave, x: float, h: float, k: float) -> None:
    first, second = g.secant(x, h), g.secant(x + h, k)
    up = 1 + 1e-12
    assert g(0.0) == 0.0
    assert 0 <= second <= first * up  # mean slopes fall
    assert first <= g.slope(x) * up
    if g in SMOOTH:  # x + h is rounded, and may fall to the other side of a kink
        assert g.slope(x + h, "right") <= g.slope(x + h, "left") * up <= first * up**2
    assert g(x + h) >= g(x) * (1 - 1e-15)
    assert math.isclose(g(x) + first * h, g(x + h), rel_tol=1e-12)


def test_kinks_have_two_slopes() -> None:
    g = PiecewiseLinear([1.0, 3.0], [2.0, 1.0, 0.0])
    assert [g.slope(1.0, "left"), g.slope(1.0), g.slope(3.0, "left"), g.slope(3.0)] == [2, 1, 1, 0]
    t = Truncation(0.5)
    assert (t.slope(0.5, "left"), t.slope(0.5, "right")) == (1.0, 0.0)
    assert (t.secant(0.25, 0.5), t.secant(0.5, 1e-300)) == (0.5, 0.0)


def test_piecewise_secant_is_exact_inside_a_piece() -> None:
    breaks, slopes = [0.1, 0.3, 0.7], [0.9, 0.7, 0.3, 0.1]
    g = PiecewiseLinear(breaks, slopes)
    rng = np.random.default_rng(3)
    for low, high, slope in zip([0, *breaks], [*breaks, 2], slopes, strict=True):
        x = rng.uniform(low, high, 200)
        inside = g.secant(x, (high - x) * rng.uniform(0, 0.999, 200))
        assert np.all(inside == slope)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 7.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 20.0])
def test_threshold_sqrt_is_smooth_and_below_the_diagonal(alpha: float, scale: float) -> None:
    g = ThresholdSqrt(alpha, scale)
    assert g(alpha) == alpha
    assert g.slope(alpha, "left") == g.slope(alpha, "right") == 1.0
    # C^1: just beyond alpha the slope is 1 - 2 y / s + O(y^2)
    y = 1e-6 * scale
    assert g.slope(alpha + y) == pytest.approx(1 - 2 * y / scale, abs=1e-10)
    x = np.geomspace(1e-6, 1e6, 300)
    assert np.all(g(x) <= x)
    assert np.all(g(x[x > alpha]) < x[x > alpha])
    large = alpha + 1e14 * scale  # there g grows like sqrt(s x)
    assert g(large) - alpha + scale / 2 == pytest.approx(1e7 * scale, rel=1e-9)
    if alpha == 0:
        np.testing.assert_allclose(
            g(x), scale * (np.sqrt(x / scale + 0.25) - 0.5), atol=1e-12 * scale, rtol=1e-9
        )


def test_printed_formula_of_the_paper_is_refused_ours_is_not() -> None:
    def printed(x: np.ndarray) -> np.ndarray:
        return np.minimum(x, 0.4) + np.sqrt(np.maximum(x - 0.4, 0))

    with pytest.raises(ValueError, match="not concave"):
        Custom(printed).check(1.0)
    Custom(ThresholdSqrt(0.4)).check(1.0)


# ------------------------------------------------------------------------ shapes, pieces, repr


@by_family
def test_shapes(g: Concave) -> None:
    assert type(g(2)) is type(g.slope(np.float64(2))) is type(g.secant(1, 2)) is float
    assert type(g(np.array(2.0))) is float
    x = np.arange(6.0).reshape(2, 3) + 0.1
    assert g(x).shape == g.slope(x).shape == (2, 3)
    assert g([0.1, 1.1]).tolist() == [g(0.1), g(1.1)]
    assert g.secant(x[:, :1], x[0]).shape == (2, 3)
    assert g.secant(x[:, :1], x[0])[1, 2] == g.secant(x[1, 0], x[0, 2])
    assert g(np.empty(0)).shape == (0,)
    assert not np.shares_memory(g(x), x)


@by_family
def test_repr_is_the_constructor_call(g: Concave) -> None:
    assert eval(repr(g), {**vars(concave)}) == g
    assert pickle.loads(pickle.dumps(g)) == g
    assert hash(g) == hash(pickle.loads(pickle.dumps(g)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        g.alpha = 3.0  # type: ignore[attr-defined]


def test_repr_reads_well() -> None:
    assert repr(ThresholdSqrt(np.float64(2))) == "ThresholdSqrt(2.0)"
    assert repr(ThresholdSqrt(1, 3)) == "ThresholdSqrt(1.0, 3.0)"
    assert repr(Truncation(np.inf)) == "Truncation(float('inf'))"
    assert repr(Custom(math.sqrt)) == "Custom(sqrt)"


LINEAR = [Linear(), Power(1), ThresholdSqrt(np.inf), Truncation(np.inf), Truncation(0)]
LINEAR += [PiecewiseLinear([], [2.5]), PiecewiseLinear([1.0], [2.0, 2.0])]
CURVED = [Sqrt(), Log(1.0), Power(0.9), ThresholdSqrt(1e9), Custom(math.sqrt)]


def test_linear_is_recognised() -> None:
    for g in LINEAR:
        assert g.is_linear
        assert g(3.0) == pytest.approx(3.0 * g.slope(0.0))
    for g in [*CURVED, Truncation(1e9), PiecewiseLinear([1.0], [2.0, 1.0])]:
        assert not g.is_linear


@pytest.mark.parametrize("g", [*LINEAR, *KINKED], ids=repr)
def test_pieces_and_truncations_reproduce_g(g: Concave) -> None:
    assert g.is_piecewise_linear
    x = np.concatenate([[0.0], np.geomspace(1e-6, 1e4, 200)])
    breaks, slopes = g.pieces()
    assert slopes.size == breaks.size + 1
    np.testing.assert_allclose(PiecewiseLinear(breaks, slopes)(x), g(x), rtol=1e-13)
    linear, heights, alphas = g.truncations()
    assert linear >= 0
    assert np.all(heights > 0)
    total = linear * x + (heights * np.minimum(x[:, None], alphas)).sum(axis=1)
    np.testing.assert_allclose(total, g(x), rtol=1e-12)


@pytest.mark.parametrize("g", CURVED, ids=repr)
def test_curved_functions_have_no_pieces(g: Concave) -> None:
    assert not g.is_piecewise_linear
    for method in (g.pieces, g.truncations):
        with pytest.raises(ValueError, match="not piecewise linear"):
            method()


# -------------------------------------------------------------------------------------- Custom


@pytest.mark.parametrize("slope", [None, Log(2.0).slope], ids=["numeric", "given"])
@pytest.mark.parametrize(
    "function",
    [lambda x: 2.0 * np.log1p(x / 2.0), lambda x: 2.0 * math.log1p(x / 2.0)],
    ids=["vectorised", "scalar"],
)
def test_custom_equals_builtin(function: Callable[[Any], Any], slope: Any) -> None:
    g, built_in = Custom(function, slope), Log(2.0)
    x, h = sample(built_in, 300, 4)
    np.testing.assert_allclose(g(x), built_in(x), rtol=1e-13)
    np.testing.assert_allclose(g.secant(x, h), built_in.secant(x, h), rtol=1e-6)
    np.testing.assert_allclose(g.secant(x, 0.0), built_in.slope(x), rtol=1e-6)
    np.testing.assert_allclose(g.slope(x, "left"), built_in.slope(x), rtol=1e-6)
    if slope is not None:
        np.testing.assert_array_equal(g.slope(x), built_in.slope(x))
        near = h < 1e-9 * x
        exact_mean = built_in.secant(x[near], h[near])
        np.testing.assert_allclose(g.secant(x[near], h[near]), exact_mean, rtol=1e-13)
    g.check(100.0)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x if x < 1 else 1.0,  # ambiguous on arrays
        lambda x: min(x, 1.0),
        lambda x: 1.0 if x > 1 else float(x),
    ],
)
def test_custom_functions_of_one_number(function: Callable[[Any], Any]) -> None:
    g, x = Custom(function), np.linspace(0, 3, 31).reshape(1, 31)
    np.testing.assert_array_equal(g(x), np.minimum(x, 1))
    assert g(np.array([0.5])).tolist() == [0.5]
    assert (g.slope(1.0, "left"), g.slope(1.0, "right")) == (1.0, 0.0)
    g.check(3.0)


def test_custom_constant_result_is_not_taken_for_an_array() -> None:
    g = Custom(lambda x: 0.0)
    np.testing.assert_array_equal(g(np.ones((2, 2))), np.zeros((2, 2)))
    g.check(1.0)


@pytest.mark.parametrize("g", FAMILIES, ids=repr)
def test_check_accepts_every_family(g: Concave) -> None:
    g.check(10.0)
    for upper in (1e-6, 10.0, 1e7):
        Custom(g, slope=g.slope).check(upper)
    Custom(g).check(0.0)


BAD_CUSTOM: list[tuple[Callable[[Any], Any], str]] = [
    (lambda x: x**2, r"not concave: g\(0\.\d+\) = 0\.\d+ lies below the chord of g\("),
    (lambda x: x**1.0001, "not concave"),
    (lambda x: np.sqrt(x) + 1e-3 * np.maximum(x - 0.5, 0), r"not concave: g\(0\.[45]"),
    (lambda x: x * (1.5 - x), r"decreasing: g\(0\.75"),
    (lambda x: np.sqrt(x) + 0.25, r"not zero at zero: g\(0\.0\) = 0\.25"),
    (lambda x: np.where(x > 0.3, np.nan, x), r"not finite: g\(0\.30\d+\) = nan"),
    (lambda x: np.log(np.asarray(x)), r"not finite: g\(0\.0\) = -inf"),
    (lambda x: np.minimum(x, np.mean(x)), "not elementwise"),
    (lambda x: 1 / (1 + 1 / float(x)), r"fails at 0\.0: float division by zero"),
    (lambda x: x * math.log(x), r"fails at 0\.0: math domain error"),
    (lambda x: "high", r"must return a number, at 0\.0 it returned 'high'"),
]


@pytest.mark.parametrize(("function", "message"), BAD_CUSTOM)
def test_check_names_the_offending_point(function: Callable[[Any], Any], message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=message):
        Custom(function).check(1.0)


def test_check_finds_a_wrong_slope_and_a_bad_range() -> None:
    with pytest.raises(ValueError, match=r"has slope .* at .*, outside the mean slopes"):
        Custom(np.sqrt, slope=lambda x: 1 / np.sqrt(x)).check(1.0)
    for upper in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="upper must be finite"):
            Custom(np.sqrt).check(upper)


# ----------------------------------------------------------------------------------- bad input

BAD_CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: ThresholdSqrt(-1), r"ThresholdSqrt: alpha must be .* got -1"),
    (lambda: ThresholdSqrt(math.nan), "alpha must be .* got nan"),
    (lambda: ThresholdSqrt("one"), "alpha must be .* got 'one'"),
    (lambda: ThresholdSqrt(1, 0), "scale must be .* got 0"),
    (lambda: ThresholdSqrt(1, math.inf), "scale must be .* got inf"),
    (lambda: Truncation(-0.5), "Truncation: alpha must be .* got -0.5"),
    (lambda: Power(0), "p must be .* got 0"),
    (lambda: Power(1.5), "p must be .* got 1.5"),
    (lambda: Power(math.nan), "p must be .* got nan"),
    (lambda: Log(0.0), "scale must be .* got 0.0"),
    (lambda: Discount(1.0), "d must be a discount with 0 <= d < 1, got 1.0"),
    (lambda: Discount(-0.1), "d must be .* got -0.1"),
    (lambda: Log(None), "scale must be .* got None"),
    (lambda: PiecewiseLinear([1, 2], [3, 2]), "2 breaks need 3 slopes, got 2"),
    (lambda: PiecewiseLinear([1, 1], [3, 2, 1]), "strictly increasing, got 1.0 after 1.0 at .* 1"),
    (lambda: PiecewiseLinear([0], [3, 2]), r"breaks must be > 0 .* got 0.0 at position 0"),
    (lambda: PiecewiseLinear([1, 2], [3, 1, 2]), "not increase .* got 2.0 after 1.0 at position 2"),
    (lambda: PiecewiseLinear([1], [1, -1]), "slopes must be >= 0, got -1.0 after 1.0 at .* 1"),
    (lambda: PiecewiseLinear([math.inf], [1, 0]), "breaks must be finite, got inf at position 0"),
    (lambda: PiecewiseLinear(1.0, [1, 0]), "breaks must be a list of numbers, got 1.0"),
    (lambda: PiecewiseLinear([1], ["a", "b"]), "slopes must be a list of numbers"),
    (lambda: Custom("sqrt"), "function must be a callable .* got 'sqrt'"),
    (lambda: Custom(math.sqrt, slope=2.0), "slope must be a callable .* got 2.0"),
    (lambda: Sqrt()(-1e-9), "x must be finite and >= 0, got -1e-09"),
    (lambda: Sqrt()([1, np.nan]), r"got nan at index \(1,\)"),
    (lambda: Sqrt().secant(1.0, -1.0), "h must be finite and >= 0, got -1.0"),
    (lambda: Sqrt().slope(1.0, side="up"), "side must be .* got 'up'"),
    (lambda: as_concave("sqrt"), r"concave\.Sqrt\(\).*got 'sqrt'"),
    (lambda: as_concave(2.0), "ThresholdSqrt, Sqrt, .* got 2.0"),
    (lambda: as_concave(Sqrt), r"concave\.Sqrt\(\)"),
    (lambda: pack_table(Sqrt(), outer=[1, -1.0]), r"outer\[1\] must be finite and >= 0, got -1.0"),
    (lambda: pack_table(Sqrt(), inner=[math.inf]), r"inner\[0\] must be finite and >= 0, got inf"),
    (lambda: pack_table(Sqrt(), [1, 1], [1, 1, 1]), r"outer must be one number or 3, got .*\(2,\)"),
    (lambda: pack_table([Sqrt()], n_blocks=2), "n_blocks = 2, but functions has 1"),
    (lambda: pack_table([Sqrt(), math.sqrt]), r"functions\[1\] must be a Concave"),
]


@pytest.mark.parametrize(("call", "message"), BAD_CALLS)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_as_concave() -> None:
    g = Sqrt()
    assert as_concave(g) is g
    assert as_concave(math.sqrt) == Custom(math.sqrt)


# --------------------------------------------------------------------------- tables and kernels


@pytest.mark.kernels
@by_family
def test_kernels_agree_with_numpy(g: Concave) -> None:
    kind, params = g.pack()
    assert params.dtype == np.float64
    x, h = sample(g, 200, 5)
    h[::5] = 0.0  # also where x = 0
    pairs = list(zip(x.tolist(), h.tolist(), strict=True))
    compiled = [kernels.secant(kind, params, *pair) for pair in pairs]
    np.testing.assert_allclose(compiled, g.secant(x, h), rtol=5e-15)
    compiled = [kernels.secant(kind, params, t, 0.0) for t in x.tolist()]
    np.testing.assert_allclose(compiled, g.slope(x), rtol=5e-15)


@pytest.mark.kernels
def test_table_of_different_functions() -> None:
    rng = np.random.default_rng(6)
    n = len(FAMILIES)
    outer, inner = rng.uniform(0.1, 9, n), rng.uniform(0.1, 9, n)
    table = pack_table(FAMILIES, outer, inner)
    packed = (table.kind, table.offset, table.params, table.outer, table.inner)
    assert len(table) == n
    assert not table.has_custom
    assert table.offset[-1] == table.params.size
    for b, g in enumerate(FAMILIES):
        x, h = sample(g, 5, b)
        np.testing.assert_allclose(table.value(b, x), outer[b] * g(inner[b] * x), rtol=1e-14)
        for t, step in zip(x.tolist(), h.tolist(), strict=True):
            pairs = [
                (kernels.block_secant(*packed, b, t, 0.0), table.slope(b, t)),
                (kernels.block_secant(*packed, b, t, step), table.secant(b, t, step)),
            ]
            np.testing.assert_allclose(*zip(*pairs, strict=True), rtol=5e-15)
            # the chain rule, through the value alone
            far = (table.value(b, t + 3.0) - table.value(b, t)) / 3.0
            scale = max(1.0, t) * outer[b] * inner[b]
            assert table.secant(b, t, 3.0) == pytest.approx(far, rel=1e-9, abs=1e-10 * scale)


@pytest.mark.kernels
def test_table_with_custom_functions() -> None:
    table = pack_table([Log(2.0), Custom(lambda x: 2 * np.log1p(x / 2))], outer=3.0, inner=0.5)
    assert table.has_custom
    assert table.kind.tolist() == [LOG, CUSTOM]
    x = np.linspace(0.1, 5, 9)
    np.testing.assert_allclose(table.value(1, x), table.value(0, x), rtol=1e-13)
    np.testing.assert_allclose(table.secant(1, x, 0.2), table.secant(0, x, 0.2), rtol=1e-12)
    np.testing.assert_allclose(table.slope(1, x), table.slope(0, x), rtol=1e-6)
    packed = (table.kind, table.offset, table.params, table.outer, table.inner)
    assert math.isnan(kernels.block_secant(*packed, 1, 1.0, 1.0))


@pytest.mark.parametrize("g", [Sqrt(), KINKED[3], Custom(math.sqrt)], ids=repr)
def test_shared_function_is_packed_once(g: Concave, monkeypatch: pytest.MonkeyPatch) -> None:
    pack, calls = type(g).pack, []
    monkeypatch.setattr(type(g), "pack", lambda self: calls.append(self) or pack(self))
    table = pack_table(g, n_blocks=10_000)
    assert len(calls) == 1
    assert len(table) == table.kind.size == table.offset.size - 1 == 10_000
    assert table.value(9_999, 4.0) == g(4.0)
    small, listed = pack_table(g, inner=[1.0, 2.0, 3.0]), pack_table([g] * 3, inner=[1, 2, 3])
    for name in ("kind", "offset", "params", "outer", "inner"):
        np.testing.assert_array_equal(getattr(small, name), getattr(listed, name))
        assert getattr(small, name).dtype == getattr(listed, name).dtype
    assert len(pack_table(g, n_blocks=0)) == len(pack_table([])) == 0


def test_examples_in_the_documentation() -> None:
    assert doctest.testmod(concave).failed == 0
