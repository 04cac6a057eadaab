"""Chain and graph cuts: the taut string, matchings, and what a cut means for a plan."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from problems import moved
from scipy.optimize import linprog
from scipy.sparse import csr_array

from structot import solve
from structot.certificate import verify
from structot.structures import ChainCut, Coverage, GraphCut, Groups, Modular
from structot.structures.cut import _edge_colors
from structot.submodular._cut_kernels import project_lines
from structot.submodular.cuts import Lines, Matching

Array = np.ndarray


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ------------------------------------------------------------------------------- the taut string


def reference(z: Array, weight: Array) -> Array:
    """The prox by a method of its own, level by level.

    X_k > c exactly if k is in the smallest minimiser of Σ λ |s_k - s_{k+1}| + Σ (c - z_k) s_k over
    s in {0, 1}ⁿ, which dynamic programming finds; X takes values among the means of runs, shifted
    by the weights at both ends.
    """
    n = z.size
    sums = np.concatenate([[0.0], np.cumsum(z)])
    ends = np.concatenate([[0.0], weight, [0.0]])
    levels = sorted(
        {
            (sums[j] - sums[i] + s * ends[i] + t * ends[j]) / (j - i)
            for i in range(n)
            for j in range(i + 1, n + 1)
            for s in (-1, 1)
            for t in (-1, 1)
        }
    )
    between = [(x + y) / 2 for x, y in itertools.pairwise(levels)]
    above = np.array([_upper_set(z, weight, c) for c in between], int).reshape(-1, n)
    return np.array(levels)[above.sum(axis=0)]


def _upper_set(z: Array, weight: Array, level: float) -> Array:
    cost = np.array([0.0, level - z[0]])
    choice = []
    for k in range(1, z.size):
        move = cost[:, None] + weight[k - 1] * np.array([[0, 1], [1, 0]])
        choice.append(move.argmin(axis=0))
        cost = move.min(axis=0) + [0.0, level - z[k]]
    state = [int(cost.argmin())]
    for step in reversed(choice):
        state.append(int(step[state[-1]]))
    return np.array(state[::-1], bool)


@pytest.mark.kernels
@given(
    values=st.lists(st.integers(-6, 6).map(lambda x: x / 2), min_size=1, max_size=9),
    seed=st.integers(0, 10**6),
    noise=st.sampled_from([0.0, 0.3]),
)
def test_taut_string_against_dynamic_programming(values: list, seed: int, noise: float) -> None:
    rng = np.random.default_rng(seed)
    z = np.array(values) + noise * rng.normal(size=len(values))
    weight = rng.choice([0.0, 0.25, 0.5, 1.0, 3.0], size=len(values) - 1)
    K = np.empty((1, z.size))
    project_lines(z[None, :], weight[None, :], K)
    assert z - K[0] == pytest.approx(reference(z, weight), abs=1e-9)


@pytest.mark.kernels
@given(seed=st.integers(0, 10**6), offset=st.sampled_from([0.0, 1e6]))
def test_long_lines_satisfy_the_optimality_conditions(seed: int, offset: float) -> None:
    """s = running sum of K stays within ±λ, and at ±λ wherever X falls or rises."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 400))
    z = offset + np.cumsum(rng.normal(size=n)) * rng.choice([0.0, 0.3]) + rng.normal(size=n)
    weight = rng.choice([0.0, 0.5, 2.0, 20.0]) * rng.random(n - 1)
    K = np.empty((1, n))
    project_lines(z[None, :], weight[None, :], K)
    s, slope = np.cumsum(K[0]), np.diff(z - K[0])
    tol = 1e-9 * (1.0 + abs(offset))
    assert abs(s[-1]) <= 1e-12
    assert (np.abs(s[:-1]) <= weight + 1e-12).all()
    falling, rising = slope < -tol, slope > tol
    assert s[:-1][falling] == pytest.approx(weight[falling], abs=tol)
    assert s[:-1][rising] == pytest.approx(-weight[rising], abs=tol)


def test_a_heavy_chain_is_the_mean_and_a_light_one_nothing(rng: np.random.Generator) -> None:
    V = rng.normal(size=(4, 6))
    ones = np.ones((4, 6))
    heavy = ChainCut(1e6, along="rows").bind(ones).prox(V)
    assert heavy == pytest.approx(np.repeat(V.mean(axis=1, keepdims=True), 6, axis=1))
    light = ChainCut(1e-12, along="columns").bind(ones).prox(V)
    assert light == pytest.approx(V)


# ------------------------------------------------------------------------------------------ plans


def test_zero_weight_changes_nothing(rng: np.random.Generator) -> None:
    M = rng.random((5, 4))
    a, b = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4))
    plain = solve(M, a, b)
    for cut in (ChainCut(0.0), GraphCut([(0, 1)], weight=0.0), 0.0 * ChainCut(2.0)):
        result = solve(M, a, b, structure=Modular() + cut)
        assert result.method == "exact"
        assert result.value == pytest.approx(plain.value, rel=1e-12)
        assert np.allclose(result.plan, plain.plan)
    assert solve(M, a, b, structure=ChainCut(0.0)).value == 0.0


def cut_program(M: Array, a: Array, b: Array, pairs: list, weight: float) -> float:
    """min <M, P> + weight Σ |P_e - P_e'| over U(a, b) as one linear program."""
    n, m = M.shape
    E, Q = n * m, len(pairs)
    D = np.zeros((Q, E))
    for q, (e, d) in enumerate(pairs):
        D[q, np.ravel_multi_index(e, M.shape)] = 1.0
        D[q, np.ravel_multi_index(d, M.shape)] = -1.0
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    answer = linprog(
        np.concatenate([M.ravel(), np.full(Q, weight)]),
        A_ub=np.block([[D, -np.eye(Q)], [-D, -np.eye(Q)]]),
        b_ub=np.zeros(2 * Q),
        A_eq=np.hstack([sums, np.zeros((n + m, Q))]),
        b_eq=np.concatenate([a, b]),
    )
    assert answer.status == 0
    return float(answer.fun)


@pytest.mark.parametrize("neighbors", ["one", "both"])
@pytest.mark.parametrize("weight", [0.02, 0.5])
def test_graph_cuts_against_the_linear_program(neighbors: str, weight: float) -> None:
    rng = np.random.default_rng(3)
    n, m = 5, 6
    M = moved(rng.random((n, m)))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    G, H = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4)], [(0, 1), (1, 2), (3, 4), (4, 5)]
    if neighbors == "one":
        pairs = [((i, j), (k, j)) for i, k in G for j in range(m)]
        pairs += [((i, j), (i, t)) for i in range(n) for j, t in H]
    else:
        pairs = [((i, j), (k, t)) for i, k in G for j, t in H]
        pairs += [((i, t), (k, j)) for i, k in G for j, t in H]
    structure = Modular() + GraphCut(G, H, weight, neighbors=neighbors)
    result = solve(M, a, b, structure=structure)
    assert result.converged
    assert verify(M, a, b, structure, result).holds(1e-8)
    optimum = cut_program(M, a, b, pairs, weight)
    assert result.lower_bound <= optimum + 1e-9
    assert result.value == pytest.approx(optimum, rel=1.1e-4)  # tol, and that of the program


def test_paths_as_graphs_are_chains(rng: np.random.Generator) -> None:
    """One layer of lines and two layers of pairs are the same function, and the same optimum."""
    M = rng.random((6, 5))
    M[2, 3] = np.inf
    chain = ChainCut(0.1)
    graph = GraphCut([(k, k + 1) for k in range(5)], [(k, k + 1) for k in range(4)], 0.1)
    F, G = chain.bind(M), graph.bind(M)
    allowed = np.isfinite(M)
    for _ in range(5):
        P = np.where(allowed, rng.random(M.shape), 0.0)
        assert F.extension(P) == pytest.approx(G.extension(P))
        assert F.greedy(P)[allowed] == pytest.approx(G.greedy(P)[allowed])
    values = [solve(M, structure=Modular() + s, tol=1e-6).value for s in (chain, graph)]
    assert values[0] == pytest.approx(values[1], rel=3e-6)


def test_a_cut_alone_is_even_and_its_bound_is_zero() -> None:
    """With uniform weights the even plan costs nothing: value and bound are both 0."""
    with pytest.warns(UserWarning, match=r"ChainCut does not look at M; pass sot.Modular\(\)"):
        result = solve(np.arange(1.0, 13.0).reshape(3, 4), structure=ChainCut(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(np.ones((3, 4)), structure=ChainCut(2.0))
    assert result.converged
    assert result.value == pytest.approx(0.0, abs=1e-11)
    assert result.plan == pytest.approx(np.full((3, 4), 1 / 12))


def test_costs_below_zero_pass_through_every_method(rng: np.random.Generator) -> None:
    """K has entries of both signs and the sum 0: bounds must not lean on K >= 0."""
    M = rng.random((4, 4))
    a, b = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    structure = ChainCut(0.5)
    exact = solve(M, a, b, structure=structure, tol=1e-7)
    assert exact.worst_cost.min() < 0
    assert exact.worst_cost.sum() == pytest.approx(0.0, abs=1e-9)
    for method in ("mirror_descent", "saddle_mirror_descent", "mirror_prox"):
        result = solve(M, a, b, structure=structure, method=method, tol=0.05)
        assert result.converged
        assert result.lower_bound <= exact.value + 1e-9
        assert result.value >= exact.lower_bound - 1e-9
        assert verify(M, a, b, structure, result).holds(1e-7)


def test_cuts_add_to_groups(rng: np.random.Generator) -> None:
    M = rng.random((4, 4))
    structure = Groups([0, 0, 1, 1]) + ChainCut(0.05) + 0.1 * Coverage([0, 1, 1, 0])
    result = solve(M, structure=structure)
    assert result.converged
    assert verify(M, None, None, structure, result).holds(1e-7)


def test_more_weight_makes_smoother_plans(rng: np.random.Generator) -> None:
    M = rng.random((6, 6))
    F = ChainCut(1.0).bind(M)
    roughness = [
        F.extension(solve(M, structure=Modular() + ChainCut(w), tol=1e-6).plan)
        for w in (0.0, 0.01, 0.1, 1.0)
    ]
    assert all(y <= x + 1e-6 for x, y in itertools.pairwise(roughness))
    assert roughness[-1] == pytest.approx(0.0, abs=1e-6)


# ---------------------------------------------------------------------------------------- layers


@given(seed=st.integers(0, 10**6))
def test_colours_never_meet_in_a_point(seed: int) -> None:
    rng = np.random.default_rng(seed)
    i, k = np.nonzero(np.triu(rng.random((9, 9)) < rng.random(), 1))
    color = _edge_colors(i, k)
    for c in range(color.max(initial=-1) + 1):
        ends = np.concatenate([i[color == c], k[color == c]])
        assert np.unique(ends).size == ends.size
    degree = np.bincount(np.concatenate([i, k]), minlength=1).max(initial=0)
    assert color.max(initial=-1) + 1 <= max(2 * degree - 1, 0)


def test_layers_of_chains_and_graphs() -> None:
    M = np.ones((4, 5))
    lines = ChainCut(1.0).bind(M).layers
    assert [type(layer) for layer in lines] == [Lines, Lines]
    pairs = GraphCut([(0, 1), (1, 2), (2, 3)]).bind(M).layers
    assert len(pairs) == 2  # a path needs two colours
    assert all(isinstance(layer, Matching) for layer in pairs)
    assert pairs[1].support is not None
    assert pairs[1].support.sum() == 10  # the middle edge of the path alone
    cubes = np.ones((3, 3)) - np.eye(3)
    squares = GraphCut(cubes, cubes, neighbors="both").bind(np.ones((3, 3))).layers
    assert len(squares) == 9  # three colours on each side


def test_graphs_in_every_form_agree(rng: np.random.Generator) -> None:
    A = np.triu(rng.random((5, 5)) < 0.5, 1).astype(float)
    A += A.T
    i, k = np.nonzero(np.triu(A))
    forms = [A, csr_array(A), list(zip(i.tolist(), k.tolist(), strict=True)), A.astype(bool)]
    P = rng.random((5, 3))
    values = [GraphCut(form, weight=2.0).bind(np.ones((5, 3))).extension(P) for form in forms]
    assert values == pytest.approx([values[0]] * 4)
    expected = sum(A[s, t] * np.abs(P[s] - P[t]).sum() for s in range(5) for t in range(5))
    assert values[0] == pytest.approx(expected)


def test_weights_of_both_graphs_multiply() -> None:
    A, B = np.array([[0.0, 3.0], [3.0, 0.0]]), np.array([[0.0, 5.0], [5.0, 0.0]])
    F = GraphCut(A, B, 2.0, neighbors="both").bind(np.ones((2, 2)))
    assert F.extension(np.array([[1.0, 0.0], [0.0, 0.0]])) == pytest.approx(30.0)
    assert F.extension(np.eye(2)) == 0.0  # both pairs of neighbours agree


# ------------------------------------------------------------------------------------- bad input


def test_bad_chains_are_refused() -> None:
    with pytest.raises(ValueError, match="weight must be zero or positive"):
        ChainCut(-1.0)
    with pytest.raises(ValueError, match="Did you mean 'rows'"):
        ChainCut(1.0, along="row")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        ([(0, 1, 2)], "pairs of indices"),
        ([(0.5, 1.0)], "pairs of indices"),
        ([(0, -1)], "count from 0"),
        ([(1, 1)], "its own neighbour"),
        (np.ones((2, 3)), "must be square"),
        (np.array([[0.0, 1.0], [0.0, 0.0]]), "must be symmetric"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), "none negative"),
        (np.eye(2), "its own neighbour"),
        (np.array([[0.0, np.nan], [np.nan, 0.0]]), "finite"),
    ],
)
def test_bad_graphs_are_refused(graph: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphCut(graph)


def test_graphs_must_fit_the_points() -> None:
    with pytest.raises(ValueError, match="source_graph has at least 4 points"):
        GraphCut([(0, 3)]).bind(np.ones((3, 3)))
    with pytest.raises(ValueError, match="target_graph has"):
        GraphCut(None, np.zeros((5, 5))).bind(np.ones((3, 3)))
    with pytest.raises(ValueError, match="both None"):
        GraphCut(None, None)
    with pytest.raises(ValueError, match="needs source_graph and target_graph"):
        GraphCut([(0, 1)], neighbors="both")


def test_repr() -> None:
    assert repr(ChainCut(0.5, along="rows")) == "ChainCut(0.5, along='rows')"
    assert repr(GraphCut([(0, 1)], [(0, 1), (1, 2)], 0.5)) == (
        "GraphCut(<1 edges>, <2 edges>, weight=0.5)"
    )
