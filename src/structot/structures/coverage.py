"""Coverage: pay once per block touched."""

from __future__ import annotations

import numpy as np

from structot._checks import one_of, prices
from structot._typing import Array
from structot.blocks.function import Blocks
from structot.concave import Step
from structot.structures._display import show
from structot.structures._grouping import Grouping
from structot.structures._layers import block_layers, block_totals
from structot.structures.base import Grouped, Structure
from structot.structures.groups import UNITS
from structot.submodular.bound import BoundCost


class Coverage(Grouped):
    """F(S) = Σ_kl c_kl · 1[S touches U_k × V_l],   f(P) = Σ_kl c_kl · max_{U_k × V_l} P.

    Parameters
    ----------
    source, target
        As in `Groups`.
    weights
        The price c: one number, or an array (source groups, target groups) in sorted order of the
        labels or as listed, points on their own last.
    units
        ``"cost"``: the price as it is. ``"block"``: times the total ground cost of the block.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> F = sot.Coverage(["a", "a"], ["x", "y"], weights=3.0).bind(np.ones((2, 2)))
    >>> F.extension(np.array([[0.5, 0.0], [0.25, 0.25]]))
    2.25
    """

    def __init__(
        self,
        source: object | None,
        target: object | None = None,
        weights: object = 1.0,
        *,
        units: str = "cost",
    ) -> None:
        self.source, self.target = source, target
        self.weights = prices("weights", weights, 2, "an array (source groups, target groups)")
        self.units = one_of("units", units, UNITS)
        self.uses_cost = self.units == "block"

    @staticmethod
    def of_sets(sets: object, weights: object = 1.0) -> Structure:
        """F(S) = Σ_s c_s · 1[S touches A_s] for any sets of pairs A_s, which may overlap.

        Parameters
        ----------
        sets
            A Boolean array (sets, n, m), a list of masks (n, m), or a list of arrays (pairs, 2) of
            rows and columns, as `structot.groups.diagonals` returns it.
        weights
            The price c of each set, or one for all.

        Examples
        --------
        Every pair a set of its own, at its cost: plain transport.

        >>> import numpy as np, structot as sot
        >>> singletons = np.eye(4, dtype=bool).reshape(4, 2, 2)
        >>> M = np.array([[1.0, 3.0], [2.0, 1.0]])
        >>> sot.solve(M, structure=sot.Coverage.of_sets(singletons, M.ravel())).value
        1.0
        """
        return SetCoverage(sets, weights)

    @property
    def dial(self) -> float | None:
        return float(self.weights) if self.weights.ndim == 0 else None

    def prices(self, source_groups: int, target_groups: int) -> Array:
        """c, one entry per pair of groups, in its own units."""
        shape = (source_groups, target_groups)
        if self.weights.ndim == 2 and self.weights.shape != shape:
            raise ValueError(
                f"weights has shape {self.weights.shape}, but there are {shape[0]} source and "
                f"{shape[1]} target groups; pass one weight per pair of groups, or one number."
            )
        return np.broadcast_to(self.weights, shape).astype(float)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        rows, cols = self.groupings(M.shape)
        price = self.prices(rows.count, cols.count)
        if self.units == "block":
            price = price * block_totals(M, rows, cols)
        # Coverage ignores costs: any weights serve inside the step, and 1 is the plain metric.
        uniform = np.where(np.isfinite(M), 1.0, np.inf)
        ones = np.ones(price.shape)
        layers = block_layers(uniform, rows, cols, Step(), outer=price, inner=ones)
        return BoundCost.of(None, layers)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", {show(self.target)}"
        weights = f"{self.weights:g}" if self.weights.ndim == 0 else f"<{self.weights.shape}>"
        units = "" if self.units == "cost" else f", units={self.units!r}"
        return f"Coverage({show(self.source)}{target}, weights={weights}{units})"


class SetCoverage(Structure):
    """Coverage of any sets of pairs. Written as ``Coverage.of_sets(masks, weights)``."""

    def __init__(self, sets: object, weights: object = 1.0) -> None:
        self.sets, self.shape = _pairs(sets)
        self.weights = prices("weights", weights, 1, "one number per set")
        if self.weights.ndim == 1 and self.weights.size != len(self.sets):
            raise ValueError(
                f"weights has {self.weights.size} prices for {len(self.sets)} sets; "
                "pass one per set, or one number."
            )

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        if self.shape is not None and self.shape != M.shape:
            raise ValueError(
                f"the masks of Coverage.of_sets have shape {self.shape}, but M has "
                f"{M.shape}; they must agree."
            )
        for pairs in self.sets:
            outside = ((pairs < 0) | (pairs >= M.shape)).any(axis=1)
            if outside.any():
                raise ValueError(
                    f"a set of Coverage.of_sets has the pair {tuple(pairs[outside][0].tolist())}, "
                    f"but M has shape {M.shape}; rows and columns are counted from 0."
                )
        uniform = np.where(np.isfinite(M), 1.0, np.inf)
        price = np.broadcast_to(self.weights, len(self.sets)).astype(float)
        # An empty set is never touched; a pair in no set is a group by itself, at no price.
        price = price[[pairs.size > 0 for pairs in self.sets]]
        numbers = [np.unique(pairs @ [M.shape[1], 1]) for pairs in self.sets if pairs.size]
        sets = Grouping.coloured(numbers, M.size)
        price = np.append(price, np.zeros(sets.count - price.size))
        layers = [
            Blocks.of_labels(
                uniform,
                layer.number.reshape(M.shape),
                Step(),
                outer=price[layer.group],
                inner=np.ones(layer.group.size),
            )
            for layer in sets.layers
        ]
        return BoundCost.of(None, layers)

    def __repr__(self) -> str:
        weights = f"{self.weights:g}" if self.weights.ndim == 0 else f"<{self.weights.size}>"
        return f"Coverage.of_sets(<{len(self.sets)} sets>, weights={weights})"


def _pairs(sets: object) -> tuple[list[Array], tuple[int, ...] | None]:
    """Every set as an array (pairs, 2), and the shape of the masks if it came as masks."""
    try:
        arrays = [np.asarray(entry) for entry in sets]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        arrays = []
    shapes, kinds = {array.shape for array in arrays}, {array.dtype.kind for array in arrays}
    if kinds == {"b"} and len(shapes) == 1 and arrays[0].ndim == 2:
        return [np.argwhere(mask) for mask in arrays], arrays[0].shape
    whole = arrays and kinds <= {"i", "u"}
    if whole and all(array.ndim == 2 and array.shape[1] == 2 for array in arrays):
        return [array.astype(np.int64) for array in arrays], None
    arrived = f"{len(arrays)} entries" if arrays else f"{type(sets).__name__}"
    seen = sorted({f"{array.dtype} of shape {array.shape}" for array in arrays})[:3]
    raise ValueError(
        "sets must hold at least one set: Boolean masks of one shape (n, m), or arrays (pairs, 2) "
        f"of rows and columns; got {arrived}{': ' if seen else ''}{', '.join(seen)}."
    )
