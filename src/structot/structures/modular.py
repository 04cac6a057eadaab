"""Modular: a linear term."""

from __future__ import annotations

import numpy as np

from structot._checks import as_cost
from structot._typing import Array
from structot.structures.base import Structure
from structot.submodular.bound import BoundCost


class Modular(Structure):
    """F(S) = Σ_{(i,j) in S} C_ij: every pair for itself, as in plain optimal transport.

    Parameters
    ----------
    cost
        C, shape (n, m); the ground cost M of the problem by default.

    Examples
    --------
    The fixed charge: the plain cost plus a price for opening a route between two groups.

    >>> import structot as sot
    >>> sot.Modular() + sot.Coverage(["a", "a", "b"], weights=0.1)
    Modular() + Coverage(['a', 'a', 'b'], weights=0.1)
    """

    def __init__(self, cost: object | None = None) -> None:
        self.cost = None if cost is None else as_cost(cost, "cost")

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        if self.cost is None:
            return BoundCost.of(M, [])
        if self.cost.shape != M.shape:
            raise ValueError(
                f"Modular(cost=...) has shape {self.cost.shape}, but M has {M.shape}; "
                "they must agree."
            )
        return BoundCost.of(np.where(np.isfinite(M), self.cost, np.inf), [])

    def __repr__(self) -> str:
        return "Modular()" if self.cost is None else f"Modular(<cost {self.cost.shape}>)"
