"""Layers of disjoint blocks one after the other, for work that needs no disjointness.

Notation. Layers F_r over blocks; the stack holds the blocks of all of them in one list of edges,
in which a pair stands once per layer that covers it, so that one call of a kernel serves all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from structot._typing import Array
from structot.blocks import layout
from structot.blocks.function import Blocks
from structot.blocks.layout import Edges
from structot.blocks.pools import Pools
from structot.concave import pack_table


class Stack:
    """The copies of a plan that layers of blocks hold, as one flat vector.

    Parameters
    ----------
    layers
        Over the same pairs, all compiled or all with functions written in Python.
    scales
        s_r > 0: the prox of layer r is taken in the metric s_r w_r.
    """

    def __init__(self, layers: Sequence[Blocks], scales: Sequence[float]) -> None:
        self.shape = layers[0].shape
        self.row = np.concatenate([layer.row for layer in layers])
        self.col = np.concatenate([layer.col for layer in layers])
        sizes = [layer.w.size for layer in layers]
        self.d = np.repeat(scales, sizes) * np.concatenate([layer.w for layer in layers])
        self._blocks = _joined([x.scaled(1.0 / s) for x, s in zip(layers, scales, strict=True)])
        self._cut: Pools | None = None
        self._uncut: Pools | None = None

    def gather(self, P: Array) -> Array:
        """The entries of an (n, m) array, once per copy."""
        return layout.gather(P, self.row, self.col)

    def add(self, x: Array) -> Array:
        """The sum of all copies, (n, m)."""
        total = np.zeros(self.shape)
        layout.add_into(x, self.row, self.col, total)
        return total

    def prox(self, v: Array, rho: float) -> Array:
        """argmin_{X >= 0} f_r(X) + rho/2 Σ d (X - v)² of every layer."""
        # Homogeneity: the metric s w and f are the metric w and f / s. Each sort starts from the
        # order of the last one.
        self._cut = self._blocks.prox_edges(v, rho, 0.0, last=self._cut)
        return self._cut.X

    def project(self, z: Array) -> Array:
        """argmin_{K in B(F_r)} Σ (K - z)² / d of every layer."""
        self._uncut = self._blocks.prox_edges(z / self.d, 1.0, last=self._uncut)
        return z - self.d * self._uncut.X


def _joined(layers: list[Blocks]) -> Blocks:
    """All blocks as if they were disjoint; only methods in block order make sense for it."""
    if len(layers) == 1:
        return layers[0]
    ends = np.cumsum([0, *(layer.w.size for layer in layers)])
    starts = [layer.start[:-1] + end for layer, end in zip(layers, ends, strict=False)]
    arrays = zip(*(layer.edges[1:] for layer in layers), strict=True)
    tables = [layer.table for layer in layers]
    functions = [g for table in tables for g in table.functions]
    outer = np.concatenate([table.outer for table in tables])
    inner = np.concatenate([table.inner for table in tables])
    return replace(
        layers[0],
        edges=Edges(np.concatenate([*starts, ends[-1:]]), *map(np.concatenate, arrays)),
        table=pack_table(functions, outer, inner),
    )
