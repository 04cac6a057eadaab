"""One side of a transport problem: what it costs when its points send x instead of their weights.

Notation. a the weights of the points, x = P1 what they send (or receive), D(x) the price of the
difference, u the potentials of the points. The dual term of the side is

    D°(u) = min_{x >= 0} D(x) + x·u,    concave, and D°(u) <= D(x) + x·u for every x:

hard            D = 0 at x = a, +inf elsewhere      D° = a·u
KL, weight τ    D = τ Σ x log(x/a) - x + a          D° = τ Σ a (1 - exp(-u/τ))
TV, weight τ    D = τ Σ |x - a|                     D° = Σ a min(u, τ),  for u >= -τ
partial         D = 0 on {0 <= x <= a, Σx = mass}   D° = Σ a min(u, s) - s (Σa - mass), s the best

The minimiser x is the gradient of D°: what the points *want* to send at these potentials. Where D°
has a kink they are indifferent, and what they do send decides: there a potential is *held*.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from structot._typing import Array
from structot.transport import surpluses

# exp of minus this is nothing beside 1 in doubles.
_FAR = 64.0
# Steps of Newton's method that are enough for doubles.
_STEPS = 100


@dataclass(frozen=True, eq=False)
class Side(ABC):
    """The weights of the points of one side, and what leaving them costs."""

    weights: Array
    # Whether x is fixed, so that there is nothing to choose; whether D° has a second derivative.
    hard: ClassVar[bool] = False
    smooth: ClassVar[bool] = True

    @property
    def lowest(self) -> float:
        """The least potential for which D° is finite."""
        return -math.inf

    @property
    def alone(self) -> float:
        """The potential of a point that has no pair: D° is largest there; to be clipped."""
        return 0.0

    @abstractmethod
    def penalty(self, x: Array) -> tuple[float, float]:
        """D(x), and the size of what it is made of: its rounding error is relative to that."""

    @abstractmethod
    def dual(self, u: Array) -> Array:
        """The terms of D°(u), safe to be summed up; -inf among them outside of its domain."""

    @abstractmethod
    def wanted(self, u: Array, x: Array) -> Array:
        """The gradient of D°; at a kink the one that is nearest to x."""

    @abstractmethod
    def prox(self, v: Array, weight: Array | float) -> Array:
        """argmin_x D(x) + Σ weight/2 (x - v)²."""

    @abstractmethod
    def in_units(self, cost: float, mass: float) -> Side:
        """The same with costs and masses in these units."""

    @property
    def yielding(self) -> float:
        """1/τ of a side relaxed by KL: how the logarithm of what it wants falls with u."""
        return 0.0

    def respond(self, log_sum: Array, reg: float) -> Array:
        """argmax_u D°(u) - reg Σ exp(u/reg + log_sum): half a step of Sinkhorn's iteration."""
        with np.errstate(divide="ignore", invalid="ignore"):
            u = (np.log(self.weights) - log_sum) / (1.0 / reg + self.yielding)
        return self.clip(np.where(np.isfinite(u), u, self.alone))

    def wanted_inside(self, u: Array) -> Array:
        """The gradient of D° inside of its domain, as if the ends were farther."""
        return self.weights

    def ends(self, u: Array) -> tuple[float, float]:
        """Where the potentials end: their domain, or a kink beyond which D° is constant."""
        return self.lowest, -self.lowest

    def curvature(self, u: Array) -> Array:
        """-∂²D°, a diagonal."""
        return np.zeros_like(u)

    def clip(self, u: Array, held: Array | None = None) -> Array:
        """The potentials brought into the domain of D°, from above without a change of D°.

        After a step in which those of ``held`` have moved together, no other rises above them.
        """
        return u

    def value(self, u: Array) -> float:
        """D°(u) for u as `clip` leaves it; for `Partial` the smooth function that agrees with it
        there.
        """
        return float(self.dual(u).sum())

    def held(self, u: Array, x: Array) -> Array:
        """Potentials that stay where they are while their points send x: those at a kink."""
        return np.zeros(u.size, bool)

    def missed(self, x: Array) -> Array:
        """By how much x misses what must hold, point by point."""
        return np.zeros_like(x)

    def size(self, u: Array) -> float:
        """x · |u| for what points send, about: what rounding errors of u are relative to."""
        return float(np.maximum(self.wanted(u, self.weights), self.weights) @ np.abs(u))

    def largest(self, value: float) -> float:
        """The most that one point can send in a plan with a price of at most ``value``."""
        return float(self.weights.max())


@dataclass(frozen=True, eq=False)
class Hard(Side):
    """x = a."""

    hard: ClassVar[bool] = True

    def penalty(self, x: Array) -> tuple[float, float]:
        return 0.0, 0.0

    def dual(self, u: Array) -> Array:
        return self.weights * u

    def wanted(self, u: Array, x: Array) -> Array:
        return self.weights

    def prox(self, v: Array, weight: Array | float) -> Array:
        return self.weights

    def missed(self, x: Array) -> Array:
        return x - self.weights

    def in_units(self, cost: float, mass: float) -> Hard:
        return replace(self, weights=self.weights / mass)


@dataclass(frozen=True, eq=False)
class KL(Side):
    """D = τ Σ x log(x/a) - x + a: points without weight send nothing."""

    tau: float = 1.0

    @property
    def alone(self) -> float:
        return _FAR * self.tau

    def penalty(self, x: Array) -> tuple[float, float]:
        a = self.weights
        terms = surpluses(x, a)
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = np.where(x > 0, x * np.abs(np.log(x / a)), 0.0)
        value = self.tau * math.fsum(terms.tolist())
        return value, value + self.tau * float(np.sum(slope + np.abs(x - a)))

    def dual(self, u: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            terms = -self.tau * self.weights * np.expm1(-u / self.tau)
        return np.where(self.weights > 0, terms, 0.0)

    def wanted(self, u: Array, x: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self.weights > 0, self.weights * np.exp(-u / self.tau), 0.0)

    @property
    def yielding(self) -> float:
        return 1.0 / self.tau

    def wanted_inside(self, u: Array) -> Array:
        return self.wanted(u, u)

    def curvature(self, u: Array) -> Array:
        return self.wanted(u, u) / self.tau

    def prox(self, v: Array, weight: Array | float) -> Array:
        # τ y + weight (a e^y - v) = 0 for y = log(x / a): increasing and convex in y, so that
        # Newton's method comes down to the root from the first step on.
        a, k = self.weights, np.asarray(weight) / self.tau
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            y = np.where(v > a, np.log(v / a), np.minimum(k * v, 0.0))
            for _ in range(_STEPS):
                x = a * np.exp(y)
                step = (y + k * (x - v)) / (1.0 + k * x)
                y = y - step
                if np.all(np.abs(step[a > 0]) <= 1e-15 * (1.0 + np.abs(y[a > 0]))):
                    break
            return np.where(a > 0, a * np.exp(y), 0.0)

    def in_units(self, cost: float, mass: float) -> KL:
        return replace(self, weights=self.weights / mass, tau=self.tau / cost)

    def largest(self, value: float) -> float:
        # x log(x/a) - x + a >= (√x - √a)².
        return (math.sqrt(float(self.weights.max())) + math.sqrt(max(value, 0.0) / self.tau)) ** 2


@dataclass(frozen=True, eq=False)
class TV(Side):
    """D = τ Σ |x - a|: a unit of mass that is created or destroyed costs τ."""

    tau: float = 1.0
    smooth: ClassVar[bool] = False

    @property
    def lowest(self) -> float:
        return -self.tau

    @property
    def alone(self) -> float:
        return self.tau

    def penalty(self, x: Array) -> tuple[float, float]:
        a = self.weights
        return self.tau * math.fsum(np.abs(x - a).tolist()), self.tau * float(np.sum(x + a))

    def dual(self, u: Array) -> Array:
        return np.where(u < -self.tau, -np.inf, self.weights * np.minimum(u, self.tau))

    def clip(self, u: Array, held: Array | None = None) -> Array:
        return np.clip(u, -self.tau, self.tau)

    def wanted(self, u: Array, x: Array) -> Array:
        a = self.weights
        low, high = u <= -self.tau, u >= self.tau
        return np.where(low, np.maximum(x, a), np.where(high, np.minimum(x, a), a))

    def held(self, u: Array, x: Array) -> Array:
        a = self.weights
        return ((u >= self.tau) & (x <= a)) | ((u <= -self.tau) & (x >= a))

    def prox(self, v: Array, weight: Array | float) -> Array:
        a, far = self.weights, self.tau / np.asarray(weight)
        return np.maximum(a + np.sign(v - a) * np.maximum(np.abs(v - a) - far, 0.0), 0.0)

    def in_units(self, cost: float, mass: float) -> TV:
        return replace(self, weights=self.weights / mass, tau=self.tau / cost)

    def largest(self, value: float) -> float:
        return float(self.weights.max()) + max(value, 0.0) / self.tau


@dataclass(frozen=True, eq=False)
class Partial(Side):
    """0 <= x <= a with the total ``mass``: D° sums up u over the cheapest points, up to that mass.

    The dearest points share one potential, the level s: those that send less than they have.
    """

    mass: float = 0.0
    smooth: ClassVar[bool] = False

    def level(self, u: Array) -> float:
        """The best s: the potential at which the points below it have the mass."""
        order = np.argsort(u, kind="stable")
        reached = np.cumsum(self.weights[order])
        place = int(np.searchsorted(reached, self.mass * (1.0 - 1e-14)))
        return float(u[order[min(place, u.size - 1)]])

    @property
    def alone(self) -> float:
        return math.inf

    def penalty(self, x: Array) -> tuple[float, float]:
        return 0.0, 0.0

    def dual(self, u: Array) -> Array:
        s = self.level(u)
        below = self.weights * (np.minimum(u, s) - s)
        return np.append(below, s * self.mass)

    def value(self, u: Array) -> float:
        top = float(u.max())
        return float(self.weights @ (u - top)) + top * self.mass

    def clip(self, u: Array, held: Array | None = None) -> Array:
        together = held is not None and held.any()
        level = float(u[held].max()) if together else self.level(u)
        # What has come up to the level but for rounding is there.
        return np.where(u < level - 1e-14 * abs(level), u, level)

    def wanted(self, u: Array, x: Array) -> Array:
        held = self.held(u, x)
        out = self.weights.copy()
        # Of the held points only the sum is given.
        rest = self.mass - float(out[~held].sum()) - float(x[held].sum())
        out[held] = x[held] + rest / np.count_nonzero(held)
        return out

    def held(self, u: Array, x: Array) -> Array:
        top = u >= u.max()
        less = top & (x <= self.weights)
        return less if less.any() else top

    def prox(self, v: Array, weight: Array | float) -> Array:
        return _capped(v, self.weights, self.mass, np.broadcast_to(weight, v.shape))

    def ends(self, u: Array) -> tuple[float, float]:
        return -math.inf, float(u.max())

    def respond(self, log_sum: Array, reg: float) -> Array:
        # x = min(a, c · exp(log_sum)) with the factor c that makes the total right.
        a, u = self.weights, np.full(self.weights.size, self.alone)
        live = (a > 0) & np.isfinite(log_sum)
        ratio = np.log(a[live]) - log_sum[live]  # log c from which on the point sends all it has
        order = np.argsort(ratio, kind="stable")
        full = np.concatenate([[0.0], np.cumsum(a[live][order])])
        with np.errstate(divide="ignore"):
            rest = np.log(np.maximum(self.mass - full[:-1], 0.0))
        others = np.logaddexp.accumulate(log_sum[live][order][::-1])[::-1]
        level = rest - others  # if the points before this one send all they have
        k = int(np.argmax(level <= ratio[order]))
        u[live] = reg * np.minimum(ratio, level[k])
        return self.clip(u)

    def size(self, u: Array) -> float:
        some = np.abs(u)
        return min(float(self.weights @ some), self.mass * float(some.max(initial=0.0)))

    def missed(self, x: Array) -> Array:
        over = np.maximum(x - self.weights, 0.0)
        rest = math.fsum(x.tolist()) - self.mass
        over[int(np.argmax(self.weights))] += abs(rest)
        return over

    def in_units(self, cost: float, mass: float) -> Partial:
        return replace(self, weights=self.weights / mass, mass=self.mass / mass)


def _capped(v: Array, cap: Array, total: float, weight: Array) -> Array:
    """argmin Σ weight (x - v)² over 0 <= x <= cap, Σx = total: clip(v + s/weight, 0, cap)."""
    slope = 1.0 / weight
    if v.size == 0:
        return v.copy()
    # The sum is piecewise linear and increasing in s: from the breakpoints its place is exact.
    ends = np.sort(np.concatenate([-v / slope, (cap - v) / slope]))
    low, high = 0, ends.size - 1
    while high - low > 1:
        middle = (low + high) // 2
        if np.clip(v + ends[middle] * slope, 0.0, cap).sum() < total:
            low = middle
        else:
            high = middle
    sums = [float(np.clip(v + ends[k] * slope, 0.0, cap).sum()) for k in (low, high)]
    part = (total - sums[0]) / (sums[1] - sums[0]) if sums[1] > sums[0] else 0.0
    s = ends[low] + min(max(part, 0.0), 1.0) * (ends[high] - ends[low])
    return np.clip(v + s * slope, 0.0, cap)
