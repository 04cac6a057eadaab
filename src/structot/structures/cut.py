"""Cuts: a price for every pair of neighbouring edges that carry different mass.

Notation. f(P) = Σ c |P_e - P_e'| over neighbouring edges e = (i, j), e' = (i', j') of the plan.
A cut is no monotone function, F(all) = 0: alone it asks for an even plan and knows no ground cost;
add `Modular()` or another structure.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from structot._checks import as_array, nonnegative, one_of
from structot._typing import Array
from structot.structures.base import Structure
from structot.submodular.base import Layer
from structot.submodular.bound import BoundCost
from structot.submodular.cuts import Lines, Matching

ALONG = ("both", "rows", "columns")
NEIGHBORS = ("one", "both")


class ChainCut(Structure):
    """f(P) = w Σ_i Σ_j |P_i,j+1 - P_ij| along rows, w Σ_j Σ_i |P_i+1,j - P_ij| along columns.

    Total variation in the given order of the points, for points that come in an order (time,
    position in a text): neighbours exchange mass with the same partners. F(S) is w times the
    number of neighbouring edges of which one is in S and the other is not. A forbidden pair breaks
    its line. One prox takes time proportional to the number of pairs.

    Parameters
    ----------
    weight
        w >= 0.
    along
        ``"rows"``: neighbouring targets of one source; ``"columns"``: neighbouring sources of one
        target; ``"both"``.

    Examples
    --------
    >>> import numpy as np
    >>> F = ChainCut(2.0, along="rows").bind(np.ones((1, 4)))
    >>> F.extension(np.array([[0.0, 0.5, 0.5, 0.25]]))
    1.5
    """

    uses_cost = False

    def __init__(self, weight: float = 1.0, *, along: str = "both") -> None:
        self.weight = nonnegative("weight", weight)
        self.along = one_of("along", along, ALONG)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        axes = {"both": (1, 0), "rows": (1,), "columns": (0,)}[self.along]
        allowed = _allowed(M)
        layers: list[Layer] = [
            Lines(M.shape, axis, self.weight, allowed)
            for axis in axes
            if M.shape[axis] > 1 and self.weight > 0
        ]
        return BoundCost.of(None if layers else _zero(M), layers)

    def __repr__(self) -> str:
        along = "" if self.along == "both" else f", along={self.along!r}"
        return f"ChainCut({self.weight:g}{along})"


class GraphCut(Structure):
    """f(P) = w Σ c |P_ij - P_i'j'| over neighbouring pairs (i, j) and (i', j').

    With ``neighbors="one"`` two pairs are neighbours when they share one end point and the others
    are neighbours in their graph: neighbouring points exchange mass with the same partners, and
    with paths for graphs this is `ChainCut`. With ``"both"`` they are neighbours when both end
    points are (i ~ i' and j ~ j'): where one point goes, its neighbours go near it.

    The edges of each graph are coloured so that no two of a colour meet in a point; every colour
    (for ``"both"``: every two colours) is a layer of disjoint pairs with a closed-form prox.

    Parameters
    ----------
    source_graph, target_graph
        A symmetric matrix of weights c >= 0 (points, points), dense or sparse; or a list of pairs
        of indices, c = 1; or None: no neighbours on that side.
    weight
        w >= 0, times all c (for ``"both"`` c is the product of both graphs' weights).
    neighbors
        ``"one"`` or ``"both"``, as above.

    Examples
    --------
    >>> import numpy as np
    >>> F = GraphCut([(0, 1), (1, 2)]).bind(np.ones((3, 2)))
    >>> F.extension(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    2.0
    """

    uses_cost = False

    def __init__(
        self,
        source_graph: object | None,
        target_graph: object | None = None,
        weight: float = 1.0,
        *,
        neighbors: str = "one",
    ) -> None:
        self.neighbors = one_of("neighbors", neighbors, NEIGHBORS)
        self.weight = nonnegative("weight", weight)
        if source_graph is None and target_graph is None:
            raise ValueError(
                "source_graph and target_graph are both None; pass a list of pairs of indices or "
                "a matrix of weights for at least one side."
            )
        if self.neighbors == "both" and (source_graph is None or target_graph is None):
            raise ValueError(
                "neighbors='both' needs source_graph and target_graph; pass both, or use "
                "neighbors='one'."
            )
        self.source = None if source_graph is None else _Graph("source_graph", source_graph)
        self.target = None if target_graph is None else _Graph("target_graph", target_graph)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        sides = (self.source, self.target)
        for side, size in zip(sides, M.shape, strict=True):
            if side is not None:
                side.check_size(size)
        layers: list[Layer] = []
        if self.weight > 0:
            matchings = self._along(M.shape) if self.neighbors == "one" else self._across(M.shape)
            allowed = _allowed(M)
            for first, second, weight in matchings:
                layer = Matching(M.shape, first, second, self.weight * weight, allowed)
                if layer.support is not None and layer.support.any():
                    layers.append(layer)
        return BoundCost.of(None if layers else _zero(M), layers)

    def _along(self, shape: tuple[int, int]) -> Iterable[tuple[Array, Array, Array]]:
        """One matching per colour: (i, j) with (i', j), or (i, j) with (i, j')."""
        flat = np.arange(shape[0] * shape[1]).reshape(shape)
        for side, index in ((self.source, flat), (self.target, flat.T)):
            for i, k, c in () if side is None else side.matchings:
                weight = np.broadcast_to(c[:, None], (c.size, index.shape[1]))
                yield index[i].ravel(), index[k].ravel(), weight.ravel()

    def _across(self, shape: tuple[int, int]) -> Iterable[tuple[Array, Array, Array]]:
        """One matching per two colours: (i, j) with (i', j'), and (i, j') with (i', j)."""
        assert self.source is not None
        assert self.target is not None
        flat = np.arange(shape[0] * shape[1]).reshape(shape)
        for i, k, c in self.source.matchings:
            for j, t, e in self.target.matchings:
                first = np.concatenate([flat[np.ix_(i, j)], flat[np.ix_(i, t)]])
                second = np.concatenate([flat[np.ix_(k, t)], flat[np.ix_(k, j)]])
                weight = np.tile(np.outer(c, e), (2, 1))
                yield first.ravel(), second.ravel(), weight.ravel()

    def __repr__(self) -> str:
        target = "" if self.target is None else f", {self.target}"
        neighbors = "" if self.neighbors == "one" else f", neighbors={self.neighbors!r}"
        return f"GraphCut({self.source}{target}, weight={self.weight:g}{neighbors})"


class _Graph:
    """A weighted graph between points, as matchings (i, i', c) by greedy edge colouring."""

    def __init__(self, name: str, graph: object) -> None:
        self._name = name
        self._size: int | None = None  # known from a matrix only
        if isinstance(graph, list | tuple | set | frozenset):
            i, k, c = self._from_pairs(graph)
        else:
            i, k, c = self._from_matrix(graph)
        self._edges = c.size
        self._least = int(max(i.max(initial=-1), k.max(initial=-1))) + 1
        color = _edge_colors(i, k)
        self.matchings = [
            (i[color == t], k[color == t], c[color == t]) for t in range(color.max(initial=-1) + 1)
        ]

    def _from_pairs(self, graph: Iterable) -> tuple[Array, Array, Array]:
        pairs = sorted(graph) if isinstance(graph, set | frozenset) else list(graph)
        try:
            array = np.array(pairs) if pairs else np.zeros((0, 2), int)
        except ValueError:  # pairs of different lengths
            array = np.zeros(0)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise ValueError(
                f"{self._name} as a list must hold pairs of indices such as (0, 1); "
                f"got {pairs[:2]!r}. Pass a matrix of weights as an array."
            )
        if array.size and array.min() < 0:
            raise ValueError(f"{self._name} holds the index {array.min()}; count from 0.")
        self._refuse_loops(array[:, 0] == array[:, 1], array[:, 0])
        array = np.unique(np.sort(array, axis=1), axis=0)  # a pair and its reverse are one edge
        return array[:, 0], array[:, 1], np.ones(len(array))

    def _from_matrix(self, graph: object) -> tuple[Array, Array, Array]:
        from scipy.sparse import coo_array, issparse

        name = self._name
        dense = graph if issparse(graph) else as_array(name, graph, 2)
        matrix = coo_array(dense).astype(float)
        matrix.sum_duplicates()
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"{name} must be square, one row and column per point; got shape {matrix.shape}. "
                "Pass pairs of indices as a list."
            )
        if not (np.isfinite(matrix.data) & (matrix.data >= 0)).all():
            raise ValueError(f"{name} must hold finite weights, none negative.")
        if abs(matrix - matrix.T).max() > 1e-12 * matrix.data.max(initial=0.0):
            raise ValueError(
                f"{name} must be symmetric; pass (A + A.T) / 2, or np.maximum(A, A.T) for graphs "
                "of nearest neighbours."
            )
        self._size = matrix.shape[0]
        i, k = matrix.coords
        self._refuse_loops((i == k) & (matrix.data > 0), i)
        keep = (i < k) & (matrix.data > 0)
        return i[keep].astype(int), k[keep].astype(int), matrix.data[keep]

    def _refuse_loops(self, loop: Array, i: Array) -> None:
        if loop.any():
            raise ValueError(
                f"{self._name} makes point {int(i[loop][0])} its own neighbour; remove such edges "
                "(the diagonal of a matrix)."
            )

    def check_size(self, size: int) -> None:
        """Refuse a graph that does not fit so many points."""
        if self._size not in (None, size) or self._least > size:
            raise ValueError(
                f"{self._name} has at least {self._size or self._least} points, but there are "
                f"{size} on that side; one row of M per source point, one column per target."
            )

    def __repr__(self) -> str:
        return f"<{self._edges} edges>"


def _edge_colors(i: Array, k: Array) -> Array:
    """Colours 0, 1, ... of edges so that no two of a colour share a point; at most 2 deg - 1."""
    color = np.zeros(i.size, int)
    taken: dict[int, set[int]] = {}
    for e, (s, t) in enumerate(zip(i.tolist(), k.tolist(), strict=True)):
        used = taken.setdefault(s, set()) | taken.setdefault(t, set())
        color[e] = next(c for c in range(len(used) + 1) if c not in used)
        taken[s].add(int(color[e]))
        taken[t].add(int(color[e]))
    return color


def _allowed(M: Array) -> Array | None:
    finite = np.isfinite(M)
    return None if finite.all() else finite


def _zero(M: Array) -> Array:
    """The linear cost of a cut without neighbours: nothing, and +inf on forbidden pairs."""
    return np.where(np.isfinite(M), 0.0, np.inf)
