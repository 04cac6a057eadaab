"""Random problems with relaxed marginals: every proof holds, and no bound is above any value."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from fuzz.generate import ORDINARY, Case, case

import structot as sot

METHODS = ("auto", "newton", "splitting", "entropic", "linear_program", "exact")
SEEDS = range(48)


def relaxation(problem: Case) -> dict:
    """Prices from a hundredth to a hundred typical costs, on one side or both, or a mass."""
    rng = np.random.default_rng([problem.seed, 7])
    finite = problem.M[np.isfinite(problem.M)]
    unit = float(np.median(finite[finite > 0])) if (finite > 0).any() else 1.0
    prices = (unit * 10.0 ** rng.uniform(-2, 2, 2)).tolist()
    kind = str(rng.choice(["KL", "TV"]))
    draw = int(rng.integers(5))
    if draw == 0:
        total = 1.0 if problem.a is None else float(np.sum(problem.a))
        return {"mass": total * float(rng.random())}
    both = {1: (prices[0], None), 2: (None, prices[1])}.get(draw, tuple(prices))
    return {"unbalanced": both, "unbalanced_type": kind}


@pytest.mark.parametrize("seed", SEEDS)
def test_relaxed_problems_are_answered_with_valid_proofs(seed):
    problem = case(seed, ORDINARY)
    if problem.convex:
        problem = case(seed + 1000, ORDINARY)
    options = {**problem.options(), **relaxation(problem), "tol": 1e-4, "max_iter": 200}
    found = {}
    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found[method] = sot.solve(problem.M, problem.a, problem.b, method=method, **options)
            except ValueError as error:
                if "does not fit" not in str(error):
                    raise
    for method, result in found.items():
        assert result.verify().holds(), method
        least = min(other.value + other.atol for other in found.values())
        assert result.lower_bound <= least + 1e-10 * abs(least) + result.atol, method
