"""Groups: what users may pass as labels and functions, and what F comes out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from brute_force import FAMILIES, tabulate, tabulate_groups

from structot.concave import Discount, Linear, Log, Power, Sqrt, ThresholdSqrt, Truncation
from structot.structures import Groups, Structure
from structot.structures._grouping import group_numbers

Array = np.ndarray

M = np.random.default_rng(0).uniform(0.1, 2.0, (4, 3))


def partition(groups: object, size: int) -> list[list[int]]:
    """The groups as sorted lists of points."""
    numbers = group_numbers("source", groups, size)
    assert numbers.shape == (size,)
    assert sorted(set(numbers.tolist())) == list(range(numbers.max() + 1))
    return sorted(np.flatnonzero(numbers == k).tolist() for k in range(numbers.max() + 1))


# ----------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    "labels",
    [
        [5, 5, 2, 5],
        ["b", "b", "a", "b"],
        np.array(["b", "b", "a", "b"]),
        np.array([True, True, False, True]),
        np.array([1.5, 1.5, -2.0, 1.5], np.float32),
        (1, 1, 0, 1),
        pd.Series(["b", "b", "a", "b"], index=[7, 8, 9, 10]),
        pd.Categorical(["b", "b", "a", "b"]),
        np.array(["2024-01-02", "2024-01-02", "2024-01-01", "2024-01-02"], "M8[D]"),
        [-1, -1, 0, -1],
        [b"x", b"x", b"", b"x"],
        [[0, 1, 3], [2]],
        [[2], (3, 1, 0)],
        [{0, 1, 3}],
        [np.array([0, 1, 3]), range(2, 3)],
        [[0, 1, 3], []],
    ],
    ids=repr,
)
def test_two_groups(labels: object) -> None:
    assert partition(labels, 4) == [[0, 1, 3], [2]]


@pytest.mark.parametrize(
    "labels",
    [
        np.ma.array([7, 7, 7, 7], mask=[0, 1, 1, 0]),
        np.ma.array(["a", "b", "a", "a"], mask=[0, 1, 1, 0]),
        [7, None, None, 7],
        ["x", None, None, "x"],
        [7.0, np.nan, np.nan, 7.0],
        ["x", float("nan"), float("nan"), "x"],
        ["nan", float("nan"), None, "nan"],
        pd.Series([1, pd.NA, pd.NA, 1], dtype="Int64"),
        pd.Series(["x", None, None, "x"], dtype="string"),
        pd.Series(["x", np.nan, np.nan, "x"], dtype="category"),
        np.array(["2024-01-01", "NaT", "NaT", "2024-01-01"], "M8[D]"),
        [pd.NaT, pd.NA, None, pd.NaT],
        np.ma.array([1.0, np.nan, 1.0, 1.0], mask=[0, 0, 1, 0]),
        [[0, 3]],
    ],
    ids=repr,
)
def test_points_without_a_label_stand_alone(labels: object) -> None:
    if isinstance(labels, list) and labels[0] is pd.NaT:
        assert partition(labels, 4) == [[0], [1], [2], [3]]
    else:
        assert partition(labels, 4) == [[0, 3], [1], [2]]


def test_minus_one_is_a_label_like_any_other() -> None:
    assert partition(np.array([-1, 3, -1, 3]), 4) == [[0, 2], [1, 3]]


def test_labels_of_several_types() -> None:
    assert partition([1, "1", 1, None, "1", 2.5], 6) == [[0, 2], [1, 4], [3], [5]]


def test_groups_are_numbered_in_sorted_order_with_singletons_last() -> None:
    assert group_numbers("source", ["b", None, "a", "b", None], 5).tolist() == [1, 2, 0, 1, 3]
    assert group_numbers("source", [[3], [0, 1]], 5).tolist() == [1, 1, 2, 0, 3]
    assert group_numbers("source", None, 3).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([0, 1], r"source has 2 labels, but there are 4 points.*one label per point"),
        ([], r"source has 0 labels, but there are 4 points"),
        (np.zeros((4, 2)), r"source labels must be one-dimensional.*\(4, 2\)"),
        ([[0, 0, 1, 3]], r"source group 0.*repeats an index"),
        ("abcd", r"source labels must be one-dimensional.*\(\)"),
        ([[0, 1], [4]], r"source group 1 holds index 4, but there are 4 points \(0 to 3\)"),
        ([[0, -1]], r"source group 0 holds index -1, but there are 4 points"),
        ([[0.5, 1.0]], r"source group 0 must hold indices of points; got \[0.5, 1.0\]"),
        ([["a", "b"]], r"source group 0 must hold indices.*flat sequence"),
        ([[True, False, True, False]], r"source group 0 must hold indices"),
        ([[0, 1], "a", 3, 4], r"source must be one label per point or a list of sequences"),
        ([[[0], [1, 2]], [3]], r"source must be one label per point or a list of sequences"),
    ],
)
def test_bad_labels(source: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Groups(source).bind(M)


def test_bad_target_labels_are_named() -> None:
    with pytest.raises(ValueError, match="target has 4 labels, but there are 3 points"):
        Groups([0, 0, 1, 1], [0, 0, 1, 1]).bind(M)


# ------------------------------------------------------------------------------------- functions


@pytest.mark.parametrize("units", ["cost", "block"])
@pytest.mark.parametrize("g", FAMILIES, ids=repr)
def test_value_from_the_definition(g, units: str) -> None:
    rows, cols = np.array([0, 1, 0, 1]), np.array([0, 0, 1])
    F = Groups(rows, cols, g, units=units).bind(M)
    expected = tabulate_groups(M, rows, cols, g, units)
    assert tabulate(F.value, np.ones(M.shape, bool)).values == pytest.approx(expected.values)


def test_one_function_per_block() -> None:
    functions = {(0, 0): Sqrt(), (0, 1): Linear(), (1, 0): Truncation(0.5), (1, 1): Log(0.3)}
    rows, cols = np.array(["a", "b", "a", "b"]), np.array(["x", "x", "y"])
    F = Groups(rows, cols, lambda k, l: functions[k, l], units="cost").bind(M)
    expected = sum(
        g(M[np.ix_(rows == "ab"[k], cols == "xy"[l])].sum()) for (k, l), g in functions.items()
    )
    assert F.value(np.ones(M.shape, bool)) == pytest.approx(expected)
    P = np.random.default_rng(1).uniform(size=M.shape)
    alone = 0.0
    for (k, l), g in functions.items():
        block = np.ix_(rows == "ab"[k], cols == "xy"[l])
        part = M[block]
        alone += (
            Groups(np.zeros(2), np.zeros(part.shape[1]), g, units="cost")
            .bind(part)
            .extension(P[block])
        )
    assert F.extension(P) == pytest.approx(alone)


def test_per_block_functions_with_free_and_forbidden_pairs() -> None:
    """Blocks without edges, and pairs of no cost, do not shift the numbering of the functions."""
    cost = M.copy()
    cost[:2, 0] = np.inf  # the whole block (0, 0)
    cost[2, 0] = 0.0
    rows, cols = [0, 0, 1, 1], [0, 1, 1]
    F = Groups(rows, cols, lambda k, l: Power([[0.1, 0.5], [0.9, 0.3]][k][l]), units="cost").bind(
        cost
    )
    expected = cost[:2, 1:].sum() ** 0.5 + cost[2:, 0].sum() ** 0.9 + cost[2:, 1:].sum() ** 0.3
    assert F.value(np.isfinite(cost)) == pytest.approx(expected)
    assert F.greedy(np.zeros(M.shape))[np.isfinite(cost)].sum() == pytest.approx(expected)


@pytest.mark.parametrize("free", [False, True])
def test_blocks_without_edges_do_not_shift_the_units(free: bool) -> None:
    cost = M.copy()
    cost[:2, 0] = np.inf  # the whole block (0, 0)
    if free:
        cost[3, 1] = 0.0
    rows, cols = np.array([0, 0, 1, 1]), np.array([0, 1, 1])
    F = Groups(rows, cols, ThresholdSqrt(0.3, 0.1), units="block").bind(cost)
    expected = tabulate_groups(cost, rows, cols, ThresholdSqrt(0.3, 0.1), "block")
    assert tabulate(F.value, np.isfinite(cost)).values == pytest.approx(expected.values)
    vertex = F.greedy(-np.arange(12.0).reshape(4, 3))
    chain = np.cumsum(1 << np.arange(expected.edges.size))
    gains = np.diff(expected.values[chain], prepend=0.0)
    assert expected.flat(vertex) == pytest.approx(gains, abs=1e-13)


def test_per_block_function_may_be_written_in_python() -> None:
    F = Groups([0, 0, 1, 1], [0, 0, 0], lambda k, l: lambda x: x / (1 + k + x), units="cost").bind(
        M
    )
    x, y = M[:2].sum(), M[2:].sum()
    assert F.value(np.ones(M.shape, bool)) == pytest.approx(x / (1 + x) + y / (2 + y))


def test_default_function_and_own_groups() -> None:
    F = Groups([0, 0, 1, 1]).bind(M)
    totals = [M[rows, j].sum() for rows in ([0, 1], [2, 3]) for j in range(3)]
    expected = sum(T * Discount(0.75)(1.0) for T in totals)
    assert F.value(np.ones(M.shape, bool)) == pytest.approx(expected)
    spelled = Groups([0, 0, 1, 1], ["x", "y", "z"]).bind(M)
    assert spelled.value(np.ones(M.shape, bool)) == pytest.approx(expected)


@pytest.mark.parametrize("units", ["cost", "block"])
def test_every_pair_its_own_block_is_modular(units: str) -> None:
    """F(S) = Σ g(M_ij); in units of the block g(1) M_ij. The order of labels must not matter."""
    labels = ["q", None, "b", "a"], [2, 0, 1]
    cost = M.copy()
    cost[0, 0], cost[1, 2] = 0.0, np.inf
    F = Groups(*labels, Sqrt(), units=units).bind(cost)
    assert F.modular_cost == pytest.approx(np.sqrt(cost) if units == "cost" else cost)
    assert F.greedy(M) == pytest.approx(np.sqrt(cost) if units == "cost" else cost)
    # One function per block takes the general path and must agree.
    G = Groups(*labels, lambda k, l: Sqrt(), units=units).bind(cost)
    assert G.greedy(M) == pytest.approx(F.greedy(M))
    with pytest.raises(ValueError, match="not concave"):
        Groups(None, None, lambda x: x**2, units="cost").bind(M)


def test_single_point_and_single_group() -> None:
    for structure in (
        Groups(["a"], ["b"], Sqrt(), units="cost"),
        Groups(None, None, Sqrt(), units="cost"),
    ):
        F = structure.bind([[4.0]])
        assert F.extension([[0.5]]) == pytest.approx(1.0)
        assert F.project([[9.0]]) == pytest.approx(2.0)
        assert F.prox([[3.0]]).shape == (1, 1)
    one = Groups(np.zeros(4), np.zeros(3), Sqrt(), units="cost").bind(M)
    assert one.value(np.ones(M.shape, bool)) == pytest.approx(np.sqrt(M.sum()))
    assert one.extension(np.full(M.shape, 0.5)) == pytest.approx(0.5 * np.sqrt(M.sum()))


def test_cost_may_be_a_list_a_frame_integer_or_float32() -> None:
    whole = np.ones((2, 2), bool)
    plain = np.array([[1.0, 2.0], [3.0, 10.0]])
    for cost in (
        plain.tolist(),
        plain.astype(int),
        plain.astype(np.float32),
        pd.DataFrame(plain),
        np.asfortranarray(plain),
    ):
        assert Groups([0, 0], [0, 0], Sqrt(), units="cost").bind(cost).value(
            whole
        ) == pytest.approx(4.0)
    frozen = plain.copy()
    frozen.flags.writeable = False
    F = Groups([0, 0], [0, 0], Sqrt(), units="cost").bind(frozen)
    assert F.project(frozen).sum() == pytest.approx(4.0)


def test_mass_may_be_moved_between_pairs_of_a_block_for_less() -> None:
    """Twice the use of a block costs less than twice: the point of the structure."""
    F = Groups([0, 0, 1, 1], [0, 0, 0], Sqrt(), units="cost").bind(M)
    first, second = np.zeros(M.shape, bool), np.zeros(M.shape, bool)
    first[0], second[1] = True, True
    assert F.value(first | second) < F.value(first) + F.value(second)
    second[1], second[2] = False, True
    assert F.value(first | second) == pytest.approx(F.value(first) + F.value(second))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Groups([0], units="blocks"), "units must be one of 'cost', 'block'.*mean 'block'"),
        (
            lambda: Groups([0], concave=3.0, units="cost"),
            "concave must be a function of concave.*got 3.0",
        ),
        (lambda: Groups([0], concave=Sqrt, units="cost"), "concave.Sqrt\\(\\).*got <class"),
        (
            lambda: Groups([0, 0], [0, 0], lambda x: x**2, units="cost").bind(np.ones((2, 2))),
            "is not concave",
        ),
        (
            lambda: Groups([0, 0], [0, 0], lambda x: -x, units="cost").bind(np.ones((2, 2))),
            "is decreasing",
        ),
        (
            lambda: Groups([0, 0], [0, 0], lambda x: x + 1, units="cost").bind(np.ones((2, 2))),
            "zero at zero",
        ),
        (
            lambda: Groups([0, 0], [0, 0], lambda k, l: "sqrt", units="cost").bind(np.ones((2, 2))),
            "concave must be a function of concave.*got 'sqrt'",
        ),
        (lambda: Groups([0, 0]).bind([[1.0, -2.0], [0, 0]]), r"negative; got -2.0 at \(0, 1\)"),
        (lambda: Groups([0, 0]).bind([1.0, 2.0]), r"M must have 2 dimension.*\(2,\)"),
        (lambda: Groups([]).bind(np.zeros((0, 2))), r"M is empty \(shape \(0, 2\)\)"),
    ],
)
def test_bad_groups(build, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_repr() -> None:
    assert repr(Groups(["a", "b"])) == "Groups(['a', 'b'], concave=Discount(0.75))"
    long = Groups(np.arange(20), [0, 1], Sqrt(), units="block")
    assert repr(long) == "Groups(<20 labels>, [0, 1], concave=Sqrt())"
    per_block = Groups(np.array([1, 2]), None, lambda k, l: Sqrt(), units="cost")
    assert repr(per_block) == "Groups([1, 2], concave=<per block>, units='cost')"
    assert repr(Groups(None)) == "Groups(None, concave=Discount(0.75))"
    assert isinstance(long, Structure)
