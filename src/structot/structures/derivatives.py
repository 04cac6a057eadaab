"""How f(P) depends on what a structure was bound to, at a fixed plan P.

Notation. The pairs of a block in the order in which P falls: W_k the sum of the first k costs, D_k
the drop of P from the k-th pair to the next (to 0 after the last), so that f = Σ_k D_k G(W_k) with
G(x) = T g(x / T) in units of the total T of the block, or g(x). Where P has ties the order does not
matter: their drops are 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import NamedTuple

import numpy as np

from structot._typing import Array
from structot.concave import Concave, as_concave
from structot.structures._grouping import Grouping
from structot.structures.base import Combination, Structure
from structot.structures.convex import ConvexCost
from structot.structures.coverage import Coverage, SetCoverage
from structot.structures.groups import Groups
from structot.structures.hierarchy import Hierarchy
from structot.structures.modular import Modular
from structot.structures.routes import Routes
from structot.structures.set_function import SetFunction


class Derivatives(NamedTuple):
    """∂f(P)/∂M (n, m), ∂f(P)/∂a (n,), ∂f(P)/∂b (m,)."""

    M: Array
    a: Array
    b: Array

    def plus(self, other: Derivatives, factor: float) -> Derivatives:
        """self + factor · other."""
        return Derivatives(*(x + factor * y for x, y in zip(self, other, strict=True)))


@singledispatch
def derivatives(
    structure: Structure, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    """∂f(P)/∂(M, a, b) of the structure bound to M, a and b; K is a worst cost for P.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> M, half = np.ones((2, 2)), np.full(2, 0.5)
    >>> charge = sot.Modular() + sot.Coverage([0, 0], weights=2.0, units="block")
    >>> derivatives(charge, M, half, half, np.diag(half), M).M
    array([[1.5, 1. ],
           [1. , 1.5]])
    """
    if structure.uses_cost:
        raise NotImplementedError(
            f"the derivative of {type(structure).__name__} with respect to M is not known; "
            "detach M, or use Modular, Coverage, Groups, Hierarchy or sums of them."
        )
    return _nothing(P)


@derivatives.register(SetFunction)
@derivatives.register(ConvexCost)
@derivatives.register(SetCoverage)
def _of_itself(
    structure: Structure, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    return _nothing(P)  # they see the plan only


@derivatives.register
def _of_modular(
    structure: Modular, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    return _nothing(P)._replace(M=P) if structure.cost is None else _nothing(P)


@derivatives.register
def _of_sum(
    structure: Combination, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    found = _nothing(P)
    for factor, term in structure.terms:
        own = K
        if isinstance(term, Routes) and factor > 0:
            # What routes see of the worst cost: their tariffs, without what other terms cost.
            linear = structure._bound(M, a, b).linear
            assert linear is not None
            finite = np.isfinite(linear)
            own = M + np.where(finite, K - np.where(finite, linear, 0.0), 0.0) / factor
        found = found.plus(derivatives(term, M, a, b, P, own), factor)
    return found


@derivatives.register
def _of_hierarchy(
    structure: Hierarchy, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    found = _nothing(P)
    for weight, level in zip(structure.weights.tolist(), structure.levels, strict=True):
        found = found.plus(derivatives(level, M, a, b, P, K), weight)
    return found


@derivatives.register
def _of_routes(structure: Routes, M: Array, a: Array, b: Array, P: Array, K: Array) -> Derivatives:
    """With tariffs α, β: f(P) = <M + α ⊕ β, P>, and a budget w is worth the share t of its route.

    The budget Σ a α + Σ b β <= w moves with the weights, w with mean(M) and the masses of groups;
    where both groups of a route have the same mass, half of min(mass, mass) moves with each.
    """
    bound = structure._bound(M, a, b)
    slope, by_a, by_b = _nothing(P)
    slope = slope + P
    if bound.lanes is None:
        return Derivatives(slope, by_a, by_b)
    lanes, finite = bound.lanes, np.isfinite(M)
    costs = np.where(finite, M, 0.0)
    share = lanes.shares(P)
    alpha, beta = lanes.cheapest_tariffs(np.where(finite, K - costs, 0.0))
    alpha, beta = lanes.within_budget(alpha, beta)
    by_a = -np.sum(alpha * share[lanes.rows], axis=1)
    by_b = -np.sum(beta * share[:, lanes.cols], axis=0)
    if structure.units == "cost":
        return Derivatives(slope, by_a, by_b)
    mass = np.bincount(lanes.rows, a), np.bincount(lanes.cols, b)
    least, total = np.minimum.outer(*mass), a.sum() * b.sum()
    mean = a @ costs @ b / total
    worth = share * np.divide(lanes.price, mean * least, out=0.0 * share, where=least > 0)
    part = float(np.sum(worth * least))
    slope = slope + np.where(finite, part * np.outer(a, b) / total, 0.0)
    by_a = by_a + part * (costs @ b / total - mean / a.sum())
    by_b = by_b + part * (a @ costs / total - mean / b.sum())
    first = 0.5 * (1.0 + np.sign(mass[1] - mass[0][:, None]))  # whose mass is the smaller one
    by_a = by_a + mean * np.sum(worth * first, axis=1)[lanes.rows]
    by_b = by_b + mean * np.sum(worth * (1.0 - first), axis=0)[lanes.cols]
    return Derivatives(slope, by_a, by_b)


@derivatives.register
def _of_coverage(
    structure: Coverage, M: Array, a: Array, b: Array, P: Array, K: Array
) -> Derivatives:
    if structure.units == "cost":
        return _nothing(P)
    rows, cols = structure.groupings(P.shape)
    slope, weights = np.zeros_like(P), structure.prices(rows.count, cols.count)
    for inside, block, group in _block_layers(rows, cols):
        top = np.zeros(group.size)
        np.maximum.at(top, block, P[inside])
        slope[inside] += (weights.ravel()[group] * top)[block]
    return _nothing(P)._replace(M=np.where(np.isfinite(M), slope, 0.0))


@derivatives.register
def _of_groups(structure: Groups, M: Array, a: Array, b: Array, P: Array, K: Array) -> Derivatives:
    rows, cols = structure.groupings(P.shape)
    finite = np.isfinite(M)
    share = np.ones_like(P)
    if structure.equal_coverage:
        share = 1.0 / np.multiply.outer(rows.coverage, cols.coverage)
    costs = share * np.where(finite, M, 0.0)
    slope = np.zeros_like(P)
    for inside, block, group in _block_layers(rows, cols):
        functions = _functions(structure.concave, group, cols.count)
        slope[inside] += _block_slopes(
            costs[inside], P[inside], block, functions, structure.units == "block"
        )
    return _nothing(P)._replace(M=np.where(finite, share * slope, 0.0))


def _block_slopes(w: Array, x: Array, block: Array, functions: list[Concave], own: bool) -> Array:
    """∂f/∂w for pairs with costs w, masses x and numbers of blocks, one function per block."""
    order = np.lexsort((-x, block))
    start = np.searchsorted(block[order], np.arange(len(functions) + 1))
    slope = np.zeros_like(w)
    for g, low, high in zip(functions, start, start[1:], strict=False):
        pairs = order[low:high]
        if pairs.size == 0:
            continue
        drop = x[pairs] - np.append(x[pairs][1:], 0.0)
        cost = np.cumsum(w[pairs])
        total = cost[-1] if own and cost[-1] > 0 else 1.0
        cost = cost / total
        used = drop > 0
        terms, rest = np.zeros_like(drop), 0.0
        terms[used] = drop[used] * g.slope(cost[used])
        if own:
            rest = float(np.sum(drop[used] * g(cost[used]) - terms[used] * cost[used]))
        slope[pairs] = np.cumsum(terms[::-1])[::-1] + rest
    return slope


def _functions(concave: Concave | Callable, group: Array, columns: int) -> list[Concave]:
    """g of each block of a layer."""
    if isinstance(concave, Concave):
        return [concave] * group.size
    return [as_concave(concave(int(k) // columns, int(k) % columns)) for k in group]


def _block_layers(rows: Grouping, cols: Grouping) -> Iterator[tuple[Array, Array, Array]]:
    """Layers of disjoint blocks: a mask of its pairs, the block of each, and the place of each
    block among all (source groups · target groups).
    """
    for row in rows.layers:
        for col in cols.layers:
            inside = np.logical_and.outer(row.number >= 0, col.number >= 0)
            block = np.add.outer(row.number * col.group.size, col.number)[inside]
            yield inside, block, np.add.outer(row.group * cols.count, col.group).ravel()


def _nothing(P: Array) -> Derivatives:
    return Derivatives(np.zeros_like(P), np.zeros(P.shape[0]), np.zeros(P.shape[1]))
