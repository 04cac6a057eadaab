"""The compiled parts of the Newton methods against plain linear algebra."""

import itertools

import numpy as np
import pytest

import structot as sot
from structot.blocks.hessian import GroupedHessian, add_pools
from structot.problem import Problem
from structot.solvers.newton import kernels
from structot.solvers.newton.dual import ProximalDual
from structot.transport import c_transform, round_plan

c = sot.concave
pytestmark = pytest.mark.kernels


@pytest.fixture(params=["groups", "own targets", "own sources", "with linear part", "coverage"])
def dual(request):
    """φ around a random plan, evaluated somewhere."""
    rng = np.random.default_rng(3)
    M = rng.random((6, 5)) * 4
    M[1, 2] = 0.0
    rows, cols = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 1])
    structure = {
        "groups": sot.Groups(rows, cols, c.Sqrt(), units="cost"),
        "own targets": sot.Groups(rows, None, c.ThresholdSqrt(0.5), units="cost"),
        "own sources": sot.Groups(None, cols, c.Log(1.0), units="cost"),
        "with linear part": 0.5 * sot.Modular()
        + sot.Groups(rows, cols, c.Truncation(2.0), units="cost"),
        "coverage": sot.Modular() + sot.Coverage(rows, cols, weights=0.4),
    }[request.param]
    problem = Problem.of(M, structure=structure)
    inner = ProximalDual(problem)
    inner.problem = problem
    inner.centre(np.outer(problem.a, problem.b), 3.0)
    inner.point = rng.normal(0.9, 0.3, 6), rng.normal(0.9, 0.3, 5)
    inner.value = inner.evaluate(*inner.point)
    assert (inner.X > 0).sum() > 5
    return inner


def counts(inner):
    """The vectors c_B and weights of the pools, the slow way: edges of a block that share X > 0."""
    F, s = inner.layer, inner.pools
    rows = []
    for b in range(F.start.size - 1):
        low = 0
        for t in range(s.n_pools[b]):
            high = s.end[F.start[b] + t]
            edges = F.start[b] + s.order[F.start[b] :][low:high]
            assert np.ptp(s.X[edges]) == 0
            one = np.zeros(inner.n + inner.m)
            np.add.at(one, F.row[edges], 1)
            np.add.at(one, inner.n + F.col[edges], 1)
            rows.append((one, F.w[edges].sum()))
            low = high
    return rows


def matrix_of(H):
    """The symmetric matrix behind the parts of a GroupedHessian."""
    n, parts = H.n, H.parts
    size = parts.place.size
    out = np.zeros((size, size))
    kept = parts.run >= parts.groups
    assert (kept[n:] == (not H.flipped)).all()
    for i, j in itertools.product(range(size), repeat=2):
        if parts.run[i] == parts.run[j] and parts.place[i] <= parts.place[j]:
            out[i, j] = out[j, i] = parts.squares[parts.line[i] + parts.place[j]]
        elif not kept[i] and kept[j]:
            out[i, j] = out[j, i] = parts.C[parts.place[i], parts.place[j]]
    return out


def hessian(inner, fill):
    """The matrix that ``fill`` adds to a GroupedHessian; what it returns goes on the diagonal."""
    H = GroupedHessian(inner.layer)
    H.clear()
    diagonal = fill(H.parts)
    if diagonal is not None:
        H.add_diagonal(diagonal)
    return matrix_of(H)


def of_pools(inner, G, theta, turns=2):
    def fill(parts):
        for turn in range(turns):
            add_pools(turn, turns, G, theta, parts)

    return hessian(inner, fill)


def of_loose(inner, share, used=None):
    F, size = inner.layer, (inner.n, inner.m)
    blocks = F.start.size - 1
    used = np.ones(blocks, bool) if used is None else used

    def fill(parts):
        return sum(
            kernels.add_loose(b, b + 1, F.edges, used, share, inner.rho, parts, *size)
            for b in range(blocks)
        )

    return hessian(inner, fill)


def loosened(inner, reach):
    """The share to which every edge is loose; nan in blocks that are not in use."""
    F, K = inner.layer, np.full(inner.layer.w.size, np.nan)
    prox = inner.Y, inner.C, *inner.point, inner.rho
    kernels.subgradient(0, F.start.size - 1, F.edges, inner.pools, prox, K)
    F.loosen_edges(K, inner.pools, reach)
    return K


def test_phi_is_the_minimum_it_claims(dual):
    """φ = f(X) + <C, X> + ρ/2 Σ w (X - Y)² - <z, X> + a·p + b·q at its X, and no less nearby."""
    F, problem = dual.layer, dual.problem
    p, q = dual.point

    def lagrangian(x):
        P = F.scatter(x)
        term = 0.5 * dual.rho * (F.w * (x - dual.Y) ** 2).sum()
        price = problem.function.extension(P) - (np.add.outer(p, q) * P).sum()
        return price + term + problem.a @ p + problem.b @ q

    assert dual.value.phi == pytest.approx(lagrangian(dual.X), rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = np.maximum(dual.X + 0.02 * rng.normal(size=dual.X.size), 0)
        assert lagrangian(other) >= dual.value.phi - 1e-12


def test_gradient_against_finite_differences(dual):
    p, q = dual.point
    h = 1e-6
    for k in range(11):
        step = np.zeros(11)
        step[k] = h
        up = dual.evaluate(p + step[:6], q + step[6:]).phi
        down = dual.evaluate(p - step[:6], q - step[6:]).phi
        assert (up - down) / (2 * h) == pytest.approx(dual.value.gradient[k], abs=1e-6)


def test_pool_matrix_and_dense_hessian(dual):
    """Pools of several edges, and those of one, which are as loose as edges can be."""
    expected = counts(dual)
    several = [(one, weight) for one, weight in expected if one.sum() > 2]
    G = dual.pool_matrix()
    assert G.sparse(11).toarray() == pytest.approx(np.array([one for one, _ in several]))
    assert G.weight == pytest.approx([weight for _, weight in several])
    full = sum(np.outer(one, one) / (dual.rho * weight) for one, weight in expected)
    share, used = loosened(dual, 1e-9), dual.pools.n_pools > 0
    singles = of_loose(dual, 1.0 * (share == 1.0), used)
    for turns in (1, 2, 3):
        assert of_pools(dual, G, dual._theta(G), turns) + singles == pytest.approx(full)


def test_singles_dominate_pools(dual):
    """H of merged pools <= H of edges that move alone, by Cauchy and Schwarz."""
    G, F = dual.pool_matrix(), dual.layer
    pools = of_pools(dual, G, dual._theta(G))
    active, everything = of_loose(dual, 1.0 * (dual.X > 0)), of_loose(dual, np.ones(F.w.size))
    for low, high in itertools.pairwise((pools, active, everything)):
        assert np.linalg.eigvalsh(high - low).min() > -1e-12
    full = np.zeros((11, 11))
    for i, j, x in zip(F.row, F.col, 1 / (dual.rho * F.w), strict=True):
        one = np.zeros(11)
        one[[i, 6 + j]] = 1.0
        full += x * np.outer(one, one)
    assert everything == pytest.approx(full)
    assert np.diag(full) == pytest.approx(dual.full_diagonal / dual.rho)


def test_a_direction_solves_its_model(dual):
    G, used, reach = dual.pool_matrix(), dual.pools.n_pools > 0, 0.1 * dual.price
    H = of_pools(dual, G, dual._theta(G)) + of_loose(dual, loosened(dual, reach), used)
    background = dual._background * 0.1 * np.diag(dual.full_diagonal) / dual.rho
    d = dual.direction(G, dual.value, reach)
    assert (H + background) @ d == pytest.approx(dual.value.gradient, abs=1e-8)
    assert dual._times(G, d) == pytest.approx(H @ d)


@pytest.mark.parametrize("groups", [(2, 2), (3, 4), (40, 1), (1, 40), (40, 40), (7, 12)])
def test_solving_by_groups_and_chunks(groups):
    """Several chunks, some groups and chunks apart, points in any order: one linear system."""
    rng = np.random.default_rng(0)
    n, m = 160, 150
    labels = [rng.integers(0, k, size) for k, size in zip(groups, (n, m), strict=True)]
    structure = sot.Groups(*labels, c.Sqrt(), units="cost")
    (F,) = Problem.of(rng.random((n, m)), structure=structure).layers
    H = GroupedHessian(F)
    used = rng.random(F.start.size - 1) < 0.2
    used[0] = True
    share = np.where(F.col % 3 == 0, 1.0, 0.0)  # most columns of a used block are not coupled

    def fill():
        H.clear(used, F.edges)
        sums = kernels.add_loose(0, used.size, F.edges, used, share, 1.0, H.parts, n, m)
        H.add_diagonal(1.5 * sums + 1.0)

    fill()
    matrix, x = matrix_of(H), rng.normal(size=n + m)
    assert np.count_nonzero(matrix) < 0.6 * matrix.size
    solution = np.linalg.solve(matrix, x)
    assert H.solve(x) == pytest.approx(solution, rel=1e-9, abs=1e-12)
    fill()
    # Half the digits, of a matrix whose condition is below 1e4.
    assert H.solve(x, single=True) == pytest.approx(solution, abs=1e-2 * np.abs(solution).max())
    # What was saved is there again, and edges that move alone couple all points.
    H.clear()
    H.add_diagonal(np.full(n + m, 300.0))
    saved, theta = H.saved(), rng.random((n, m))
    for scale in (1.0, 2.0):
        H.restore(saved)
        H.couple(scale * theta)
        whole = np.diag(np.full(n + m, 300.0))
        whole[:n, n:], whole[n:, :n] = scale * theta, scale * theta.T
        assert matrix_of(H) == pytest.approx(whole)
        assert H.solve(x) == pytest.approx(np.linalg.solve(whole, x), rel=1e-9, abs=1e-12)


def test_keep_least_keeps_the_smallest_values_of_every_point():
    rng = np.random.default_rng(0)
    point, value = rng.integers(0, 4, 60), rng.normal(size=60).round(1)
    least, kept = np.full((5, 3), np.inf), np.full((5, 3), -1)
    for part in (slice(0, 20), slice(20, 60)):  # the lists go on from call to call
        kernels.keep_least(point[part], value[part], np.arange(60)[part], least, kept)
    for i in range(4):
        assert least[i] == pytest.approx(np.sort(value[point == i])[:3])
        assert value[kept[i]] == pytest.approx(least[i])
        assert (point[kept[i]] == i).all()
    assert (kept[4] == -1).all()  # a point without values


@pytest.mark.parametrize("reach", [1e-3, 1.0])
def test_repair_misses_less(dual, reach):
    """Exactly what new edges would have to take, where nothing is cut."""
    F = dual.layer
    G = dual.pool_matrix()
    d = dual.direction(G, dual.value, reach * dual.price)
    new = np.where(dual.X > 0, 0.0, loosened(dual, reach * dual.price)) / (dual.rho * F.w)
    new *= d[F.row] + d[dual.n + F.col]
    x = F.gather(dual.repaired(dual.value, reach * dual.price))
    assert (x >= 0).all()
    assert (x[dual.X == 0] == 0).all()
    if (x[dual.X > 0] > 0).all():
        P = F.scatter(x + np.nan_to_num(new))
        left = np.concatenate([dual.a - P.sum(1), dual.b - P.sum(0)])
        background = dual._background * min(reach, 1.0) * dual.full_diagonal / dual.rho
        assert left == pytest.approx(background * d, abs=1e-6)


def test_bound_potentials_are_a_c_transform(dual):
    F = dual.layer
    p, q = dual.point
    K = np.add.outer(p, q) + dual.rho * F.scatter(F.w * (dual.Y - dual.X))
    u, v = kernels.bound_potentials(F.edges, dual._busy, dual.Y, dual.X, p, q, dual.rho)
    expected = c_transform(K, p)
    assert u == pytest.approx(expected[0], abs=1e-12)
    assert v == pytest.approx(expected[1], abs=1e-12)


def test_idle_blocks_are_those_where_nothing_is_worth_its_least_price(dual):
    """With low multipliers and nothing at the centre most blocks are not looked at: X = 0 there."""
    F, (p, q) = dual.layer, dual.point
    dual.centre(np.zeros(F.shape), 3.0)
    for shift in (0.0, 0.5, 0.8, 3.0):
        dual.evaluate(p - shift, q)
        z = (p - shift)[F.row] + q[F.col] - (dual.C if dual.C.size else 0.0)
        expected = F.prox_edges(z / (dual.rho * F.w), dual.rho, 0.0)
        assert dual.X == pytest.approx(expected.X, abs=1e-14)
        assert (dual.pools.n_pools == expected.n_pools).all()
    assert not dual._busy.any()


def test_rests_fill_edges_in_use_first(dual):
    P, a, b = dual.layer.scatter(dual.X), dual.a, dual.b
    P *= np.minimum(1.0, a / np.maximum(P.sum(1), 1e-300))[:, None]
    P *= np.minimum(1.0, b / np.maximum(P.sum(0), 1e-300))
    before = P.copy()
    r, s = np.maximum(a - P.sum(1), 0.0), np.maximum(b - P.sum(0), 0.0)
    dual.fill_rests(P, r, s, everywhere=False)
    assert (P >= before).all()
    assert (P[before == 0] == 0).all()
    assert (np.outer(r > 1e-15, s > 1e-15) & (before > 0)).sum() == 0  # nothing more fits there
    dual.fill_rests(P, r, s, everywhere=True)
    assert P.sum(1) == pytest.approx(a, abs=1e-14)
    assert P.sum(0) == pytest.approx(b, abs=1e-14)


@pytest.mark.parametrize("reg", [0.0, 0.2])
@pytest.mark.parametrize("coverage", [False, True])
def test_tiny_problems_from_end_to_end(reg, coverage):
    rng = np.random.default_rng(1)
    M = rng.random((4, 3))
    rows, cols = np.array([0, 0, 1, 1]), np.array([0, 1, 1])
    structure = sot.Groups(rows, cols, c.Sqrt(), units="cost")
    if coverage:
        structure = sot.Modular() + sot.Coverage(rows, cols, weights=0.3)
    result = sot.solve(M, structure=structure, reg=reg, tol=1e-7)
    assert result.converged
    assert sot.certificate.verify(M, None, None, structure, result, reg=reg).holds()


def test_rest_goes_around_forbidden_pairs():
    allowed = np.array([[True, True, False], [True, False, False], [False, True, True]])
    a, b = np.array([0.4, 0.2, 0.4]), np.array([0.3, 0.4, 0.3])
    start = np.array([[0.3, 0.1, 0.0], [0.0, 0.0, 0.0], [0.0, 0.1, 0.3]])
    P = round_plan(start, a, b, allowed=allowed)
    assert P.sum(1) == pytest.approx(a, abs=1e-15)
    assert P.sum(0) == pytest.approx(b, abs=1e-15)
    assert (P[~allowed] == 0).all()
