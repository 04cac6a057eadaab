"""A call of HiGHS, with the tolerances, scales and limits of time that all programs here need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csc_array

from structot._deadline import OutOfTime, call_foreign, time_left
from structot._typing import Array

# Mean weight of a point in a program. HiGHS has absolute tolerances for values near 1, and a plan
# that is spread over its block has entries far below the weights.
MEAN_WEIGHT = 256.0
# Seconds per entry of the matrix that HiGHS and SciPy take before they can be stopped.
_PREPARATION = 3e-7
_OPTIONS = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "ipm_optimality_tolerance": 1e-12,
}


def call_highs(
    cost: Array,
    matrix: csc_array,
    limits: Array,
    bounds: Array,
    algorithm: str,
    seconds: float | None,
) -> tuple[Array, Array] | None:
    """x and the multipliers >= 0 of min cost·x over matrix x <= limits; None if HiGHS gives up."""
    options: dict[str, Any] = dict(_OPTIONS)
    left = time_left() if seconds is None else min(seconds, time_left())
    if math.isfinite(left):
        options["time_limit"] = left
    if time_left() < _PREPARATION * matrix.nnz:
        raise OutOfTime
    answer = call_foreign(
        linprog, cost, A_ub=matrix, b_ub=limits, bounds=bounds, method=algorithm, options=options
    )
    if answer.status != 0 or answer.x is None or not np.isfinite(answer.x).all():
        return None
    return answer.x, -answer.ineqlin.marginals


def power_of_two(x: float) -> float:
    """The largest power of two that is not above x > 0: scaling by it rounds nothing."""
    return 2.0 ** math.floor(math.log2(x))
