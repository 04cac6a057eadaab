"""Sending a small rest through allowed pairs only: augmenting paths on a bipartite graph.

Notation: ``X`` a plan, ``r, c`` what its rows and columns still lack, ``allowed`` the pairs that
may carry mass.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .kernels import BoolArray, FloatArray

_jit = njit(cache=True, nogil=True, error_model="numpy")
IntArray = NDArray[np.int64]


class InfeasibleError(ValueError):
    """No plan with these marginals keeps clear of the forbidden pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from structot.transport import emd
    >>> try:
    ...     emd(np.array([[1.0, np.inf], [1.0, np.inf]]), np.full(2, 0.5), np.full(2, 0.5))
    ... except InfeasibleError:
    ...     print("no plan")
    no plan
    """


@_jit
def _shortest_path(
    X: FloatArray,
    allowed: BoolArray,
    r: FloatArray,
    c: FloatArray,
    from_row: IntArray,
    from_column: IntArray,
    queue: IntArray,
) -> int:
    # Breadth first from all rows that lack mass: i -> j where the pair is allowed, j -> i where X
    # can give mass back. from_row[j], from_column[i] are the predecessors; returns a column that
    # lacks mass, or -1. A row that starts has predecessor -1, one not yet seen -2.
    n, m = X.shape
    tail = 0
    for j in range(m):
        from_row[j] = -1
    for i in range(n):
        from_column[i] = -2
        if r[i] > 0.0:
            from_column[i] = -1
            queue[tail] = i
            tail += 1
    head = 0
    while head < tail:
        i = queue[head]
        head += 1
        for j in range(m):
            if allowed[i, j] and from_row[j] < 0:
                from_row[j] = i
                if c[j] > 0.0:
                    return j
                for k in range(n):
                    if from_column[k] == -2 and X[k, j] > 0.0:
                        from_column[k] = j
                        queue[tail] = k
                        tail += 1
    return -1


@_jit
def push_rest(X: FloatArray, allowed: BoolArray, r: FloatArray, c: FloatArray) -> None:
    """Add the rest r, c to X along shortest augmenting paths, all three in place.

    Ends when no path is left. By the max-flow min-cut theorem the rest is then as small as the
    allowed pairs permit: zero exactly when some plan with these marginals uses allowed pairs only.
    """
    n, m = X.shape
    from_row = np.empty(m, np.int64)
    from_column = np.empty(n, np.int64)
    queue = np.empty(n, np.int64)
    while True:
        end = _shortest_path(X, allowed, r, c, from_row, from_column, queue)
        if end < 0:
            return
        amount = c[end]
        i = from_row[end]
        while from_column[i] >= 0:
            j = from_column[i]
            amount = min(amount, X[i, j])
            i = from_row[j]
        amount = min(amount, r[i])
        r[i] -= amount
        c[end] -= amount
        i = from_row[end]
        X[i, end] += amount
        while from_column[i] >= 0:
            j = from_column[i]
            X[i, j] -= amount
            i = from_row[j]
            X[i, j] += amount
