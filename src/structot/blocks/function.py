"""Concave-of-sum functions on disjoint blocks, and everything one sort gives for them.

Notation. F(S) = Σ_b g_b(w(S ∩ b)) over disjoint blocks b of edges; E edges in all, kept in block
order: edge e is the pair (row[e], col[e]), block b owns ``start[b]:start[b+1]``. Coverage is the
case of a g that jumps at 0. Edges of no weight are one more block, with g = 0 and a small weight
for the metric, so that they need no special treatment anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from structot._checks import as_mask, as_matrix, one_of, positive
from structot._parallel import over_blocks
from structot._typing import Array
from structot.blocks import kernels, kinks, layout, polytope, reference
from structot.blocks.layout import Edges
from structot.blocks.pools import Pools
from structot.concave import Concave, ConcaveTable, pack_table
from structot.concave.base import STEP
from structot.submodular.base import FAR, METRICS, Kind, Minimizer, Submodular

# Blocks of so many elements are presorted.
_LARGE = 1000
# Weight of a zero-cost edge in the metric, relative to the mean weight.
_FREE_WEIGHT = 1e-2


@dataclass(frozen=True, eq=False, repr=False)
class Blocks(Submodular):
    """F(S) = Σ_b outer_b · g_b(inner_b · w(S ∩ b)) over disjoint blocks of edges.

    Made by `of_groups` or `of_labels`; `Structure.bind` does it.
    """

    shape: tuple[int, int]
    edges: Edges
    table: ConcaveTable  # g, outer and inner of every block
    # The mean cost of a pair: what the entropy of a problem measures costs in.
    mean_weight: float
    allowed: Array | None = None
    support: Array | None = None
    # The number of the group of each row and column, where blocks are made of groups.
    row_group: Array | None = None
    col_group: Array | None = None
    kind: ClassVar[Kind] = "blocks"
    monotone: ClassVar[bool] = True  # type: ignore[misc]

    @classmethod
    def of_groups(
        cls,
        weights: Array,
        row_group: Array,
        col_group: Array,
        concave: Concave | list[Concave],
        outer: Array,
        inner: Array,
    ) -> Blocks:
        """Blocks (group of row) × (group of column).

        Parameters
        ----------
        weights
            w, shape (n, m); +inf forbids a pair, 0 makes it free.
        row_group, col_group
            Number of the group of each row and column, -1 for none. Pairs in no block are outside
            the support: F does not see them.
        concave
            One function, or one per block in the order (row group, column group).
        outer, inner
            Scales per block, in the same order.
        """
        covered = None
        if min(row_group.min(), col_group.min()) < 0:
            covered = np.logical_and.outer(row_group >= 0, col_group >= 0)
        order = layout.block_order(weights, row_group, col_group)
        blocks = cls._of_order(weights, order, covered, concave, outer, inner)
        return replace(blocks, row_group=row_group, col_group=col_group)

    @classmethod
    def of_labels(
        cls,
        weights: Array,
        labels: Array,
        concave: Concave | list[Concave],
        outer: Array,
        inner: Array,
    ) -> Blocks:
        """Blocks of any form: ``labels`` (n, m) numbers the block of each pair, -1 for none."""
        covered = None if labels.min() >= 0 else labels >= 0
        order = layout.label_order(weights, labels)
        return cls._of_order(weights, order, covered, concave, outer, inner)

    @classmethod
    def _of_order(
        cls,
        weights: Array,
        order: tuple[Array, Array, Array, Array],
        covered: Array | None,
        concave: Concave | list[Concave],
        outer: Array,
        inner: Array,
    ) -> Blocks:
        row, col, start, used = order
        nothing = weights == 0 if covered is None else (weights == 0) & covered
        free = np.flatnonzero(nothing.ravel())
        row, col, start = layout.append_block(row, col, start, free, weights)
        w = layout.gather(weights, row, col)
        mean = float(w.mean()) if w.any() else 1.0
        outer, inner = outer[used], inner[used]
        functions = concave if isinstance(concave, Concave) else [concave[b] for b in used]
        if free.size:
            w[-free.size :] = _FREE_WEIGHT * mean if w.any() else 1.0
            outer, inner = np.append(outer, 0.0), np.append(inner, 1.0)
            if isinstance(functions, list):
                functions.append(concave[0])  # type: ignore[index]
        finite = np.isfinite(weights)
        blocks = cls(
            shape=weights.shape,
            edges=Edges(start, row, col, w),
            table=pack_table(functions, outer, inner),
            allowed=None if finite.all() else finite,
            support=covered,
            mean_weight=mean,
        )
        blocks._check_functions()
        return blocks

    def _check_functions(self) -> None:
        """Functions written in Python must be concave as far as their blocks reach."""
        if self.interpreted:
            reach: dict[Concave, float] = {}
            for g, x in zip(self.table.functions, self.table.inner * self.totals, strict=True):
                reach[g] = max(reach.get(g, 0.0), float(x))
            for g, x in reach.items():
                g.check(x)

    @property
    def start(self) -> Array:
        return self.edges.start

    @property
    def row(self) -> Array:
        return self.edges.row

    @property
    def col(self) -> Array:
        return self.edges.col

    @property
    def w(self) -> Array:
        return self.edges.w

    @cached_property
    def totals(self) -> Array:
        """(B,) the weights of whole blocks."""
        return np.add.reduceat(self.w, self.start[:-1]) if self.w.size else np.zeros(0)

    @cached_property
    def last_slopes(self) -> Array:
        """(B,) the slope of g where a block is complete, the least that a pair adds per weight."""
        out = np.empty(self.start.size - 1)
        self._each("last_slopes", self.totals, self._packed, out)
        return out

    @cached_property
    def interpreted(self) -> bool:  # type: ignore[override]
        return self.table.has_custom

    # -- between (n, m) arrays and block order ------------------------------------------------

    def gather(self, P: Array, out: Array | None = None) -> Array:
        """The entries of an (n, m) array on the edges, in block order."""
        if out is None:
            return layout.gather(P, self.row, self.col)
        layout.gather_into(P, self.row, self.col, out)
        return out

    def scatter(self, x: Array, fill: float = 0.0) -> Array:
        """The (n, m) array with these entries on the edges and ``fill`` elsewhere."""
        return layout.scatter(x, self.row, self.col, self.shape, fill)

    def cost_of_edges(self, k: Array) -> Array:
        """K from its entries on the edges: +inf on forbidden pairs, 0 outside the support."""
        K = self.scatter(k, fill=np.inf)
        if self.support is not None:
            K[self._allowed() & ~self.support] = 0.0
        return K

    def _each(self, kernel: str, *args: object) -> list:
        """Call a kernel on all blocks; functions written in Python need the one in NumPy."""
        homes = (reference,) if self.interpreted else (kernels, polytope, kinks)
        function = next(getattr(home, kernel) for home in homes if hasattr(home, kernel))
        return over_blocks(self.start, lambda i, j: function(i, j, self.edges, *args))

    @property
    def _packed(self) -> ConcaveTable | tuple[Array, ...]:
        return self.table if self.interpreted else self.table.arrays

    def _new_pools(self, X: Array | None = None) -> Pools:
        return Pools.empty(self.w.size, self.start.size - 1, X)

    # -- the protocol --------------------------------------------------------------------------

    @property
    def metric(self) -> Array:
        return self.scatter(self.w, fill=1.0)

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        inside = self.gather(mask.astype(float))
        blocks = np.flatnonzero(np.add.reduceat(inside, self.start[:-1]) > 0)
        weight = np.add.reduceat(inside * self.w, self.start[:-1])
        return float(sum(self.table.value(int(b), weight[b]) for b in blocks))

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        return self.cost_of_edges(self.greedy_edges(self.gather(P)))

    def greedy_edges(self, x: Array) -> Array:
        """Edmonds' vertex in block order."""
        K = np.empty_like(x)
        self._each("greedy_blocks", x, self._packed, K)
        return K

    def single_edges(self) -> Array:
        """F({e}) for every edge, in block order: what it costs alone."""
        K = np.empty(self.w.size)
        self._each("single_blocks", self._packed, K)
        return K

    def extension(self, P: Array) -> float:
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        return self.extension_edges(self.gather(P))

    def magnitude(self, P: Array) -> float:
        return self.extension(P)  # for plans, whose terms are all positive

    def extension_edges(self, x: Array, last: Pools | None = None) -> float:
        """f in block order; ``last`` lends its order and memory."""
        if x.size and x.min() < 0:
            return float(x @ self.greedy_edges(x))
        last = Pools.of_order(x, self.start.size - 1) if last is None else last
        return float(sum(self._each("extension_blocks", x, self._packed, last)))

    def prox(
        self,
        V: Array,
        rho: float = 1.0,
        *,
        nonnegative: bool = False,
    ) -> Array:
        """One sort and pool-adjacent-violators per block, in the metric of the weights w."""
        V = as_matrix("V", V, self.shape)
        floor = 0.0 if nonnegative else -np.inf
        X = self.scatter(self.prox_edges(self.gather(V), positive("rho", rho), floor).X)
        if self.support is not None:
            outside = self._allowed() & ~self.support
            X[outside] = np.maximum(V[outside], floor)
        return X

    def prox_edges(
        self,
        v: Array,
        rho: float,
        floor: float = -np.inf,
        last: Pools | None = None,
        busy: Array | None = None,
    ) -> Pools:
        """The prox in block order, cut at ``floor``; reuses the order and memory of ``last``.

        Blocks that are not ``busy`` are known to end at the floor, and not looked at.
        """
        last = self._new_pools() if last is None else last
        what = v, rho, floor, self.totals, self._packed, last
        if busy is None:
            self._each("prox_blocks", *what)
        else:
            self._each("prox_busy", *what, busy)
        return last

    def loosen_edges(self, K: Array, pools: Pools, reach: float) -> None:
        """K, a subgradient at pools.X, becomes the share (0 to 1) to which every element is loose:
        1 if it is alone, the less the farther from leaving a pool of several, or 0. Blocks without
        pools stay as they are.
        """
        self._each("loosen_blocks", K, pools, reach, self._packed)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        z = self.gather(as_matrix("Z", Z, self.shape))
        if not np.isfinite(z).all():
            raise ValueError("Z must be finite on every allowed pair.")
        if metric == "entropy" and not (z > 0).all():
            raise ValueError("Z must be positive on every allowed pair for metric='entropy'.")
        return self.cost_of_edges(self.project_edges(z, metric))

    def project_edges(self, z: Array, metric: str) -> Array:
        """Projection onto B(F) in block order."""
        if metric == "cost":
            # K = z - w X with X = prox(z / w), in place.
            x = z / self.w
            self.prox_edges(x, 1.0, last=self._new_pools(X=x))
            x *= self.w
            return np.subtract(z, x, out=x)
        K = np.empty_like(z)
        if metric == "entropy":
            self._each("entropy_blocks", z, self._packed, K)
            return K
        self._each("euclidean_blocks", z, self._packed, K)
        if z.size and np.abs(z).max() > FAR * np.abs(K).max():
            self._each("euclidean_blocks", K.copy(), self._packed, K)
        return K

    def project_potentials(self, u: Array, v: Array) -> Array:
        # As above, with nothing as large as the problem beside X and its order: it is made where a
        # solver still holds its own memory.
        x = np.empty(self.w.size)
        self._each("potential_point", u, v, x)
        pools = self._new_pools(X=x)
        self._presort(x, pools)
        self.prox_edges(x, 1.0, last=pools)
        del pools
        self._each("potential_cost", u, v, x)
        return self.cost_of_edges(x)

    def _presort(self, x: Array, pools: Pools) -> None:
        """Put large blocks in falling order of x, equal elements in their own order.

        NumPy sorts what has no order yet some times faster than a stable sort does, but for ties,
        whose order may differ between processors.
        """
        sizes = np.diff(self.start)
        for b in np.flatnonzero(sizes >= _LARGE):
            block = slice(self.start[b], self.start[b + 1])
            pools.order[block] = np.argsort(-x[block])
            pools.n_active[b] = sizes[b]
        kernels.order_ties(self.start, x, pools.order, pools.n_active)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        shift = np.zeros(self.shape) if shift is None else as_matrix("shift", shift, self.shape)
        inside = np.zeros(self.w.size, bool)
        minimum = np.zeros(self.start.size - 1)
        self._each("minimize_blocks", self.gather(shift), self._packed, inside, minimum)
        mask, value = self.scatter(inside), float(minimum.sum())
        if self.support is not None:
            outside = self._allowed() & ~self.support & (shift < 0)
            mask, value = mask | outside, value + float(shift[outside].sum())
        return Minimizer(mask, value)

    def scaled(self, factor: float) -> Blocks:
        """factor · F, sharing everything but the scales."""
        return replace(self, table=replace(self.table, outer=factor * self.table.outer))

    def in_units(self, cost: float, mass: float) -> Blocks:
        """F / cost, with weights (and so a metric) in units of cost too, where they are costs."""
        if self.is_coverage:
            return self.scaled(1.0 / cost)
        table = self.table
        return replace(
            self,
            edges=self.edges._replace(w=self.w / cost),
            table=replace(table, outer=table.outer / cost, inner=table.inner * cost),
            mean_weight=self.mean_weight / cost,
        )

    def floored(self, least: float) -> Blocks:
        """The function with weights below ``least`` raised to it; itself if there are none."""
        if not (self.w < least).any():
            return self
        return replace(self, edges=self.edges._replace(w=np.maximum(self.w, least)))

    @property
    def is_modular(self) -> bool:
        """Whether every block is linear: by its function, or because it has one edge only."""
        several = (np.diff(self.start) > 1) & (self.table.outer > 0)
        return all(self.table.functions[b].is_linear for b in np.flatnonzero(several))

    @property
    def modular_cost(self) -> Array | None:
        return self.cost_of_edges(self.single_edges()) if self.is_modular else None

    @property
    def entropy_weights(self) -> Array | float:
        """The ground cost divided by its mean; coverage has no use for costs."""
        return 1.0 if self.is_coverage else self.metric / self.mean_weight

    @property
    def is_coverage(self) -> bool:
        """Whether F pays once per block touched."""
        return bool((self.table.kind == STEP).all())
