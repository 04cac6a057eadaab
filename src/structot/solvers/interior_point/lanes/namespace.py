"""The few operations that differ between array libraries, for NumPy.

The method itself (`newton.py`, `path.py`) uses operators, slices, `reshape`, `swapaxes`, `sum`, and
what is listed here. Another library, on whatever device, takes part with a class of the same
methods. All numbers are doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import blas, lapack

Array = Any  # of the library in use

# Order of matrices below which a call of LAPACK for each of a batch costs more than it saves.
_SMALL = 24


class NumPy:
    """Arrays of NumPy, linear algebra by LAPACK."""

    add: Any = staticmethod(np.add)
    divide: Any = staticmethod(np.divide)
    multiply: Any = staticmethod(np.multiply)
    subtract: Any = staticmethod(np.subtract)
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

    def clip(self, x: Array, low: float, high: float) -> Array:
        return np.clip(x, low, high)

    def least(self, x: Array) -> float:
        """The smallest entry."""
        return float(x.min())

    def largest(self, x: Array, axis: int) -> Array:
        """The largest entries along an axis."""
        return x.max(axis=axis)

    def dot(self, x: Array, y: Array) -> float:
        """Σ x y of two arrays of one shape."""
        return float(np.vdot(x, y))

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
        # BLAS thinks in columns: of its transpose the lower triangle is the upper one.
        return blas.dsyrk(-1.0, T.T, beta=1.0, c=S.T, lower=0, overwrite_c=1).T

    def factor(self, S: Array, raised: Array) -> Array:
        """The Cholesky factor of S + diag(raised), lower triangle; LinAlgError where it fails."""
        A = S.copy()
        A.reshape(-1)[:: len(A) + 1] += raised
        L, info = lapack.dpotrf(A.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise np.linalg.LinAlgError("not positive definite")
        return L.T

    def solve(self, L: Array, r: Array) -> Array:
        """(L Lᵀ)⁻¹ r."""
        x, _ = lapack.dpotrs(L.T, r, lower=0)
        return x
