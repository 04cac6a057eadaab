"""What a prox leaves behind: pools of edges that share one value, and their counts as a matrix.

Notation. A pool B is a set of edges of one block that share one value; c_B in R^{n+m} counts its
edges per row and column, w(B) is its weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from structot._typing import Array
from structot.blocks.layout import Edges


class Pools(NamedTuple):
    """The outcome of one prox: X, the order of its elements, the pools; memory for the next.

    ``order[start[b]:][:n_active[b]]`` are the elements of block b that may lie above the floor, as
    positions inside the block, pool after pool (inside a pool in any order); its ``n_pools[b]``
    pools above the floor end at the positions ``end[start[b]:][:n_pools[b]]`` of that order.
    """

    X: Array  # (E,)
    order: Array  # (E,) int32
    n_active: Array  # (B,) int64
    end: Array  # (E,) int32
    n_pools: Array  # (B,) int64

    @classmethod
    def empty(cls, edges: int, blocks: int, X: Array | None = None) -> Pools:
        """Nothing known yet; ``X`` lends its memory, and may be the point of the prox itself."""
        return cls(
            X=np.zeros(edges) if X is None else X,
            order=np.empty(edges, np.int32),
            n_active=np.zeros(blocks, np.int64),
            end=np.empty(edges, np.int32),
            n_pools=np.zeros(blocks, np.int64),
        )

    @classmethod
    def of_order(cls, x: Array, blocks: int) -> Pools:
        """Memory for an order of the elements of x and nothing else."""
        order, count = np.empty(x.size, np.int32), np.zeros(blocks, np.int64)
        return cls(X=x, order=order, n_active=count, end=order, n_pools=count)


class PoolMatrix(NamedTuple):
    """The rows c_B of all pools in CSR form, and w(B): Σ_B θ_B c_B c_Bᵀ is a Hessian."""

    indptr: Array
    indices: Array
    data: Array
    weight: Array  # (pools,)

    def sparse(self, unknowns: int) -> scipy.sparse.csr_array:
        shape = (self.weight.size, unknowns)
        return scipy.sparse.csr_array((self.data, self.indices, self.indptr), shape=shape)


def pool_matrix(
    edges: Edges, pools: Pools, shape: tuple[int, int], *, least: int = 1, above: float = -np.inf
) -> PoolMatrix:
    """The matrix of the pools of at least ``least`` edges with a value X > ``above``."""
    n, m = shape
    number, entries = _count(edges, pools, n + m, least, above)
    indptr, indices = np.empty(number + 1, np.int64), np.empty(entries, np.int32)
    data, weight = np.empty(entries), np.empty(number)
    matrix = PoolMatrix(indptr, indices, data, weight)
    size = _fill(edges, pools, n, m, least, above, matrix)
    return matrix._replace(indices=indices[:size], data=data[:size])


@njit(cache=True, nogil=True)
def _count(edges, pools, unknowns, least, above):
    """Number of pools, and a bound for the entries of all c_B: two per edge, one per unknown."""
    number = 0
    entries = 0
    for b in range(edges.start.size - 1):
        s = edges.start[b]
        low = 0
        for t in range(pools.n_pools[b]):
            high = pools.end[s + t]
            if high - low >= least and pools.X[s + pools.order[s + low]] > above:
                number += 1
                entries += min(2 * (high - low), unknowns)
            low = high
    return number, entries


@njit(cache=True, nogil=True)
def _fill(edges, pools, n, m, least, above, matrix):
    """Fill the rows c_B and w(B); returns the number of entries."""
    start, row, col, w = edges
    order = pools.order
    indptr, indices, data, weight = matrix
    count = np.zeros(n + m)
    position = 0
    number = 0
    indptr[0] = 0
    for b in range(start.size - 1):
        s = start[b]
        low = 0
        for t in range(pools.n_pools[b]):
            first = low
            low = pools.end[s + t]
            if low - first < least or not pools.X[s + order[s + first]] > above:
                continue
            begin = position
            total = 0.0
            for k in range(first, low):
                e = s + order[s + k]
                total += w[e]
                i = row[e]
                j = n + col[e]
                if count[i] == 0.0:
                    indices[position] = i
                    position += 1
                count[i] += 1.0
                if count[j] == 0.0:
                    indices[position] = j
                    position += 1
                count[j] += 1.0
            for k in range(begin, position):
                data[k] = count[indices[k]]
                count[indices[k]] = 0.0
            weight[number] = total
            number += 1
            indptr[number] = position
    return position
