"""Newton: every concave function, from α = 0 to the modular limit, certified."""

import numpy as np
import ot
import pytest
from problems import clusters, moved

import structot as sot
from structot.solvers.newton import local_search
from structot.solvers.newton import solver as newton

c = sot.concave


def check(M, structure, a=None, b=None, tol=1e-6, method="newton", **options):
    """Solve by newton, re-check the proof from scratch, and return the result."""
    result = sot.solve(M, a, b, structure=structure, method=method, tol=tol, **options)
    assert result.converged, result
    assert sot.certificate.verify(M, a, b, structure, result).holds(), result
    return result


@pytest.fixture(scope="module")
def data():
    return clusters(100, n_classes=3, seed=11)


@pytest.mark.parametrize("alpha", [0.0, *np.geomspace(0.1, 1e5, 13)])
def test_certifies_every_threshold(data, alpha):
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(alpha), units="cost"
    )
    check(data.cost, structure)


@pytest.mark.parametrize("alpha", [0.0, *np.geomspace(0.1, 1e5, 13)])
def test_rectangular_with_random_weights(alpha):
    data = clusters(60, 110, n_classes=5, n_target_classes=7, seed=3)
    rng = np.random.default_rng(0)
    a, b = rng.dirichlet(np.ones(60)), rng.dirichlet(np.ones(110))
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(alpha), units="cost"
    )
    check(data.cost, structure, a, b)


FUNCTIONS = [
    c.Sqrt(),
    c.Power(0.7),
    c.Power(0.2),
    c.Log(50.0),
    c.Truncation(300.0),
    c.Linear(),
    c.PiecewiseLinear([100.0, 1000.0], [1.0, 0.4, 0.1]),
    c.ThresholdSqrt(40.0, scale=5.0),
    c.Custom(lambda x: x / (1 + x / 100)),
    lambda k, t: c.Linear() if k == t else c.Truncation(100.0 * (1 + k)),
]


@pytest.mark.parametrize("concave", FUNCTIONS, ids=lambda g: type(g).__name__)
def test_every_concave_function(concave):
    data = clusters(30, 24, n_classes=3, seed=5)
    check(data.cost, sot.Groups(data.source_labels, data.target_labels, concave, units="cost"))


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0, 10.0])
def test_source_groups_only(alpha):
    data = clusters(200, n_classes=10, seed=2)
    M = data.cost / data.cost.max()
    check(M, sot.Groups(data.source_labels, None, c.ThresholdSqrt(alpha), units="cost"), tol=1e-4)


def test_target_groups_only_is_the_transpose(data):
    M = data.cost[:50]
    groups = data.source_labels[:50]
    left = check(M, sot.Groups(groups, None, c.Sqrt(), units="cost"))
    right = check(M.T.copy(), sot.Groups(None, groups, c.Sqrt(), units="cost"))
    assert right.value == pytest.approx(left.value, rel=2e-6)


def test_one_block_for_all(data):
    check(data.cost, sot.Groups(np.zeros(100), np.zeros(100), c.ThresholdSqrt(100.0), units="cost"))


def test_singletons_are_plain_transport_with_cost_g(data):
    result = sot.solve(data.cost, structure=sot.Groups(None, None, c.Sqrt(), units="cost"))
    a = np.full(100, 0.01)
    assert result.method == "exact"
    assert result.value == pytest.approx(ot.emd2(a, a, np.sqrt(data.cost)), rel=1e-9)


def test_modular_limit_is_plain_transport(data):
    a = np.full(100, 0.01)
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(1e9), units="cost"
    )
    result = check(data.cost, structure, tol=1e-10)
    assert result.value == pytest.approx(ot.emd2(a, a, data.cost), rel=1e-9)


def test_modular_part_beside_the_groups(data):
    groups = sot.Groups(data.source_labels, data.target_labels, c.ThresholdSqrt(10.0), units="cost")
    result = check(data.cost, 0.3 * sot.Modular() + groups)
    plan = result.plan
    parts = 0.3 * np.sum(plan * data.cost) + groups.bind(data.cost).extension(plan)
    assert result.value == pytest.approx(parts, rel=1e-12)


def test_fixed_charge(data):
    structure = sot.Modular() + sot.Coverage(data.source_labels, weights=0.02, units="block")
    check(data.cost, structure, tol=1e-4)


def test_coincident_points_and_tiny_costs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    Y = np.concatenate([X[:15], X[15:25] + 1e-9, rng.normal(size=(20, 2))])
    M = moved(((X[:, None] - Y) ** 2).sum(-1))
    assert (M == 0).sum() >= 15
    labels = rng.integers(0, 3, 40), rng.integers(0, 3, 45)
    for alpha in (0.0, 1.0, 30.0):
        check(M, sot.Groups(*labels, c.ThresholdSqrt(alpha), units="cost"), tol=1e-5)


def test_nothing_to_pay():
    """All costs zero, or a g that is zero: any plan is optimal, and proved so."""
    groups = np.array([0, 0, 1])
    assert check(np.zeros((3, 4)), sot.Groups(groups)).value == 0
    assert (
        check(np.ones((3, 4)), sot.Groups(groups, None, c.Truncation(0.0), units="cost")).value == 0
    )


def test_ends_exactly(data):
    """The problem is polyhedral: the method ends at the answer, to the last digits.

    To 1e-10: the bound is lowered by the rounding error of evaluating it, some 60 eps times the
    size of what it was made from, which may be hundreds of times the value.
    """
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(3000.0), units="cost"
    )
    result = check(data.cost, structure, tol=1e-10)
    assert result.value - result.lower_bound <= 1.2e-10 * result.value


def test_zero_weights_leave_empty_rows_and_finite_potentials(data):
    a = np.r_[np.zeros(10), np.full(90, 1 / 90)]
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(50.0), units="cost"
    )
    result = check(data.cost, structure, a)
    assert (result.plan[:10] == 0).all()
    assert all(np.isfinite(x).all() for x in result.potentials)


def test_forbidden_pairs(data):
    """Whole blocks, and a third of the pairs inside the others."""
    M = data.cost.copy()
    M[data.source_labels[:, None] != data.target_labels] = np.inf
    forbidden = np.random.default_rng(0).random(M.shape) < 0.3
    M[forbidden] = np.inf
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(50.0), units="cost"
    )
    result = check(M, structure, *same_masses(data))
    assert (result.plan[~np.isfinite(M)] == 0).all()
    assert (result.worst_cost[~np.isfinite(M)] == np.inf).all()


def same_masses(data):
    """Weights under which every class has the same mass on both sides."""
    sizes = np.bincount(data.source_labels), np.bincount(data.target_labels)
    return 1 / sizes[0][data.source_labels], 1 / sizes[1][data.target_labels]


def test_infeasible_problem_is_recognised(data):
    M = data.cost.copy()
    M[data.source_labels[:, None] != data.target_labels] = np.inf
    a = np.where(data.source_labels == 0, 2.0, 1.0)
    with pytest.raises(sot.transport.InfeasibleError, match="forbidden"):
        sot.solve(M, a / a.sum(), structure=sot.Groups(data.source_labels))


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_cost_scale_does_not_matter(data, factor):
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.Truncation(0.05), units="block"
    )
    one = check(data.cost, structure)
    other = check(factor * data.cost, structure)
    assert other.value == pytest.approx(factor * one.value, rel=2e-6)


def test_masses_scale_the_value(data):
    structure = sot.Groups(data.source_labels, data.target_labels, c.Sqrt(), units="cost")
    one = check(data.cost, structure)
    seven = check(data.cost, structure, np.full(100, 0.07), np.full(100, 0.07))
    assert seven.value == pytest.approx(7 * one.value, rel=2e-6)


def test_order_of_points_does_not_matter(data):
    rng = np.random.default_rng(1)
    rows, cols = rng.permutation(100), rng.permutation(100)
    one = check(
        data.cost, sot.Groups(data.source_labels, data.target_labels, c.Sqrt(), units="cost")
    )
    labels = data.source_labels[rows], data.target_labels[cols]
    other = check(data.cost[rows][:, cols], sot.Groups(*labels, c.Sqrt(), units="cost"))
    assert other.value == pytest.approx(one.value, rel=2e-6)


@pytest.mark.parametrize("alpha", [1.0, 20.0, 300.0, 2000.0, 1e4, 1e5])
def test_a_warm_start_leads_to_the_same_value(data, alpha):
    """Two certified values differ by at most the larger gap."""
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(alpha), units="cost"
    )
    first = check(data.cost, structure)
    rng = np.random.default_rng(0)
    changed = data.cost * (1 + 1e-4 * rng.random(data.cost.shape))
    cold = check(changed, structure)
    warm = check(changed, structure, init=first)
    assert warm.value == pytest.approx(cold.value, rel=2e-6)


@pytest.mark.parametrize("weights", ["uniform", "random, some zero"])
def test_searches_near_iterates_meet_the_marginals_and_close_the_gap(monkeypatch, weights):
    """Their plans have the right marginals, and lead to the same answer.

    Searched for after every certificate, however far from the answer.
    """
    data = clusters(90, 80, n_classes=3, seed=5)
    rng = np.random.default_rng(2)
    a, b = (np.full(k, 1 / k) for k in data.cost.shape)
    if weights != "uniform":
        a, b = (rng.dirichlet(np.ones(k)) * (np.arange(k) > 2) for k in data.cost.shape)
        b *= a.sum() / b.sum()
    structure = sot.Groups(
        data.source_labels, data.target_labels, c.ThresholdSqrt(7000.0), units="cost"
    )
    made = []
    by_search = newton._Certifier.by_search

    def remember(self, search, value):
        step, centre = by_search(self, search, value)
        if step is not None:  # HiGHS may give up
            made.append(step.plan())
        return step, centre

    monkeypatch.setattr(newton._Certifier, "by_search", remember)
    monkeypatch.setattr(local_search, "may_pay", lambda *_: True)
    method = sot.solvers.Newton(search_every=1)
    result = check(data.cost, structure, a, b, method=method)
    assert made
    for P in made:
        assert (P >= 0).all()
        unit = P.sum() / a.sum()  # solvers see masses in units of their own
        assert P.sum(1) == pytest.approx(unit * a, abs=1e-14)
        assert P.sum(0) == pytest.approx(unit * b, abs=1e-14)
    plain = check(data.cost, structure, a, b, method=sot.solvers.Newton(search_every=0))
    assert result.value == pytest.approx(plain.value, rel=2e-6)
