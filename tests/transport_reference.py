"""The compiled iterations of transport in plain NumPy: their referee."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


def alternate_reference(
    L: Array, a: Array, b: Array, g: Array, goal: float, max_iter: int
) -> tuple[Array, Array, Array, int]:
    """The same iteration in plain log-domain NumPy: plan, f, g, number of iterations."""
    n_iter = 0
    while True:
        f = np.log(a) - np.logaddexp.reduce(L + g, axis=1)  # (n,)
        P = np.exp(L + f[:, None] + g)  # (n, m)
        if np.abs(P.sum(axis=0) - b).sum() <= goal or n_iter == max_iter:
            return P, f, g, n_iter
        n_iter += 1
        g = np.log(b) - np.logaddexp.reduce(L + f[:, None], axis=0)  # (m,)


def c_transform_reference(K: Array, u: Array, v: Array) -> tuple[Array, Array]:
    """The c-transform in NumPy, without the last rounding downwards."""
    some_row = np.isfinite(K[np.isfinite(u)]).any(axis=0)
    column = np.min(K - np.where(np.isfinite(u), u, -np.inf)[:, None], axis=0, initial=np.inf)
    v = np.where(some_row, column, v)
    row = np.min(K - v, axis=1, initial=np.inf)
    return np.where(np.isfinite(row), row, 0.0), v
