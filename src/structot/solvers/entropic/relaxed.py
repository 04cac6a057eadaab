"""Sinkhorn's iteration for relaxed marginals."""

from __future__ import annotations

import numpy as np

from structot._deadline import check_time
from structot._parallel import over_blocks
from structot._typing import Array
from structot.marginals import Marginals
from structot.solvers.entropic import kernels


def relaxed_sinkhorn(
    L: Array, marginals: Marginals, reg: float, q: Array, sweeps: int
) -> tuple[Array, Array]:
    """argmax over p, then over q, and so on, of D_a°(p) + D_b°(q) - reg Σ exp(L + (p ⊕ q)/reg)."""
    LT = np.ascontiguousarray(L.T)
    for _ in range(sweeps):
        check_time()
        p = marginals.rows.respond(_log_sums(L, q / reg), reg)
        q = marginals.columns.respond(_log_sums(LT, p / reg), reg)
    return p, q


def _log_sums(L: Array, g: Array) -> Array:
    out = np.empty(L.shape[0])
    start = np.arange(L.shape[0] + 1) * L.shape[1]
    over_blocks(start, lambda i, j: kernels.log_sums(i, j, L, g, out))
    return out
