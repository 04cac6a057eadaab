"""Every structure against its definition on all sets of pairs of small problems.

Notation. M cost (n, m) with n, m <= 3, so that F has at most 512 values; ``table`` holds them all.
A new structure takes part by one line in CASES: how to make it for a problem, and the formula of
F(S) written out anew, without the package.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import brute_force
import numpy as np
import pytest
from brute_force import Table, is_submodular, tabulate
from problems import moved
from subset_program import subset_optimum

from structot import solve
from structot.concave import Log, Sqrt, ThresholdSqrt, Truncation
from structot.groups import diagonals
from structot.structures import (
    ChainCut,
    Coverage,
    GraphCut,
    Groups,
    Hierarchy,
    LogDet,
    Modular,
    Rank,
    SetFunction,
    Structure,
)
from structot.submodular import Submodular

Array = np.ndarray
SetValue = Callable[[Array], float]

PROBLEMS = {
    "plain": np.array([[0.7, 1.2, 0.4], [1.5, 0.3, 0.9], [0.8, 1.1, 0.6]]),
    "ties and free pairs": np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 2.0], [1.0, 2.0, 0.0]]),
    "forbidden pairs": np.array([[0.5, np.inf, 1.0], [1.0, 0.7, np.inf], [0.2, 0.7, 1.3]]),
    "wide": np.array([[0.5, 0.2, 0.9], [0.1, 0.8, 0.4]]),
    "one source": np.array([[0.5, 0.2, 0.9]]),
}
PROBLEMS = {name: moved(M) for name, M in PROBLEMS.items()}
LABELS = [0, 0, 1]
WINDOWS = [[0, 1], [1, 2]]
PATH = [(0, 1), (1, 2)]
X = np.array([[1.0, 0.2], [0.4, -1.0], [1.4, -0.8]])  # the third is the sum of the others
Y = np.array([[0.3], [1.0], [-0.6]])


# ------------------------------------------------------------------- the formulas, once more


def labels(size: int) -> list[int]:
    return LABELS[:size]


def windows(size: int) -> list[list[int]]:
    """Overlapping groups of the points there are, each of them in at least one."""
    return [[i for i in g if i < size] for g in WINDOWS if g[0] < size]


def path(size: int) -> list[tuple[int, int]]:
    return [pair for pair in PATH if max(pair) < size]


def grouped(size: int) -> list[list[int]]:
    """The groups of `labels` as lists."""
    return [[i for i in range(size) if LABELS[i] == k] for k in sorted(set(labels(size)))]


def alone(size: int) -> list[list[int]]:
    return [[i] for i in range(size)]


def concave_of_sums(M: Array, rows: list, cols: list, g: Callable, equal: bool = False) -> SetValue:
    """Σ_kl g(M(S ∩ U_k × V_l)), costs shared among the blocks of a pair if ``equal``."""
    cost = np.where(np.isfinite(M), M, 0.0)
    if equal:
        cover = np.outer(
            [sum(i in g for g in rows) for i in range(M.shape[0])],
            [sum(j in g for g in cols) for j in range(M.shape[1])],
        )
        cost = cost / cover
    blocks = [np.ix_(r, c) for r in rows for c in cols]
    return lambda S: sum(float(g(np.sum(cost[b] * S[b]))) for b in blocks)


def touched(rows: list, cols: list, price: float) -> SetValue:
    blocks = [np.ix_(r, c) for r in rows for c in cols]
    return lambda S: price * sum(bool(S[b].any()) for b in blocks)


def linear(M: Array) -> SetValue:
    return lambda S: float(M[S].sum())


def cut(M: Array, pairs: list, weight: float) -> SetValue:
    """weight · number of neighbours, both allowed, of which exactly one is in S."""
    return lambda S: (
        weight * sum(S[e] != S[d] for e, d in pairs if np.isfinite(M[e]) and np.isfinite(M[d]))
    )


def along_rows(M: Array) -> list:
    return [((i, j), (i, j + 1)) for i in range(M.shape[0]) for j in range(M.shape[1] - 1)]


def along_columns(M: Array) -> list:
    return [((i, j), (i + 1, j)) for i in range(M.shape[0] - 1) for j in range(M.shape[1])]


def across(M: Array) -> list:
    """(i, j) ~ (k, t) for i ~ k and j ~ t on paths, each pair of neighbours once."""
    return [
        ((i, j), (i + 1, t))
        for i in range(M.shape[0] - 1)
        for j in range(M.shape[1])
        for t in range(M.shape[1])
        if abs(j - t) == 1
    ]


def stacked(S: Array, both: bool) -> Array:
    i, j = np.nonzero(S)
    return np.hstack([X[i], Y[j]]) if both else X[i]


def rank(both: bool) -> SetValue:
    return lambda S: float(np.linalg.matrix_rank(stacked(S, both))) if S.any() else 0.0


def volume(both: bool, sigma: float) -> SetValue:
    def value(S: Array) -> float:
        features = stacked(S, both) / sigma
        return float(np.linalg.slogdet(np.eye(len(features)) + features @ features.T)[1])

    return value


def plus(*terms: tuple[float, SetValue]) -> SetValue:
    return lambda S: sum(factor * term(S) for factor, term in terms)


def sources_used(S: Array) -> float:
    return 7.0 + float(np.sqrt(S.any(axis=1).sum()))  # not normalised: F(∅) = 0 is made of it


@dataclass(frozen=True)
class Case:
    """A structure for a cost matrix, and the same F from its formula."""

    make: Callable[[Array], Structure]
    formula: Callable[[Array], SetValue]


def sizes(M: Array) -> tuple[int, int]:
    return M.shape[0], M.shape[1]


CASES = {
    "modular": Case(lambda M: Modular(), linear),
    "groups": Case(
        lambda M: Groups(labels(M.shape[0]), labels(M.shape[1]), Sqrt(), units="cost"),
        lambda M: concave_of_sums(M, *map(grouped, sizes(M)), np.sqrt),
    ),
    "source groups": Case(
        lambda M: Groups(labels(M.shape[0]), None, Truncation(0.8), units="cost"),
        lambda M: concave_of_sums(M, grouped(M.shape[0]), alone(M.shape[1]), lambda x: min(x, 0.8)),
    ),
    "overlapping groups": Case(
        lambda M: Groups(windows(M.shape[0]), windows(M.shape[1]), Log(0.5), units="cost"),
        lambda M: concave_of_sums(M, *map(windows, sizes(M)), lambda x: 0.5 * np.log1p(x / 0.5)),
    ),
    "equal coverage": Case(
        lambda M: Groups(
            windows(M.shape[0]),
            windows(M.shape[1]),
            Truncation(0.3),
            equal_coverage=True,
            units="cost",
        ),
        lambda M: concave_of_sums(M, *map(windows, sizes(M)), lambda x: min(x, 0.3), equal=True),
    ),
    "hierarchy": Case(
        lambda M: Hierarchy(
            [labels(M.shape[0]), [0] * M.shape[0]],
            None,
            [Sqrt(), Truncation(0.5)],
            [0.7, 0.4],
            units="cost",
        ),
        lambda M: plus(
            (0.7, concave_of_sums(M, grouped(M.shape[0]), alone(M.shape[1]), np.sqrt)),
            (
                0.4,
                concave_of_sums(
                    M, [list(range(M.shape[0]))], alone(M.shape[1]), lambda x: min(x, 0.5)
                ),
            ),
        ),
    ),
    "coverage": Case(
        lambda M: Coverage(labels(M.shape[0]), labels(M.shape[1]), 0.6),
        lambda M: touched(*map(grouped, sizes(M)), 0.6),
    ),
    "overlapping coverage": Case(
        lambda M: Coverage(windows(M.shape[0]), windows(M.shape[1]), 0.6),
        lambda M: touched(*map(windows, sizes(M)), 0.6),
    ),
    "coverage of sets": Case(
        lambda M: Coverage.of_sets([np.tri(*M.shape, k) > 0 for k in (0, 1)], [0.5, 0.8]),
        lambda M: (
            lambda S: sum(
                c * bool(S[np.tri(*M.shape, k) > 0].any()) for k, c in ((0, 0.5), (1, 0.8))
            )
        ),
    ),
    "diagonals": Case(
        lambda M: Coverage.of_sets(diagonals(*M.shape), 0.3),
        lambda M: (
            lambda S: sum(0.3 * bool(S[tuple(pairs.T)].any()) for pairs in diagonals(*M.shape))
        ),
    ),
    "rank": Case(lambda M: Rank(X[: M.shape[0]], Y[: M.shape[1]]), lambda M: rank(True)),
    "source rank": Case(lambda M: Rank(X[: M.shape[0]]), lambda M: rank(False)),
    "volume": Case(
        lambda M: LogDet(X[: M.shape[0]], Y[: M.shape[1]], 0.5), lambda M: volume(True, 0.5)
    ),
    "source volume": Case(lambda M: LogDet(X[: M.shape[0]]), lambda M: volume(False, 1.0)),
    "chains along rows": Case(
        lambda M: ChainCut(0.3, along="rows"), lambda M: cut(M, along_rows(M), 0.3)
    ),
    "chains": Case(
        lambda M: ChainCut(0.3), lambda M: cut(M, along_rows(M) + along_columns(M), 0.3)
    ),
    "graph": Case(
        lambda M: GraphCut(path(M.shape[0]), path(M.shape[1]), 0.3),
        lambda M: cut(M, along_rows(M) + along_columns(M), 0.3),
    ),
    "graph, both ends": Case(
        lambda M: GraphCut(path(M.shape[0]), path(M.shape[1]), 0.2, neighbors="both"),
        lambda M: cut(M, across(M), 0.2),
    ),
    "set function": Case(
        lambda M: SetFunction(sources_used), lambda M: lambda S: sources_used(S) - 7.0
    ),
    "set function on a support": Case(
        lambda M: SetFunction(lambda S: float(S.sum()) ** 0.5, support=np.eye(*M.shape) > 0),
        lambda M: lambda S: float(np.sqrt(np.sum(S * np.eye(*M.shape)))),
    ),
    "fixed charge": Case(
        lambda M: Modular() + 0.4 * Coverage(labels(M.shape[0])),
        lambda M: plus((1.0, linear(M)), (0.4, touched(grouped(M.shape[0]), alone(M.shape[1]), 1))),
    ),
    "transport with chains": Case(
        lambda M: Modular() + ChainCut(0.2),
        lambda M: plus((1.0, linear(M)), (1.0, cut(M, along_rows(M) + along_columns(M), 0.2))),
    ),
    "groups, rank and graph": Case(
        lambda M: (
            Groups(labels(M.shape[0]), None, ThresholdSqrt(1.0), units="cost")
            + 0.3 * Rank(X[: M.shape[0]])
            + 2.0 * GraphCut(path(M.shape[0]), None, 0.1)
        ),
        lambda M: plus(
            (
                1.0,
                concave_of_sums(M, grouped(M.shape[0]), alone(M.shape[1]), ThresholdSqrt(1.0)),
            ),
            (0.3, rank(False)),
            (0.2, cut(M, along_columns(M), 1.0)),
        ),
    ),
}

every_case = pytest.mark.parametrize("name", CASES)
every_problem = pytest.mark.parametrize("problem", PROBLEMS)


@cache
def bound(name: str, problem: str) -> tuple[Submodular, Table, float]:
    """F, its table by the formula, and a size to measure errors in."""
    M = PROBLEMS[problem]
    table = tabulate(CASES[name].formula(M), np.isfinite(M))
    return CASES[name].make(M).bind(M), table, float(np.abs(table.values).max()) or 1.0


def points(M: Array, seed: int = 0) -> list[Array]:
    """Arrays with and without ties, with and without negative entries."""
    rng = np.random.default_rng(seed)
    plain = rng.normal(size=M.shape)
    return [plain, np.abs(plain), np.round(plain), np.full(M.shape, 0.5), 3.0 * plain]


# ---------------------------------------------------------------------------------- the function


@every_problem
@every_case
def test_values_are_the_formula_and_submodular(name: str, problem: str) -> None:
    F, table, size = bound(name, problem)
    for mask, expected in zip(table.masks(F.shape), table.values, strict=True):
        assert F.value(mask) == pytest.approx(expected, abs=1e-12 * size)
    assert is_submodular(table)


@every_problem
@every_case
def test_extension_and_greedy(name: str, problem: str) -> None:
    """f is the Choquet integral of the table; the greedy vertex attains it inside B(F)."""
    F, table, size = bound(name, problem)
    for P in points(PROBLEMS[problem]):
        P = np.where(F._allowed(), P, 0.0)
        expected = brute_force.extension(table, P)
        assert F.extension(P) == pytest.approx(expected, abs=1e-11 * size)
        K = F.greedy(P)
        assert table.flat(K) @ table.flat(P) == pytest.approx(expected, abs=1e-11 * size)
        assert brute_force.excess(table, K) <= 1e-11 * size
        assert np.isposinf(K[~F._allowed()]).all()


@every_problem
@every_case
@pytest.mark.parametrize("metric", ["euclidean", "cost"])
def test_projection(name: str, problem: str, metric: str) -> None:
    """K in B(F), and no other K' there is nearer: <K - Z, K - K'> <= 0 in the metric."""
    F, table, size = bound(name, problem)
    d = np.ones(F.shape) if metric == "euclidean" else F.metric
    for Z in points(PROBLEMS[problem], seed=1):
        K = F.project(Z, metric)
        assert brute_force.excess(table, K) <= 1e-9 * size
        step = np.where(F._allowed(), K - Z, 0.0) / d
        scale = size**2 + float(np.sum(step**2))
        assert brute_force.descent(table, K, step) <= 1e-8 * scale / d.min()


@every_problem
@every_case
def test_projection_of_potentials(name: str, problem: str) -> None:
    F, _, size = bound(name, problem)
    rng = np.random.default_rng(8)
    u, v = (size * rng.normal(size=k) for k in F.shape)
    K, expected = F.project_potentials(u, v), F.project(np.add.outer(u, v), "cost")
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-9 * size)


@every_problem
@every_case
def test_prox(name: str, problem: str) -> None:
    """K = ρ d (V - X) is a subgradient at X: K in B(F) and <K, X> = f(X). With X >= 0: cut at 0."""
    F, table, size = bound(name, problem)
    rho = 0.7
    for V in points(PROBLEMS[problem], seed=2):
        V = np.where(F._allowed(), V, 0.0)
        X = F.prox(V, rho)
        K = rho * F.metric * (V - X)
        assert brute_force.excess(table, K) <= 1e-8 * size
        attained = float(table.flat(K) @ table.flat(X))
        scale = size * (1.0 + float(np.abs(X).max()))
        assert brute_force.extension(table, X) - attained <= 1e-7 * scale
        cut = F.prox(V, rho, nonnegative=True)
        np.testing.assert_allclose(cut, np.maximum(X, 0.0), rtol=1e-13, atol=1e-13)


@every_problem
@every_case
def test_minimisation(name: str, problem: str) -> None:
    F, table, size = bound(name, problem)
    for shift in points(PROBLEMS[problem], seed=3):
        mask, value = F.minimize(shift)
        assert value == pytest.approx(brute_force.minimum(table, shift), abs=1e-9 * size)
        assert F.value(mask) + shift[mask].sum() == pytest.approx(value, abs=1e-9 * size)


# ----------------------------------------------------------------------------------- the problem


@pytest.mark.parametrize("problem", ["plain", "forbidden pairs", "wide"])
@every_case
def test_solve_against_all_subsets(name: str, problem: str) -> None:
    """The optimum lies between bound and value; the proof holds."""
    M = PROBLEMS[problem]
    rng = np.random.default_rng(4)
    a, b = rng.dirichlet(np.full(M.shape[0], 3.0)), rng.dirichlet(np.full(M.shape[1], 3.0))
    if problem == "forbidden pairs":  # marginals of a plan that uses allowed pairs only
        P = np.where(np.isfinite(M), rng.random(M.shape), 0.0)
        a, b = P.sum(axis=1) / P.sum(), P.sum(axis=0) / P.sum()
    structure = CASES[name].make(M)
    result = solve(M, a, b, structure=structure)
    optimum = subset_optimum(M, a, b, structure).value
    slack = 1e-9 * (1.0 + abs(optimum))
    assert result.converged
    assert result.lower_bound - slack <= optimum <= result.value + slack
    # The proof, by enumeration: the worst cost is in B(F), the potentials lie below it.
    _, table, size = bound(name, problem)
    u, v = result.potentials
    K = result.worst_cost
    assert brute_force.excess(table, K) <= 1e-9 * size
    assert (np.add.outer(u, v) <= K + 1e-12 * size).all()
    assert a @ u + b @ v == pytest.approx(result.lower_bound, abs=1e-12 * size)
    assert brute_force.extension(table, result.plan) == pytest.approx(result.value, abs=1e-12)


@every_case
def test_scaling_and_adding(name: str) -> None:
    """(c A + c A) has the values of 2 c A, whatever its layers do with the factor."""
    M = PROBLEMS["forbidden pairs"]
    F, table, size = bound(name, "forbidden pairs")
    structure = CASES[name].make(M)
    twice = (0.5 * structure + 1.5 * structure).bind(M)
    P = np.where(F._allowed(), np.random.default_rng(5).random(M.shape), 0.0)
    assert twice.extension(P) == pytest.approx(2.0 * F.extension(P), abs=1e-11 * size)
    scaled = (2.0 * structure).bind(M)
    for mask, expected in zip(table.masks(M.shape)[::7], table.values[::7], strict=True):
        assert scaled.value(mask) == pytest.approx(2.0 * expected, abs=1e-11 * size)
    Z = np.random.default_rng(6).normal(size=M.shape)
    allowed = F._allowed()
    near = scaled.project(2.0 * Z)[allowed]
    assert near == pytest.approx(2.0 * F.project(Z)[allowed], abs=1e-5 * size)


@every_case
def test_repr_is_one_line(name: str) -> None:
    text = repr(CASES[name].make(PROBLEMS["plain"]))
    assert "\n" not in text
    assert "(" in text
    assert " at 0x" not in text


@every_case
def test_bad_input_is_refused(name: str) -> None:
    structure = CASES[name].make(PROBLEMS["plain"])
    with pytest.raises(ValueError, match="M is NaN"):
        structure.bind(np.full((3, 3), np.nan))
    F, _, _ = bound(name, "plain")
    with pytest.raises(ValueError, match="shape"):
        F.extension(np.ones((2, 2)))
    with pytest.raises(ValueError, match="shape"):
        F.value(np.ones((2, 2), bool))
    with pytest.raises(ValueError, match="shape"):
        F.project(np.ones((2, 2)))
    with pytest.raises(TypeError):
        structure + 1  # type: ignore[operator]
    with pytest.raises(ValueError, match="factor"):
        -1.0 * structure
