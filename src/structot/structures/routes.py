"""Routes: groups travel together, and every point keeps its own partner."""

from __future__ import annotations

import numpy as np

from structot._checks import one_of, prices
from structot._typing import Array
from structot.structures._display import show
from structot.structures._grouping import group_numbers
from structot.structures.base import Grouped
from structot.submodular.bound import BoundCost
from structot.submodular.lanes import Lanes

UNITS = ("mean", "cost")


class Routes(Grouped):
    """f(P) = <M, P> + Σ_kl w_kl max(P(i, V_l)/a_i over i in U_k, P(U_k, j)/b_j over j in V_l).

    The ground cost, plus a price for every route between two groups that is open, measured by the
    largest share of a point's mass that takes it. On assignments, and on all plans that send some
    point entirely along every route they use, it is the price of the routes in use, as with
    ``Modular() + Coverage``; but a plan gains nothing by spreading, so that groups travel together
    and points keep their own partners. Of a point without weight any mass is an infinite share: its
    pairs are forbidden.

    It contains the ground cost (``Modular() + Routes(...)`` counts it twice) and adds to
    ``Modular(cost)``, not to other structures.

    Parameters
    ----------
    source, target
        One label per point (a masked, None or NaN label makes the point its own group), or a list
        of sequences of indices, which must not overlap here (a point in none of them is its own
        group), or None: every point its own group.
    charge
        The dial, one number or an array (source groups, target groups) in sorted order of the
        labels or as listed, points on their own last. 0 is plain transport; +inf closes a route.
    units
        ``"mean"``: w_kl = charge · mean(M) · min(mass of U_k, mass of V_l), so that the dial means
        the same whatever the units, the number of points and the number of groups; mean(M) is
        Σ a_i b_j M_ij / (Σ a Σ b) over the allowed pairs. ``"cost"``: w_kl = charge.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> M = np.array([[1.0, 2.0], [2.0, 5.0]])
    >>> plain = sot.solve(M, structure=sot.Routes(None, ["x", "y"], charge=0.0))
    >>> plain.value, plain.routes
    (2.0, array([[0., 1.],
           [1., 0.]]))
    >>> F = sot.Routes(["a", "a"], ["x", "y"], charge=3.0, units="cost").bind(M)
    >>> F.extension(plain.plan)
    8.0
    """

    def __init__(
        self,
        source: object | None,
        target: object | None,
        charge: object = 0.3,
        *,
        units: str = "mean",
    ) -> None:
        self.source, self.target = source, target
        form = "an array (source groups, target groups)"
        self.charge = prices("charge", charge, 2, form, infinite="closes a route")
        self.units = one_of("units", units, UNITS)

    @property
    def dial(self) -> float | None:
        return float(self.charge) if self.charge.ndim == 0 else None

    def charges(self, source_groups: int, target_groups: int) -> Array:
        """The charge of every pair of groups."""
        shape = (source_groups, target_groups)
        if self.charge.ndim == 2 and self.charge.shape != shape:
            raise ValueError(
                f"charge has shape {self.charge.shape}, but there are {shape[0]} source and "
                f"{shape[1]} target groups; pass one charge per pair of groups, or one number."
            )
        return np.broadcast_to(self.charge, shape)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        rows = group_numbers("source", self.source, M.shape[0])
        cols = group_numbers("target", self.target, M.shape[1])
        mass = np.bincount(rows, a), np.bincount(cols, b)
        charges = self.charges(mass[0].size, mass[1].size)
        closed = np.isinf(charges)
        linear = np.where(closed[rows][:, cols], np.inf, M) if closed.any() else M
        finite = np.isfinite(linear)
        price = np.where(closed, 0.0, charges)
        if self.units == "mean":
            mean = a @ np.where(finite, linear, 0.0) @ b / a.sum() / b.sum()
            price = price * mean * np.minimum.outer(*mass)
        if not price.any():
            return BoundCost.of(linear, [])
        if not (a.all() and b.all()):
            # Any mass is an infinite share of none.
            finite = finite & np.logical_and.outer(a > 0, b > 0)
            linear = np.where(finite, linear, np.inf)
        allowed = None if finite.all() else finite
        return BoundCost.of(linear, [Lanes(rows, cols, a, b, price, allowed)])

    def __repr__(self) -> str:
        charge = f"{self.charge:g}" if self.charge.ndim == 0 else f"<{self.charge.shape}>"
        units = "" if self.units == "mean" else f", units={self.units!r}"
        return f"Routes({show(self.source)}, {show(self.target)}, charge={charge}{units})"
