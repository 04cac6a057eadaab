"""The cheapest plan near an iterate of the Newton method, by a small linear program.

An iterate X misses the marginals a little. Which of its edges have to move, and in which direction,
is a combinatorial question that rounding ignores. Notation, for one block: S_1 ⊂ S_2 ⊂ ... are the
sets of edges down to where the large pools of X end (the *anchors*), S_0 = ∅. By submodularity

    Σ_r μ_r 1_{S_r} + Σ_e t_e 1_e - Σ_e y_e 1_e,    0 <= t_e <= μ_r, e not in S_r (r = 0: no limit),
                                                    0 <= y_e <= μ_r, e in S_r,

costs at most Σ_r μ_r F(S_r) + Σ_e t_e (F(S_r + e) - F(S_r)) - Σ_e y_e (F(S_r) - F(S_r - e)) if no
anchor both gains and loses edges, and hardly more otherwise. The cheapest such plan solves a linear
program. It is small, since only edges that are nearly worth moving need be in it. Near the answer
its multipliers are nearly those of the whole problem, and prove a bound as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.optimize import linprog

from structot._deadline import call_foreign, time_left
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.blocks.pools import Pools
from structot.problem import Problem
from structot.solvers.newton import kernels

# Moves per point, beside the edges that carry mass alone.
_WIDTH = 3
# The part of the gap that a search must close to be made again as soon.
_WORTH = 0.1


@dataclass(frozen=True)
class Nearby:
    """A plan, the multipliers of its marginals, and the part of mass that was left to rounding."""

    plan: Array
    u: Array
    v: Array
    left: float


class Search:
    """When to search near an iterate.

    A search costs as much as some ten Newton steps, and finds a plan that many more would not.
    One that finds nothing doubles the number of steps to the next.
    """

    def __init__(self, problem: Problem, layer: Blocks, every: int) -> None:
        self.problem, self.layer = problem, layer
        self._every = self._wait = every
        self._since = 0

    def due(self, steps: int) -> bool:
        """Whether it is time for a search, so many Newton steps after the last question."""
        self._since += steps
        return self._since >= self._wait

    def __call__(self, C: Array, pools: Pools, z: tuple[Array, Array]) -> Nearby | None:
        """What was found; None if the program would not pay, or HiGHS gives up."""
        self._since = 0
        self._wait *= 2
        if not may_pay(self.layer, pools):
            return None
        return nearby_plan(self.problem, self.layer, C, pools, z)

    def paid(self, closed: float) -> bool:
        """Whether the last search was worth its time, by the part of the gap that it closed."""
        if closed > _WORTH:
            self._wait = self._every
        return closed > _WORTH


def may_pay(layer: Blocks, pools: Pools) -> bool:
    """Whether at most every third block in use has a large pool: the others carry single edges, as
    in plain transport, whose program closes nearly all of a gap.

    Where blocks have large pools these can be moved in many ways that hardly differ. Then a program
    closes little, or what Newton steps close in the same time.
    """
    return bool(3 * _several(layer, pools).sum() <= np.count_nonzero(pools.n_pools))


@dataclass(frozen=True)
class _Anchor:
    """S_r: the first edges of a block in the order of X, down to the end of a large pool."""

    block: int
    begin: int  # where the pool begins in the order
    edges: Array
    weight: float
    price: float  # F(S_r) and its linear cost


class _Moves(NamedTuple):
    """Single edges: up (+1) or down (-1), the price of a unit, and the anchor that limits it."""

    edge: Array
    sign: Array
    price: Array
    anchor: Array  # -1 for none


def nearby_plan(
    problem: Problem, layer: Blocks, C: Array, pools: Pools, z: tuple[Array, Array]
) -> Nearby | None:
    """The cheapest plan around the pools of X with multipliers z; None as for a `Search`.

    ``C`` is a linear cost on the edges (may be empty).
    """
    anchors = _anchors(layer, C, pools)
    moves = _moves(layer, C, pools, z, anchors, _places(layer, anchors))
    sets, singles = len(anchors), moves.edge.size
    sums = (np.bincount(i, pools.X, size) for i, size in zip(layer.edges[1:3], layer.shape))
    weights = np.concatenate(problem.marginals.aims(*z, *sums)) / problem.total
    # The last columns, mass that is left to rounding, make the program feasible in any case.
    columns = scipy.sparse.hstack(
        [_marginals(layer, x.edges, np.ones(x.edges.size), 0 * x.edges, 1) for x in anchors]
        + [_marginals(layer, moves.edge, moves.sign, np.arange(singles), singles)]
        + [scipy.sparse.eye_array(weights.size)],
        format="csc",
    )
    left = np.concatenate(z) + np.abs(moves.price).mean()
    price = np.concatenate([[x.price for x in anchors], moves.price, left])
    # A level moves many edges at once: in units of mass the unknowns are of like size.
    mass = np.concatenate([[x.edges.size for x in anchors], np.ones(price.size - sets)])
    price /= mass
    limited = np.flatnonzero(moves.anchor >= 0)
    line, anchor = np.arange(limited.size), moves.anchor[limited]
    limits = scipy.sparse.coo_array(
        (
            np.concatenate([np.ones(limited.size), -1.0 / mass[anchor]]),
            (np.concatenate([line, line]), np.concatenate([sets + limited, anchor])),
        ),
        shape=(limited.size, price.size),
    )
    unit = float(np.abs(price).mean())
    left = time_left()
    answer = call_foreign(
        linprog,
        price / unit,
        A_eq=columns @ scipy.sparse.diags_array(1.0 / mass),
        b_eq=weights * weights.size,
        A_ub=limits.tocsr(),
        b_ub=np.zeros(limited.size),
        method="highs-ipm",
        # Presolving would look for dependent equations, longer than it takes to solve.
        options={"presolve": False, **({"time_limit": left} if np.isfinite(left) else {})},
    )
    if not answer.success:
        return None
    level = answer.x * (problem.total / weights.size) / mass
    x = np.zeros(layer.w.size)
    for step, member in zip(level, anchors, strict=False):
        x[member.edges] += step
    np.add.at(x, moves.edge, moves.sign * level[sets : sets + singles])
    P = layer.scatter(np.maximum(x, 0.0, out=x))
    del x, anchors  # as large as the problem
    P = problem.feasible(P, z, overwrite=True)
    u, v = np.split(unit * answer.eqlin.marginals, [problem.a.size])
    return Nearby(P, u, v, left=float(level[sets + singles :].sum()) / problem.total)


def _marginals(
    layer: Blocks, edge: Array, value: Array, column: Array, columns: int
) -> scipy.sparse.coo_array:
    """What these amounts on these edges add to the row and column sums of a plan."""
    n, m = layer.shape
    points = np.concatenate([layer.row[edge], n + layer.col[edge]])
    entries = np.tile(value, 2), (points, np.tile(column, 2))
    return scipy.sparse.coo_array(entries, shape=(n + m, columns))


def _several(layer: Blocks, pools: Pools) -> Array:
    """Which pools have several edges, block by block and down the order in each."""
    ends = [pools.end[s : s + k] for s, k in zip(layer.start, pools.n_pools, strict=False)]
    return np.concatenate([np.diff(end, prepend=0) for end in ends]) > 1


def _anchors(layer: Blocks, C: Array, pools: Pools) -> list[_Anchor]:
    """The pools of several edges, block by block and down the order in each."""
    ends = [pools.end[s : s + k] for s, k in zip(layer.start, pools.n_pools, strict=False)]
    anchors, chosen = [], iter(_several(layer, pools))
    for b, end in enumerate(ends):
        s, begin = layer.start[b], 0
        for stop in end:
            if next(chosen):
                edges = s + pools.order[s : s + stop]
                weight = float(layer.w[edges].sum())
                price = float(layer.table.value(b, weight))
                if C.size:
                    price += float(C[edges].sum())
                anchors.append(_Anchor(b, begin, edges, weight, price))
            begin = stop
    return anchors


def _moves(
    layer: Blocks,
    C: Array,
    pools: Pools,
    z: tuple[Array, Array],
    anchors: list[_Anchor],
    places: tuple[Array, Array],
) -> _Moves:
    """Edges that carry mass alone, and for every point those nearest to being worth moving."""
    n, m = layer.shape
    above, own = places
    weight = np.array([x.weight for x in anchors] + [0.0])  # the last one is that of S_0

    def prices(b: int, edge: Array, down: bool) -> Array:
        w = layer.w[edge]
        base = weight[own[edge]] - w if down else weight[above[edge]]
        price = w * layer.table.secant(b, base, w)
        return price + C[edge] if C.size else price

    # A move is coded as twice its edge, plus one if it goes down.
    slack, nearest = np.full((n + m, _WIDTH), np.inf), np.full((n + m, _WIDTH), -1)
    alone = (pools.X > 0) & (own < 0)
    for b in range(layer.start.size - 1):
        edges = np.arange(layer.start[b], layer.start[b + 1])
        for down, able in ((False, ~alone[edges]), (True, own[edges] >= 0)):
            e = edges[able]
            row, col = layer.row[e], layer.col[e]
            lacking = prices(b, e, down) - z[0][row] - z[1][col]
            if down:
                lacking *= -1.0
            code = 2 * e + down
            kernels.keep_least(row, lacking, code, slack[:n], nearest[:n])
            kernels.keep_least(col, lacking, code, slack[n:], nearest[n:])
    codes = np.unique(np.concatenate([2 * np.flatnonzero(alone), nearest[nearest >= 0]]))
    edge, down = codes // 2, codes % 2 == 1
    price = np.empty(edge.size)
    block = np.searchsorted(layer.start, edge, side="right") - 1
    for b in np.unique(block):
        for way in (False, True):
            chosen = (block == b) & (down == way)
            price[chosen] = prices(b, edge[chosen], way)
    sign = np.where(down, -1.0, 1.0)
    return _Moves(edge, sign, sign * price, np.where(down, own[edge], above[edge]))


def _places(layer: Blocks, anchors: list[_Anchor]) -> tuple[Array, Array]:
    """For every edge the last anchor above it, and the anchor whose pool it is in; -1 for none."""
    above, own = np.full((2, layer.w.size), -1, np.int32)
    for t, x in enumerate(anchors):
        inside = above[x.edges]
        above[layer.start[x.block] : layer.start[x.block + 1]] = t
        above[x.edges] = inside
        own[x.edges[x.begin :]] = t
    return above, own
