"""Coverage: pay once per block touched."""

from __future__ import annotations

import numpy as np

from structot._checks import as_array, one_of
from structot.concave import Step
from structot.polytope.blocks import Blocks
from structot.structures._display import show
from structot.structures._grouping import group_numbers
from structot.structures.base import Structure
from structot.structures.groups import UNITS, block_totals
from structot.submodular.base import Submodular

Array = np.ndarray


class Coverage(Structure):
    """F(S) = Σ_kl c_kl · 1[S touches U_k × V_l],   f(P) = Σ_kl c_kl · max_{U_k × V_l} P.

    Parameters
    ----------
    source_groups, target_groups
        As `source` and `target` of `Groups`.
    weights
        The price c: one number, or an array (source groups, target groups) in sorted order of the
        labels, points on their own last.
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
        source_groups: object | None,
        target_groups: object | None = None,
        weights: object = 1.0,
        *,
        units: str = "cost",
    ) -> None:
        self.source, self.target = source_groups, target_groups
        try:
            ndim = np.ndim(weights)  # type: ignore[arg-type]
        except ValueError:  # rows of different lengths: as_array says so
            ndim = 2
        self.weights = as_array("weights", weights, ndim)
        if self.weights.ndim not in (0, 2):
            raise ValueError(
                "weights must be one number or an array (source groups, target groups); "
                f"got shape {self.weights.shape}."
            )
        if not (np.isfinite(self.weights) & (self.weights >= 0)).all():
            worst = self.weights[~(np.isfinite(self.weights) & (self.weights >= 0))].ravel()[0]
            raise ValueError(
                f"weights must be finite and not negative; got {worst}. A price of 0 is no price."
            )
        self.units = one_of("units", units, UNITS)

    def _parts(self, M: Array) -> tuple[Array | None, list[Submodular]]:
        rows = group_numbers("source_groups", self.source, M.shape[0])
        cols = group_numbers("target_groups", self.target, M.shape[1])
        shape = (int(rows.max()) + 1, int(cols.max()) + 1)
        if self.weights.ndim == 2 and self.weights.shape != shape:
            raise ValueError(
                f"weights has shape {self.weights.shape}, but there are {shape[0]} source and "
                f"{shape[1]} target groups; pass one weight per pair of groups, or one number."
            )
        price = np.broadcast_to(self.weights, shape).astype(float)
        if self.units == "block":
            price = price * block_totals(M, rows, cols, shape)
        # Coverage ignores costs: any weights serve inside the step, and 1 is the plain metric.
        uniform = np.where(np.isfinite(M), 1.0, np.inf)
        scale = price.ravel()
        return None, [Blocks(uniform, rows, cols, Step(), outer=scale, inner=np.ones(scale.size))]

    def __repr__(self) -> str:
        target = "" if self.target is None else f", {show(self.target)}"
        weights = f"{self.weights:g}" if self.weights.ndim == 0 else f"<{self.weights.shape}>"
        units = "" if self.units == "cost" else f", units={self.units!r}"
        return f"Coverage({show(self.source)}{target}, weights={weights}{units})"
