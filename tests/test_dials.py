"""Dials mean the same on any data: units, numbers of points and structures do not change them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from command import here

import structot as sot
from structot.concave import Discount, Linear, Truncation
from structot.datasets.synthetic import clusters

SCALES = (1e-9, 1e-4, 0.3, 7e3, 1e9)
# DESIGN: share of mass in the main block, effective partners as a share of a class; by κ = d/(1-d).
TABLE = {
    50: {0: (0.58, 0.06), 1: (0.56, 0.22), 3: (0.79, 0.79), 10: (0.98, 1.0)},
    100: {0: (0.58, 0.03), 1: (0.61, 0.19), 3: (0.90, 0.82), 10: (0.97, 1.0)},
    200: {0: (0.59, 0.01), 1: (0.63, 0.15), 3: (0.87, 0.70), 10: (0.98, 0.96)},
}


def groups(data, *concave, **options):
    return sot.Groups(data.source_labels, data.target_labels, *concave, **options)


# --------------------------------------------------------------------------------------------------
# Units
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
def test_groups_do_not_depend_on_the_units_of_cost(scale):
    data = clusters(40, n_classes=3)
    plain, scaled = (
        sot.solve(factor * data.cost, structure=groups(data), tol=1e-3) for factor in (1.0, scale)
    )
    assert plain.converged
    np.testing.assert_allclose(scaled.plan, plain.plan, atol=1e-6 / 40)
    assert scaled.value == pytest.approx(scale * plain.value, rel=1e-6)


@pytest.mark.parametrize("scale", SCALES)
def test_a_hierarchy_does_not_depend_on_the_units_of_cost(scale):
    data = clusters(12, n_classes=3)
    levels = [[labels, labels // 2] for labels in (data.source_labels, data.target_labels)]
    structure = sot.Hierarchy(*levels)
    plans = [
        sot.solve(factor * data.cost, structure=structure, tol=1e-3).plan for factor in (1.0, scale)
    ]
    np.testing.assert_allclose(plans[1], plans[0], atol=1e-6 / 12)


@pytest.mark.parametrize("scale", SCALES)
def test_the_estimator_does_not_depend_on_the_units_of_the_points(scale):
    data = clusters(40, n_classes=3)
    plans = [
        sot.StructuredTransport()
        .fit(Xs=factor * data.X, ys=data.source_labels, Xt=factor * data.Y)
        .coupling_
        for factor in (1.0, scale)
    ]
    np.testing.assert_allclose(plans[1], plans[0], atol=1e-6 / 40)


def test_units_of_cost_are_for_those_who_ask_for_them():
    """The paper's threshold: plain transport for small costs, constant on blocks for large ones."""
    data = clusters(30, n_classes=3)
    structure = groups(data, sot.concave.ThresholdSqrt(1.0), units="cost")
    small, large = (
        sot.solve(factor * data.cost, structure=structure, tol=1e-3) for factor in (1e-6, 1e3)
    )
    assert small.value == pytest.approx(1e-6 * sot.solve(data.cost).value, rel=2e-3)
    assert large.partners.mean() > 5.0


# --------------------------------------------------------------------------------------------------
# Numbers of points
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", TABLE)
def test_a_discount_means_the_same_for_any_number_of_points(n):
    data = clusters(n, n_classes=3)
    rates = list(TABLE[n])
    structures = [groups(data, Discount(rate / (1 + rate))) for rate in rates]
    # Each dial for itself: the table was made without neighbours to start from.
    for structure, rate in zip(structures, rates, strict=True):
        result = sot.solve(data.cost, structure=structure, tol=1e-3)
        share = result.partners.mean() / (n / 3)
        assert (result.concentration, share) == pytest.approx(TABLE[n][rate], abs=0.05)


@pytest.mark.parametrize("n", TABLE)
def test_the_plan_changes_gradually_along_the_dial(n):
    data = clusters(n, n_classes=3)
    structures = [groups(data, Discount(d)) for d in np.linspace(0.0, 0.95, 20)]
    path = sot.solve_path(data.cost, structures=structures, tol=1e-3)
    table = path.table()
    assert path.converged
    assert np.abs(np.diff(table["concentration"])).max() <= 0.25
    assert table["concentration"][-1] > 0.95 > table["concentration"][0]
    assert table["gap"].min() >= 0.0


def test_doubling_every_point_leaves_the_class_shares():
    """In the paper's units the same threshold led from a mixed plan to an unmixed one."""
    data = clusters(40, n_classes=3)
    rows, cols = data.source_labels, data.target_labels
    once = sot.solve(data.cost, structure=sot.Groups(rows, cols), tol=1e-4)
    twice = sot.solve(
        np.kron(data.cost, np.ones((2, 2))),
        structure=sot.Groups(np.repeat(rows, 2), np.repeat(cols, 2)),
        tol=1e-4,
    )
    assert twice.concentration == pytest.approx(once.concentration, abs=0.05)


# --------------------------------------------------------------------------------------------------
# One meaning of reg
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [1.0, 0.5], ids=["squared distances", "distances"])
def test_reg_weighs_the_same_for_groups_and_for_plain_transport(power):
    data = clusters(60, n_classes=3)
    M = data.cost**power
    reg = 0.05 * M.mean()
    plain = sot.solve(M, reg=reg)
    linear = sot.solve(M, structure=groups(data, Linear()), reg=reg)
    assert linear.value_linear == pytest.approx(plain.value_linear, rel=0.1)


@pytest.mark.parametrize("scale", SCALES)
def test_reg_is_a_cost(scale):
    data = clusters(30, n_classes=3)
    plans = [
        sot.solve(x * data.cost, structure=groups(data), reg=x * 0.1 * data.cost.mean()).plan
        for x in (1.0, scale)
    ]
    np.testing.assert_allclose(plans[1], plans[0], atol=1e-6 / 30)


# --------------------------------------------------------------------------------------------------
# What a new user types
# --------------------------------------------------------------------------------------------------


def test_calls_written_for_thresholds_in_cost_say_that_they_do_nothing():
    data = clusters(12, n_classes=3)
    with pytest.warns(UserWarning, match=r"linear on \[0, 1\].*plain transport.*units='cost'"):
        structure = groups(data, Truncation(50.0))
    plain = sot.solve(data.cost)
    assert sot.solve(data.cost, structure=structure).value == pytest.approx(plain.value, rel=1e-4)


def test_functions_that_bend_inside_a_block_draw_no_warning():
    data = clusters(12, n_classes=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for g in (Discount(0.0), Linear(), Truncation(0.5), sot.concave.Sqrt()):
            groups(data, g)


def test_coverage_takes_its_groups_by_name():
    structure = sot.Coverage(source=["a", "a", "b"], target=["x", "y"], weights=2.0)
    assert structure.bind(np.ones((3, 2))).value(np.eye(3, 2, dtype=bool)) == 4.0


def test_an_unknown_option_far_from_all_gets_no_suggestion():
    with pytest.raises(ValueError, match="got 'colour'") as caught:
        sot.solve(np.ones((2, 2)), colour=1)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "structure",
    [
        sot.Coverage([0, 0, 1], [0, 1, 1]),
        sot.ChainCut(1.0),
        sot.Rank(np.eye(3), np.eye(3)),
    ],
    ids=repr,
)
def test_structures_that_ignore_the_cost_say_so(structure):
    M = np.arange(9.0).reshape(3, 3)
    with pytest.warns(UserWarning, match=r"does not look at M; pass sot.Modular\(\) \+ it"):
        sot.solve(M, structure=structure, tol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sot.solve(M, structure=sot.Modular() + structure, tol=1e-2)


def test_a_collapsed_plan_is_seen_in_the_result():
    data = clusters(30, n_classes=3)
    result = sot.solve(data.cost, structure=groups(data, Discount(0.99)), tol=1e-3)
    assert "100% of the mass of a group goes to one group" in repr(result)
    assert "partners     10" in repr(result)  # every point goes to all points of its class
    alone = sot.solve(data.cost, structure=sot.Groups(data.source_labels), tol=1e-3)
    assert "of the mass of a group goes to one point" in repr(alone)  # targets have no groups


def test_no_gap_is_negative(tmp_path):
    """An optimum that rounding hides: the bound may lie above the value by a bit."""
    M = np.random.default_rng(0).uniform(0.1, 1.0, (6, 6))
    seen = []
    for structure in (None, sot.Groups([0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 0, 1])):
        result = sot.solve(
            M, structure=structure, tol=1e-12, callback=lambda state: seen.append(state.gap)
        )
        assert 0.0 <= result.gap <= 1e-12
    assert seen
    assert min(seen) >= 0.0
    np.save(tmp_path / "cost.npy", M)
    told = json.loads(here("solve", "cost.npy", "--json", cwd=tmp_path).stdout)
    assert told["gap"] >= 0.0
