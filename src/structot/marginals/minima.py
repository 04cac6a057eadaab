"""Minima over rows and columns of a cost K (n, m), some rows at a time.

K - u as a whole would be as large as the problem, where a solver still holds its own memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from structot._typing import Array

# Entries that are looked at at a time.
_ENTRIES = 1 << 16


def _some_rows(K: Array) -> Iterator[slice]:
    """A few rows of K at a time: whatever is computed of them takes little memory."""
    step = max(_ENTRIES // K.shape[1], 1)
    return (slice(i, i + step) for i in range(0, K.shape[0], step))


def have_pairs(K: Array) -> tuple[Array, Array]:
    """Which rows, and which columns, have a finite entry."""
    rows, cols = np.empty(K.shape[0], bool), np.zeros(K.shape[1], bool)
    for some in _some_rows(K):
        pairs = np.isfinite(K[some])
        rows[some] = pairs.any(axis=1)
        cols |= pairs.any(axis=0)
    return rows, cols


def least_of_columns(K: Array, u: Array) -> Array:
    """min_i K_ij - u_i."""
    parts = [np.min(K[some] - u[some, None], axis=0) for some in _some_rows(K)]
    return np.minimum.reduce(parts)


def least_of_rows(K: Array, v: Array) -> Array:
    """min_j K_ij - v_j."""
    return np.concatenate([np.min(K[some] - v, axis=1) for some in _some_rows(K)])
