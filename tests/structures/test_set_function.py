"""SetFunction, the check of submodularity, and the two generic ways to project."""

from __future__ import annotations

import warnings

import brute_force
import numpy as np
import pytest
from brute_force import Table, is_submodular, members, tabulate
from hypothesis import given, settings
from hypothesis import strategies as st

from structot import solve
from structot.concave import Sqrt
from structot.structures import (
    ChainCut,
    Coverage,
    Groups,
    LogDet,
    Modular,
    SetFunction,
    set_function,
)
from structot.structures.set_function import CalledFunction, SetFunctionWarning, TabulatedFunction
from structot.submodular import Oracle, min_norm_point
from structot.submodular.base import Minimizer
from structot.submodular.checking import check_submodular
from structot.submodular.decomposition import Minor, divide_and_conquer

Array = np.ndarray

W = np.array([[0.5, 1.0, 0.2], [0.7, 0.1, 0.9]])


def smooth(S: Array) -> float:
    return float(np.sqrt(np.sum(W * S)) + 0.3 * np.sqrt(S.any(axis=0).sum()))


def cut(S: Array) -> float:
    """Not monotone: neighbours in a row of which one is in S."""
    return float(np.sum(S[:, 1:] != S[:, :-1]))


# -------------------------------------------------------------------- two ways to the projection


def enumerate_minor(G: Minor, shift: Array) -> Minimizer:
    """The minimum of a minor by trying all sets."""
    edges = np.flatnonzero(G.edges)
    best = Minimizer(np.zeros(G.shape, bool), 0.0)
    for inside in members(edges.size):
        mask = np.zeros(G.shape, bool)
        mask.ravel()[edges[inside]] = True
        value = G.value(mask) + float(shift[mask].sum())
        if value < best.value - 1e-14:
            best = Minimizer(mask, value)
    return best


@given(seed=st.integers(0, 10**6), which=st.sampled_from(["smooth", "cut", "coverage"]))
@settings(max_examples=25)
def test_divide_and_conquer_agrees_with_the_min_norm_point(seed: int, which: str) -> None:
    """With a weighted metric, with enumeration and without, and with Wolfe's algorithm."""
    rng = np.random.default_rng(seed)
    if which == "coverage":
        masks = rng.random((4, 6)) < 0.4
        price = rng.random(4)
        F = Oracle(lambda S: float(price @ (masks & S.ravel()).any(axis=1)), (2, 3))
    else:
        F = Oracle({"smooth": smooth, "cut": cut}[which], (2, 3))
    Z = rng.normal(size=(2, 3)) if seed % 2 else np.round(2 * rng.normal(size=(2, 3))) / 2
    c = rng.uniform(0.5, 2.0, (2, 3))
    table = tabulate(F.value, np.ones((2, 3), bool))
    wolfe = min_norm_point(F, Z, weights=c)
    for minimizer in (None, enumerate_minor):
        K = divide_and_conquer(F, Z, weights=c, minimizer=minimizer)
        assert brute_force.excess(table, K) <= 1e-8
        assert brute_force.descent(table, K, c * (K - Z)) <= 1e-7
        assert pytest.approx(wolfe, abs=1e-5) == K


@pytest.mark.parametrize(
    "structure",
    [
        Groups([0, 0, 1, 1], [0, 1, 0, 1], Sqrt()),
        Coverage([0, 0, 1, 1]),
        ChainCut(0.4, along="rows"),
        LogDet(np.arange(8.0).reshape(4, 2) % 3),
    ],
    ids=repr,
)
def test_divide_and_conquer_agrees_with_fast_projections(structure: object) -> None:
    """Also through a function's own minimisation, and with forbidden pairs."""
    rng = np.random.default_rng(1)
    M = rng.uniform(0.2, 2.0, (4, 4))
    M[1, 2] = M[3, 0] = np.inf
    F = structure.bind(M)  # type: ignore[attr-defined]
    for scale in (0.1, 1.0, 5.0):
        Z = scale * rng.normal(size=(4, 4))
        K, fast = divide_and_conquer(F, Z), F.project(Z)
        assert np.isposinf(K[~np.isfinite(M)]).all()
        assert K[np.isfinite(M)] == pytest.approx(fast[np.isfinite(M)], abs=2e-5)


def test_divide_and_conquer_takes_python_functions() -> None:
    K = divide_and_conquer(lambda S: min(S.sum(), 1), np.array([[0.2, 0.4, -3.0]]))
    assert pytest.approx(np.array([[0.4, 0.6, 0.0]])) == K
    with pytest.raises(ValueError, match="Z must be given"):
        divide_and_conquer(lambda S: 0.0)


def test_the_table_and_the_calls_are_the_same_function() -> None:
    """Tabulated and called layers agree in everything they offer."""
    rng = np.random.default_rng(2)
    called = CalledFunction(smooth, (2, 3), None, None)
    table = TabulatedFunction(called, np.arange(6))
    for _ in range(20):
        P = rng.normal(size=(2, 3))
        assert table.greedy(P) == pytest.approx(called.greedy(P))
        assert table.extension(P) == pytest.approx(called.extension(P))
        assert table.project(P) == pytest.approx(called.project(P), abs=1e-6)
        assert table.minimize(P).value == pytest.approx(called.minimize(P).value, abs=1e-9)


# --------------------------------------------------------------------------------- in `solve`


def test_other_structures_as_set_functions_have_the_same_optimum() -> None:
    rng = np.random.default_rng(3)
    M = rng.uniform(0.2, 1.0, (3, 4))
    a, b = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
    groups = Groups([0, 0, 1], None, Sqrt())
    own = solve(M, a, b, structure=groups, tol=1e-7)
    F = groups.bind(M)
    called = solve(M, a, b, structure=SetFunction(F.value), tol=1e-6)
    assert called.method == "splitting"
    assert called.converged
    assert called.value == pytest.approx(own.value, rel=2e-6)


def test_more_than_twelve_pairs_go_through_the_min_norm_point() -> None:
    M = np.random.default_rng(4).uniform(0.2, 1.0, (4, 4))
    groups = Groups([0, 0, 1, 1], [0, 1, 1, 0], Sqrt())
    structure = SetFunction(groups.bind(M).value)
    assert isinstance(structure.bind(M).layers[0], CalledFunction)
    result = solve(M, structure=structure)
    assert result.converged
    own = solve(M, structure=groups, tol=1e-7)
    assert result.lower_bound <= own.value + 1e-9
    assert result.value >= own.lower_bound - 1e-9


def test_support_hides_other_pairs_and_makes_it_small() -> None:
    seen = []

    def count(S: Array) -> float:
        seen.append(S.copy())
        return float(np.sqrt(S.sum()))

    support = [(0, 0), (1, 1), (2, 2)]
    structure = SetFunction(count, support=support)
    F = structure.bind(np.ones((5, 5)))
    assert isinstance(F.layers[0], TabulatedFunction)
    mask = np.zeros((5, 5), bool)
    for pair in support:
        mask[pair] = True
    assert not any(S[~mask].any() for S in seen)
    assert F.value(np.ones((5, 5), bool)) == pytest.approx(np.sqrt(3))
    V = np.full((5, 5), 0.3)
    assert (F.prox(V)[~mask] == 0.3).all()
    assert (F.greedy(V)[~mask] == 0.0).all()
    result = solve(np.ones((5, 5)), structure=Modular() + structure)
    assert result.converged
    assert result.value == pytest.approx(1.0)  # the diagonal can be avoided


def test_the_function_may_spoil_its_mask() -> None:
    def rude(S: Array) -> float:
        value = float(np.sqrt(S.sum()))
        S[:] = True
        return value

    F = SetFunction(rude).bind(np.ones((4, 4)))
    mask = np.eye(4, dtype=bool)
    assert F.value(mask) == 2.0
    assert F.value(mask) == 2.0
    assert mask.sum() == 4


# --------------------------------------------------------------------------------- the check


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40)
def test_enumeration_finds_a_violation_exactly_if_there_is_one(seed: int) -> None:
    """Random concave-of-sum functions with a little noise, against all pairs of sets."""
    rng = np.random.default_rng(seed)
    weight = rng.random(6)
    noise = rng.choice([0.0, 0.02]) * rng.random(64)
    values = np.sqrt(members(6) @ weight) + noise
    values -= values[0]
    table = Table(np.arange(6), values)
    F = Oracle(lambda S: values[int((1 << np.flatnonzero(S)).sum())], (2, 3))
    found = check_submodular(F)
    assert (found is None) == is_submodular(table)
    if found is not None:
        fa, fb, union, meet = (
            F.value(S) for S in (found.A, found.B, found.A | found.B, found.A & found.B)
        )
        assert (fa, fb, union, meet) == pytest.approx(found.values)
        assert union + meet - fa - fb == pytest.approx(found.amount)
        assert found.amount > 0


def test_samples_find_a_common_violation_in_a_large_set() -> None:
    found = check_submodular(lambda S: float(S.sum()) ** 1.5, (8, 8), samples=50)
    assert found is not None
    assert found.amount > 0
    assert check_submodular(lambda S: float(S.sum()) ** 0.5, (8, 8), samples=50) is None


def test_a_function_that_is_not_submodular_is_shown_at_once() -> None:
    with pytest.raises(ValueError, match="not submodular") as error:
        solve(np.ones((2, 2)), structure=SetFunction(lambda S: float(S[0].all())))
    text = str(error.value)
    assert "(0, 0)" in text
    assert "(0, 1)" in text
    assert "A ∪ B" in text
    with pytest.raises(ValueError, match="not submodular"):
        SetFunction(lambda S: float(S.sum()) ** 2).bind(np.ones((5, 5)))
    SetFunction(lambda S: float(S.sum()) ** 2, check=False).bind(np.ones((4, 5)))


def test_structures_can_be_checked_too() -> None:
    F = Groups([0, 0, 1]).bind(np.random.default_rng(5).random((3, 3)))
    assert check_submodular(F) is None
    with pytest.raises(ValueError, match="shape must be given"):
        check_submodular(smooth)


# ------------------------------------------------------------------- warnings and bad input


def test_a_large_problem_gets_one_warning_with_the_time() -> None:
    structure = Modular() + SetFunction(lambda S: float(np.sqrt(S.sum())), check=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        structure.bind(np.ones((40, 40)))
    assert [w.category for w in caught] == [SetFunctionWarning]
    text = str(caught[0].message)
    assert "1600 pairs" in text
    assert any(unit in text for unit in ("seconds", "minutes", "hours", "days"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        structure.bind(np.ones((5, 5)))


def test_a_slow_function_is_announced_even_for_few_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve pairs are 4096 calls; the clock says that each of them takes a second."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(set_function.time, "perf_counter", lambda: next(ticks))
    with pytest.warns(SetFunctionWarning, match="about 68 minutes"):
        SetFunction(lambda S: float(np.sqrt(S.sum()))).bind(np.ones((3, 4)))


def test_bad_functions_are_refused() -> None:
    M = np.ones((2, 2))
    with pytest.raises(ValueError, match="function must be callable"):
        SetFunction(3.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must return a number"):
        SetFunction(lambda S: "much").bind(M)  # type: ignore[arg-type, return-value]
    with pytest.raises(ValueError, match="must be finite"):
        SetFunction(lambda S: np.inf if S.any() else 0.0).bind(M)


@pytest.mark.parametrize(
    ("support", "message"),
    [
        (np.ones((3, 3), bool), "shape"),
        ([(0, 5)], r"\(0, 5\)"),
        ([0, 1], "list of pairs"),
        ([(0.5, 1.5)], "list of pairs"),
    ],
)
def test_bad_supports_are_refused(support: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SetFunction(smooth, support=support).bind(np.ones((2, 3)))


def test_repr() -> None:
    assert repr(SetFunction(smooth)) == "SetFunction(smooth)"
    assert repr(SetFunction(smooth, support=[(0, 1)])) == "SetFunction(smooth, support=...)"
