"""Relaxed marginals: the sides themselves, and the answers against POT, HiGHS and brute force."""

import warnings

import numpy as np
import pytest
from brute_force import members, tabulate
from problems import clusters, moved
from scipy.optimize import linprog
from scipy.sparse import coo_array, eye_array, hstack, vstack

import structot as sot
from structot.marginals import KL, TV, Hard, Partial, relaxed_emd
from structot.problem import Problem
from structot.solvers.newton.held import held_direction
from structot.solvers.solve import make_solver

c = sot.concave

# What is relaxed, at costs near 1 and totals of 1 and 1.3.
KINDS = {
    "KL": {"unbalanced": 0.3},
    "KL, small": {"unbalanced": 0.02},
    "KL source": {"unbalanced": (0.2, None)},
    "KL target": {"unbalanced": (None, 0.4)},
    "TV": {"unbalanced": 0.4, "unbalanced_type": "TV"},
    "TV source": {"unbalanced": (0.6, None), "unbalanced_type": "TV"},
    "TV uneven": {"unbalanced": (0.2, 0.9), "unbalanced_type": "TV"},
    "partial": {"mass": 0.6},
    "all of the source": {"mass": 1.0},
}
LINEAR = [name for name in KINDS if not name.startswith("KL")]


def data(n=7, m=6, seed=0):
    """Costs with a zero, weights with totals 1 and 1.3 and a point without weight on each side."""
    rng = np.random.default_rng(seed)
    M = moved(rng.random((n, m)))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    a[1] = b[2] = 0.0
    return M, a / a.sum(), 1.3 * b / b.sum(), rng.integers(0, 3, n), rng.integers(0, 2, m)


def structures(ys, yt):
    return {
        "plain": None,
        "pieces": sot.Groups(ys, yt, c.Truncation(0.4)),
        "smooth": sot.Groups(ys, yt, c.Sqrt(), units="cost"),
        "own": sot.Groups(ys),
        "charge": sot.Modular() + sot.Coverage(ys, weights=0.05),
        "overlapping": sot.Groups([[0, 1, 2], [2, 3, 4], [5, 6]], yt),
        "chain": sot.Modular() + sot.ChainCut(0.05),
        "rank": sot.Modular() + 0.2 * sot.Rank(np.eye(7)[:, :3], np.eye(6)[:, :2]),
    }


# -- one side --------------------------------------------------------------------------------------


def sides(seed=0):
    rng = np.random.default_rng(seed)
    a = rng.random(5) + 0.1
    return a, [Hard(a), KL(a, tau=0.7), TV(a, tau=0.7), Partial(a, mass=0.6 * a.sum())]


def price(side, x):
    """D(x), +inf where x is not allowed."""
    if isinstance(side, Hard) and not np.array_equal(x, side.weights):
        return np.inf
    if isinstance(side, Partial):
        inside = (x <= side.weights + 1e-12).all() and abs(x.sum() - side.mass) < 1e-12
        return 0.0 if inside else np.inf
    return side.penalty(x)[0]


@pytest.mark.parametrize("which", range(4))
def test_the_dual_term_is_the_least_price(which):
    """D°(u) <= D(x) + x·u, with equality at what the points want."""
    a, every = sides()
    side, rng = every[which], np.random.default_rng(1)
    for _ in range(50):
        u = side.clip(rng.normal(size=5))
        dual = side.dual(u).sum()
        x = side.prox(rng.random(5) * 2, 1.0)
        assert dual <= price(side, x) + x @ u + 1e-12
        x = side.wanted(u, x)
        if isinstance(side, Partial):  # the cheapest points first
            order = np.argsort(u)
            x[order] = np.diff(np.minimum(np.cumsum(a[order]), side.mass), prepend=0.0)
        assert dual == pytest.approx(price(side, x) + x @ u, abs=1e-6)


def test_gradient_and_curvature_of_kl_are_derivatives():
    a, every = sides()
    side, u, h = every[1], np.linspace(-1, 2, 5), 1e-5
    up, down = side.dual(u + h), side.dual(u - h)
    np.testing.assert_allclose(side.wanted(u, a), (up - down) / (2 * h), rtol=1e-8)
    change = side.wanted(u - h, a) - side.wanted(u + h, a)
    np.testing.assert_allclose(side.curvature(u), change / (2 * h), rtol=1e-8)


@pytest.mark.parametrize("which", range(4))
def test_the_prox_is_best(which):
    _, every = sides()
    side, rng = every[which], np.random.default_rng(2)
    weight = rng.random(5) + 0.5
    for _ in range(30):
        v = 2 * rng.normal(size=5)
        x = side.prox(v, weight)
        least = price(side, x) + 0.5 * weight @ (x - v) ** 2
        assert (x >= 0).all()
        for _ in range(20):
            y = side.prox(x + 0.1 * rng.normal(size=5), 1.0)  # another point of the domain
            assert least <= price(side, y) + 0.5 * weight @ (y - v) ** 2 + 1e-9


@pytest.mark.parametrize("which", range(4))
def test_half_a_step_of_sinkhorn_is_best(which):
    """u maximises D°(u) - reg Σ exp(u/reg + s)."""
    _, every = sides()
    side, rng, reg = every[which], np.random.default_rng(3), 0.3

    def value(u):
        return side.dual(u).sum() - reg * np.exp(u / reg + sums).sum()

    for _ in range(20):
        sums = rng.normal(size=5)
        u = side.respond(sums, reg)
        for _ in range(20):
            assert value(u) >= value(side.clip(u + 0.1 * rng.normal(size=5))) - 1e-12


def test_tv_has_no_dual_value_below_its_price():
    _, every = sides()
    assert every[2].dual(np.full(5, -0.71)).sum() == -np.inf
    assert np.isfinite(every[2].dual(np.full(5, -0.7))).all()


# -- both sides ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_shift_is_best(kind):
    M, a, b, *_ = data()
    marginals, rng = Problem.of(M, a, b, **KINDS[kind]).marginals, np.random.default_rng(0)
    for _ in range(20):
        u, v = marginals.clip(0.3 * rng.normal(size=7), 0.3 * rng.normal(size=6))
        best = marginals.dual(*marginals.shifted(u, v)).sum()
        for s in (0.0, 1e-3, -1e-3, 0.1, -0.1):
            with np.errstate(invalid="ignore"):
                other = marginals.dual(u + s, v - s).sum()
            assert not other > best + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_fitted_potentials_are_below_the_cost_and_in_the_domain(kind):
    M, a, b, *_ = data()
    marginals = Problem.of(M, a, b, **KINDS[kind]).marginals
    for seed in range(10):
        u, v = marginals.fitted(M, np.random.default_rng(seed).normal(size=7))
        assert (np.add.outer(u, v) <= M + 1e-12).all()
        assert np.isfinite(marginals.dual(u, v)).all()


@pytest.mark.parametrize("forbid", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_any_matrix_becomes_a_plan(kind, forbid):
    M, a, b, *_ = data()
    problem = Problem.of(M, a, b, **KINDS[kind])
    allowed = np.random.default_rng(1).random(M.shape) < 0.7 if forbid else None
    if allowed is not None:
        allowed[0], allowed[:, 0] = True, True  # so that there is a plan
    for seed in range(5):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=7), rng.normal(size=6)
        for potentials in (None, z):
            P = problem.marginals.feasible(
                0.1 * rng.random(M.shape) * (rng.random(M.shape) < 0.5), potentials, allowed
            )
            assert (P >= 0).all()
            assert np.isfinite(problem.marginals.penalty(P)[0])
            assert allowed is None or not P[~allowed].any()
            for rest in problem.marginals.missed(P):
                assert np.abs(rest).sum() <= 1e-12


@pytest.mark.parametrize("kind", LINEAR)
def test_exact_transport_with_dummy_points_is_the_linear_program(kind):
    for seed in range(5):
        M, a, b, *_ = data(seed=seed)
        marginals = Problem.of(M, a, b, **KINDS[kind]).marginals
        answer = relaxed_emd(M, marginals)
        assert answer.value == pytest.approx(highs(M, a, b, **KINDS[kind]), rel=1e-9, abs=1e-12)
        found = float((answer.plan * M).sum()) + marginals.penalty(answer.plan)[0]
        assert found == pytest.approx(answer.value, rel=1e-9, abs=1e-12)


def highs(M, a, b, unbalanced=(None, None), unbalanced_type="TV", mass=None):
    """min <P, M> with slacks: made +, and left -, at the price τ; or P1 <= a and ΣP = mass."""
    n, m = M.shape
    pairs = np.arange(n * m)
    ends = np.concatenate([pairs // m, n + pairs % m]), np.tile(pairs, 2)
    sums = coo_array((np.ones(2 * n * m), ends), shape=(n + m, n * m))
    if mass is not None:
        rows = vstack([hstack([sums, eye_array(n + m)]), np.repeat([1.0, 0.0], [n * m, n + m])])
        cost = np.concatenate([M.ravel(), np.zeros(n + m)])
        answer = linprog(cost, A_eq=rows, b_eq=np.concatenate([a, b, [mass]]))
    else:
        both = unbalanced if isinstance(unbalanced, tuple) else (unbalanced, unbalanced)
        tau = np.repeat([1e4 if x is None else x for x in both], [n, m])
        rows = hstack([sums, eye_array(n + m), -eye_array(n + m)])
        cost = np.concatenate([M.ravel(), tau, tau])
        answer = linprog(cost, A_eq=rows, b_eq=np.concatenate([a, b]))
    assert answer.status == 0
    return float(answer.fun)


# -- plain transport: POT --------------------------------------------------------------------------


@pytest.mark.parametrize("tau", [0.05, 0.5, 5.0])
def test_kl_agrees_with_pot(tau):
    ot = pytest.importorskip("ot")
    M, a, b, *_ = data()
    a, b = a + 0.01, b + 0.01  # POT divides by weights
    result = sot.solve(M, a, b, unbalanced=tau, tol=1e-9)
    P = ot.unbalanced.lbfgsb_unbalanced(
        a, b, M, 1e-12, tau, reg_div="kl", numItermax=10000, stopThr=1e-15
    )

    def objective(P):
        prices = (
            np.sum(x * np.log(np.maximum(x, 1e-300) / w) - x + w)
            for x, w in ((P.sum(1), a), (P.sum(0), b))
        )
        return float((P * M).sum()) + tau * sum(prices)

    assert result.value == pytest.approx(objective(result.plan), rel=1e-12)
    assert result.value <= objective(P) * (1 + 1e-9)
    assert result.value == pytest.approx(objective(P), rel=1e-6)


@pytest.mark.parametrize(("reg", "tau"), [(0.1, 0.5), (0.02, 0.05), (0.05, 5.0)])
def test_entropic_kl_agrees_with_pots_sinkhorn(reg, tau):
    ot = pytest.importorskip("ot")
    M, a, b, *_ = data()
    a, b = a + 0.01, b + 0.01
    result = sot.solve(M, a, b, reg=reg, unbalanced=tau, tol=1e-10)
    r = np.outer(a, b) / np.sqrt(a.sum() * b.sum())
    P = ot.unbalanced.sinkhorn_unbalanced(
        a, b, M, reg, tau, c=r, reg_type="kl", numItermax=100_000, stopThr=1e-15
    )
    problem = Problem.of(M, a, b, reg=reg, unbalanced=tau)
    assert result.value == pytest.approx(problem.objective(P), rel=1e-6)
    np.testing.assert_allclose(result.plan, P, atol=1e-5)


@pytest.mark.parametrize("mass", [0.1, 0.5, 1.0])
def test_partial_transport_agrees_with_pot(mass):
    ot = pytest.importorskip("ot")
    M, a, b, *_ = data()
    P = ot.partial.partial_wasserstein(a, b, M, m=mass)
    assert sot.solve(M, a, b, mass=mass).value == pytest.approx(float((P * M).sum()), rel=1e-6)


# -- with structure: brute force -------------------------------------------------------------------


def brute_force(M, a, b, structure, unbalanced=None, unbalanced_type="KL", mass=None):
    """The linear program over all sets of pairs, slacks for TV and partial, tangents for KL."""
    F = (sot.Modular() if structure is None else structure).bind(M)
    table = tabulate(F.value, np.isfinite(M))
    inside = members(table.edges.size).T.astype(float)
    row, col = np.unravel_index(table.edges, M.shape)
    n, m = M.shape
    sums = np.vstack([inside[row == i].sum(axis=0) for i in range(n)])
    sums = np.vstack([sums, *(inside[col == j].sum(axis=0) for j in range(m))])
    weights, sets = np.concatenate([a, b]), sums.shape[1]
    if mass is not None:
        A = np.vstack([np.hstack([sums, np.eye(n + m)]), np.append(inside.sum(0), np.zeros(n + m))])
        cost = np.append(table.values, np.zeros(n + m))
        return linprog(cost, A_eq=A, b_eq=np.append(weights, mass)).fun
    both = unbalanced if isinstance(unbalanced, tuple) else (unbalanced, unbalanced)
    hard = np.repeat([x is None for x in both], [n, m])
    tau = np.repeat([0.0 if x is None else x for x in both], [n, m])
    if unbalanced_type == "TV":
        slack = np.eye(n + m)[:, ~hard]
        cost = np.concatenate([table.values, tau[~hard], tau[~hard]])
        return linprog(cost, A_eq=np.hstack([sums, slack, -slack]), b_eq=weights).fun
    # Σ λ F + Σ t with t_i above tangents of τ (x log(x/w) - x + w), more of them where x is.
    soft = np.flatnonzero(~hard)
    x = weights[soft].copy()
    A, right = [], []
    for _ in range(60):
        slope = tau[soft] * np.log(x / weights[soft])
        A.append(np.hstack([slope[:, None] * sums[soft], -np.eye(soft.size)]))
        right.append(tau[soft] * (x - weights[soft]))
        answer = linprog(
            np.append(table.values, np.ones(soft.size)),
            A_ub=np.vstack(A),
            b_ub=np.concatenate(right),
            A_eq=np.hstack([sums[hard], np.zeros((hard.sum(), soft.size))]) if hard.any() else None,
            b_eq=weights[hard] if hard.any() else None,
            bounds=[(0, None)] * (sets + soft.size),
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert answer.status == 0
        x = np.maximum(sums[soft] @ answer.x[:sets], 1e-12 * weights[soft])
        true = tau[soft] @ (x * np.log(x / weights[soft]) - x + weights[soft])
        if table.values @ answer.x[:sets] + true - answer.fun <= 1e-9 * abs(answer.fun):
            break
    return answer.fun


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["smooth", "own", "charge", "chain"])
def test_structured_answers_agree_with_brute_force(kind, name):
    rng = np.random.default_rng(4)
    M, a, b = moved(rng.random((3, 3))), rng.dirichlet(np.ones(3)), 1.3 * rng.dirichlet(np.ones(3))
    structure = structures(np.array([0, 0, 1]), np.array([0, 1, 1]))[name]
    result = sot.solve(M, a, b, structure=structure, tol=1e-8, **KINDS[kind])
    assert result.converged
    assert result.verify().holds()
    best = brute_force(M, a, b, structure, **KINDS[kind])
    assert result.value == pytest.approx(best, rel=1e-6)


METHODS = ("newton", "splitting", "linear_program", "exact", "entropic")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", structures(np.zeros(7, int), np.zeros(6, int)))
def test_methods_agree_and_every_proof_holds(kind, name):
    M, a, b, ys, yt = data()
    structure = structures(ys, yt)[name]
    found = {}
    for method in ("auto", *METHODS[:-1]):
        try:
            tol = 1e-4 if method == "splitting" else 1e-6
            found[method] = sot.solve(
                M, a, b, structure=structure, method=method, tol=tol, max_iter=20_000, **KINDS[kind]
            )
        except ValueError as error:
            if "does not fit" not in str(error):
                raise
    assert len(found) >= 2
    least = min(result.value for result in found.values())
    for result in found.values():
        assert result.converged
        assert result.verify().holds()
        assert result.lower_bound <= least * (1 + 1e-9)
        assert result.value <= least * (1 + 2e-4)


@pytest.mark.parametrize("reg", [0.3, 0.02])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["plain", "smooth", "own", "charge"])
def test_entropic_problems_are_certified(kind, name, reg):
    M, a, b, ys, yt = data()
    result = sot.solve(M, a, b, structure=structures(ys, yt)[name], reg=reg, **KINDS[kind])
    assert result.converged
    assert result.verify().holds()


def test_a_direction_of_ascent_where_newtons_leads_out_of_the_domain_everywhere():
    """Two sources at their upper ends: the second drags the first one along, and both must stay."""
    problem = Problem.of(
        np.ones((2, 1)), [1.0, 1.0], [2.0], unbalanced=(0.2, 0.9), unbalanced_type="TV"
    )
    marginals = problem.marginals
    H = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 2.0]])
    D, g, p, q = np.full(3, 0.1), np.array([-1.0, 5.0, 0.0]), np.full(2, 0.2), np.zeros(1)
    assert (np.linalg.solve(H + np.diag(D), g)[:2] > 0).all()
    s = held_direction(
        lambda X, D: np.linalg.solve(H + np.diag(D), X),
        lambda x: H @ x,
        *(g, D, marginals, (p, q), np.zeros(3, bool)),
        largest=2.0,
    )
    end = np.concatenate(marginals.clip(p + s[:2], q + s[2:], np.zeros(3, bool)))
    assert g @ (end - np.concatenate([p, q])) > 0.0


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["KL", "TV"])
@pytest.mark.parametrize("name", ["plain", "smooth", "charge"])
def test_a_high_price_gives_the_balanced_value(name, kind, reg):
    M, a, b, ys, yt = data()
    options = {"structure": structures(ys, yt)[name], "reg": reg, "tol": 1e-6}
    balanced = sot.solve(M, a, b / b.sum(), **options)
    high = {"unbalanced": 1e6 * M.mean(), "unbalanced_type": kind}
    assert sot.solve(M, a, b / b.sum(), **options, **high).value == pytest.approx(
        balanced.value, rel=1e-5
    )


def test_the_whole_mass_gives_the_balanced_plan_and_no_mass_the_zero_plan():
    M, a, b, ys, yt = data()
    b /= b.sum()
    for name, structure in structures(ys, yt).items():
        options = {"structure": structure, "max_iter": 300}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(
                sot.solve(M, a, b, mass=1.0, **options).plan, sot.solve(M, a, b, **options).plan
            )
        for reg in (0.0, 0.1) if name in ("plain", "smooth", "charge") else (0.0,):
            nothing = sot.solve(M, a, b, mass=0, structure=structure, reg=reg)
            assert nothing.converged
            assert not nothing.plan.any()
            assert nothing.verify().holds()


def test_what_is_refused_says_how_to_repair_it():
    M, a, b, *_ = data()
    for options, words in (
        ({}, "unbalanced"),
        ({"unbalanced": (None, np.inf)}, "unbalanced"),
        ({"unbalanced": 0.0}, "positive"),
        ({"unbalanced": (1, 2, 3)}, "source, target"),
        ({"unbalanced": 1.0, "mass": 0.5}, "not both"),
        ({"unbalanced": 1.0, "unbalanced_type": "L2"}, "'KL', 'TV'"),
        ({"mass": 1.2}, "at most"),
        ({"mass": -1.0}, "mass"),
        ({"unbalanced": 1.0, "method": "mirror_prox"}, "hold exactly"),
        ({"unbalanced": 1.0, "method": "exact"}, "KL"),
        ({"unbalanced": 1.0, "method": "linear_program"}, "KL"),
    ):
        with pytest.raises(ValueError, match=words):
            sot.solve(M, a, b, **options)


def test_points_without_any_pair_are_left_where_they_are():
    M, a, b, ys, yt = data()
    M[0], M[:, 1] = np.inf, np.inf
    for kind in ("KL", "TV", "partial", "TV uneven"):
        for reg in (0.0, 0.05):
            for name in ("plain", "own", "charge"):
                structure = structures(ys, yt)[name]
                options = {"mass": 0.2} if kind == "partial" else KINDS[kind]
                result = sot.solve(M, a, b, structure=structure, reg=reg, **options)
                assert result.converged
                assert result.verify().holds()
                assert result.marginals[0][0] == 0
    with pytest.raises(ValueError, match="row 0"):
        sot.solve(M, a, b, unbalanced=(None, 1.0))


# -- the result ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_result_knows_its_problem(kind, tmp_path):
    M, a, b, ys, yt = data()
    result = sot.solve(M, a, b, structure=sot.Groups(ys, yt), **KINDS[kind])
    sent, received = result.marginals
    np.testing.assert_allclose(result.left[0], a - sent)
    np.testing.assert_allclose(result.left[1], b - received)
    assert "mass moved" in repr(result)
    marginals = Problem.of(M, a, b, **KINDS[kind]).marginals
    assert marginals.dual(*result.potentials).sum() == pytest.approx(result.lower_bound, rel=1e-9)
    result.save(tmp_path / "answer")
    loaded = sot.Result.load(tmp_path / "answer")
    assert (loaded.unbalanced, loaded.mass) == (result.unbalanced, result.mass)
    assert loaded.verify(sot.Groups(ys, yt)).holds()
    again = sot.solve(M, a, b, structure=sot.Groups(ys, yt), init=result, **KINDS[kind])
    assert again.converged
    assert again.value == pytest.approx(result.value, rel=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_sees_a_lie(kind):
    from dataclasses import replace

    M, a, b, ys, yt = data()
    result = sot.solve(M, a, b, structure=sot.Groups(ys, yt), **KINDS[kind])
    u, v = result.potentials
    assert result.verify().holds()
    for lie in (
        {"value": 0.999 * result.value, "gap": 0.0},
        {"lower_bound": 1.001 * result.value},
        {"potentials": (u + 0.01, v)},
        {"unbalanced": (0.1, 0.1), "unbalanced_type": "TV", "mass": None},
    ):
        assert not replace(result, **lie).verify().holds(), lie
    if "KL" not in kind and "TV" not in kind:
        assert not replace(result, plan=1.01 * result.plan).verify().holds()


def test_paths_go_over_prices_and_masses():
    M, a, b, ys, yt = data()
    groups = sot.Groups(ys, yt)
    prices = sot.solve_path(M, a, b, structure=groups, unbalanced=[0.05, 0.5, (1.0, 2.0)])
    assert prices.converged
    assert prices.name == "unbalanced"
    assert prices.dials.tolist() == [0.05, 0.5, 1.0]
    assert np.all(np.diff(prices.table()["value"]) > 0)
    masses = sot.solve_path(M, a, b, structure=groups, mass=[0.0, 0.5, 1.0])
    assert masses.converged
    assert [round(float(r.plan.sum()), 12) for r in masses] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="exactly one"):
        sot.solve_path(M, a, b, reg=[0.1], unbalanced=[1.0])


def test_many_problems_may_be_relaxed():
    M, a, b, *_ = data()
    results = sot.solve_batch([M, 2 * M], [a, a], [b, b], unbalanced=0.3)
    for cost, result in zip((M, 2 * M), results, strict=True):
        alone = sot.solve(cost, a, b, unbalanced=0.3)
        assert result.value == pytest.approx(alone.value, rel=2e-4)


# -- units -----------------------------------------------------------------------------------------


def accepted():
    M, a, b, ys, yt = data()
    for name in ("plain", "smooth", "charge", "overlapping"):
        for kind in ("KL", "KL source", "TV uneven", "partial"):
            for reg in (0.0, 0.05):
                for method in METHODS:
                    structure = structures(ys, yt)[name]
                    problem = Problem.of(M, a, b, structure=structure, reg=reg, **KINDS[kind])
                    solver = make_solver(method)
                    if solver.refusal(problem) is None:
                        yield pytest.param(name, kind, reg, method)


@pytest.mark.parametrize(("name", "kind", "reg", "method"), [*accepted()])
def test_factors_of_two_change_no_bit(name, kind, reg, method):
    M, a, b, ys, yt = data()

    def solve(cost, mass):
        blocks = {"smooth": sot.Groups(ys, yt, c.Sqrt(), units="block")}
        blocks["charge"] = sot.Modular() + sot.Coverage(ys, weights=0.05 * cost)
        options = dict(KINDS[kind])
        if "mass" in options:
            options["mass"] *= mass
        else:
            both = options["unbalanced"]
            both = both if isinstance(both, tuple) else (both, both)
            options["unbalanced"] = tuple(None if x is None else cost * x for x in both)
        structure = blocks.get(name, structures(ys, yt)[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return sot.solve(
                *(cost * M, mass * a, mass * b),
                structure=structure,
                reg=cost * reg,
                method=method,
                max_iter=12,
                **options,
            )

    base = solve(1.0, 1.0)
    for cost, mass in ((2.0**40, 1.0), (2.0**-3, 1.0), (1.0, 2.0**-41), (1.0, 2.0**7)):
        other = solve(cost, mass)
        np.testing.assert_array_equal(other.plan, mass * base.plan)
        assert other.value == cost * mass * base.value
        assert other.lower_bound == cost * mass * base.lower_bound


def test_larger_clouds_with_every_relaxation():
    points = clusters(40, 35, n_classes=3)
    M = points.cost / points.cost.mean()
    a, b = np.full(40, 1 / 40), np.full(35, 1.3 / 35)
    for structure in (
        sot.Groups(points.source_labels, points.target_labels),
        sot.Modular() + sot.Coverage(points.source_labels, weights=0.02),
    ):
        for options in KINDS.values():
            for reg in (0.0, 0.05):
                result = sot.solve(M, a, b, structure=structure, reg=reg, **options)
                assert result.converged
                assert result.verify().holds()


@pytest.mark.parametrize(
    ("size", "options"),
    [(400, {"unbalanced": (0.1, None), "unbalanced_type": "TV"}), (200, {"mass": 0.7})],
    ids=str,
)
def test_groups_with_entropy_do_not_stall(size, options):
    # The path of falling reg left the domain of TV, and steps of partial plans met their kinks.
    points = clusters(size, n_classes=10, seed=2)
    M = points.cost / points.cost.mean()
    structure = sot.Groups(points.source_labels, points.target_labels)
    result = sot.solve(M, structure=structure, reg=0.1, **options)
    assert result.method == "entropic"
    assert result.converged
