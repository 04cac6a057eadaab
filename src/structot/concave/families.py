"""The concave functions of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structot.concave.base import (
    LINEAR,
    LOG,
    PIECEWISE_LINEAR,
    POWER,
    SQRT,
    STEP,
    THRESHOLD_SQRT,
    TRUNCATION,
    Array,
    Concave,
)


@dataclass(frozen=True, repr=False)
class ThresholdSqrt(Concave):
    """g(x) = x up to alpha, then alpha + s (sqrt((x - alpha)/s + 1/4) - 1/2).

    Continuously differentiable, g(x) <= x, and for large x like sqrt(s x).

    Parameters
    ----------
    alpha : threshold >= 0; inf makes g linear.
    scale : s > 0, the length over which the slope falls.

    Examples
    --------
    >>> ThresholdSqrt(1.0)([0.5, 1.0, 3.0])
    array([0.5, 1. , 2. ])
    """

    alpha: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        _set_number(self, "alpha", lambda v: v >= 0, "a number >= 0 (inf makes g linear)")
        _set_number(self, "scale", lambda v: 0 < v < math.inf, "a finite number > 0")

    def _root(self, y: Array) -> Array:
        return np.sqrt(y / self.scale + 0.25)

    def _value(self, x: Array) -> Array:
        y = np.maximum(x - self.alpha, 0.0)
        # s (r - 1/2) = y / (r + 1/2) since s (r^2 - 1/4) = y
        return np.minimum(x, self.alpha) + y / (self._root(y) + 0.5)

    def _slope(self, x: Array, left: bool) -> Array:
        return 0.5 / self._root(np.maximum(x - self.alpha, 0.0))

    def _secant(self, x: Array, h: Array) -> Array:
        y = np.maximum(x - self.alpha, 0.0)
        below = np.clip(self.alpha - x, 0.0, h)  # part of the step where the slope is 1
        above = h - below
        mean = 1.0 / (self._root(y) + self._root(y + above))
        return np.where(h > 0, below / h + above / h * mean, mean)

    def _pieces(self) -> tuple[Array, Array] | None:
        return (np.empty(0), np.ones(1)) if self.alpha == math.inf else None

    def pack(self) -> tuple[int, Array]:
        return THRESHOLD_SQRT, np.array([self.alpha, self.scale])


@dataclass(frozen=True, repr=False)
class Sqrt(Concave):
    """g(x) = sqrt(x).

    Examples
    --------
    >>> Sqrt()(9.0)
    3.0
    """

    def _value(self, x: Array) -> Array:
        return np.sqrt(x)

    def _slope(self, x: Array, left: bool) -> Array:
        return 0.5 / np.sqrt(x)

    def _secant(self, x: Array, h: Array) -> Array:
        return 1.0 / (np.sqrt(x) + np.sqrt(x + h))

    def pack(self) -> tuple[int, Array]:
        return SQRT, np.empty(0)


@dataclass(frozen=True, repr=False)
class Power(Concave):
    """g(x) = x^p.

    Parameters
    ----------
    p : exponent, 0 < p <= 1.

    Examples
    --------
    >>> Power(0.75)(16.0)
    8.0
    """

    p: float

    def __post_init__(self) -> None:
        _set_number(self, "p", lambda v: 0 < v <= 1, "an exponent with 0 < p <= 1")

    def _value(self, x: Array) -> Array:
        return x**self.p

    def _slope(self, x: Array, left: bool) -> Array:
        return self.p * x ** (self.p - 1.0)

    def _secant(self, x: Array, h: Array) -> Array:
        p, ratio = self.p, np.where(h > 0, h / x, 0.0)
        growth = p * np.log1p(ratio)  # log of g(x + h) / g(x)
        near = x ** (p - 1.0) * np.where(ratio < 1e-17, p, np.expm1(growth) / ratio)
        # Beyond a factor e the difference cancels nothing, while expm1 magnifies errors of growth.
        return np.where(growth > 1.0, ((x + h) ** p - x**p) / h, near)

    def _pieces(self) -> tuple[Array, Array] | None:
        return (np.empty(0), np.ones(1)) if self.p == 1 else None

    def pack(self) -> tuple[int, Array]:
        return POWER, np.array([self.p])


@dataclass(frozen=True, repr=False)
class Log(Concave):
    """g(x) = s log(1 + x/s).

    Parameters
    ----------
    scale : s > 0; the slope is 1 at 0 and 1/2 at s.

    Examples
    --------
    >>> Log(2.0).slope([0.0, 2.0])
    array([1. , 0.5])
    """

    scale: float

    def __post_init__(self) -> None:
        _set_number(self, "scale", lambda v: 0 < v < math.inf, "a finite number > 0")

    def _value(self, x: Array) -> Array:
        return self.scale * np.log1p(x / self.scale)

    def _slope(self, x: Array, left: bool) -> Array:
        return self.scale / (self.scale + x)

    def _secant(self, x: Array, h: Array) -> Array:
        ratio = h / (self.scale + x)
        return self._slope(x, False) * np.where(ratio > 0, np.log1p(ratio) / ratio, 1.0)

    def pack(self) -> tuple[int, Array]:
        return LOG, np.array([self.scale])


@dataclass(frozen=True, repr=False)
class Discount(Concave):
    """g(x) = log(1 + κx)/κ with κ = d/(1 - d): slope 1 at x = 0 and 1 - d at x = 1.

    In block units, where x is the share of a block that is in use, the last pair of a fully used
    block costs d less than the first: a dial that means the same on any data.

    Parameters
    ----------
    d : discount, 0 <= d < 1; 0 makes g linear.

    Examples
    --------
    >>> Discount(0.75).slope([0.0, 1.0])
    array([1.  , 0.25])
    """

    d: float

    def __post_init__(self) -> None:
        _set_number(self, "d", lambda v: 0 <= v < 1, "a discount with 0 <= d < 1")

    @property
    def _rate(self) -> float:
        return self.d / (1.0 - self.d)  # κ

    def _value(self, x: Array) -> Array:
        return np.log1p(self._rate * x) / self._rate if self.d else x.copy()

    def _slope(self, x: Array, left: bool) -> Array:
        return 1.0 / (1.0 + self._rate * x)

    def _secant(self, x: Array, h: Array) -> Array:
        slope = self._slope(x, False)
        ratio = self._rate * h * slope
        return slope * np.where(ratio > 0, np.log1p(ratio) / ratio, 1.0)

    def _pieces(self) -> tuple[Array, Array] | None:
        return None if self.d else (np.empty(0), np.ones(1))

    def pack(self) -> tuple[int, Array]:
        return (LOG, np.array([1.0 / self._rate])) if self.d else (LINEAR, np.empty(0))


@dataclass(frozen=True, repr=False)
class Truncation(Concave):
    """g(x) = min(x, alpha).

    Parameters
    ----------
    alpha : threshold >= 0; inf makes g linear.

    Examples
    --------
    >>> g = Truncation(1.0)
    >>> g.slope(1.0, "left"), g.slope(1.0, "right")
    (1.0, 0.0)
    """

    alpha: float

    def __post_init__(self) -> None:
        _set_number(self, "alpha", lambda v: v >= 0, "a number >= 0 (inf makes g linear)")

    def _value(self, x: Array) -> Array:
        return np.minimum(x, self.alpha)

    def _slope(self, x: Array, left: bool) -> Array:
        inside = (x <= self.alpha) & (self.alpha > 0) if left else x < self.alpha
        return np.where(inside, 1.0, 0.0)

    def _secant(self, x: Array, h: Array) -> Array:
        return np.where(h > 0, np.clip(self.alpha - x, 0.0, h) / h, self._slope(x, False))

    def _pieces(self) -> tuple[Array, Array]:
        if 0 < self.alpha < math.inf:
            return np.array([self.alpha]), np.array([1.0, 0.0])
        return np.empty(0), np.array([1.0 if self.alpha else 0.0])

    def pack(self) -> tuple[int, Array]:
        return TRUNCATION, np.array([self.alpha])


@dataclass(frozen=True, repr=False)
class Linear(Concave):
    """g(x) = x: the structure disappears, plain transport remains.

    Examples
    --------
    >>> Linear()(2.5)
    2.5
    """

    def _value(self, x: Array) -> Array:
        return x.copy()

    def _slope(self, x: Array, left: bool) -> Array:
        return np.ones_like(x)

    def _secant(self, x: Array, h: Array) -> Array:
        return np.ones_like(x)

    def _pieces(self) -> tuple[Array, Array]:
        return np.empty(0), np.ones(1)

    def pack(self) -> tuple[int, Array]:
        return LINEAR, np.empty(0)


@dataclass(frozen=True, repr=False)
class PiecewiseLinear(Concave):
    """g(x) = integral of the slopes: slopes[k] between breaks[k-1] and breaks[k].

    Parameters
    ----------
    breaks : 0 < breaks, strictly increasing, K of them (K = 0 is allowed).
    slopes : K+1 slopes, non-increasing and >= 0.

    Examples
    --------
    >>> PiecewiseLinear([1.0, 3.0], [2.0, 1.0, 0.0])([0.5, 2.0, 9.0])
    array([1., 3., 4.])
    """

    breaks: Sequence[float]
    slopes: Sequence[float]
    _arrays: tuple[Array, Array, Array] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        breaks, slopes = _vector("breaks", self.breaks), _vector("slopes", self.slopes)
        if slopes.size != breaks.size + 1:
            raise ValueError(
                f"PiecewiseLinear: {breaks.size} breaks need {breaks.size + 1} slopes, "
                f"got {slopes.size}"
            )
        lengths = np.diff(breaks, prepend=0.0)
        _refuse(lengths <= 0, breaks, "breaks must be > 0 and strictly increasing")
        _refuse(slopes < 0, slopes, "slopes must be >= 0")
        rises = np.diff(slopes, prepend=slopes[0]) > 0
        _refuse(rises, slopes, "slopes must not increase (g is concave)")
        values = np.cumsum(slopes[:-1] * lengths)  # g at the breaks
        object.__setattr__(self, "breaks", tuple(breaks.tolist()))
        object.__setattr__(self, "slopes", tuple(slopes.tolist()))
        object.__setattr__(self, "_arrays", (breaks, slopes, values))

    def _value(self, x: Array) -> Array:
        breaks, slopes, values = self._arrays
        k = np.searchsorted(breaks, x, side="right")
        start = np.concatenate([[0.0], breaks])[k]
        return np.concatenate([[0.0], values])[k] + slopes[k] * (x - start)

    def _slope(self, x: Array, left: bool) -> Array:
        breaks, slopes, _ = self._arrays
        return slopes[np.searchsorted(breaks, x, side="left" if left else "right")]

    def _secant(self, x: Array, h: Array) -> Array:
        breaks, slopes, _ = self._arrays
        mean, done = np.zeros(x.shape), np.zeros(x.shape)
        # Distances are measured from x, so that a step inside one piece gives its slope exactly.
        for end, slope in zip([*breaks, math.inf], slopes, strict=True):
            reach = np.clip(end - x, 0.0, h)
            mean, done = mean + slope * ((reach - done) / h), reach
        return np.where(h > 0, mean, self._slope(x, False))

    def _pieces(self) -> tuple[Array, Array]:
        return self._arrays[0].copy(), self._arrays[1].copy()

    def pack(self) -> tuple[int, Array]:
        return PIECEWISE_LINEAR, np.concatenate(self._arrays)  # 3K + 1 numbers


@dataclass(frozen=True, repr=False)
class Step(Concave):
    """g(x) = 1 for x > 0, 0 at 0: what coverage is made of, the limit of min(x/alpha, 1).

    Examples
    --------
    >>> Step()(0.0), Step()(0.3)
    (0.0, 1.0)
    """

    def _value(self, x: Array) -> Array:
        return (x > 0).astype(float)

    def _slope(self, x: Array, left: bool) -> Array:
        return np.where(x > 0, 0.0, np.inf)

    def _secant(self, x: Array, h: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.where(x > 0, 0.0, 1.0 / h)

    def pack(self) -> tuple[int, Array]:
        return STEP, np.empty(0)


def _set_number(owner: Any, name: str, valid: Callable[[float], bool], rule: str) -> None:
    value = getattr(owner, name)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not valid(number):
        raise ValueError(f"{type(owner).__name__}: {name} must be {rule}, got {value!r}")
    object.__setattr__(owner, name, number)


def _vector(name: str, values: Any) -> Array:
    try:
        vector = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1:
        raise ValueError(f"PiecewiseLinear: {name} must be a list of numbers, got {values!r}")
    _refuse(~np.isfinite(vector), vector, f"{name} must be finite")
    return vector


def _refuse(bad: NDArray[np.bool_], values: Array, rule: str) -> None:
    at = np.flatnonzero(bad)
    if at.size:
        before = f" after {values[at[0] - 1]}" if at[0] else ""
        raise ValueError(
            f"PiecewiseLinear: {rule}, got {values[at[0]]}{before} at position {at[0]}"
        )
