"""A problem with routes as arrays in which every group is contiguous and groups of a size are.

Notation as in `structot.submodular.lanes`. Points without weight are left out, rows and columns are
sorted by the size of their group, then by group. The groups of one size on each side make a *panel*
of g·h blocks of s × t pairs; a view of it is a batch. Where sizes are many, groups are filled up
with points of no weight, so that panels are few.

A route between two single points carries P_ij, and its share is P_ij / min(a_i, b_j): its price is
a linear cost, and no lane of it is left.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structot._typing import Array
from structot.problem import Problem
from structot.submodular.lanes import Lanes

# Sizes of groups that are kept apart; of more, some are filled up to the next of fewer sizes, by
# this share of themselves at most.
_MOST_SIZES = 8
_FILLING = 0.2


class Panel(NamedTuple):
    """Blocks of one size: where their points and groups stand, and how many of them there are.

    Its views are of arrays of whatever library.
    """

    rows: slice
    cols: slice
    row_groups: slice
    col_groups: slice
    shape: tuple[int, int, int, int]  # (g, s, h, t): groups and their size, rows then columns

    def pieces(self, count: int) -> list[Panel]:
        """The same blocks as at most so many panels, each with some of the groups of rows."""
        g, s, h, t = self.shape
        cuts = np.unique(np.linspace(0, g, min(count, g) + 1).astype(int)).tolist()
        row, group = self.rows.start, self.row_groups.start
        return [
            Panel(
                slice(row + i * s, row + j * s),
                self.cols,
                slice(group + i, group + j),
                self.col_groups,
                (j - i, s, h, t),
            )
            for i, j in itertools.pairwise(cuts)
        ]

    def pairs(self, X: Any) -> Any:
        """The view (g, s, h, t) of an array (n, m)."""
        return X[self.rows, self.cols].reshape(self.shape)

    def blocks(self, X: Any) -> Any:
        """The view (g, h, s, t) of an array (n, m)."""
        return self.pairs(X).swapaxes(1, 2)

    def source(self, X: Any) -> Any:
        """The view (g, h, s) of lanes of source points, (n, L)."""
        g, s, h, _ = self.shape
        return X[self.rows, self.col_groups].reshape(g, s, h).swapaxes(1, 2)

    def target(self, X: Any) -> Any:
        """The view (g, h, t) of lanes of target points, (K, m)."""
        g, _, h, t = self.shape
        return X[self.row_groups, self.cols].reshape(g, h, t)

    def routes(self, X: Any) -> Any:
        """The view (g, h) of an array (K, L)."""
        return X[self.row_groups, self.col_groups]


class _Side(NamedTuple):
    """The points of one side in their new order."""

    point: Array  # (places,) number of the point, -1 for a place that is filled up
    weight: Array  # (places,) 0 where filled up
    group: Array  # (places,) new number of the group
    original: Array  # (groups,) number of the group in the problem
    classes: list[tuple[int, int]]  # (groups, size of each), in order


def _side(number: Array, weight: Array, most_sizes: int) -> _Side:
    live = np.flatnonzero(weight > 0)
    groups, size = np.unique(number[live], return_counts=True)
    room = _room(size, most_sizes)
    order = np.lexsort((groups, room))
    point = []
    for k in order:
        members = live[number[live] == groups[k]]
        point.append(np.append(members, np.full(room[k] - size[k], -1)))
    points = np.concatenate(point)
    sizes, counts = np.unique(room, return_counts=True)
    return _Side(
        points,
        np.where(points >= 0, weight[points], 0.0),
        np.repeat(np.arange(order.size), room[order]),
        groups[order],
        list(zip(counts.tolist(), sizes.tolist(), strict=True)),
    )


def _room(size: Array, most_sizes: int) -> Array:
    """The number of places for groups of these sizes: their own, or one of fewer sizes."""
    distinct = np.unique(size)[::-1]
    if distinct.size <= most_sizes:
        return size
    kept = [distinct[0]]
    for x in distinct:
        if x * (1.0 + _FILLING) < kept[-1]:
            kept.append(x)
    steps = np.array(kept[::-1])
    return steps[np.searchsorted(steps, size)]


@dataclass(frozen=True, eq=False)
class Layout:
    """The data of the linear program in the new order, and the way back.

    min <cost, P> + w·t over P in U(a, b) with P(i, V_l) <= a_i t_kl and P(U_k, j) <= b_j t_kl.
    The side with more points comes first.
    """

    panels: tuple[Panel, ...]
    a: Array  # (n,)
    b: Array  # (m,)
    cost: Array  # (n, m), 0 where not live
    live: Array | None  # (n, m) which pairs may carry mass; None for all of points with weight
    price: Array  # (K, L) w, 0 for a route without lanes
    source: Array  # (n, L) the weight a_i of a lane, 0 for one that is not there
    target: Array  # (K, m) the weight b_j of a lane, 0 for one that is not there
    row_group: Array
    col_group: Array
    transposed: bool
    sides: tuple[_Side, _Side]
    folded: tuple[Array, Array]  # tariffs (n, L), (K, m) of routes between single points

    @classmethod
    def of(cls, problem: Problem) -> Layout:
        lanes = problem.lanes
        assert lanes is not None
        assert problem.linear is not None
        cost, price = problem.linear, lanes.price
        sides = [_side(lanes.rows, lanes.a, _MOST_SIZES), _side(lanes.cols, lanes.b, _MOST_SIZES)]
        transposed = sides[0].point.size < sides[1].point.size
        if transposed:
            cost, price, sides = cost.T, price.T, sides[::-1]
        rows, cols = sides
        cost = cost[np.ix_(rows.point, cols.point)]
        live = np.isfinite(cost)
        live[rows.point < 0] = False
        live[:, cols.point < 0] = False
        cost[~live] = 0.0
        price = price[np.ix_(rows.original, cols.original)].copy()
        panels = tuple(_panels(rows, cols))
        folded = _fold_single_pairs(panels, rows, cols, cost, live, price)
        by_source, by_target = _no_lanes(rows, cols)
        for panel in panels:
            pairs = panel.blocks(live)
            priced = panel.routes(price)[:, :, None] > 0
            panel.source(by_source)[...] = priced & pairs.any(axis=3)
            panel.target(by_target)[...] = priced & pairs.any(axis=2)
        by_source *= rows.weight[:, None]
        by_target *= cols.weight
        for panel in panels:  # a route that no pair can take
            panel.routes(price)[~(panel.source(by_source) > 0).any(axis=2)] = 0.0
        everything = bool(live.all())
        return cls(
            panels=panels,
            a=rows.weight,
            b=cols.weight,
            cost=cost,
            live=None if everything else live,
            price=price,
            source=by_source,
            target=by_target,
            row_group=rows.group,
            col_group=cols.group,
            transposed=transposed,
            sides=(rows, cols),
            folded=folded,
        )

    @classmethod
    def without_costs(cls, lanes: Lanes, most_sizes: int = _MOST_SIZES) -> Layout | None:
        """Where every pair is allowed and costs are kept elsewhere: ``cost`` is empty.

        Only places that are filled up are not ``live``, which is None nevertheless. None where
        single points face single points, so that prices would become costs.
        """
        sides = [_side(lanes.rows, lanes.a, most_sizes), _side(lanes.cols, lanes.b, most_sizes)]
        transposed = sides[0].point.size < sides[1].point.size
        rows, cols = sides[::-1] if transposed else sides
        panels = tuple(_panels(rows, cols))
        if any(panel.shape[1] == panel.shape[3] == 1 for panel in panels):
            return None
        price = lanes.price.T if transposed else lanes.price
        price = price[np.ix_(rows.original, cols.original)].copy()
        by_source, by_target = _no_lanes(rows, cols)
        by_source[...] = rows.weight[:, None] * (price[rows.group] > 0)
        by_target[...] = cols.weight * (price[:, cols.group] > 0)
        return cls(
            panels=panels,
            a=rows.weight,
            b=cols.weight,
            cost=np.empty((0, 0)),
            live=None,
            price=price,
            source=by_source,
            target=by_target,
            row_group=rows.group,
            col_group=cols.group,
            transposed=transposed,
            sides=(rows, cols),
            folded=_no_lanes(rows, cols),
        )

    @property
    def order(self) -> tuple[Array, Array]:
        """The points of the problem in the order of the rows and of the columns, -1 for none."""
        return self.sides[0].point, self.sides[1].point

    @property
    def size(self) -> int:
        """The number of products x z of the method: pairs, lanes, routes."""
        whole = int(np.count_nonzero(self.a)) * int(np.count_nonzero(self.b))
        pairs = whole if self.live is None else int(np.count_nonzero(self.live))
        lanes = np.count_nonzero(self.source) + np.count_nonzero(self.target)
        return pairs + int(lanes + np.count_nonzero(self.price))

    def plan(self, P: Array, shape: tuple[int, int]) -> Array:
        """P in the order of the problem, 0 for points without weight."""
        rows, cols = self.sides
        i, j = rows.point >= 0, cols.point >= 0
        whole = np.zeros(shape[::-1] if self.transposed else shape)
        whole[np.ix_(rows.point[i], cols.point[j])] = P[np.ix_(i, j)]
        return np.ascontiguousarray(whole.T) if self.transposed else whole

    def tariffs(self, problem: Problem, alpha: Array, beta: Array) -> tuple[Array, Array]:
        """α (n, L) and β (K, m) in the order of the problem, with those of single pairs."""
        lanes = problem.lanes
        assert lanes is not None
        alpha = np.where(self.source > 0, alpha, self.folded[0])
        beta = np.where(self.target > 0, beta, self.folded[1])
        rows, cols = self.sides
        shape, groups = problem.shape, lanes.price.shape
        if self.transposed:
            shape, groups = shape[::-1], groups[::-1]
        i, j = rows.point >= 0, cols.point >= 0
        by_source, by_target = np.zeros((shape[0], groups[1])), np.zeros((groups[0], shape[1]))
        by_source[np.ix_(rows.point[i], cols.original)] = alpha[i]
        by_target[np.ix_(rows.original, cols.point[j])] = beta[:, j]
        return (by_target.T, by_source.T) if self.transposed else (by_source, by_target)

    def row_potentials(self, u: Array, v: Array, size: int) -> Array:
        """Those of the source points in the order of the problem, -inf for points of no weight."""
        side, known = (self.sides[1], v) if self.transposed else (self.sides[0], u)
        whole = np.full(size, -np.inf)
        real = side.point >= 0
        whole[side.point[real]] = known[real]
        return whole


def _panels(rows: _Side, cols: _Side) -> list[Panel]:
    panels = []
    row = row_group = 0
    for g, s in rows.classes:
        col = col_group = 0
        for h, t in cols.classes:
            panels.append(
                Panel(
                    slice(row, row + g * s),
                    slice(col, col + h * t),
                    slice(row_group, row_group + g),
                    slice(col_group, col_group + h),
                    (g, s, h, t),
                )
            )
            col, col_group = col + h * t, col_group + h
        row, row_group = row + g * s, row_group + g
    return panels


def _no_lanes(rows: _Side, cols: _Side) -> tuple[Array, Array]:
    """0 for every lane, (n, L) and (K, m)."""
    n, m, K, L = rows.point.size, cols.point.size, rows.original.size, cols.original.size
    return np.zeros((n, L)), np.zeros((K, m))


def _fold_single_pairs(
    panels: tuple[Panel, ...], rows: _Side, cols: _Side, cost: Array, live: Array, price: Array
) -> tuple[Array, Array]:
    """Move prices of routes between single points into the cost; the tariffs that they pay."""
    alpha, beta = _no_lanes(rows, cols)
    for panel in panels:
        if panel.shape[1] > 1 or panel.shape[3] > 1:
            continue
        w, a, b = panel.routes(price), rows.weight[panel.rows], cols.weight[panel.cols]
        rate = w / np.minimum.outer(a, b)
        cost[panel.rows, panel.cols] += np.where(live[panel.rows, panel.cols], rate, 0.0)
        by_source = np.less_equal.outer(a, b)
        alpha[panel.rows, panel.col_groups] = np.where(by_source, rate, 0.0)
        beta[panel.row_groups, panel.cols] = np.where(by_source, 0.0, rate)
        w[...] = 0.0
    return alpha, beta
