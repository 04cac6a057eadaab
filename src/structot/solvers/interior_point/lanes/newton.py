"""Newton steps of the interior-point method for routes: blocks first, then one system of points.

Notation as in `program.py`. A Newton step solves x dz + z dx = r together with the equations of the
program. With D = P/z, Γ = σ/α (τ/β), θ = t/ζ, c = (a; b) and E = [[diag(D1), D], [Dᵀ, diag(Dᵀ1)]]
on a block, its lanes λ = (α; β) follow from the potentials y,

    (E + G) dλ = E dy + h,     G = diag(Γ) + θ c cᵀ,

and what is left is S dy = r, S the sum over the blocks of E - E (E + G)⁻¹ E.

With the signs of one side turned N = E + diag(Γ) is a graph Laplacian plus a positive diagonal:
a network of conductors D between points and Γ to the outside. Its elimination leaves a network
again, Γ_i (N⁻¹)_ij Γ_j between any two points, and θ adds φ ρ ρᵀ with ρ = c - Γ N⁻¹ c and
φ = θ/(1 + θ c·N⁻¹c): all of it sums of positive terms. Nothing cancels, however small a Γ or large
a D becomes. S is dense between the two sides only. Inside a side it couples the points of a group:
the rows are eliminated group by group and the columns are left, one dense system of order m.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structot._deadline import check_time
from structot.solvers.interior_point.lanes.layout import Panel
from structot.solvers.interior_point.lanes.namespace import RAISED, NumPy
from structot.solvers.interior_point.lanes.program import (
    NOTHING,
    Arrays,
    Point,
    Program,
    Residuals,
)

Array = Any  # of the library in use

# Γ of a lane that is not there: a perfect conductor. Its square is a number, too.
_CONDUCTOR = 1e40


class _Block(NamedTuple):
    """One panel, its smaller side first: N⁻¹ from the Schur complement of the larger one."""

    panel: Panel
    swapped: bool
    X: Array  # (g, h, e, e) inverse of the Schur complement
    R: Array  # (g, h, f) 1 / diagonal of the larger side


class Newton:
    """The factorisation at one point and the steps that it gives; buffers are used again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        xp, shape = program.xp, (program.a.shape[0], program.b.shape[0])
        self.D, self.T = xp.zeros(shape), xp.zeros(shape)
        self._work = xp.zeros(shape)

    # ------------------------------------------------------------------------------ factorise

    def factor(self, point: Point) -> None:
        program, xp = self.program, self.program.xp
        self.z = point.z
        xp.divide(point.x[0], point.z[0], out=self.D)
        if program.there[0] is not None:
            self.D *= program.there[0]
        self.gamma: tuple[Array, Array] = (
            xp.where(program.there[1] > 0, point.x[1] / point.z[1], _CONDUCTOR),
            xp.where(program.there[2] > 0, point.x[2] / point.z[2], _CONDUCTOR),
        )
        self.theta = point.x[3] / point.z[3] * program.there[3]
        self.blocks: list[_Block] = []
        A, B = self._eliminate_lanes()
        self._add_routes(A, B)
        self.yielding = self._yield(point, A, B)
        self._eliminate_rows(A, B)

    def _eliminate_lanes(self) -> tuple[list[Array], list[Array]]:
        """The network that is left of all blocks: inside the groups (A, B), across in T."""
        program, xp = self.program, self.program.xp
        A: dict[int, Array] = {}
        B: dict[int, Array] = {}
        check_time()
        found = xp.at_once(program.pairs, self._eliminate_panel, program.panels)
        for block, by_row, by_column in found:
            self.blocks.append(block)
            _collect(A, block.panel.rows.start, by_row)
            _collect(B, block.panel.cols.start, by_column)
        sides = []
        for blocks, out in (
            (A, self.T.sum(1) + program.filled[0]),
            (B, self.T.sum(0) + program.filled[1]),
        ):
            for first, inside in blocks.items():
                g, s = inside.shape[:2]
                diagonal = xp.diagonal(inside)
                diagonal[...] = 0.0
                total = inside.sum(2) + out[first : first + g * s].reshape(g, s)
                inside *= -1.0
                diagonal[...] = total
            sides.append([blocks[first] for first in sorted(blocks)])
        return sides[0], sides[1]

    def _eliminate_panel(self, panel: Panel) -> tuple[_Block, Array, Array]:
        """The network of one panel: inside the groups of rows and of columns, across in T."""
        G1, G2 = panel.source(self.gamma[0]), panel.target(self.gamma[1])
        E, across = panel.blocks(self.D), panel.blocks(self.T)
        swapped = panel.shape[1] > panel.shape[3]
        if swapped:
            G1, G2, E, across = G2, G1, E.swapaxes(2, 3), across.swapaxes(2, 3)
        R = 1.0 / (E.sum(2) + G2)
        Q = E * R[:, :, None, :]
        F = self._root(Q, E, G1, G2)
        X = F.swapaxes(2, 3) @ F
        block = _Block(panel, swapped, X, R)
        Q = F @ Q
        Y = F.swapaxes(2, 3) @ Q
        Y *= G1[..., None]
        self.program.xp.multiply(Y, G2[:, :, None, :], out=across)
        Q *= G2[:, :, None, :]
        near = G1[..., None] * X * G1[:, :, None, :]
        if swapped:
            return block, _gram(Q), near.sum(0)
        return block, near.sum(1), _gram(Q.swapaxes(0, 1))

    def _root(self, Q: Array, E: Array, G1: Array, G2: Array) -> Array:
        """F with FᵀF the inverse of the Schur complement diag(E1 + G1) - E R Eᵀ, Q = E R."""
        xp = self.program.xp
        W = Q @ E.swapaxes(2, 3)
        diagonal = xp.diagonal(W)
        diagonal[...] = 0.0
        total = W.sum(3) + G1 + (Q @ G2[..., None])[..., 0]
        W *= -1.0
        diagonal[...] = total
        return xp.inverse_of_lower(_cholesky(xp, W))

    def _add_routes(self, A: list[Array], B: list[Array]) -> None:
        """φ ρ ρᵀ of every route."""
        program = self.program
        g = self._eliminate(program.source, program.target)
        kappa = program.paid(*g)
        self.phi = self.theta / (1.0 + self.theta * kappa)
        self.g = g
        self.rho = (program.source - self.gamma[0] * g[0], program.target - self.gamma[1] * g[1])
        rows, cols = self.rho[0], -self.rho[1]  # in turned signs
        wide = rows * self.phi[program.row_group]
        cols_wide = cols * self.phi[:, program.col_group]
        at_a = {panel.rows.start: k for k, panel in enumerate(_first(program.panels, "cols"))}
        at_b = {panel.cols.start: k for k, panel in enumerate(_first(program.panels, "rows"))}
        for panel in program.panels:
            r, c = panel.source(rows), panel.target(cols)  # (g, h, s), (g, h, t)
            w = panel.source(wide)
            A[at_a[panel.rows.start]] += w.swapaxes(1, 2) @ r
            B[at_b[panel.cols.start]] += panel.target(cols_wide).swapaxes(0, 1).swapaxes(
                1, 2
            ) @ c.swapaxes(0, 1)
            across = panel.blocks(self.T)
            across -= w[..., None] * c[:, :, None, :]

    def _yield(self, point: Point, A: list[Array], B: list[Array]) -> Arrays:
        """x/z of what is destroyed and created: conductors from points to the outside."""
        program, xp = self.program, self.program.xp
        found = []
        for side, place, _ in program.slacks:
            own = [point.x[k] / point.z[k] * program.there[k] for k in (place, place + 1)]
            total, first = own[0] + own[1], 0
            for inside in (A, B)[side]:
                g, s = inside.shape[:2]
                xp.diagonal(inside)[...] += total[first : first + g * s].reshape(g, s)
                first += g * s
            found += own
        return tuple(found)

    def _eliminate_rows(self, A: list[Array], B: list[Array]) -> None:
        """A, then the dense system of the columns."""
        program, xp = self.program, self.program.xp
        check_time()

        def eliminate(where: tuple[Panel, Array]) -> tuple[slice, Array]:
            panel, inside = where
            g, s = panel.shape[:2]
            F = xp.inverse_of_lower(_cholesky(xp, inside))
            rows = self.T[panel.rows]
            rows[...] = (F @ rows.reshape(g, s, -1)).reshape(g * s, -1)
            return panel.rows, F

        first = zip(_first(program.panels, "cols"), A, strict=True)
        self.F: list[tuple[slice, Array]] = xp.at_once(program.pairs, eliminate, first)
        S = xp.zeros((program.b.shape[0],) * 2)
        for panel, inside in zip(_first(program.panels, "rows"), B, strict=True):
            t = panel.shape[3]
            for k in range(panel.shape[2]):
                place = slice(panel.cols.start + k * t, panel.cols.start + (k + 1) * t)
                S[place, place] = inside[k]
        diagonal = xp.diagonal(S)
        size = diagonal * 1.0
        if program.pinned is not None:
            diagonal[program.pinned] += diagonal[program.pinned]
        check_time()
        S = xp.subtract_gram(S, self.T)
        check_time()
        for part in RAISED:
            try:
                self.L = xp.factor(S, part, size)
                break
            except np.linalg.LinAlgError:
                if part == RAISED[-1]:
                    raise

    # ---------------------------------------------------------------------------------- solve

    def _eliminate(self, rows: Array, cols: Array) -> tuple[Array, Array]:
        """(E + diag(Γ))⁻¹ h on every block."""
        xp = self.program.xp
        answer = xp.empty(rows.shape), xp.empty(cols.shape)

        def eliminate(block: _Block) -> None:
            panel, swapped, X, R = block
            h1, h2 = panel.source(rows), panel.target(cols)
            x1, x2 = panel.source(answer[0]), panel.target(answer[1])
            E = panel.blocks(self.D)
            if swapped:
                h1, h2, x1, x2, E = h2, h1, x2, x1, E.swapaxes(2, 3)
            other = h2 * R
            x1[...] = _times(X, h1 - _times(E, other))
            x2[...] = other - R * _times(E.swapaxes(2, 3), x1)

        xp.at_once(self.program.pairs, eliminate, self.blocks)
        return answer

    def _add_force(self, x: tuple[Array, Array], force: Array) -> None:
        """x + N⁻¹c times a number of each route, in place."""
        x[0][...] += self.g[0] * force[self.program.row_group]
        x[1][...] += self.g[1] * force[:, self.program.col_group]

    def _points(self, u: Array, v: Array) -> tuple[Array, Array]:
        """S⁻¹ (u, v)."""
        xp = self.program.xp
        w = xp.zeros(u.shape)
        for rows, F in self.F:
            g, s = F.shape[:2]
            w[rows] = _times(F, u[rows].reshape(g, s)).reshape(-1)
        turned = xp.solve(self.L, w @ self.T - v)
        w += self.T @ turned
        for rows, F in self.F:
            g, s = F.shape[:2]
            w[rows] = _times(F.swapaxes(1, 2), w[rows].reshape(g, s)).reshape(-1)
        return w, -turned

    def step(self, target: Arrays | None, rest: Residuals, out: Point) -> tuple[Array, Array]:
        """Solve x dz + z dx = target (0 for None) and the equations with these residuals.

        Returns what the step changes on the lanes, X(i, V_l) and X(U_k, j) of X = dP.
        """
        check_time()
        program, xp = self.program, self.program.xp
        z, there, theta = self.z, program.there, self.theta
        dP, dz = out.x[0], out.z[0]
        if target is None:
            dP[...] = 0.0
            own: tuple[Array, ...] = (0.0,) * (len(z) - 1)
            lanes: tuple[Array, Array] = (0.0, 0.0)
        else:
            xp.divide(target[0], z[0], out=dP)
            own = tuple(r / x for r, x in zip(target[1:], z[1:], strict=True))
            lanes = program.lane_sums(dP)
        by_route = program.to_lanes((own[2] - theta * rest.routes) * there[3])
        k = (
            own[0] * there[1] - by_route[0] - rest.rows,
            own[1] * there[2] - by_route[1] - rest.cols,
        )
        # x = (E + G)⁻¹ h, with θ c·x as one number, which is small where θ is large.
        x = self._eliminate(lanes[0] + k[0], lanes[1] + k[1])
        force = self.phi * program.paid(*x)
        self._add_force(x, -force)
        pull = program.to_lanes(force)
        kept = program.kept((0.0, *own))
        u, v = self._points(
            rest.u - kept[0] + (k[0] - self.gamma[0] * x[0] - pull[0]).sum(1),
            rest.v - kept[1] + (k[1] - self.gamma[1] * x[1] - pull[1]).sum(0),
        )
        # (E + G)⁻¹ G dy in the same way; dy - dλ is what is left of it.
        y = self._eliminate(self.gamma[0] * u[:, None], self.gamma[1] * v)
        more = self.phi * program.sums(self.rho[0] * u[:, None], self.rho[1] * v)
        self._add_force(y, more)
        force += more
        rows, cols = y[0] - x[0], y[1] - x[1]
        out.u[...], out.v[...] = u, v
        out.z[1][...] = (u[:, None] - rows) * there[1]
        out.z[2][...] = (v - cols) * there[2]
        out.z[3][...] = (rest.routes - force / (theta + NOTHING)) * there[3]
        program.spread(-rows, -cols, dz)
        if there[0] is not None:
            dz *= there[0]
        xp.multiply(self.D, dz, out=self._work)
        dP -= self._work
        out.x[3][...] = (own[2] - theta * rest.routes + force) * there[3]
        carried, wide = program.lane_sums(dP), program.to_lanes(out.x[3])
        for side, c in enumerate((program.source, program.target)):
            # Of two equations for dσ the one that rounding spoils less: the error of dα times Γ, or
            # that of what the lane carries.
            gamma = self.gamma[side]
            by_product = own[side] - gamma * out.z[side + 1]
            by_lane = rest[side + 2] + wide[side] - carried[side]
            out.x[side + 1][...] = xp.where(gamma < c, by_product, by_lane) * there[side + 1]
        for side, place, _ in program.slacks:
            y = (u, v)[side]
            for sign, at in ((-1.0, place), (1.0, place + 1)):
                out.z[at][...] = sign * y * there[at]
                out.x[at][...] = own[at - 1] * there[at] - self.yielding[at - 4] * out.z[at]
        return carried


def _times(A: Array, x: Array) -> Array:
    """A batch of matrices times a batch of vectors."""
    return (A @ x[..., None])[..., 0]


def _collect(blocks: dict[int, Array], key: int, part: Array) -> None:
    if key in blocks:
        blocks[key] += part
    else:
        blocks[key] = part


def _gram(V: Array) -> Array:
    """Σ VᵀV over the second axis of (p, q, e, f), as one product of matrices."""
    p, q, e, f = V.shape
    flat = V.reshape(p, q * e, f)
    return flat.swapaxes(1, 2) @ flat


def _first(panels: tuple[Panel, ...], side: str) -> list[Panel]:
    """The panels that begin at the first row or column: one for each size of the other side."""
    return [panel for panel in panels if getattr(panel, side).start == 0]


def _cholesky(xp: NumPy, A: Array) -> Array:
    for part in RAISED:
        try:
            return xp.cholesky(A)
        except np.linalg.LinAlgError:
            if part == RAISED[-1]:
                raise
            diagonal = xp.diagonal(A)
            diagonal *= 1.0 + max(part, RAISED[1])
    raise AssertionError
