"""Edges in block order: compiled moves between (n, m) arrays and flat lists of edges."""

from typing import NamedTuple

import numpy as np
from numba import njit


class Edges(NamedTuple):
    """Edges one block after the other: block b owns the positions ``start[b]:start[b+1]``."""

    start: np.ndarray  # (B+1,) int64
    row: np.ndarray  # (E,) int32
    col: np.ndarray  # (E,) int32
    w: np.ndarray  # (E,) the weights inside g, also the metric


def block_order(weights, row_group, col_group):
    """Pairs of finite positive weight, block after block, rows before columns inside a block.

    Rows and columns of the group -1 belong to no block. Returns row, col (int32), start (int64) and
    ``used``: the number (row group · column groups + column group) of each block that has edges.
    """
    row_order, row_start = _members(row_group)
    col_order, col_start = _members(col_group)
    size = _block_sizes(weights, row_order, col_order, row_start, col_start)
    used = np.flatnonzero(size)
    start = np.concatenate([[0], np.cumsum(size[used])]).astype(np.int64)
    row = np.empty(start[-1], np.int32)
    col = np.empty(start[-1], np.int32)
    _fill(weights, row_order, col_order, row_start, col_start, row, col)
    return row, col, start, used


def label_order(weights, labels):
    """The same for blocks of any form, given by one label per pair, -1 for no block."""
    inside = np.flatnonzero((labels >= 0) & (weights > 0) & np.isfinite(weights))
    label = labels.ravel()[inside]
    order = np.argsort(label, kind="stable")
    row, col = np.unravel_index(inside[order], weights.shape)
    used, size = np.unique(label, return_counts=True)
    start = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    return row.astype(np.int32), col.astype(np.int32), start, used


def append_block(row, col, start, extra, weights):
    """One more block, of the edges with the flat indices ``extra``; nothing if there are none."""
    if extra.size == 0:
        return row, col, start
    i, j = np.unravel_index(extra, weights.shape)
    row = np.concatenate([row, i.astype(np.int32)])
    col = np.concatenate([col, j.astype(np.int32)])
    return row, col, np.append(start, row.size)


def _members(group):
    """The members of each group one after the other, and where each begins."""
    order = np.argsort(group, kind="stable")
    order = order[np.count_nonzero(group < 0) :]
    sizes = np.bincount(group[order])
    return order, np.concatenate([[0], np.cumsum(sizes)])


@njit(cache=True, nogil=True)
def _block_sizes(weights, row_order, col_order, row_start, col_start):
    rows, cols = row_start.size - 1, col_start.size - 1
    size = np.zeros(rows * cols, np.int64)
    for k in range(rows):
        for i in row_order[row_start[k] : row_start[k + 1]]:
            for t in range(cols):
                for j in col_order[col_start[t] : col_start[t + 1]]:
                    if 0 < weights[i, j] < np.inf:
                        size[k * cols + t] += 1
    return size


@njit(cache=True, nogil=True)
def _fill(weights, row_order, col_order, row_start, col_start, row, col):
    position = 0
    for k in range(row_start.size - 1):
        for t in range(col_start.size - 1):
            for i in row_order[row_start[k] : row_start[k + 1]]:
                for j in col_order[col_start[t] : col_start[t + 1]]:
                    if 0 < weights[i, j] < np.inf:
                        row[position] = i
                        col[position] = j
                        position += 1


@njit(cache=True, nogil=True)
def gather_into(P, row, col, out):
    """out = P[row, col] without index arrays of eight bytes."""
    for e in range(row.size):
        out[e] = P[row[e], col[e]]


@njit(cache=True, nogil=True)
def gather(P, row, col):
    """P[row, col] as a new array."""
    out = np.empty(row.size, P.dtype)
    gather_into(P, row, col, out)
    return out


@njit(cache=True, nogil=True)
def _scatter(x, row, col, out):
    for e in range(row.size):
        out[row[e], col[e]] = x[e]


@njit(cache=True, nogil=True)
def add_into(x, row, col, out):
    """out[row, col] += x, edge after edge."""
    for e in range(row.size):
        out[row[e], col[e]] += x[e]


def scatter(x, row, col, shape, fill):
    """The (n, m) array with x on the edges and ``fill`` elsewhere."""
    kind = x.dtype if x.dtype == bool else np.float64
    out = np.full(shape, fill, kind)
    _scatter(x, row, col, out)
    return out
