"""Where the central path is entered: a point that satisfies the equations, its products alike.

With the independent plan P = a bᵀ / T all lanes of a route carry the same share, up to the two
sides. Then the widths t and the tariffs that make all σ α equal to μ are a matter of one unknown
per route, and what is left are the costs: potentials that make z as even as a sum u ⊕ v can.
"""

from __future__ import annotations

from typing import Any

from structot.solvers.interior_point.lanes.program import NOTHING, Point, Program

Array = Any  # of the library in use

# Of the mean cost, the least constant that z begins with.
_LEAST = 1e-3
# Of the price of a relaxed side, the largest potential that it begins with.
_WITHIN = 0.9
# Sweeps that bring the independent plan nearer to its marginals where pairs are forbidden.
_SWEEPS = 10
# Halvings, in the logarithm, of the interval in which the width of a route lies.
_HALVINGS = 12


def first_point(program: Program, cost: Array) -> Point:
    """P, z > 0 with z = C + α ⊕ β - u ⊕ v, and lanes and routes to match."""
    xp, (live, *there) = program.xp, program.there
    # Of the geometric mean of both totals, where a relaxed side lets them differ.
    P = program.a[:, None] * (program.b / xp.sqrt(program.a.sum() * program.b.sum()))
    if live is not None:
        P *= live
        _scale(program, P)
    u, v, z = (_potentials if program.pinned is not None else _even)(program, cost, P)
    mu = float(xp.dot(P, z)) / program.size
    share, top = _shares(program, P)
    more = _widths(program, share, top, mu)
    slack = _slack(program, share, top, more)
    tariff = [mu / slack[k] * there[k] for k in range(2)]
    rest = xp.where(there[2] > 0, program.price - program.paid(*tariff), 1.0)
    added = xp.zeros(z.shape)
    program.spread(tariff[0], tariff[1], added)
    z += added
    if live is not None:
        P += (1.0 - live) * NOTHING
        z *= live
        z += 1.0 - live
    # What is not there: a product of nothing, and nothing to divide by 0.
    x = [xp.where(there[k] > 0, now, NOTHING) for k, now in enumerate((*slack, top + more))]
    alpha, beta = (tariff[k] + (1.0 - there[k]) for k in range(2))
    more_x, more_z = _slacks(program, P, u, v, mu)
    return Point((P, *x, *more_x), (z, alpha, beta, rest, *more_z), u, v)


def _slacks(
    program: Program, P: Array, u: Array, v: Array, mu: float
) -> tuple[list[Array], list[Array]]:
    """What is destroyed and created of relaxed sides, the smaller of both with a product of μ."""
    xp = program.xp
    x, z = [], []
    for side, place, price in program.slacks:
        y, sums, weights = ((u, P.sum(1), program.a), (v, P.sum(0), program.b))[side]
        for sign, at in ((1.0, place), (-1.0, place + 1)):
            there = program.there[at]
            partner = price - sign * y
            amount = xp.maximum(sign * (weights - sums), 0.0) + mu / partner
            x.append(xp.where(there > 0, amount, NOTHING))
            z.append(xp.where(there > 0, partner, 1.0))
    return x, z


def _even(program: Program, cost: Array, P: Array) -> tuple[Array, Array, Array]:
    """One potential for each side, within its price where it is relaxed, and z = C - u ⊕ v."""
    xp = program.xp
    size = float(xp.dot(P, cost)) / float(P.sum()) or 1.0
    levels = [size if price is None else min(_WITHIN * price, size) for price in program.relaxed]
    return 0.0 * program.a - levels[0], 0.0 * program.b - levels[1], cost + (levels[0] + levels[1])


def _scale(program: Program, P: Array) -> None:
    """Rows and columns in turn, in place."""
    for _ in range(_SWEEPS):
        P *= (program.a / (P.sum(1) + NOTHING))[:, None]
        P *= program.b / (P.sum(0) + NOTHING)


def _potentials(program: Program, cost: Array, P: Array) -> tuple[Array, Array, Array]:
    """u, v and z = C - u ⊕ v > 0: the mean cost of every row and column, and a constant."""
    xp, live = program.xp, program.there[0]
    u = (P * cost).sum(1) / (P.sum(1) + NOTHING)
    v = (P * (cost - u[:, None])).sum(0) / (P.sum(0) + NOTHING)
    z = cost - u[:, None]
    z -= v
    if live is not None:
        z *= live
    mass = float(P.sum())
    shift = float(xp.dot(P, abs(z))) / mass - min(float(xp.least(z)), 0.0)
    # One row or column, or a cost that is itself a sum u ⊕ v, leaves nothing but rounding.
    shift = max(shift, _LEAST * float(xp.dot(P, cost)) / mass) or 1.0
    z += shift
    return u - 0.5 * shift, v - 0.5 * shift, z


def _shares(program: Program, P: Array) -> tuple[tuple[Array, Array], Array]:
    """The share of every lane, and the largest of every route."""
    xp = program.xp
    rows, cols = (
        xp.where(c > 0, x / xp.maximum(c, NOTHING), 0.0)
        for x, c in zip(program.lane_sums(P), (program.source, program.target), strict=True)
    )
    top = xp.zeros(program.price.shape)
    for panel in program.panels:
        panel.routes(top)[...] = xp.maximum(
            xp.largest(panel.source(rows), 2), xp.largest(panel.target(cols), 2)
        )
    return (rows, cols), top


def _slack(
    program: Program, share: tuple[Array, Array], top: Array, more: Array
) -> tuple[Array, Array]:
    """c t - carried for t = top + more, never 0; 1 for a lane that is not there."""
    xp = program.xp
    rows = (top[program.row_group] - share[0]) + more[program.row_group]
    cols = (top[:, program.col_group] - share[1]) + more[:, program.col_group]
    return (
        xp.where(program.there[1] > 0, program.source * rows, 1.0),
        xp.where(program.there[2] > 0, program.target * cols, 1.0),
    )


def _widths(program: Program, share: tuple[Array, Array], top: Array, mu: float) -> Array:
    """t - top with Σ_lanes c μ/(c t - carried) + μ/t just below w; 1 where there is no route."""
    xp, (_, rows_there, cols_there, there) = program.xp, program.there[:4]
    lanes = xp.zeros(there.shape)
    for panel in program.panels:
        panel.routes(lanes)[...] = panel.source(rows_there).sum(2) + panel.target(cols_there).sum(2)
    price = xp.where(there > 0, program.price, 1.0)
    # Every lane takes at most μ/(t - top), the lane of the top takes that.
    low, high = mu / price, (lanes + 1.0) * mu / price
    for _ in range(_HALVINGS):
        middle = xp.sqrt(low * high)
        slack = _slack(program, share, top, middle)
        paid = program.paid(mu / slack[0] * rows_there, mu / slack[1] * cols_there)
        above = paid + mu / (top + middle) > price
        low, high = xp.where(above, middle, low), xp.where(above, high, middle)
    return xp.where(there > 0, high, 1.0)
