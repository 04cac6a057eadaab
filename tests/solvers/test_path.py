"""Paths: every answer is that of `solve`, in the order of the dials."""

from __future__ import annotations

import numpy as np
import pytest
from problems import clusters

import structot as sot


@pytest.fixture(scope="module")
def data():
    return clusters(20, 15, n_classes=3)


def structures(data, dials):
    labels = data.source_labels, data.target_labels
    return [sot.Groups(*labels, sot.concave.Discount(d)) for d in dials]


def test_a_path_over_structures_agrees_with_single_solves(data):
    dials = [0.2, 0.9, 0.0, 0.6]
    path = sot.solve_path(data.cost, structures=structures(data, dials), tol=1e-6)
    assert path.name == "dial"
    assert path.dials.tolist() == dials
    assert path.converged
    for result, structure in zip(path, structures(data, dials), strict=True):
        alone = sot.solve(data.cost, structure=structure, tol=1e-6)
        assert result.value == pytest.approx(alone.value, rel=2e-6)
        assert result.verify().holds()


def test_a_path_over_reg_falls_in_value(data):
    regs = [1.0, 10.0, 0.1]
    path = sot.solve_path(data.cost, structure=structures(data, [0.5])[0], reg=regs)
    assert path.name == "reg"
    assert path.dials.tolist() == regs
    assert path.converged
    # The entropy term is never negative: the optimum rises with its weight.
    assert path[2].value <= path[0].value * (1 + 1e-4) <= path[1].value * (1 + 2e-4)


def test_more_discount_costs_more_and_keeps_more_together(data):
    path = sot.solve_path(data.cost, structures=structures(data, [0.0, 0.5, 0.95]), tol=1e-6)
    table = path.table()
    assert list(table) == list(path.to_frame().columns)
    assert (np.diff(table["linear"]) >= -1e-6 * table["linear"][0]).all()
    assert table["concentration"][2] > table["concentration"][0]
    assert (table["partners"] >= 1.0 - 1e-9).all()
    assert repr(path).count("\n") == 4
    assert path[1:].dials.tolist() == [0.5, 0.95]


def test_structures_without_a_dial_are_numbered(data):
    both = [sot.Modular(), sot.Modular() + sot.ChainCut(0.1)]
    path = sot.solve_path(data.cost, structures=both, tol=1e-3)
    assert path.dials.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one sequence"),
        ({"structures": [sot.Modular()], "reg": [1.0]}, "exactly one sequence"),
        ({"structures": [sot.Modular()], "structure": sot.Modular()}, "not both"),
        ({"structures": []}, "empty"),
        ({"reg": [-1.0]}, "reg must be zero or positive"),
        ({"reg": [1.0], "init": None}, "leave init out"),
        ({"structures": ["groups"]}, "structure must be a structure"),
    ],
)
def test_bad_paths_say_what_to_pass(data, arguments, message):
    with pytest.raises(ValueError, match=message):
        sot.solve_path(data.cost, **arguments)
