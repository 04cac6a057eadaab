"""The linear program of routes, its unknowns and what its equations lack, for any array library.

Notation. With C the cost, w the prices, u, v the potentials and α, β the tariffs,

    min <C, P> + w·t    over    P1 = a,  Pᵀ1 = b,
                                P(i, V_l) + σ_il = a_i t_kl,   P(U_k, j) + τ_kj = b_j t_kl,
    z_ij = C_ij + α_il + β_kj - u_i - v_j,   ζ_kl = w_kl - Σ_i a_i α_il - Σ_j b_j β_kj,

and all of x = (P, σ, τ, t) and their partners z = (z, α, β, ζ) positive: four arrays each, over
pairs (n, m), lanes of rows (n, L), lanes of columns (K, m) and routes (K, L).

A side relaxed by total variation at a price p has two arrays more, over its points: what is
destroyed and what is created, P1 + d - e = a, with the partners p - u and p + u.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structot.solvers.interior_point.lanes.layout import Layout, Panel
from structot.solvers.interior_point.lanes.namespace import Number, NumPy

Array = Any  # of the library in use
# Over pairs, lanes of rows, lanes of columns, routes; then what is destroyed and what is created.
Arrays = tuple[Array, ...]
Prices = tuple[float | None, float | None]  # of a unit destroyed or created, None for a hard side

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
    there: tuple[Array, ...]  # 1 for pairs (None for all), lanes, routes, points that are
    filled: tuple[Array, Array]  # 1 for places of rows and columns without a point
    size: int
    # The column whose potential does not move: those of hard marginals have a free constant.
    pinned: int | None
    relaxed: Prices

    @classmethod
    def of(cls, layout: Layout, xp: NumPy, relaxed: Prices = (None, None)) -> Program:
        """With the prices of the rows and the columns of the layout, if a side is relaxed."""

        def mask(x: np.ndarray) -> Array:
            return xp.array((x > 0).astype(float))

        live = None if layout.live is None else mask(layout.live)
        weights = layout.a, layout.b
        if live is None and not all(x.all() for x in weights):
            live = mask(layout.a)[:, None] * mask(layout.b)
        slack = [x for x, price in zip(weights, relaxed, strict=True) if price is not None]
        return cls(
            xp=xp,
            panels=tuple(piece for panel in layout.panels for piece in panel.pieces(xp.pieces)),
            a=xp.array(layout.a),
            b=xp.array(layout.b),
            price=xp.array(layout.price),
            source=xp.array(layout.source),
            target=xp.array(layout.target),
            row_group=xp.array(layout.row_group),
            col_group=xp.array(layout.col_group),
            there=(
                live,
                mask(layout.source),
                mask(layout.target),
                mask(layout.price),
                *(mask(x) for x in slack for _ in range(2)),
            ),
            filled=(mask(layout.a <= 0), mask(layout.b <= 0)),
            size=layout.size + 2 * sum(int(np.count_nonzero(x)) for x in slack),
            pinned=None if slack else int(np.argmax(layout.b)),
            relaxed=relaxed,
        )

    @property
    def pairs(self) -> int:
        return int(self.a.shape[0] * self.b.shape[0])

    @property
    def slacks(self) -> list[tuple[int, int, float]]:
        """The side (0 or 1), the place among x of what it destroys, and the price, if relaxed."""
        sides = [(side, price) for side, price in enumerate(self.relaxed) if price is not None]
        return [(side, 4 + 2 * k, price) for k, (side, price) in enumerate(sides)]

    def kept(self, x: Arrays) -> tuple[Array | float, Array | float]:
        """d - e of the rows and of the columns, which their sums lack of their weights."""
        found: list[Array | float] = [0.0, 0.0]
        for side, place, _ in self.slacks:
            found[side] = x[place] - x[place + 1]
        return found[0], found[1]

    def lane_sums(self, X: Array) -> tuple[Array, Array]:
        """X(i, V_l) and X(U_k, j) of an array over pairs, shapes (n, L) and (K, m)."""
        rows, cols = self.xp.empty(self.source.shape), self.xp.empty(self.target.shape)

        def add(panel: Panel) -> None:
            pairs = panel.pairs(X)
            panel.source(rows)[...] = pairs.sum(3).swapaxes(1, 2)
            panel.target(cols)[...] = pairs.sum(1)

        self.xp.at_once(self.pairs, add, self.panels)
        return rows, cols

    def paid(self, rows: Array, cols: Array) -> Array:
        """c·λ of every route, (K, L), for λ over the lanes."""
        return self.sums(self.source * rows, self.target * cols)

    def sums(self, rows: Array, cols: Array) -> Array:
        """The sum over all lanes of every route."""
        total = self.xp.empty(self.price.shape)
        for panel in self.panels:
            panel.routes(total)[...] = panel.source(rows).sum(2) + panel.target(cols).sum(2)
        return total

    def to_lanes(self, routes: Array) -> tuple[Array, Array]:
        """c times a number of each route."""
        return self.source * routes[self.row_group], self.target * routes[:, self.col_group]

    def spread(self, rows: Array, cols: Array, out: Array) -> None:
        """rows_il + cols_kj for all pairs."""

        def add(panel: Panel) -> None:
            by_row = panel.source(rows).swapaxes(1, 2)[:, :, :, None]
            self.xp.add(by_row, panel.target(cols)[:, None], out=panel.pairs(out))

        self.xp.at_once(self.pairs, add, self.panels)


@dataclass(eq=False)
class Point:
    """Primal unknowns x, their partners z, and potentials; also a step of all of them."""

    x: Arrays
    z: Arrays
    u: Array
    v: Array

    def products(self, xp: NumPy) -> Number:
        """Σ x z."""
        return sum(xp.dot(x, z) for x, z in zip(self.x, self.z, strict=True))


class Residuals(NamedTuple):
    """What the equations lack: of marginals, lanes and routes."""

    u: Array
    v: Array
    rows: Array
    cols: Array
    routes: Array

    def size(self) -> Number:
        """The mass that is missing or too much."""
        return sum(abs(x).sum() for x in self[:4])
