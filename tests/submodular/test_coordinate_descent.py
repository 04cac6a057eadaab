"""Projection onto the base polytope of a sum, layer by layer, against generic solvers."""

from __future__ import annotations

import numpy as np
import pytest
from brute_force import descent, excess, tabulate
from problems import moved

import structot as sot
from structot.submodular import min_norm_point
from structot.submodular.coordinate_descent import project_sum

STRUCTURES = {
    "overlapping groups": sot.Groups([[0, 1], [1, 2]], [[0, 1], [0, 2]], sot.concave.Sqrt()),
    "groups and coverage": sot.Groups([0, 0, 1], [0, 1, 1]) + sot.Coverage([0, 1, 1], weights=0.5),
    "hierarchy": sot.Hierarchy([[0, 1, 2], [0, 0, 1]], [[0, 0, 1], [0, 0, 0]], sot.concave.Log(1)),
    "with a linear part": sot.Modular() + sot.Coverage([[0, 1], [1, 2]], [[0], [0, 1, 2]]),
}


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_the_min_norm_point_and_with_enumeration(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = moved(rng.uniform(0.1, 2, (3, 3)))
    F = STRUCTURES[name].bind(M)
    assert len(F.layers) > 1
    assert len(F.layers) > 1
    Z = rng.normal(1.0, 1.0, (3, 3))
    K = F.project(Z)
    np.testing.assert_allclose(K, min_norm_point(F, Z, tol=1e-14), atol=1e-5)
    # The projection is characterised by ⟨K - Z, K - K'⟩ <= 0 for all K' in B(F).
    table = tabulate(F.value, np.ones((3, 3), bool))
    assert excess(table, K) <= 1e-12 * table.values[-1]
    assert descent(table, K, K - Z) <= 1e-8 * max(float(np.sum((K - Z) ** 2)), 1.0)


@pytest.mark.parametrize("largest", [0.0, 1.0])
def test_a_point_inside_is_found(largest: float) -> None:
    """Its distance goes to 0, so that no accuracy relative to it is ever reached."""
    rng = np.random.default_rng(1)
    generic = 0.1 * sot.structures.Rank(rng.normal(size=(4, 3)))
    groups = sot.Groups([[0, 1], [1, 2, 3]], None, sot.concave.Sqrt())
    F = (groups + generic).bind(rng.uniform(0, largest, (4, 5)))
    assert len(F.layers) > 1
    corners = [F.greedy(rng.normal(size=F.shape)) for _ in range(6)]
    inside = np.mean(corners, axis=0)
    assert F.project(inside) == pytest.approx(inside, abs=1e-8)
    assert F.excess(inside) <= 1e-12
    assert F.excess(corners[0] + 1e-3 * (corners[0] - inside)) > 1e-6


def test_every_sweep_stays_in_the_base_polytope() -> None:
    M = np.random.default_rng(0).uniform(0.1, 2, (3, 3))
    F = STRUCTURES["overlapping groups"].bind(M)
    assert len(F.layers) > 1
    table = tabulate(F.value, np.ones((3, 3), bool))
    far = np.random.default_rng(1).normal(0, 100, (3, 3))
    for sweeps in (1, 2, 3):
        K = project_sum(F.layers, far, max_sweeps=sweeps)
        assert excess(table, K) <= 1e-12 * table.values[-1]


def test_minimisation_of_a_sum_finds_the_least_set() -> None:
    rng = np.random.default_rng(3)
    for name, structure in STRUCTURES.items():
        F = structure.bind(rng.uniform(0.1, 2, (3, 3)))
        table = tabulate(F.value, np.ones((3, 3), bool))
        shift = rng.normal(-0.5, 1.0, (3, 3))
        values = [table.values[s] + shift[mask].sum() for s, mask in enumerate(table.masks((3, 3)))]
        assert F.minimize(shift).value == pytest.approx(min(values), abs=1e-7), name


@pytest.mark.parametrize("method", ["mirror_descent", "saddle_mirror_descent", "mirror_prox"])
def test_the_papers_solvers_on_overlapping_groups(method: str) -> None:
    rng = np.random.default_rng(4)
    M = moved(np.linalg.norm(rng.normal(size=(5, 1, 2)) - rng.normal(size=(1, 5, 2)), axis=2))
    bigrams = sot.groups.ngrams(5, 2), sot.groups.ngrams(5, 2)
    structure = sot.Groups(*bigrams, sot.concave.Sqrt())
    best = sot.solve(M, structure=structure, tol=1e-6)
    result = sot.solve(M, structure=structure, method=method, tol=2e-2)
    assert result.converged
    assert result.lower_bound <= best.value + 1e-9
    assert result.value >= best.lower_bound - 1e-9
