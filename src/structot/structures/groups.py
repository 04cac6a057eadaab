"""Groups: the paper's cluster function, a concave discount per pair of groups."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass

import numpy as np

from structot._checks import one_of
from structot._typing import Array
from structot.concave import Concave, Discount, as_concave
from structot.structures._display import show
from structot.structures._layers import block_layers, block_totals
from structot.structures.base import Grouped
from structot.submodular.bound import BoundCost

UNITS = ("cost", "block")
DEFAULT = Discount(0.75)


class Groups(Grouped):
    """F(S) = Σ_kl g_kl( Σ_{(i,j) in S, i in U_k, j in V_l} M_ij ), g concave and increasing.

    Rows are divided into groups U_k, columns into groups V_l. The more of a block U_k × V_l is
    used, the cheaper the rest of it becomes, so that points of one group travel together.

    Parameters
    ----------
    source, target
        One label per point (a masked, None or NaN label makes the point its own group; -1 is a
        label like any other), or a list of sequences of indices, which may overlap (a point in none
        of them is its own group), or None: every point its own group.
    concave
        g: a function of `structot.concave`, a callable of one argument (checked for concavity,
        called from Python, slower), or a callable (k, l) -> function per block, k and l counting
        the groups in sorted order of their labels or as listed, points on their own last. The dial
        of ``Discount(d)``: 0 is plain transport, 0.5 a mild and 0.9 a strong pull together.
    units
        ``"block"``: each block is measured in its own total cost T_kl,
        F_kl(S) = T_kl · g(M(S) / T_kl), so that the argument of g is a share of the block between
        0 and 1, whatever the number of points and the metric. ``"cost"``: g sees cost as it is, as
        in the paper; then thresholds depend on the units of M and on the number of points.
    equal_coverage
        Divide M by the number of blocks that contain the pair, inside g: with a linear g the
        problem is plain transport, however the groups overlap. For disjoint groups that is 1.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> groups = sot.Groups(["a", "a", "b"], ["x", "x"], sot.concave.Truncation(0.5))
    >>> F = groups.bind(np.ones((3, 2)))
    >>> F.value(np.array([[True, True], [True, True], [False, True]]))
    3.0

    Words of a sentence in overlapping pairs of neighbours:

    >>> sot.Groups(sot.groups.ngrams(4, 2), concave=sot.concave.Sqrt(), equal_coverage=True)
    Groups([[0, 1], [1, 2], [2, 3]], concave=Sqrt(), equal_coverage=True)
    """

    def __init__(
        self,
        source: object | None,
        target: object | None = None,
        concave: Concave | Callable = DEFAULT,
        *,
        units: str = "block",
        equal_coverage: bool = False,
    ) -> None:
        self.source, self.target = source, target
        self.concave = concave if _per_block(concave) else as_concave(concave)
        self.units = one_of("units", units, UNITS)
        self.equal_coverage = bool(equal_coverage)
        if self.units == "block" and _is_linear_on_shares(self.concave):
            warnings.warn(
                f"{self.concave!r} is linear on [0, 1], the shares of a block that it sees in "
                "block units: this is plain transport. Use Discount(d), or units='cost' for "
                "thresholds in the units of M.",
                UserWarning,
                stacklevel=2,
            )

    @property
    def dial(self) -> float | None:
        """The first parameter of g: the discount, the threshold, the exponent."""
        g = self.concave
        first = next((getattr(g, f.name) for f in fields(g)), None) if is_dataclass(g) else None
        return first if isinstance(first, float) else None

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        rows, cols = self.groupings(M.shape)
        g = self.concave
        concave: Concave | Array
        if isinstance(g, Concave):
            concave = g
        else:
            concave = np.empty((rows.count, cols.count), object)
            for k, t in np.ndindex(concave.shape):
                concave[k, t] = as_concave(g(k, t))
        if self.equal_coverage:
            M = M / np.multiply.outer(rows.coverage, cols.coverage)
        if self.units == "cost":
            scale = np.ones((rows.count, cols.count))
        else:
            scale = block_totals(M, rows, cols)
            scale[scale == 0] = 1.0
        layers = block_layers(M, rows, cols, concave, outer=scale, inner=1.0 / scale)
        return BoundCost.of(None, layers)

    def __repr__(self) -> str:
        target = "" if self.target is None else f", {show(self.target)}"
        concave = repr(self.concave) if isinstance(self.concave, Concave) else "<per block>"
        units = "" if self.units == "block" else f", units={self.units!r}"
        equal = ", equal_coverage=True" if self.equal_coverage else ""
        return f"Groups({show(self.source)}{target}, concave={concave}{units}{equal})"


def _is_linear_on_shares(concave: object) -> bool:
    """Whether a function that is not linear by name is so up to 1: no threshold is ever reached."""
    if not isinstance(concave, Concave) or concave.is_linear:
        return False
    return bool(concave(1.0) >= (1.0 - 1e-12) * 1e3 * concave(1e-3))


def _per_block(concave: object) -> bool:
    """Whether this is a callable (k, l) -> function, and not a function of one number."""
    if isinstance(concave, Concave) or not callable(concave):
        return False
    try:
        parameters = inspect.signature(concave).parameters.values()
    except (TypeError, ValueError):
        return False
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) == 2
