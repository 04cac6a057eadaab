"""Kullback-Leibler projection onto the transport polytope, in the log domain.

Notation: ``L`` log kernel, ``P = exp(f_i + g_j + L_ij)`` plan, ``f, g`` log potentials, ``a, b``
marginals with the common total ``T``.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np

from structot._checks import with_marginals
from structot._deadline import check_time, time_left

from . import kernels
from .kernels import FloatArray
from .rounding import marginal_error

# Stands for the logarithm of a zero weight: finite, and exp of it adds nothing to any sum.
_LOG_ZERO = float(np.log(np.finfo(np.float64).tiny))


# Pairs times iterations between two looks at the clock.
_PORTION = 20_000_000


class SinkhornStatus(Enum):
    """Why the iteration stopped.

    Examples
    --------
    >>> import numpy as np
    >>> found = sinkhorn(np.zeros((2, 2)), np.full(2, 0.5), np.full(2, 0.5))
    >>> found.status is SinkhornStatus.CONVERGED
    True
    """

    CONVERGED = "The marginals of the plan are right to the tolerance."
    ITERATION_LIMIT = "The iteration limit was reached before the marginals were right."
    INFEASIBLE = "A row or column with mass has no finite entry in the log kernel."
    NOT_FINITE = "The log kernel or an iterate is NaN or infinite."


@dataclass(frozen=True, eq=False)
class SinkhornResult:
    """Plan and potentials, P_ij = exp(f_i + g_j + L_ij).

    Attributes
    ----------
    plan
        P, all zero when the status is INFEASIBLE or NOT_FINITE.
    log_plan
        log P from the potentials; finite where P itself underflows, -inf where P is 0 by right.
    potentials
        (f, g), always finite.
    marginal_error
        (|P1 - a|_1 + |P'1 - b|_1) / T.
    n_iter
        Row and column updates after the first row update.
    status
        A member of `SinkhornStatus`; its value is a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> found = sinkhorn(np.zeros((2, 2)), np.full(2, 0.5), np.full(2, 0.5))
    >>> found.plan
    array([[0.25, 0.25],
           [0.25, 0.25]])
    """

    plan: FloatArray
    log_plan: FloatArray
    potentials: tuple[FloatArray, FloatArray]
    marginal_error: float
    n_iter: int
    status: SinkhornStatus

    @property
    def converged(self) -> bool:
        """Whether the marginals are right to the tolerance."""
        return self.status is SinkhornStatus.CONVERGED


def sinkhorn(
    log_kernel: FloatArray,
    a: FloatArray,
    b: FloatArray,
    *,
    init: tuple[FloatArray, FloatArray] | None = None,
    tol: float = 1e-9,
    max_iter: int = 1000,
) -> SinkhornResult:
    """argmin over P in U(a, b) of KL(P || exp(L)) = sum P_ij (log P_ij - L_ij) - P_ij + exp(L_ij).

    Zero weights give zero rows or columns of P. Their log potentials stand for the smallest
    positive weight, so that exp(f_i + g_j + L_ij) is the plan to 1e-300 there as well.

    Parameters
    ----------
    log_kernel
        L, n x m; -inf where P must be 0. Entropic transport has L = -M / reg.
    a, b
        Marginals, non-negative, with equal totals T.
    init
        Log potentials (f, g) to start from. Only g matters, the first step computes f from it.
    tol
        Stop when the L1 error of the columns is below tol * T; the rows are right throughout.
    max_iter
        Largest number of iterations; 0 returns the plan with the right rows.

    Returns
    -------
    SinkhornResult
        The plan, its logarithm, the potentials, the error and a status.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> result = sinkhorn(np.array([[0.0, -np.inf], [0.0, 0.0]]), half, half, max_iter=10)
    >>> result.plan[0], result.status.name
    (array([0.5, 0. ]), 'ITERATION_LIMIT')
    >>> sinkhorn(np.log([[4.0, 1.0], [1.0, 4.0]]), half, half).plan
    array([[0.4, 0.1],
           [0.1, 0.4]])
    """
    L, a, b = with_marginals("log_kernel", log_kernel, a, b)
    f = np.zeros(a.shape[0]) if init is None else np.array(init[0], dtype=np.float64)
    g = np.zeros(b.shape[0]) if init is None else np.array(init[1], dtype=np.float64)
    f[~np.isfinite(f)] = 0.0
    g[~np.isfinite(g)] = 0.0
    rows, columns = a > 0.0, b > 0.0
    if not L.max(initial=-np.inf) < np.inf:  # true for NaN as well
        return _failure(SinkhornStatus.NOT_FINITE, L, a, b, f, g)
    if not _has_support(L, rows, columns):
        return _failure(SinkhornStatus.INFEASIBLE, L, a, b, f, g)
    total = float(a.sum())
    if rows.all() and columns.all():
        run = _alternate(L, a, b, f, g, tol * total, max_iter)
    else:
        run = _alternate_part(L, a, b, f, g, rows, columns, tol * total, max_iter)
    plan, log_plan, error, n_iter, code = run
    if code == kernels.NOT_FINITE or not (np.isfinite(f).all() and np.isfinite(g).all()):
        return _failure(SinkhornStatus.NOT_FINITE, L, a, b, f, g, n_iter)
    reached = code == kernels.CONVERGED
    status = SinkhornStatus.CONVERGED if reached else SinkhornStatus.ITERATION_LIMIT
    error = error / total if total > 0.0 else error
    return SinkhornResult(plan, log_plan, (f, g), error, n_iter, status)


def _has_support(L: FloatArray, rows: np.ndarray, columns: np.ndarray) -> bool:
    """Whether each row and column with mass has a finite entry that meets mass."""
    if L.min(initial=0.0) > -np.inf:
        return bool(rows.any() == columns.any())
    finite = ~np.isneginf(L) & rows[:, None] & columns
    return bool(finite.any(axis=1)[rows].all() and finite.any(axis=0)[columns].all())


def _alternate(
    L: FloatArray,
    a: FloatArray,
    b: FloatArray,
    f: FloatArray,
    g: FloatArray,
    goal: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float, int, int]:
    """All iterations in one call of the kernel, or a portion at a time where time is limited."""
    if time_left() == float("inf"):
        return kernels.alternate(L, a, b, f, g, goal, max_iter)
    portion, done = max(_PORTION // L.size, 1), 0
    while True:
        check_time()
        steps = min(portion, max_iter - done)
        plan, log_plan, error, n_iter, code = kernels.alternate(L, a, b, f, g, goal, steps)
        done += n_iter
        if code != kernels.LIMIT or done >= max_iter:
            return plan, log_plan, error, done, code


def _alternate_part(
    L: FloatArray,
    a: FloatArray,
    b: FloatArray,
    f: FloatArray,
    g: FloatArray,
    rows: np.ndarray,
    columns: np.ndarray,
    goal: float,
    max_iter: int,
) -> tuple[FloatArray, FloatArray, float, int, int]:
    """Iterate on the points with mass only; writes f and g, the rest from the last formula."""
    plan = np.zeros(L.shape)
    log_plan = np.full(L.shape, -np.inf)
    error, n_iter, code = 0.0, 0, kernels.CONVERGED
    if rows.any():
        part = np.ix_(rows, columns)
        f_part, g_part = f[rows], g[columns]
        plan[part], log_plan[part], error, n_iter, code = _alternate(
            L[part], a[rows], b[columns], f_part, g_part, goal, max_iter
        )
        f[rows], g[columns] = f_part, g_part
        f[~rows] = _spare(L[~rows][:, columns] + g_part, axis=1)
        g[~columns] = _spare(L[rows][:, ~columns] + f_part[:, None], axis=0)
    return plan, log_plan, error, n_iter, code


def _spare(exponents: FloatArray, axis: int) -> FloatArray:
    """The potential that gives a point without mass the smallest positive total."""
    total = np.logaddexp.reduce(exponents, axis=axis)
    return np.where(np.isfinite(total), _LOG_ZERO - total, 0.0)


def _failure(
    status: SinkhornStatus,
    L: FloatArray,
    a: FloatArray,
    b: FloatArray,
    f: FloatArray,
    g: FloatArray,
    n_iter: int = 0,
) -> SinkhornResult:
    """No plan: zeros, with the error they have, and potentials without NaN or infinity."""
    plan = np.zeros(L.shape)
    log_plan = np.full(L.shape, -np.inf)
    f, g = (np.where(np.isfinite(potential), potential, 0.0) for potential in (f, g))
    return SinkhornResult(plan, log_plan, (f, g), marginal_error(plan, a, b), n_iter, status)
