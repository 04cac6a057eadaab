"""Both sides of a transport problem together: prices, dual terms, and the best shift of potentials.

Notation. u, v potentials of rows and columns, D_a and D_b the sides (see `sides.py`), x = P1 and
y = Pᵀ1. Only u ⊕ v meets the cost, so that u + s and v - s are as good for every s: the best shift
makes both sides want the same total.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structot._typing import Array
from structot.marginals.plans import equal_totals, of_mass, sums, with_hard_side
from structot.marginals.sides import KL, TV, Hard, Partial, Side
from structot.transport import InfeasibleError, c_transform, residuals, round_plan

# Halvings of the interval of a shift.
_HALVINGS = 200
# Totals that differ by no more than this part are the same.
_SAME = 1e-13
# A mass that differs from the total by no more than this part is the total.
_ALL = 1e-12

Relaxation = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False)
class Marginals:
    """What P1 and Pᵀ1 must be or should be near.

    Made by `Marginals.of` from what a user may pass; solvers and certificates know only this.

    Examples
    --------
    >>> import numpy as np
    >>> half = np.array([0.5, 0.5])
    >>> Marginals.of(half, half, (1.0, None), "TV").rows.tau
    1.0
    """

    rows: Side
    columns: Side

    @classmethod
    def of(
        cls,
        a: Array,
        b: Array,
        unbalanced: Relaxation = (None, None),
        kind: str = "KL",
        mass: float | None = None,
    ) -> Marginals:
        """From weights, prices of both sides (None: hard), "KL" or "TV", or the mass to move."""
        if mass is not None:
            sides = (
                Hard(x) if mass >= (1.0 - _ALL) * x.sum() else Partial(x, mass=mass) for x in (a, b)
            )
            return cls(*sides)
        make = {"KL": KL, "TV": TV}[kind]
        return cls(
            *(
                Hard(x) if tau is None else make(x, tau=tau)
                for x, tau in zip((a, b), unbalanced, strict=True)
            )
        )

    @property
    def a(self) -> Array:
        return self.rows.weights

    @property
    def b(self) -> Array:
        return self.columns.weights

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.rows, self.columns

    @property
    def hard(self) -> bool:
        """Whether both marginals are fixed: plain transport."""
        return self.rows.hard and self.columns.hard

    @property
    def smooth(self) -> bool:
        """Whether D_a° and D_b° have no kinks."""
        return self.rows.smooth and self.columns.smooth

    @property
    def partial(self) -> bool:
        """Whether a given mass is to be moved: then held rows, and columns, share a potential."""
        return any(isinstance(side, Partial) for side in self.sides)

    @property
    def prices(self) -> Relaxation | None:
        """(τ_a, τ_b) of KL or TV, None for a side without one; None if there is no price at all."""
        found = [side.tau if isinstance(side, KL | TV) else None for side in self.sides]
        return None if found == [None, None] else (found[0], found[1])

    @property
    def kind(self) -> str:
        """What the prices are of: "TV", or "KL", also where there is no price."""
        return "TV" if any(isinstance(side, TV) for side in self.sides) else "KL"

    @property
    def mass(self) -> float | None:
        """The mass of a partial problem."""
        return next((side.mass for side in self.sides if isinstance(side, Partial)), None)

    @property
    def linear(self) -> bool:
        """Whether the problem is a linear program apart from f."""
        return not any(isinstance(side, KL) for side in self.sides)

    @property
    def both_partial(self) -> bool:
        """Whether both sides are partial: then the total is a constraint of its own."""
        return all(isinstance(side, Partial) for side in self.sides)

    @property
    def active(self) -> tuple[Array, Array]:
        """The points that may carry mass: those with weight, and all where it may be created."""
        rows, columns = (
            np.full(side.weights.size, isinstance(side, TV)) | (side.weights > 0)
            for side in self.sides
        )
        return rows, columns

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the potentials in a linear program: TV, and P1 <= a."""
        ends = [
            (side.lowest, 0.0 if isinstance(side, Partial) else -side.lowest) for side in self.sides
        ]
        low, high = zip(*ends, strict=True)
        sizes = [side.weights.size for side in self.sides]
        return np.repeat(low, sizes), np.repeat(high, sizes)

    def in_units(self, cost: float, mass: float) -> Marginals:
        """The same with costs and masses in these units."""
        return Marginals(*(side.in_units(cost, mass) for side in self.sides))

    # -- the primal ----------------------------------------------------------------------------

    def penalty(self, P: Array) -> tuple[float, float]:
        """D_a(P1) + D_b(Pᵀ1), and the size of what it is made of."""
        if self.hard or self.partial:
            return 0.0, 0.0
        parts = [side.penalty(x) for side, x in zip(self.sides, sums(P), strict=True)]
        return parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]

    def missed(self, P: Array) -> tuple[Array, Array]:
        """By how much every row and column misses what must hold."""
        if self.hard:
            rows, columns = residuals(P, self.a, self.b)
            return rows, columns
        x, y = sums(P)
        return self.rows.missed(x), self.columns.missed(y)

    # -- the dual ------------------------------------------------------------------------------

    def dual(self, u: Array, v: Array) -> Array:
        """The terms of D_a°(u) + D_b°(v)."""
        return np.concatenate([self.rows.dual(u), self.columns.dual(v)])

    def dual_value(self, u: Array, v: Array) -> float:
        """D_a°(u) + D_b°(v)."""
        if self.hard:
            return float(self.a @ u + self.b @ v)
        return self.rows.value(u) + self.columns.value(v)

    def size(self, u: Array, v: Array) -> float:
        """wanted · |u| + wanted · |v|: what rounding errors of potentials are relative to."""
        if self.hard:
            return float(self.a @ np.abs(u) + self.b @ np.abs(v))
        return self.rows.size(u) + self.columns.size(v)

    def wanted(self, u: Array, v: Array, x: Array, y: Array) -> Array:
        """The gradients of D_a° and D_b°, one after the other, nearest to x and y."""
        return np.concatenate([self.rows.wanted(u, x), self.columns.wanted(v, y)])

    def wanted_inside(self, u: Array, v: Array) -> Array:
        """The gradients of D_a° and D_b° inside of their domains, one after the other."""
        return np.concatenate([self.rows.wanted_inside(u), self.columns.wanted_inside(v)])

    def ends(self, u: Array, v: Array) -> tuple[Array, Array]:
        """The lower and the upper ends of all potentials; those of partial rows move together."""
        ends = np.array([self.rows.ends(u), self.columns.ends(v)])
        low, high = np.repeat(ends, [u.size, v.size], axis=0).T
        return low, high

    @property
    def left_behind(self) -> float:
        """What the rows of a partial problem keep."""
        return float(self.a.sum()) - (self.mass or 0.0)

    def curvature(self, u: Array, v: Array) -> Array:
        """-∂² of both, a diagonal."""
        return np.concatenate([self.rows.curvature(u), self.columns.curvature(v)])

    def held(self, u: Array, v: Array, x: Array, y: Array) -> Array:
        """Which potentials stay at a kink."""
        return np.concatenate([self.rows.held(u, x), self.columns.held(v, y)])

    def clip(self, u: Array, v: Array, held: Array | None = None) -> tuple[Array, Array]:
        """Potentials in the domain of the dual terms; for ``held`` see `Side.clip`."""
        if held is None:
            return self.rows.clip(u), self.columns.clip(v)
        return self.rows.clip(u, held[: u.size]), self.columns.clip(v, held[u.size :])

    def shifted(self, u: Array, v: Array) -> tuple[Array, Array]:
        """(u + s, v - s) with the s that makes D_a°(u + s) + D_b°(v - s) largest."""
        if self.hard or self.partial:
            return u, v
        A, B = self.sides
        if isinstance(A, KL | Hard) and isinstance(B, KL | Hard):
            s = _smooth_shift(A, u, B, v)
        else:
            s = _bisect(
                lambda s: (
                    float(A.wanted(u + s, _nothing(u)).sum())
                    - float(B.wanted(v - s, _nothing(v)).sum())
                ),
                *self._range(u, v),
                nothing=_SAME * float(self.a.sum() + self.b.sum()),
            )
        return (u + s, v - s) if math.isfinite(s) else (u, v)

    def _range(self, u: Array, v: Array) -> tuple[float, float]:
        """Shifts within which the best one lies, and within which u and v are in their domains."""
        A, B = self.sides
        low = A.lowest - float(u.min()) if math.isfinite(A.lowest) else -math.inf
        high = float(v.min()) - B.lowest if math.isfinite(B.lowest) else math.inf
        size = float(np.abs(u).max(initial=0.0) + np.abs(v).max(initial=0.0))
        size += sum(side.tau for side in self.sides if isinstance(side, KL | TV)) * 64.0
        low, high = max(low, -size), min(high, size)
        return (low, high) if low <= high else ((low + high) / 2,) * 2

    def released(self, u: Array, v: Array, rows: Array, columns: Array) -> tuple[Array, Array]:
        """The potentials with those of points without any pair where their dual terms are largest.

        ``rows`` and ``columns`` tell which points have one.
        """
        u, v = (
            np.where(some, z, side.alone)
            for side, z, some in zip(self.sides, (u, v), (rows, columns), strict=True)
        )
        return (u, v) if self.hard else self.clip(u, v) if self.partial else (u, v)

    def proved(self, u: Array, v: Array) -> tuple[Array, Array]:
        """Potentials in the domain from any with u ⊕ v in P(F) and 0 in P(F), and as good.

        Points without a pair come as +inf. The others are shifted, cut from above, and where they
        are below the domain drawn towards 0: P(F) is convex.
        """
        u, v = self.released(u, v, np.isfinite(u), np.isfinite(v))
        if self.hard:
            return u, v
        u, v = self.shifted(u, v)
        if self.partial or self.smooth:
            return self.clip(u, v)
        factor = 1.0
        out = []
        for side, z in zip(self.sides, (u, v), strict=True):
            z = np.minimum(z, -side.lowest)
            least = float(z.min())
            if least < side.lowest:
                factor = min(factor, side.lowest / least)
            out.append(z)
        u, v = out
        return self.clip(factor * u, factor * v) if factor < 1.0 else (u, v)

    def fitted(self, K: Array, u: Array) -> tuple[Array, Array]:
        """The best potentials with u ⊕ v <= K that c-transforms from u find."""
        start, (u, v) = u, c_transform(K, u)
        if self.hard:
            return u, v
        pairs = np.isfinite(K)
        u, v = self.shifted(*self.released(u, v, pairs.any(axis=1), pairs.any(axis=0)))
        if self.smooth or self.partial:
            return self.clip(u, v)
        # Of TV the start itself may be the best there is, within the prices as it stands.
        found = [self._within(K, x, v) for x in (u, np.where(np.isfinite(start), start, u))]
        return max(found, key=lambda pair: self.dual_value(*pair))

    def _within(self, K: Array, u: Array, v: Array) -> tuple[Array, Array]:
        """Potentials with u ⊕ v <= K, the rows near u, in the domain of TV."""
        A, B = self.sides
        if math.isfinite(B.lowest):
            # No column may have to go below its domain.
            u = np.minimum(u, np.min(K, axis=1) - B.lowest)
        u = np.minimum(np.maximum(u, A.lowest), -A.lowest)
        # Not below the domain by rounding either: the rows, which follow, make up for it.
        v = np.clip(_finite(np.min(K - u[:, None], axis=0), v), B.lowest, -B.lowest)
        u = np.minimum(_finite(np.min(K - v, axis=1), u), -A.lowest)
        # Rounded downwards, as in a c-transform; within the domain that is not needed.
        return np.maximum(np.nextafter(u, -np.inf), A.lowest), v

    def aims(self, u: Array, v: Array, x: Array, y: Array) -> tuple[Array, Array]:
        """Marginals of equal totals to aim at from x and y: a and b, or what the sides want."""
        if self.hard:
            return self.a, self.b
        u, v = self.clip(*self.shifted(u, v))
        wanted = self.rows.wanted(u, x), self.columns.wanted(v, y)
        return equal_totals(*self.sides, *wanted)

    def feasible(
        self,
        P: Array,
        potentials: tuple[Array, Array] | None = None,
        allowed: Array | None = None,
        overwrite: bool = False,
        empty: bool = False,
    ) -> Array:
        """A plan near P with a finite price.

        Hard sides are met exactly. A relaxed side is left as it is, or brought to what it wants at
        the potentials where that costs less. ``empty``: points without weight send nothing, also
        where it might be made for them.
        """
        if self.hard:
            return round_plan(P, self.a, self.b, allowed, overwrite)
        Q = np.maximum(P, 0.0, out=P if overwrite else None)
        for side, lines in zip(self.sides, (Q, Q.T), strict=True):
            if empty or not isinstance(side, TV):
                lines[side.weights == 0] = 0.0
        if allowed is not None:
            Q[~allowed] = 0.0
        if self.partial:
            return of_mass(Q, self.sides, self.mass or 0.0, allowed)
        Q = with_hard_side(Q, *self.sides, allowed, empty)
        if potentials is None:
            return Q
        u, v = self.clip(*self.shifted(*potentials))
        aims = self.aims(u, v, *sums(Q))
        lost = moved = 0.0
        for side, x, z, aim in zip(self.sides, sums(Q), (u, v), aims, strict=True):
            lost += side.penalty(x)[0] + float(x @ z) - float(side.dual(z).sum())
            moved += float(np.abs(aim - x).sum())
        total = float(aims[0].sum())
        # What is moved in rounding costs about as much as the rest.
        if not 0.0 < total < math.inf or lost <= self.size(u, v) / total * moved:
            return Q
        try:
            return round_plan(Q, *aims, allowed=allowed, overwrite=True)
        except InfeasibleError:  # never of pairs that are all allowed: Q is as it was
            return Q


def _nothing(u: Array) -> Array:
    return np.zeros_like(u)


def _finite(x: Array, otherwise: Array) -> Array:
    return np.where(np.isfinite(x), x, otherwise)


def _smooth_shift(A: Side, u: Array, B: Side, v: Array) -> float:
    """Where both sides want the same total, in closed form: KL or hard each."""
    parts, rate = [], 0.0
    for side, z in ((A, u), (B, v)):
        if isinstance(side, KL):
            # log Σ a exp(-u/τ), from the largest term.
            y = -z[side.weights > 0] / side.tau + np.log(side.weights[side.weights > 0])
            top = float(y.max())
            parts.append(top + math.log(float(np.exp(y - top).sum())))
            rate += 1.0 / side.tau
        else:
            parts.append(math.log(float(side.weights.sum())))
    return (parts[0] - parts[1]) / rate


def _bisect(excess: Callable[[float], float], low: float, high: float, nothing: float) -> float:
    """The place nearest to 0 between both ends where a decreasing function has its zero."""
    start = min(max(0.0, low), high)
    first = excess(start)
    if abs(first) <= nothing:
        return start
    rising = first > 0.0  # the zero is above the start
    near, far = start, high if rising else low
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        if middle in (near, far):
            break
        value = excess(middle)
        if value > nothing if rising else value < -nothing:
            near = middle
        else:
            far = middle
    # A jump at the start is met there, and not beside it: potentials at a kink stay there.
    return start if abs(far - start) <= _SAME * (high - low) else far
