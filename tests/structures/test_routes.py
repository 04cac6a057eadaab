"""Routes: the model against its formula, and what users may write."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from problems import clusters, moved

import structot as sot
from structot.certificate import verify

Array = np.ndarray

M = moved(np.random.default_rng(0).uniform(0.1, 2.0, (4, 3)))
ROWS, COLS = np.array([0, 1, 0, 1]), np.array([0, 0, 1])
A, B = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.5, 0.2, 0.3])
PRICE = np.array([[0.3, 0.7], [1.1, 0.2]])


def shares(P: Array, rows: Array, cols: Array, a: Array, b: Array) -> Array:
    """t, written out point by point; points of no weight have no share."""
    t = np.zeros((rows.max() + 1, cols.max() + 1))
    for i, j in itertools.product(range(rows.size), range(cols.size)):
        for weight, carried in (
            (a[i], P[i, cols == cols[j]].sum()),
            (b[j], P[rows == rows[i], j].sum()),
        ):
            if weight > 0:
                t[rows[i], cols[j]] = max(t[rows[i], cols[j]], carried / weight)
    return t


def bound() -> sot.submodular.BoundCost:
    return sot.Routes(ROWS, COLS, PRICE, units="cost").bind(M, A, B)


# ---------------------------------------------------------------------------------- the function


@pytest.mark.parametrize("seed", range(5))
def test_the_extension_is_its_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    P = rng.random(M.shape) * (rng.random(M.shape) < 0.6)
    expected = (M * P).sum() + (PRICE * shares(P, ROWS, COLS, A, B)).sum()
    assert bound().extension(P) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("seed", range(5))
def test_greedy_is_a_subgradient_made_of_tariffs(seed: int) -> None:
    """<K, P> = f(P), <K, Q> <= f(Q), and K - M takes no more than the prices."""
    rng = np.random.default_rng(seed)
    F = bound()
    assert F.lanes is not None
    P = rng.random(M.shape) * (rng.random(M.shape) < 0.6)
    K = F.greedy(P)
    assert (K * P).sum() == pytest.approx(F.extension(P), rel=1e-13)
    for _ in range(20):
        Q = rng.random(M.shape) ** 3
        assert (K * Q).sum() <= F.extension(Q) * (1 + 1e-13)
    paid = F.lanes.paid(*F.lanes.cheapest_tariffs(K - M))
    assert (paid <= PRICE * (1 + 1e-12)).all()


def test_on_assignments_it_counts_the_open_routes() -> None:
    """As Modular() + Coverage does: all of a point takes its route."""
    rng = np.random.default_rng(1)
    n, labels = 6, np.array([0, 0, 1, 1, 2, 2])
    cost = rng.random((n, n))
    routes = sot.Routes(labels, labels[::-1], 0.7, units="cost").bind(cost)
    fixed = (sot.Modular() + sot.Coverage(labels, labels[::-1], 0.7)).bind(cost)
    for _ in range(20):
        mask = np.eye(n, dtype=bool)[rng.permutation(n)]
        opened = len({(k, t) for k, t in zip(labels, labels[::-1][mask.argmax(1)], strict=True)})
        expected = cost[mask].sum() / n + 0.7 * opened
        assert routes.extension(mask / n) == pytest.approx(expected, rel=1e-13)
        assert routes.value(mask) == pytest.approx(cost[mask].sum() + 0.7 * opened, rel=1e-13)
        assert routes.value(mask) == pytest.approx(fixed.value(mask), rel=1e-13)


def test_no_plan_pays_less_than_with_the_looser_relaxation() -> None:
    """max P <= min(a, b) · share: with weights of 1/n, Σ w max P · n is never above Σ w t."""
    rng = np.random.default_rng(2)
    n, labels = 6, np.array([0, 0, 1, 1, 2, 2])
    cost = np.zeros((n, n))
    routes = sot.Routes(labels, labels, 1.0, units="cost").bind(cost)
    loose = sot.Coverage(labels, labels, float(n)).bind(cost)
    for k in range(20):
        P = sot.transport.round_plan(rng.random((n, n)) ** k, np.full(n, 1 / n), np.full(n, 1 / n))
        assert loose.extension(P) <= routes.extension(P) * (1 + 1e-12)


def test_cheapest_tariffs_are_cheapest() -> None:
    """Above D, nonnegative, and what they take is the value of the dual program by HiGHS."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(3)
    lanes = bound().lanes
    assert lanes is not None
    D = rng.normal(size=M.shape)
    alpha, beta = lanes.cheapest_tariffs(D)
    assert alpha.min() >= 0
    assert beta.min() >= 0
    assert (alpha[:, COLS] + beta[ROWS] >= D - 1e-13).all()
    paid = lanes.paid(alpha, beta)
    for k, t in np.ndindex(2, 2):
        i, j = np.flatnonzero(ROWS == k), np.flatnonzero(COLS == t)
        rows = np.kron(np.eye(i.size), np.ones(j.size))
        cols = np.kron(np.ones(i.size), np.eye(j.size))
        best = linprog(
            -D[np.ix_(i, j)].ravel(), np.vstack([rows, cols]), np.concatenate([A[i], B[j]])
        )
        assert paid[k, t] == pytest.approx(-best.fun, abs=1e-9)


def test_points_without_weight_have_no_share() -> None:
    a = np.array([0.0, 0.3, 0.3, 0.4])
    F = sot.Routes(ROWS, COLS, PRICE, units="cost").bind(M, a, B)
    P = sot.transport.round_plan(np.random.default_rng(4).random(M.shape), a, B)
    expected = (M * P).sum() + (PRICE * shares(P, ROWS, COLS, a, B)).sum()
    assert F.extension(P) == pytest.approx(expected, rel=1e-13)
    assert np.isfinite(F.greedy(P)).all(axis=1).tolist() == [False, True, True, True]
    # Where mass may be created it is an infinite share of nothing.
    assert F.extension(np.ones(M.shape)) == np.inf


# ------------------------------------------------------------------------------------- the units


def test_the_mean_units_of_the_charge() -> None:
    F = sot.Routes(ROWS, COLS, 0.3).bind(M, 2.0 * A, 2.0 * B)
    assert F.lanes is not None
    mean = float(A @ M @ B)
    mass = np.minimum.outer([0.8, 1.2], [1.4, 0.6])
    assert F.lanes.price == pytest.approx(0.3 * mean * mass, rel=1e-13)


def test_an_infinite_charge_closes_a_route() -> None:
    charge = np.array([[np.inf, 0.3], [0.2, np.inf]])
    structure = sot.Routes(["x", "y"], ["u", "v"], charge)
    F = structure.bind([[1.0, 2.0], [3.0, 4.0]])
    assert F.allowed is not None
    assert F.allowed.tolist() == [[False, True], [True, False]]
    assert F.extension(np.eye(2) / 2) == np.inf
    result = sot.solve([[1.0, 2.0], [3.0, 4.0]], structure=structure)
    assert result.plan == pytest.approx(np.array([[0.0, 0.5], [0.5, 0.0]]), abs=1e-15)
    assert result.verify().holds()
    # mean(M) is over the allowed pairs also where a factor makes the structure anew.
    twice = (2.0 * structure).bind([[1.0, 2.0], [3.0, 4.0]])
    P = result.plan
    assert twice.extension(P) == pytest.approx(2.0 * F.extension(P), rel=1e-14)


def test_sums_and_factors() -> None:
    routes = sot.Routes(ROWS, COLS, 0.3)
    C = np.random.default_rng(5).random(M.shape)
    P = sot.transport.round_plan(np.ones(M.shape), A, B)
    F = (2.0 * routes + sot.Modular(C)).bind(M, A, B)
    expected = 2.0 * routes.bind(M, A, B).extension(P) + (C * P).sum()
    assert F.extension(P) == pytest.approx(expected, rel=1e-13)
    result = sot.solve(M, A, B, structure=2.0 * routes + sot.Modular(C), tol=1e-8)
    assert result.converged
    assert result.verify().holds()
    # A factor 0 leaves the ground cost out, and what it forbids stays forbidden.
    plain = sot.solve(M, A, B, structure=0.0 * routes + sot.Modular())
    assert plain.method == "exact"


def test_missing_labels_lists_and_none() -> None:
    labels = sot.Routes(["a", None, "a", None], COLS, PRICE[[0, 1, 1]], units="cost")
    lists = sot.Routes([[0, 2]], [[0, 1], [2]], PRICE[[0, 1, 1]], units="cost")
    P = sot.transport.round_plan(np.random.default_rng(6).random(M.shape), A, B)
    t = shares(P, np.array([0, 1, 0, 2]), COLS, A, B)
    expected = (M * P).sum() + (PRICE[[0, 1, 1]] * t).sum()
    for structure in (labels, lists):
        assert structure.bind(M, A, B).extension(P) == pytest.approx(expected, rel=1e-13)
    alone = sot.Routes(None, None, 0.5, units="cost").bind(M, A, B)
    rate = M + 0.5 / np.minimum.outer(A, B)
    assert alone.extension(P) == pytest.approx((rate * P).sum(), rel=1e-13)


# ------------------------------------------------------------------------------------ the answer


def test_a_result_shows_its_routes(tmp_path) -> None:
    structure = sot.Routes(ROWS, COLS, PRICE, units="cost")
    result = sot.solve(M, A, B, structure=structure, tol=1e-8)
    expected = shares(result.plan, ROWS, COLS, A, B)
    assert result.routes == pytest.approx(expected, rel=1e-13)
    value = result.value_linear + (PRICE * result.routes).sum()
    assert result.value == pytest.approx(value, rel=1e-13)
    assert result.block_mass().mass.sum() == pytest.approx(1.0)
    assert 0.5 <= result.concentration <= 1.0
    assert (result.partners >= 1.0 - 1e-12).all()
    result.save(tmp_path / "answer")
    loaded = sot.Result.load(tmp_path / "answer")
    assert loaded.verify(structure).holds()
    with pytest.raises(ValueError, match="routes needs a structure with groups"):
        _ = loaded.routes


def test_verify_finds_tariffs_above_their_budget() -> None:
    """A worst cost that takes more than the prices proves too much, and is found out."""
    from dataclasses import replace

    structure = sot.Routes(ROWS, COLS, PRICE, units="cost")
    result = sot.solve(M, A, B, structure=structure, tol=1e-8)
    assert result.verify().holds()
    K = result.worst_cost + 0.01
    u, v = result.potentials
    forged = replace(
        result,
        worst_cost=K,
        potentials=(u + 0.01, v),
        lower_bound=result.lower_bound + 0.01,
        gap=0.0,
    )
    check = verify(M, A, B, structure, forged)
    assert check.polytope > 1e-3
    assert check.harm > 1e-4
    assert not check.holds()


def test_points_keep_their_partners_where_groups_spread() -> None:
    """The clouds of three classes: together at charges from 0.3 to 10, about one partner each."""
    points = clusters(40, n_classes=3, seed=0)
    labels = points.source_labels, points.target_labels
    strong = sot.concave.Discount(0.97)
    groups = sot.solve(points.cost, structure=sot.Groups(*labels, strong), tol=1e-3)
    for charge in (0.3, 1.0, 10.0):
        result = sot.solve(points.cost, structure=sot.Routes(*labels, charge), tol=1e-6)
        assert result.converged
        assert result.concentration >= 0.99
        assert result.partners.mean() <= 1.5
        assert result.value_linear < groups.value_linear
    assert groups.concentration >= 0.99
    assert groups.partners.mean() > 5.0


# ------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sot.Routes(ROWS, COLS, -1.0), "charge must be numbers, none negative; got -1.0"),
        (lambda: sot.Routes(ROWS, COLS, np.nan), "charge must be numbers"),
        (lambda: sot.Routes(ROWS, COLS, "much"), "charge must be a numeric array"),
        (lambda: sot.Routes(ROWS, COLS, [1.0, 2.0]), "one number or an array"),
        (lambda: sot.Routes(ROWS, COLS, units="block"), "units must be one of 'mean', 'cost'"),
        (lambda: sot.Routes(ROWS, COLS, np.ones((2, 3))).bind(M), "2 source and 2 target groups"),
        (lambda: sot.Routes(ROWS[:3], COLS).bind(M), "source has 3 labels"),
        (lambda: sot.Routes([[0, 1], [1, 2]], COLS).bind(M), "source must be disjoint groups"),
        (lambda: sot.Routes(ROWS, [[0, 1], [1]]).bind(M), "target must be disjoint groups"),
        (
            lambda: (sot.Routes(ROWS, COLS) + sot.Groups(ROWS, COLS)).bind(M),
            r"Routes adds to Modular\(cost\) only",
        ),
        (
            lambda: (sot.Routes(ROWS, COLS) + sot.Routes(ROWS, COLS)).bind(M),
            r"Routes adds to Modular\(cost\) only",
        ),
        (lambda: sot.solve(M, structure=sot.Routes(ROWS, COLS), reg=0.1), "takes no entropy yet"),
        (
            lambda: sot.solve(M, structure=sot.Routes(ROWS, COLS), method="newton"),
            "use method='interior_point'",
        ),
        (
            lambda: sot.solve(M, structure=sot.Routes(ROWS, COLS), method="mirror_descent"),
            "use method='interior_point'",
        ),
        (
            lambda: sot.solve(M, structure=sot.Routes(ROWS, COLS, np.inf)),
            "no plan with the marginals",
        ),
        (lambda: bound().project(M), "no base polytope"),
        (lambda: bound().extension(np.ones((2, 2))), "shape"),
        (lambda: bound().value(np.ones((2, 2), bool)), "shape"),
    ],
)
def test_bad_input_is_refused(make, message) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_repr() -> None:
    assert repr(sot.Routes(["a", "b"], None)) == "Routes(['a', 'b'], None, charge=0.3)"
    text = repr(2.0 * sot.Routes(np.arange(9), [[0, 1]], np.ones((9, 1)), units="cost"))
    assert text == "2 * Routes(<9 labels>, [[0, 1]], charge=<(9, 1)>, units='cost')"
