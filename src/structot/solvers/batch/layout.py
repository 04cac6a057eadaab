"""Small problems as flat arrays, one after the other, for one compiled call.

Notation. Problem k has the shape shape[k], the linear cost C (row by row) and plans from cell[k]
on, a from row[k] on, b from column[k] on. Its copies (see `layers`) begin at copy[k], its blocks
at block[k], its layers at layer_of[k]; a modular problem has none of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from structot.blocks.function import Blocks
from structot.problem import Problem
from structot.solvers.batch.layers import Array, Ints


class Part(NamedTuple):
    """One problem for the compiled engine."""

    C: Array
    a: Array
    b: Array
    layers: tuple[Blocks, ...]


class Packed(NamedTuple):
    """Many problems; every array is flat, and the offsets have one entry more than problems."""

    shape: Ints
    cell: Ints
    row: Ints
    column: Ints
    C: Array
    a: Array
    b: Array
    copy: Ints
    block: Ints
    layer_of: Ints
    edge: Ints
    w: Array
    sizes: Ints  # of the blocks, in copies
    blocks: Ints  # of the layers
    kind: Ints
    param_sizes: Ints  # of the blocks
    param: Ints
    params: Array
    outer: Array
    inner: Array


def part_of(problem: Problem) -> Part | None:
    """The problem if the compiled engine can take it, else None.

    It takes block layers with compiled functions plus a linear part, on pairs that are all allowed
    and all seen by some layer; with entropy only what is modular, or one layer of fixed charges,
    and no point without mass.
    """
    function, layers, C = problem.function, problem.layers, problem.linear
    if function.allowed is not None:
        return None
    modular = problem.function.modular_cost
    if modular is not None:
        C, layers = modular, ()
    if any(layer.kind != "blocks" or layer.interpreted for layer in layers):
        return None
    blocks = cast(tuple[Blocks, ...], layers)
    if problem.reg > 0 and not (
        len(layers) <= 1
        and all(layer.is_coverage for layer in blocks)
        and problem.a.min() > 0
        and problem.b.min() > 0
    ):
        return None
    if layers:
        seen = np.zeros(problem.shape, bool)
        for layer in blocks:
            seen[layer.row, layer.col] = True
        if not seen.all():
            return None
    cost = np.zeros(problem.shape) if C is None else C
    return Part(cost, problem.a, problem.b, blocks)


def pack(parts: Sequence[Part]) -> Packed:
    """The problems as flat arrays."""
    shape = np.array([part.C.shape for part in parts], np.int64).reshape(-1, 2)
    layers = [layer for part in parts for layer in part.layers]
    tables = [layer.table for layer in layers]
    columns = [part.C.shape[1] for part in parts for _ in part.layers]
    edges = [
        layer.row.astype(np.int64) * m + layer.col for layer, m in zip(layers, columns, strict=True)
    ]
    copies = [sum(layer.w.size for layer in part.layers) for part in parts]
    blocks = [sum(len(layer.table) for layer in part.layers) for part in parts]
    params = [sum(layer.table.params.size for layer in part.layers) for part in parts]
    return Packed(
        shape=shape,
        cell=_starts(shape.prod(axis=1)),
        row=_starts(shape[:, 0]),
        column=_starts(shape[:, 1]),
        C=_joined([part.C.ravel() for part in parts]),
        a=_joined([part.a for part in parts]),
        b=_joined([part.b for part in parts]),
        copy=_starts(copies),
        block=_starts(blocks),
        layer_of=_starts([len(part.layers) for part in parts]),
        edge=_joined(edges, np.int64),
        w=_joined([layer.w for layer in layers]),
        sizes=_joined([np.diff(layer.start) for layer in layers], np.int64),
        blocks=np.array([len(table) for table in tables], np.int64),
        kind=_joined([table.kind for table in tables], np.int64),
        param_sizes=_joined([np.diff(table.offset) for table in tables], np.int64),
        param=_starts(params),
        params=_joined([table.params for table in tables]),
        outer=_joined([table.outer for table in tables]),
        inner=_joined([table.inner for table in tables]),
    )


def _joined(parts: Sequence[np.ndarray], kind: type = np.float64) -> np.ndarray:
    return np.concatenate([np.empty(0, kind), *parts])


def _starts(sizes: Sequence[int] | np.ndarray) -> Ints:
    """Where each of the parts of these sizes begins, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
