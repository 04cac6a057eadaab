"""A smaller problem of the same kind: its points are clusters of points.

Notation. Clusters I of s rows and J of t columns lie within groups; points that are groups of their
own are joined with others of their kind. A plan that spreads Θ_IJ evenly over the pairs of I and J,
P = Θ_IJ / (s t), costs, with W_IJ the mean weight of these pairs,

    f(P) = f'(Θ),    F'(S) = Σ_b outer_b / (s t) · g_b(inner_b · s t · W(S)),

a problem of the same kind with one (s t)-th of the pairs: exactly so where clusters have equal
sizes, their points equal masses, and joined groups equal costs, and nearly so elsewhere. Nothing is
proved here. The answer between clusters is where the Newton method begins if there are many points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.concave import Concave
from structot.marginals import Marginals
from structot.problem import Problem
from structot.solvers.start import Start
from structot.submodular.bound import BoundCost

# Points of a cluster, and the fewest clusters that a side may have.
_SIZE, _FEWEST = 4, 60
# Columns (rows) by whose costs rows (columns) are told apart, and among how many they are chosen.
_REFERENCES, _SAMPLE = 8, 256

# What the clusters of each side are made by: the costs of its points to a few of the other side.
Sights = tuple[Array, Array]


class Clustered(NamedTuple):
    """The problem between clusters, the cluster of each row and column, and their sights."""

    problem: Problem
    rows: Array
    cols: Array
    sights: Sights

    @classmethod
    def of(cls, problem: Problem, sights: Sights | None = None) -> Clustered | None:
        """Nothing where pairs are forbidden, where blocks are not made of groups, where clusters
        would be few, or where a given mass is to be moved: between clusters it would be another.
        """
        layer = problem.blocks
        assert layer is not None
        k, l = layer.row_group, layer.col_group
        if k is None or l is None or min(k.min(), l.min()) < 0:
            return None
        if problem.function.allowed is not None or problem.marginals.partial:
            return None
        if min(problem.shape) < _FEWEST:
            return None
        if sights is None:
            M = problem.ground_cost
            sights = _sight(M), _sight(M.T)
        rows, cols = (_clusters(x, group) for x, group in zip(sights, (k, l), strict=True))
        shape = int(rows.max()) + 1, int(cols.max()) + 1
        if min(shape) < _FEWEST:
            return None
        of_rows, of_cols = _membership(rows), _membership(cols)
        linear = problem.linear
        if linear is not None:
            linear = _means(linear, of_rows, of_cols)
        function = BoundCost.of(linear, (_between(layer, rows, cols, of_rows, of_cols),))
        sides = problem.marginals
        merged = Marginals.of(
            *(np.bincount(rows, sides.a), np.bincount(cols, sides.b)),
            *(sides.prices or (None, None), sides.kind),
        )
        means = (of_rows @ sights[0], of_cols @ sights[1])
        small = replace(problem, marginals=merged, function=function)
        return cls(small, rows, cols, means)

    def refined(self, fine: Problem, plan: Array, potentials: tuple[Array, Array]) -> Start:
        """A start between points: the plan in proportion to their masses, and multipliers.

        Those of a point are what the plan pays for it, less what the other side bears of it, on
        average: inside a cluster they differ as costs do.
        """
        layer = self.problem.blocks
        assert layer is not None
        assert fine.blocks is not None
        u, v = potentials
        K: Array = (layer.project_potentials(u, v) / layer.metric)[self.rows][:, self.cols]
        K *= fine.blocks.metric
        if fine.linear is not None:
            K += fine.linear
        mass = np.outer(self.problem.a, self.problem.b)
        density = np.divide(plan, mass, out=np.zeros_like(plan), where=mass > 0)
        P: Array = density[self.rows][:, self.cols]
        P *= fine.a[:, None]
        P *= fine.b
        K *= P
        u, v = u[self.rows], v[self.cols]
        x, y = P.sum(axis=1), P.sum(axis=0)
        p = np.divide(K.sum(axis=1) - P @ v, x, out=u.copy(), where=x > 0)
        q = np.divide(K.sum(axis=0) - P.T @ u, y, out=v.copy(), where=y > 0)
        return Start(P, (p, q))


def _between(
    layer: Blocks,
    rows: Array,
    cols: Array,
    of_rows: scipy.sparse.csr_array,
    of_cols: scipy.sparse.csr_array,
) -> Blocks:
    """The layer between clusters. Of blocks that become one, scales are averaged."""
    k, l, table = layer.row_group, layer.col_group, layer.table
    assert k is not None
    assert l is not None
    (row_group, row_new, s), (col_group, col_new, t) = _regrouped(k, rows), _regrouped(l, cols)
    shape = row_group.max() + 1, col_group.max() + 1
    # Pairs of no cost share a block of their own, the last one.
    blocks = np.flatnonzero(table.outer > 0)
    first = layer.start[:-1][blocks]
    place = row_new[k[layer.row[first]]], col_new[l[layer.col[first]]]
    outer, wide, count = np.zeros((3, *shape))
    np.add.at(count, place, 1.0)
    np.add.at(outer, place, table.outer[blocks])
    np.add.at(wide, place, 1.0 / table.inner[blocks])
    count[count == 0] = outer[outer == 0] = wide[wide == 0] = 1.0
    pairs = np.outer(s, t)
    concave: Concave | list[Concave] = table.functions[0]
    if any(g is not concave for g in table.functions):
        functions = np.full(shape, concave, object)
        for i, j, b in zip(*place, blocks, strict=True):
            functions[i, j] = table.functions[b]
        concave = functions.ravel().tolist()
    weights = layer.w
    if blocks.size < table.outer.size:
        weights = np.where(np.repeat(table.outer > 0, np.diff(layer.start)), weights, 0.0)
    W = _means(layer.scatter(weights), of_rows, of_cols)
    scales = (outer / (count * pairs)).ravel(), (count * pairs / wide).ravel()
    return Blocks.of_groups(W, row_group, col_group, concave, *scales)


def _regrouped(group: Array, cluster: Array) -> tuple[Array, Array, Array]:
    """The group of every cluster, numbered anew; the new number of every old group; and how many
    points a cluster of each new group has, of one of the old groups it stands for.
    """
    old = np.empty(cluster.max() + 1, group.dtype)
    old[cluster] = group
    _, new = np.unique(old, return_inverse=True)
    renumbered = np.zeros(group.max() + 1, np.int64)
    renumbered[group] = new[cluster]
    points = np.empty(new.max() + 1)
    points[new[cluster]] = np.bincount(group)[group]
    return new, renumbered, points / np.bincount(new)


def _membership(cluster: Array) -> scipy.sparse.csr_array:
    """The matrix (clusters, points) that takes means over clusters."""
    size = np.bincount(cluster)
    members = np.argsort(cluster, kind="stable")
    ends = np.concatenate([[0], np.cumsum(size)])
    return scipy.sparse.csr_array(
        (1.0 / size[cluster[members]], members, ends), shape=(size.size, cluster.size)
    )


def _means(x: Array, of_rows: scipy.sparse.csr_array, of_cols: scipy.sparse.csr_array) -> Array:
    """The mean of x over every pair of clusters."""
    return np.ascontiguousarray((of_cols @ (of_rows @ x).T).T)


def _clusters(sight: Array, group: Array) -> Array:
    """Clusters of `_SIZE` points that see the same, within groups: halves of halves.

    At most one cluster of a group has another size. Groups of one point are taken as one group.
    """
    alone = np.bincount(group)[group] == 1
    order = np.argsort(np.where(alone, -1, group), kind="stable")
    ends = np.flatnonzero(np.diff(np.where(alone, -1, group)[order])) + 1
    parts = np.split(order, ends)
    cluster, count = np.empty(group.size, np.int64), 0
    while parts:
        members = parts.pop()
        if members.size < 2 * _SIZE:
            cluster[members] = count
            count += 1
            continue
        seen = sight[members]
        axis = int(np.ptp(seen, axis=0).argmax())
        members = members[np.argsort(seen[:, axis], kind="stable")]
        half = _SIZE * round(members.size / (2 * _SIZE))
        parts += [members[:half], members[half:]]
    return cluster


def _sight(M: Array) -> Array:
    """The costs of all rows to a few columns that lie far apart: each the farthest of a sample from
    those before.
    """
    rows, cols = (np.linspace(0, n - 1, min(n, _SAMPLE)).astype(int) for n in M.shape)
    points = M[np.ix_(rows, cols)].T
    chosen, distance = [0], np.full(cols.size, np.inf)
    for _ in range(_REFERENCES):
        distance = np.minimum(distance, np.abs(points - points[chosen[-1]]).sum(axis=1))
        chosen.append(int(distance.argmax()))
    return M[:, cols[chosen[1:]]]
