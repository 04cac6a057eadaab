"""Scalar concave functions g on [0, inf) with g(0) = 0 and g non-decreasing.

Notation: F(S) = g(w(S)) is the cost of a set S of edges with total ground cost w(S) = x. What the
solvers need of g are mean slopes (g(x + h) - g(x)) / h over tiny steps h, here called secants; the
plain quotient loses all digits there, so every family brings a form without cancellation.
"""

from structot.concave.base import Concave
from structot.concave.custom import Custom, as_concave
from structot.concave.families import (
    Discount,
    Linear,
    Log,
    PiecewiseLinear,
    Power,
    Sqrt,
    Step,
    ThresholdSqrt,
    Truncation,
)
from structot.concave.table import ConcaveTable, pack_table

__all__ = [
    "Concave",
    "ConcaveTable",
    "Custom",
    "Discount",
    "Linear",
    "Log",
    "PiecewiseLinear",
    "Power",
    "Sqrt",
    "Step",
    "ThresholdSqrt",
    "Truncation",
    "as_concave",
    "pack_table",
]
