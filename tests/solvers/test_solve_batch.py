"""Many problems in one call: the answers of `solve`, proofs that hold, and nothing lost."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import structot as sot
from structot.concave import Discount, Log, Power, Sqrt, ThresholdSqrt, Truncation
from structot.outcome import Status


def problems(count, seed=0, least=2, most=9):
    """Ragged costs, weights and labels."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, m = rng.integers(least, most + 1, 2)
        a, b = rng.dirichlet(np.full(n, 3.0)), rng.dirichlet(np.full(m, 3.0))
        yield rng.uniform(0.1, 2.0, (n, m)), a, b, rng.integers(0, 3, n), rng.integers(0, 3, m)


def windows(n):
    return sot.groups.ngrams(n, 2, padded=True) if n > 1 else [[0]]


STRUCTURES = {
    "plain": lambda ys, yt: None,
    "groups": lambda ys, yt: sot.Groups(ys, yt),
    "square roots": lambda ys, yt: sot.Groups(ys, yt, Sqrt(), units="cost"),
    "thresholds": lambda ys, yt: sot.Groups(ys, None, ThresholdSqrt(0.5), units="cost"),
    "pipes": lambda ys, yt: 0.5 * sot.Modular() + sot.Groups(ys, yt, Truncation(0.4)),
    "powers": lambda ys, yt: sot.Groups(None, yt, Power(0.6)),
    "fixed charge": lambda ys, yt: sot.Modular() + sot.Coverage(ys, yt, weights=0.3),
    "own targets": lambda ys, yt: sot.Modular() + sot.Coverage(ys, weights=0.1, units="block"),
    "phrases": lambda ys, yt: (
        sot.Modular() + sot.Coverage(windows(ys.size), windows(yt.size), weights=0.2)
    ),
    "hierarchy": lambda ys, yt: sot.Hierarchy([ys, ys // 2], [yt, yt // 2], Log(0.3)),
}
WITH_ENTROPY = ("plain", "fixed charge", "own targets", "groups")


def batch(name, seed=0, count=12, **options):
    Ms, a, b, ys, yt = zip(*problems(count, seed), strict=True)
    structures = [STRUCTURES[name](*labels) for labels in zip(ys, yt, strict=True)]
    results = sot.solve_batch(Ms, a, b, structures=structures, **options)
    return list(zip(Ms, a, b, structures, results, strict=True))


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_answer_is_that_of_solve_and_its_proof_holds(name):
    for M, a, b, structure, result in batch(name, tol=1e-5):
        alone = sot.solve(M, a, b, structure=structure, tol=1e-7)
        assert result.converged
        assert result.verify().holds()
        assert result.value == pytest.approx(alone.value, rel=3e-5)
        assert result.lower_bound <= alone.value + alone.atol
        assert result.value_linear == pytest.approx(float(np.sum(result.plan * M)))


@pytest.mark.parametrize("reg", [0.02, 0.5])
@pytest.mark.parametrize("name", WITH_ENTROPY)
def test_every_answer_is_that_of_solve_with_entropy(name, reg):
    for M, a, b, structure, result in batch(name, seed=1, count=6, tol=1e-6, reg=reg):
        alone = sot.solve(M, a, b, structure=structure, tol=1e-8, reg=reg)
        assert result.converged
        assert result.verify().holds()
        assert result.value == pytest.approx(alone.value, rel=3e-6, abs=alone.atol + result.atol)
        assert result.value_structured <= result.value


def test_problems_of_one_kind_and_one_structure_may_come_as_one_array():
    rng = np.random.default_rng(2)
    Ms = rng.random((5, 6, 4))
    structure = sot.Groups([0, 0, 1, 1, 2, 2], [0, 1, 0, 1])
    results = sot.solve_batch(Ms, structures=structure, tol=1e-5)
    values = [sot.solve(M, structure=structure, tol=1e-7).value for M in Ms]
    assert [result.value for result in results] == pytest.approx(values, rel=3e-5)
    assert all(result.structure is structure for result in results)


def test_what_the_compiled_engine_cannot_take_is_solved_all_the_same():
    M = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, np.inf], [2.0, 5.0, 1.0]])
    structures = [
        sot.Groups([0, 0, 1], [0, 1, 1]),  # with a forbidden pair
        sot.Modular() + sot.ChainCut(0.3),
        sot.Groups([0, 0, 1], None, lambda x: np.sqrt(x)),
        None,
    ]
    results = sot.solve_batch([M] * 4, structures=structures, tol=1e-6)
    for structure, result in zip(structures, results, strict=True):
        assert result.converged
        assert result.plan[1, 2] == 0.0
        assert result.verify().holds()
        assert result.method != "batch"
        assert result.value == pytest.approx(sot.solve(M, structure=structure, tol=1e-8).value)


def test_the_order_of_the_problems_changes_no_bit():
    Ms, a, b, ys, yt = (list(x) for x in zip(*problems(20, seed=3), strict=True))
    structures = [STRUCTURES["phrases"](*labels) for labels in zip(ys, yt, strict=True)]
    forward = sot.solve_batch(Ms, a, b, structures=structures)
    backward = sot.solve_batch(Ms[::-1], a[::-1], b[::-1], structures=structures[::-1])
    for one, other in zip(forward, backward[::-1], strict=True):
        np.testing.assert_array_equal(one.plan, other.plan)
        assert one.lower_bound == other.lower_bound


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_number_of_jobs_changes_no_bit(n_jobs):
    Ms, a, b, ys, _ = zip(*problems(8, seed=4), strict=True)
    structures = [sot.Modular() + sot.Coverage(y, weights=0.2) for y in ys]
    plain = sot.solve_batch(Ms, a, b, structures=structures)
    spread = sot.solve_batch(Ms, a, b, structures=structures, n_jobs=n_jobs)
    for one, other in zip(plain, spread, strict=True):
        np.testing.assert_array_equal(one.plan, other.plan)


@pytest.mark.parametrize("power", [-200, -40, -1, 1, 40, 200])
@pytest.mark.parametrize("reg", [0.0, 0.25])
def test_units_change_no_bit(power, reg):
    Ms, a, b, ys, yt = zip(*problems(6, seed=5), strict=True)
    factor = 2.0**power

    def answers(cost, mass):
        charges = [
            sot.Modular() + sot.Coverage(*labels, weights=0.25 * cost)
            for labels in zip(ys, yt, strict=True)
        ]
        weights = [[mass * x for x in side] for side in (a, b)]
        Ms_there = [cost * M for M in Ms]
        return sot.solve_batch(Ms_there, *weights, structures=charges, reg=reg * cost, tol=1e-5)

    plain = answers(1.0, 1.0)
    for one, other in zip(plain, answers(factor, 1.0), strict=True):
        np.testing.assert_array_equal(one.plan, other.plan)
        np.testing.assert_array_equal(one.potentials[0] * factor, other.potentials[0])
        assert one.lower_bound * factor == other.lower_bound
    for one, other in zip(plain, answers(1.0, factor), strict=True):
        np.testing.assert_array_equal(one.plan * factor, other.plan)


def test_points_without_weight_send_nothing():
    rng = np.random.default_rng(6)
    Ms, a = rng.random((3, 4, 5)), np.array([0.5, 0.0, 0.25, 0.25])
    structure = sot.Groups([0, 0, 1, 1], [0, 0, 1, 1, 1], Discount(0.5))
    for result in sot.solve_batch(Ms, [a] * 3, structures=structure, tol=1e-5):
        assert result.converged
        assert not result.plan[1].any()
        assert result.verify().holds()


def test_single_precision_comes_back_as_it_came():
    M = np.random.default_rng(7).random((2, 3, 3)).astype(np.float32)
    results = sot.solve_batch(M, structures=sot.Groups([0, 0, 1], [0, 1, 1]))
    assert all(result.plan.dtype == np.float32 for result in results)


def test_no_problems_no_answers():
    assert sot.solve_batch([]) == []


# --------------------------------------------------------------------------------------------------
# Limits, starts, and words
# --------------------------------------------------------------------------------------------------


def test_limits_leave_certified_answers_and_are_said_once():
    Ms, a, b, ys, yt = zip(*problems(5, seed=8, least=6), strict=True)
    structures = [STRUCTURES["hierarchy"](*labels) for labels in zip(ys, yt, strict=True)]
    for limits, status in (
        ({"max_iter": 1}, Status.ITERATION_LIMIT),
        ({"time_limit": 1e-9}, Status.TIME_LIMIT),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            results = sot.solve_batch(Ms, a, b, structures=structures, tol=1e-12, **limits)
        assert sum(issubclass(w.category, sot.ConvergenceWarning) for w in said) == 1
        assert "of 5 problems missed" in str(said[-1].message)
        for result in results:
            assert result.status is status
            assert result.lower_bound <= result.value
            assert result.verify().holds()


def test_starts_and_callbacks_are_for_solve():
    Ms, a, b, ys, yt = zip(*problems(3, seed=9), strict=True)
    structures = [STRUCTURES["groups"](*labels) for labels in zip(ys, yt, strict=True)]
    first = sot.solve_batch(Ms, a, b, structures=structures)
    seen = []
    again = sot.solve_batch(
        Ms, a, b, structures=structures, init=first, callback=lambda state: seen.append(state.gap)
    )
    assert len(seen) >= 3
    assert all(result.converged and result.method != "batch" for result in again)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sot.solve_batch(np.ones((2, 2))), r"pass \[M\]"),
        (lambda: sot.solve_batch([np.ones((2, 2))], [None, None]), "a has 2 entries for 1 problem"),
        (lambda: sot.solve_batch([np.ones((2, 2)), [[-1.0]]]), "problem 1: "),
        (lambda: sot.solve_batch([np.ones((2, 2))], structures=[]), "structures has 0 entries"),
        (lambda: sot.solve_batch([np.ones((2, 2))], tol=-1), "tol"),
    ],
)
def test_wrong_calls_say_how_to_repair_them(call, message):
    with pytest.raises(ValueError, match=message):
        call()
