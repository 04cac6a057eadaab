"""Every check of user input: what passes unchanged, and what each message says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import structot as sot
from structot import _checks as checks

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: checks.one_of("metric", "cots", ["cost", "time"]),
            "metric must be one of 'cost',",
        ),
        (lambda: checks.one_of("metric", "cots", ["cost", "time"]), r"got 'cots'. Did you mean 'c"),
        (lambda: checks.one_of("metric", 3, ["cost"]), "got 3.$"),
        (lambda: checks.number("tol", "small"), "tol must be a number; got 'small'"),
        (lambda: checks.number("tol", None), "tol must be a number; got None"),
        (lambda: checks.number("tol", 10**400), "tol must be a number; got 1000"),
        (lambda: checks.number("tol", NAN), "tol is NaN"),
        (lambda: checks.positive("rho", 0), "rho must be positive and finite; got 0"),
        (lambda: checks.positive("rho", INF), "rho must be positive and finite; got inf"),
        (lambda: checks.nonnegative("reg", -1e-9), "reg must be zero or positive.*got -1e-09"),
        (lambda: checks.nonnegative("reg", INF), "reg must be zero or positive and finite"),
        (lambda: checks.count("max_iter", 0), "max_iter must be a whole number, 1 or more; got 0"),
        (lambda: checks.count("k", 1, least=2), "k must be a whole number, 2 or more; got 1"),
        (lambda: checks.count("k", 2.5), "got 2.5"),
        (lambda: checks.count("k", True), "got True"),
        (lambda: checks.count("k", np.True_), "k must be a whole number"),
        (lambda: checks.count("k", INF), "k must be a whole number.*got inf"),
        (lambda: checks.count("k", NAN), "k must be a whole number.*got nan"),
        (lambda: checks.count("k", "many"), "k must be a whole number.*got 'many'"),
        (lambda: checks.count("k", None), "k must be a whole number.*got None"),
        (lambda: checks.as_array("X", [["a"]], 2), r"X must be a numeric array.*convert list"),
        (lambda: checks.as_array("X", [[1], [1, 2]], 2), "X must be a numeric array"),
        (lambda: checks.as_array("X", [[1j]], 2), "complex numbers"),
        (lambda: checks.as_array("X", [1.0], 2), r"X must have 2 dim.*\(1,\).*Reshape it"),
        (lambda: checks.as_array("a", [[1.0]], 1), r"a must have 1 dim.*\(1, 1\).*flat sequence"),
        (lambda: checks.as_matrix("V", np.ones((2, 3)), (3, 2)), r"V has shape \(2, 3\).*\(3, 2\)"),
        (lambda: checks.as_matrix("V", [[1, NAN]], (1, 2)), r"V is NaN at \(0, 1\)"),
        (lambda: checks.as_mask("mask", [True], (1, 1)), r"mask has shape \(1,\).*\(1, 1\)"),
        (lambda: checks.as_cost(np.ones(3)), r"M must have 2 dimension.*\(3,\)"),
        (lambda: checks.as_cost(np.ones((0, 3))), r"M is empty \(shape \(0, 3\)\)"),
        (lambda: checks.as_cost([[1, NAN], [NAN, 0]]), r"M is NaN at \(0, 1\).*\+inf to forbid"),
        (lambda: checks.as_cost([[1, 0], [-3, -4]]), r"M must not be negative; got -3.0 at \(1, 0"),
        (lambda: checks.as_cost([[1, -INF]]), r"M is -inf at \(0, 1\)"),
        (lambda: checks.as_cost([[-1]], "cost"), "cost must not be negative.*cost - cost.min"),
        (lambda: checks.as_cost(pd.DataFrame([[1, pd.NA]])), "M must be a numeric array"),
        (lambda: checks.as_weights("a", [1, 2], 3), "a has 2 weights.*3 rows"),
        (lambda: checks.as_weights("b", [1, 2], 3), "b has 2 weights.*3 columns"),
        (lambda: checks.as_weights("a", [1, NAN], 2), "a is nan at 1; weights must be finite"),
        (lambda: checks.as_weights("a", [INF, 1], 2), "a is inf at 0; weights must be finite"),
        (lambda: checks.as_weights("b", [1, 0, -2], 3), r"b is negative at 2 \(-2.0\)"),
        (lambda: checks.as_weights("a", [0, 0], 2), "a is zero everywhere"),
        (lambda: checks.as_weights("a", [[1], [1]], 2), r"a must have 1 dimension.*\(2, 1\)"),
    ],
)
def test_message(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_what_passes() -> None:
    assert checks.one_of("metric", "cost", ("cost", "time")) == "cost"
    assert checks.number("x", np.float32(2)) == 2.0
    assert checks.number("x", -INF) == -INF
    assert checks.positive("x", 3) == 3.0
    assert checks.nonnegative("x", 0) == 0.0
    assert checks.count("k", 3.0) == 3
    assert checks.count("k", np.int32(0), least=0) == 0
    assert checks.as_mask("S", [[1, 0]], (1, 2)).tolist() == [[True, False]]


@pytest.mark.parametrize(
    "value",
    [
        [[1, 2], [3, 4]],
        ((1.0, 2.0), (3.0, 4.0)),
        np.array([[1, 2], [3, 4]], np.int8),
        np.array([[1, 2], [3, 4]], np.float32),
        pd.DataFrame({"x": [1, 3], "y": [2.0, 4.0]}),
        np.ma.array([[1, 2], [3, 4]]),
    ],
    ids=lambda v: type(v).__name__,
)
def test_arrays_of_every_kind(value: object) -> None:
    array = checks.as_cost(value)
    assert type(array) is np.ndarray
    assert array.dtype == np.float64
    assert array.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_float64_arrays_are_not_copied() -> None:
    M = np.ones((2, 2))
    assert checks.as_cost(M) is M


def test_masked_costs_are_missing_and_not_what_lies_under_the_mask() -> None:
    M = np.ma.array([[1, 2], [3, 4]], mask=[[0, 0], [1, 0]])
    with pytest.raises(ValueError, match=r"M is NaN at \(1, 0\)"):
        checks.as_cost(M)


def test_forbidden_pairs_pass() -> None:
    assert checks.as_cost([[0.0, INF]]).tolist() == [[0.0, INF]]


def test_float_type_of_the_answer() -> None:
    single, double, whole = np.ones(2, np.float32), np.ones(2), np.ones(2, int)
    assert checks.float_type(single) == np.float32
    assert checks.float_type(single, whole, None) == np.float32
    assert checks.float_type(single, np.ones(2, np.float16)) == np.float32
    assert checks.float_type(single, double) == np.float64
    assert checks.float_type(whole) == np.float64
    assert checks.float_type([1, 2], None) == np.float64


def test_weights() -> None:
    assert checks.as_weights("a", None, 4).tolist() == [0.25] * 4
    assert checks.as_weights("a", [0, 2, 1], 3).tolist() == [0.0, 2.0, 1.0]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("total", [1.0, 1e-9, 7e6])
def test_totals_are_equalised_within_the_precision_of_the_input(precision, total: float) -> None:
    rng = np.random.default_rng(0)
    a, b = (total * rng.dirichlet(np.ones(k)) for k in (300, 500))
    a, b = (x.astype(precision).astype(float) for x in (a, b))
    left, right = checks.balance(a, b, np.dtype(precision))
    assert left is a
    assert right.sum() == pytest.approx(a.sum(), rel=1e-15)
    np.testing.assert_allclose(right, b, rtol=1e-5)
    with pytest.raises(ValueError, match=r"same total mass; got .* Normalise them first"):
        checks.balance(a, (1 + 1e4 * np.finfo(np.float32).eps) * b, np.dtype(precision))


def test_totals_may_differ_by_the_rounding_of_float32_in_any_type() -> None:
    a, b = np.full(3, 1 / 3), np.full(3, np.float32(1 / 3), float)
    for precision in (np.float32, np.float64):
        _, right = checks.balance(a, b, np.dtype(precision))
        assert right.sum() == pytest.approx(1.0, rel=1e-15)
    with pytest.raises(ValueError, match=r"got 1 and 1\.00001"):
        checks.balance(a, 1.00001 * a, np.dtype(np.float64))


def test_sparse_costs_say_what_to_pass() -> None:
    with pytest.raises(ValueError, match=r"M is sparse \(csr_array\).*M.toarray\(\)"):
        checks.as_cost(scipy.sparse.csr_array(np.eye(2)))


def test_a_structure_in_the_place_of_weights_says_how_to_pass_it() -> None:
    with pytest.raises(ValueError, match=r"^a must be .* got Groups, a structure: .*structure=.*$"):
        sot.solve(np.ones((2, 2)), sot.Groups([0, 1]))


def test_points_with_all_pairs_forbidden() -> None:
    M = np.array([[1.0, INF, 2.0], [INF, INF, INF]])
    a, b = np.array([1.0, 0.0]), np.array([0.5, 0.0, 0.5])
    checks.check_forbidden(M, a, b)
    with pytest.raises(ValueError, match=r"every pair of row 1, which has mass 0.5"):
        checks.check_forbidden(M, np.array([0.5, 0.5]), b)
    with pytest.raises(ValueError, match=r"every pair of column 1, which has mass 0.25"):
        checks.check_forbidden(M, a, np.array([0.5, 0.25, 0.25]))
