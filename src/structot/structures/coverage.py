"""Coverage: pay once per block touched."""

from __future__ import annotations

import numpy as np

from structot._checks import one_of, prices
from structot.blocks.function import Blocks
from structot.concave import Step
from structot.structures._display import show
from structot.structures._grouping import Grouping
from structot.structures._layers import block_layers, block_totals
from structot.structures.base import Grouped, Structure
from structot.structures.groups import UNITS
from structot.submodular.bound import BoundCost

Array = np.ndarray


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
    def of_sets(masks: object, weights: object = 1.0) -> Structure:
        """F(S) = Σ_s c_s · 1[S touches A_s] for any sets of pairs A_s, which may overlap.

        Parameters
        ----------
        masks
            The sets, a Boolean array (sets, n, m) or a list of masks (n, m).
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
        return SetCoverage(masks, weights)

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

    def __init__(self, masks: object, weights: object = 1.0) -> None:
        sets = np.asarray(masks)
        if sets.ndim != 3 or sets.dtype != bool or sets.shape[0] == 0:
            raise ValueError(
                "masks must be Boolean, one (n, m) mask per set; got "
                f"{sets.dtype} of shape {sets.shape}. Pass np.stack([mask, ...])."
            )
        self.masks = sets
        self.weights = prices("weights", weights, 1, "one number per set")
        if self.weights.ndim == 1 and self.weights.size != sets.shape[0]:
            raise ValueError(
                f"weights has {self.weights.size} prices for {sets.shape[0]} sets; "
                "pass one per set, or one number."
            )

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        if self.masks.shape[1:] != M.shape:
            raise ValueError(
                f"the masks of Coverage.of_sets have shape {self.masks.shape[1:]}, but M has "
                f"{M.shape}; they must agree."
            )
        uniform = np.where(np.isfinite(M), 1.0, np.inf)
        price = np.broadcast_to(self.weights, len(self.masks)).astype(float)
        sets = Grouping.of("masks", [np.flatnonzero(mask) for mask in self.masks], M.size)
        # An empty set is never touched; a pair in no set is a group by itself, at no price.
        price = price[self.masks.any(axis=(1, 2))]
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
        return f"Coverage.of_sets(<{len(self.masks)} sets>, weights={weights})"
