"""From groups on both sides to layers of disjoint blocks.

Notation. Groups U_k and V_l, coloured into layers such that groups of one layer do not overlap.
Every pair (source layer, target layer) is a layer of disjoint blocks U_k × V_l, and together they
hold every block exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.concave import Concave
from structot.structures._grouping import DisjointGroups, Grouping


def block_layers(
    weights: Array,
    rows: Grouping,
    cols: Grouping,
    concave: Concave | Array,
    outer: Array,
    inner: Array,
) -> list[Blocks]:
    """F(S) = Σ_kl outer_kl · g_kl(inner_kl · w(S ∩ U_k × V_l)), one `Blocks` per pair of layers.

    ``concave`` is one function or an object array (source groups, target groups), as are the
    scales ``outer`` and ``inner``.
    """
    layers: list[Blocks] = []
    for row, col, block in _pairs(rows, cols):
        g = concave if isinstance(concave, Concave) else concave[block].ravel().tolist()
        scales = (outer[block].ravel(), inner[block].ravel())
        layers.append(Blocks.of_groups(weights, row.number, col.number, g, *scales))
    return layers


def block_totals(M: Array, rows: Grouping, cols: Grouping) -> Array:
    """T_kl: the sum of the finite costs of each block, (source groups, target groups)."""
    finite = M if np.isfinite(M).all() else np.where(np.isfinite(M), M, 0.0)
    return rows.membership() @ (cols.membership() @ finite.T).T


def _pairs(
    rows: Grouping, cols: Grouping
) -> Iterator[tuple[DisjointGroups, DisjointGroups, tuple[Array, ...]]]:
    """Every pair of layers, and the index of its blocks among all."""
    for row in rows.layers:
        for col in cols.layers:
            yield row, col, np.ix_(row.group, col.group)
