"""The linear program of routes, its unknowns and what its equations lack, for any array library.

Notation. With C the cost, w the prices, u, v the potentials and α, β the tariffs,

    min <C, P> + w·t    over    P1 = a,  Pᵀ1 = b,
                                P(i, V_l) + σ_il = a_i t_kl,   P(U_k, j) + τ_kj = b_j t_kl,
    z_ij = C_ij + α_il + β_kj - u_i - v_j,   ζ_kl = w_kl - Σ_i a_i α_il - Σ_j b_j β_kj,

and all of x = (P, σ, τ, t) and their partners z = (z, α, β, ζ) positive: four arrays each, over
pairs (n, m), lanes of rows (n, L), lanes of columns (K, m) and routes (K, L).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structot.solvers.interior_point.lanes.layout import Layout, Panel
from structot.solvers.interior_point.lanes.namespace import NumPy

Array = Any  # of the library in use
Four = tuple[Array, Array, Array, Array]  # over pairs, lanes of rows, lanes of columns, routes

# x of a pair, a lane or a route that is not there: nothing, but no division by 0.
NOTHING = 1e-300


@dataclass(frozen=True, eq=False)
class Program:
    """A `Layout` in arrays of one library, on one device."""

    xp: NumPy
    panels: tuple[Panel, ...]
    a: Array
    b: Array
    price: Array
    source: Array
    target: Array
    row_group: Array
    col_group: Array
    there: tuple[Array | None, Array, Array, Array]  # 1 for pairs, lanes, routes that are
    filled: tuple[Array, Array]  # 1 for places of rows and columns without a point
    size: int
    pinned: int  # the column whose potential does not move: potentials have a free constant

    @classmethod
    def of(cls, layout: Layout, xp: NumPy) -> Program:
        def mask(x: np.ndarray) -> Array:
            return xp.array((x > 0).astype(float))

        live = layout.live
        return cls(
            xp=xp,
            panels=layout.panels,
            a=xp.array(layout.a),
            b=xp.array(layout.b),
            price=xp.array(layout.price),
            source=xp.array(layout.source),
            target=xp.array(layout.target),
            row_group=xp.array(layout.row_group),
            col_group=xp.array(layout.col_group),
            there=(
                None if live is None else mask(live),
                mask(layout.source),
                mask(layout.target),
                mask(layout.price),
            ),
            filled=(mask(layout.a <= 0), mask(layout.b <= 0)),
            size=layout.size,
            pinned=int(np.argmax(layout.b)),
        )

    def lane_sums(self, X: Array) -> tuple[Array, Array]:
        """X(i, V_l) and X(U_k, j) of an array over pairs, shapes (n, L) and (K, m)."""
        rows, cols = self.xp.zeros(self.source.shape), self.xp.zeros(self.target.shape)
        for panel in self.panels:
            pairs = panel.pairs(X)
            panel.source(rows)[...] = pairs.sum(3).swapaxes(1, 2)
            panel.target(cols)[...] = pairs.sum(1)
        return rows, cols

    def paid(self, rows: Array, cols: Array) -> Array:
        """c·λ of every route, (K, L), for λ over the lanes."""
        return self.sums(self.source * rows, self.target * cols)

    def sums(self, rows: Array, cols: Array) -> Array:
        """The sum over all lanes of every route."""
        total = self.xp.zeros(self.price.shape)
        for panel in self.panels:
            panel.routes(total)[...] = panel.source(rows).sum(2) + panel.target(cols).sum(2)
        return total

    def to_lanes(self, routes: Array) -> tuple[Array, Array]:
        """c times a number of each route."""
        return self.source * routes[self.row_group], self.target * routes[:, self.col_group]

    def spread(self, rows: Array, cols: Array, out: Array) -> None:
        """rows_il + cols_kj for all pairs."""
        for panel in self.panels:
            by_row = panel.source(rows).swapaxes(1, 2)[:, :, :, None]
            self.xp.add(by_row, panel.target(cols)[:, None], out=panel.pairs(out))


@dataclass(eq=False)
class Point:
    """Primal unknowns x, their partners z, and potentials; also a step of all of them."""

    x: Four
    z: Four
    u: Array
    v: Array

    def products(self, xp: NumPy) -> float:
        """Σ x z."""
        return sum(xp.dot(x, z) for x, z in zip(self.x, self.z, strict=True))


class Residuals(NamedTuple):
    """What the equations lack: of marginals, lanes and routes."""

    u: Array
    v: Array
    rows: Array
    cols: Array
    routes: Array

    def size(self) -> float:
        """The mass that is missing or too much."""
        return float(sum(abs(x).sum() for x in self[:4]))
