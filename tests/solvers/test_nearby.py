"""The cheapest plan near an iterate: feasible, its multipliers a proof, failures harmless."""

import numpy as np
import pytest
from problems import clusters

import structot as sot
from structot.blocks.pools import Pools
from structot.problem import Problem
from structot.solvers.newton import local_search as _nearby
from structot.solvers.newton.dual import ProximalDual
from structot.solvers.newton.local_search import (
    Search,
    _anchors,
    _moves,
    _places,
    may_pay,
    nearby_plan,
)

NOTHING = np.empty(0)


def problem_of(n=40, m=30, alpha=200.0, linear=0.0, seed=0):
    data = clusters(n, m, n_classes=3, seed=seed)
    structure = sot.Groups(
        data.source_labels, data.target_labels, sot.concave.ThresholdSqrt(alpha), units="cost"
    )
    if linear:
        structure = sot.Modular() * linear + structure
    return Problem.of(data.cost, structure=structure), (data.cost, structure)


def iterate(problem, solved, rho):
    """Pools and multipliers around the plan of a result."""
    inner = ProximalDual(problem)
    inner.centre(solved.plan, rho)
    inner.evaluate(*solved.potentials)
    return inner


@pytest.mark.parametrize("alpha", [1.0, 200.0, 3e3, 1e5])
@pytest.mark.parametrize("linear", [0.0, 0.3])
def test_plan_is_feasible_and_multipliers_prove_a_bound(alpha, linear):
    """Whatever the program finds: the plan costs no less than the optimum, the bound no more."""
    problem, (M, structure) = problem_of(alpha=alpha, linear=linear)
    solved = sot.solve(M, structure=structure, tol=1e-9)
    inner = iterate(problem, solved, rho=10.0)
    found = nearby_plan(problem, inner.true_layer, inner.C, inner.pools, solved.potentials)
    P = found.plan
    np.testing.assert_allclose(P.sum(1), problem.a, rtol=1e-12)
    np.testing.assert_allclose(P.sum(0), problem.b, rtol=1e-12)
    assert P.min() >= 0
    assert -1e-9 <= found.left <= 1 + 1e-9  # HiGHS keeps bounds to 1e-7 of a scaled unknown
    assert problem.objective(P) >= solved.lower_bound * (1 - 1e-12)
    u, v, bound = inner.projected(found.u, found.v)
    assert bound <= problem.a @ u + problem.b @ v
    assert bound == pytest.approx(problem.a @ u + problem.b @ v, rel=1e-12)
    # u ⊕ v lies below a point of B(F): no set of pairs is paid more than it costs.
    assert problem.function.minimize(-np.add.outer(u, v)).value >= -1e-9 * solved.value
    assert bound <= solved.value * (1 + 1e-12)


def test_a_rough_iterate_gives_a_feasible_plan():
    """Noise of some percent in the multipliers, so that the pools miss the marginals."""
    problem, (M, structure) = problem_of(alpha=3e3)
    solved = sot.solve(M, structure=structure, tol=1e-9)
    rng = np.random.default_rng(0)
    p, q = (u + 0.01 * np.ptp(u) * rng.normal(size=u.size) for u in solved.potentials)
    inner = ProximalDual(problem)
    inner.centre(solved.plan, 10.0)
    inner.evaluate(p, q)
    P = nearby_plan(problem, inner.true_layer, inner.C, inner.pools, (p, q)).plan
    np.testing.assert_allclose(P.sum(1), problem.a, rtol=1e-12)
    np.testing.assert_allclose(P.sum(0), problem.b, rtol=1e-12)
    assert P.min() >= 0
    assert problem.objective(P) >= solved.lower_bound * (1 - 1e-12)


def test_no_program_where_many_blocks_in_use_have_large_pools():
    """Three blocks in use: a program for one large pool among them, none for two."""
    problem, _ = problem_of(alpha=3e3)
    (F,) = problem.layers
    pools = Pools.empty(F.w.size, F.start.size - 1)
    for b, sizes in enumerate(([2, 2], [1], [1])):
        s = F.start[b]
        pools.order[s : s + sum(sizes)] = np.arange(sum(sizes))
        pools.end[s : s + len(sizes)] = np.cumsum(sizes)
        pools.n_pools[b] = len(sizes)
    assert not may_pay(F, pools)
    pools.n_pools[0] = 1
    assert may_pay(F, pools)


def test_prices_of_moves_are_differences_of_F():
    """Up: F(S + e) - F(S) above an anchor S; down: F(S) - F(S - e) of its own anchor."""
    problem, (M, structure) = problem_of(alpha=200.0, linear=0.3)
    inner = iterate(problem, sot.solve(M, structure=structure), rho=10.0)
    F, pools = inner.true_layer, inner.pools
    anchors = _anchors(F, inner.C, pools)
    assert anchors
    moves = _moves(F, inner.C, pools, (np.zeros(40), np.zeros(30)), anchors, _places(F, anchors))
    assert {*moves.sign} == {1.0, -1.0}

    def value(edges):
        mask = np.zeros(F.shape, bool)
        mask[F.row[edges], F.col[edges]] = True
        return F.value(mask) + inner.C[edges].sum()

    for x in anchors:
        assert x.price == pytest.approx(value(x.edges))
    for edge, sign, price, anchor in zip(*moves, strict=True):
        S = anchors[anchor].edges if anchor >= 0 else NOTHING.astype(int)
        assert (edge in S) == (sign < 0)
        changed = np.append(S, edge) if sign > 0 else S[S != edge]
        assert price == pytest.approx(value(changed) - value(S), rel=1e-6, abs=1e-8)


def test_forbidden_pairs_stay_empty():
    data = clusters(30, n_classes=3, seed=1)
    M = data.cost.copy()
    M[:10, :12] = np.inf
    structure = sot.Groups(
        data.source_labels, data.target_labels, sot.concave.ThresholdSqrt(50.0), units="cost"
    )
    problem = Problem.of(M, structure=structure)
    solved = sot.solve(M, structure=structure, tol=1e-8)
    inner = iterate(problem, solved, rho=10.0)
    found = nearby_plan(problem, inner.true_layer, inner.C, inner.pools, solved.potentials)
    P = found.plan
    assert not P[~np.isfinite(M)].any()
    np.testing.assert_allclose(P.sum(1), problem.a, rtol=1e-12)


def test_an_empty_iterate_is_no_error():
    """Nothing active yet: all mass may be left to rounding, the plan is feasible all the same."""
    problem, _ = problem_of()
    F = problem.layers[0]
    pools = Pools.empty(F.w.size, F.start.size - 1)
    P = nearby_plan(problem, F, NOTHING, pools, (np.zeros(40), np.zeros(30))).plan
    np.testing.assert_allclose(P.sum(1), problem.a, rtol=1e-12)


def test_searches_become_rare_when_they_find_nothing(monkeypatch):
    problem, _ = problem_of()
    monkeypatch.setattr(_nearby, "nearby_plan", lambda *_: None)
    monkeypatch.setattr(_nearby, "may_pay", lambda *_: True)
    search = Search(problem, problem.layers[0], every=10)
    assert not search.due(9)
    assert search.due(1)
    assert search(NOTHING, None, None) is None
    assert not search.paid(closed=0.0)
    assert not search.due(19)
    assert search.paid(closed=0.5)
    assert search.due(0)


def test_programs_that_fail_do_no_harm_and_become_rare(monkeypatch):
    _, (M, structure) = problem_of(60, 50, alpha=3e3, seed=5)
    steps = []

    def fail(*args):
        steps.append(seen[-1])
        return None

    seen = [0]
    monkeypatch.setattr(_nearby, "nearby_plan", fail)
    monkeypatch.setattr(_nearby, "may_pay", lambda *_: True)
    result = sot.solve(
        M,
        structure=structure,
        method=sot.solvers.Newton(search_every=1),
        tol=1e-6,
        callback=lambda state: seen.append(state.iteration),
    )
    assert result.converged
    assert steps
    # The first after the first certificate, each next one after twice as many steps as before.
    assert (np.diff(steps, prepend=0) >= 2.0 ** np.arange(len(steps))).all()
