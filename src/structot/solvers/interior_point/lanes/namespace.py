"""The few operations that differ between array libraries, for NumPy.

The method itself (`newton.py`, `path.py`) uses operators, slices, `reshape`, `swapaxes`, `sum`, and
what is listed here. Another library, on whatever device, takes part with a class of the same
methods. All numbers are doubles.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import lapack

from structot._parallel import at_once, in_turns

Array = Any  # of the library in use
Number = Any  # a float, or what a library keeps in its place where floats are far away

# A factorisation that fails is tried again with its diagonal raised by these parts.
RAISED = (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6)
# Order of matrices below which a call of LAPACK for each of a batch costs more than it saves.
_SMALL = 24


def _shared(operation: np.ufunc) -> Any:
    """The same operation into a large ``out`` of two dimensions, by all threads."""

    def call(x: Array, y: Array, out: Array | None = None) -> Array:
        if out is None or out.ndim != 2:
            return operation(x, y, out=out)

        def part(turn: int, turns: int) -> None:
            i, j = (k * len(out) // turns for k in (turn, turn + 1))
            rows = (z[i:j] if np.ndim(z) == 2 and len(z) > 1 else z for z in (x, y))
            operation(*rows, out=out[i:j])

        in_turns(out.size, part)
        return out

    return staticmethod(call)


class NumPy:
    """Arrays of NumPy, linear algebra by LAPACK, shared by threads of our own.

    Those of BLAS would wait for each other at every small matrix; on a machine with few or busy
    cores that takes longer than the work. Here a thread has a piece of every panel, or some rows.
    """

    # Of each panel, however many threads there are: the answer does not depend on their number.
    pieces = 16

    add: Any = _shared(np.add)
    divide: Any = _shared(np.divide)
    multiply: Any = _shared(np.multiply)
    subtract: Any = _shared(np.subtract)
    at_once = staticmethod(at_once)
    where: Any = staticmethod(np.where)
    maximum: Any = staticmethod(np.maximum)
    minimum: Any = staticmethod(np.minimum)
    sqrt: Any = staticmethod(np.sqrt)

    def array(self, x: np.ndarray) -> Array:
        """A new array of this library with the same numbers."""
        return np.array(x)

    def numpy(self, x: Array) -> np.ndarray:
        """The same numbers as an array of NumPy."""
        return x

    def zeros(self, shape: tuple[int, ...]) -> Array:
        return np.zeros(shape)

    def empty(self, shape: tuple[int, ...]) -> Array:
        """An array to be written to before it is read."""
        return np.empty(shape)

    def run(self, work: Callable[..., tuple[Number, ...]], *numbers: float) -> tuple[float, ...]:
        """The numbers that a stage returns, as floats.

        A stage is a method that does the same operations in every call, on arrays that stay where
        they are: it writes into arrays that were there before, and what it makes it makes anew in
        every call. So a library may record a stage once and replay it, with other ``numbers``.
        """
        return work(*numbers)

    def kept(self, x: Array) -> Array:
        """An array that a stage made anew, for longer than to the next call of the stage."""
        return x

    def clip(self, x: Array, low: Number, high: Number) -> Array:
        return np.clip(x, low, high)

    def least(self, x: Array) -> Number:
        """The smallest entry."""
        return float(x.min())

    def smallest(self, *numbers: Number) -> Number:
        """The smallest of some numbers; not a number if one of them is none."""
        return float(np.min(numbers))

    def largest(self, x: Array, axis: int) -> Array:
        """The largest entries along an axis."""
        return x.max(axis=axis)

    def dot(self, x: Array, y: Array) -> Number:
        """Σ x y of two arrays of one shape."""
        return float(np.vdot(x, y))

    def weighted(self, parts: list[tuple[Number, ...]], p: Number, d: Number) -> Number:
        """Σ (r + p s + d t + p d u) over parts (r, s, t, u)."""
        total = 0.0
        for r, s, t, u in parts:
            total += r + p * s + d * t + p * d * u
        return total

    def diagonal(self, A: Array) -> Array:
        """The diagonals of a batch of square matrices (..., q, q), to read and to write."""
        return np.einsum("...ii->...i", A)

    def cholesky(self, A: Array) -> Array:
        """L with L Lᵀ = A for a batch (..., q, q); `numpy.linalg.LinAlgError` where that fails."""
        return np.sqrt(A) if A.shape[-1] == 1 and A.min() > 0 else np.linalg.cholesky(A)

    def inverse_of_lower(self, L: Array) -> Array:
        """L⁻¹ for a batch of lower triangular matrices, which may be overwritten."""
        if L.shape[-1] == 1:
            return 1.0 / L
        if L.shape[-1] < _SMALL:
            return np.linalg.inv(L)
        for one in L.reshape(-1, *L.shape[-2:]):
            one[...] = lapack.dtrtri(one.T, lower=0, overwrite_c=0)[0].T
        return L

    def subtract_gram(self, S: Array, T: Array) -> Array:
        """S - Tᵀ T for a symmetric S, of which only the lower triangle of the answer counts."""
        cuts = np.linspace(0, len(S), self.pieces + 1).astype(int).tolist()

        def subtract(rows: tuple[int, int]) -> None:
            i, j = rows
            S[i:j, :j] -= T[:, i:j].T @ T[:, :j]

        at_once(T.size, subtract, itertools.pairwise(cuts))
        return S

    def factor(self, S: Array, part: float, size: Array) -> Array:
        """The Cholesky factor of S + part diag(size), lower triangle; LinAlgError if it fails."""
        A = S.copy()
        A.reshape(-1)[:: len(A) + 1] += part * size
        L, info = lapack.dpotrf(A.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError("not positive definite")
        return L.T

    def solve(self, L: Array, r: Array) -> Array:
        """(L Lᵀ)⁻¹ r."""
        x, _ = lapack.dpotrs(L.T, r, lower=0)
        return x
