"""Problems for tensors: the structures that have a method of their own there, in every form."""

from __future__ import annotations

import numpy as np
from problems import moved

import structot as sot

Array = np.ndarray


def clouds(n: int, m: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Squared distances of two clouds with three labels each, in groups of different sizes."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, 2)), rng.normal(size=(m, 2)) + 0.5
    M = moved(((X[:, None] - Y) ** 2).sum(axis=-1))
    return M, rng.integers(0, 3, n), rng.integers(0, 3, m)


def weights(n: int, m: int, seed: int = 1) -> tuple[Array, Array]:
    """Uneven weights, one of them 0."""
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    b[0] = 0.0
    return a, b / b.sum()


def structures(rows: Array, cols: Array) -> dict[str, sot.structures.Structure | None]:
    other = np.add.outer(np.arange(rows.size), np.arange(cols.size)) / 10.0
    return {
        "plain": None,
        "own targets": sot.Modular() + sot.Coverage(rows, weights=0.02, units="block"),
        "own sources": sot.Modular() + sot.Coverage(None, cols, weights=0.02, units="block"),
        "both": sot.Modular() + sot.Coverage(rows, cols, weights=0.5),
        "many sources": sot.Modular() + sot.Coverage(np.arange(rows.size) // 2, cols, weights=0.1),
        "no cost": sot.Coverage(rows, cols, weights=np.arange(9.0).reshape(3, 3)),
        "single pairs": sot.Modular() + sot.Coverage(None, None, weights=0.5, units="block"),
        "factors": 0.5 * sot.Modular() + sot.Modular(other) + 2.0 * sot.Coverage(rows, weights=0.1),
    }


NAMES = tuple(structures(np.zeros(1, int), np.zeros(1, int)))
