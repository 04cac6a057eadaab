"""Concave functions written by the user in Python, and their check."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot.concave.base import CUSTOM, Array, Concave, code

_SMALL = 2.0**-26  # square root of the machine precision: the best step of a difference quotient


@dataclass(frozen=True, repr=False, init=False)
class Custom(Concave):
    """g(x) = function(x), written by the user in Python.

    The secant is the difference quotient; where h < 2^-26 x, or h = 0, it is the slope at the
    middle of the step, since the quotient would be rounding noise.

    Parameters
    ----------
    function : called with an array if it accepts one, else with one float at a time.
    slope : its derivative, if known; a difference quotient takes its place otherwise.

    Examples
    --------
    >>> Custom(lambda x: x / (1 + x)).secant(1.0, 2.0)
    0.125
    """

    function: Callable[[Any], Any]
    derivative: Callable[[Any], Any] | None = None

    def __init__(
        self, function: Callable[[Any], Any], slope: Callable[[Any], Any] | None = None
    ) -> None:
        for name, value in (("function", function), ("slope", slope)):
            if not callable(value) and not (name == "slope" and value is None):
                raise ValueError(f"Custom: {name} must be a callable x -> number, got {value!r}")
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "derivative", slope)

    def _value(self, x: Array) -> Array:
        return _evaluate(self.function, x)

    def _slope(self, x: Array, left: bool) -> Array:
        if self.derivative is not None:
            return _evaluate(self.derivative, x)
        zero = x < 1e-200  # no smaller scale is in sight there, nor a left side
        step = np.where(zero, _SMALL, _SMALL * x)
        low = np.where(zero, x, x - step) if left else x
        return self._quotient(low, low + step)

    def _secant(self, x: Array, h: Array) -> Array:
        small, out = h <= _SMALL * x, np.empty(x.shape)
        out[small] = self._slope((x + 0.5 * h)[small], False)
        out[~small] = self._quotient(x[~small], (x + h)[~small])
        return out

    def _quotient(self, low: Array, high: Array) -> Array:
        # Divided by the distance of the rounded ends: g is evaluated at those.
        return (self._value(high) - self._value(low)) / (high - low)

    def pack(self) -> tuple[int, Array]:
        return CUSTOM, np.empty(0)

    def check(self, upper: float) -> None:
        """Sample g on [0, upper] and raise ValueError where it is not a valid g.

        Parameters
        ----------
        upper : largest argument that will be used, finite and >= 0.

        Examples
        --------
        >>> Custom(lambda x: x * x).check(1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: Custom(<lambda>) is not concave: g(0.8...) = 0.6... lies below the chord of ...
        """
        if not 0 <= upper < math.inf:
            raise ValueError(f"upper must be finite and >= 0, got {upper!r}")
        _check_samples(self, float(upper))


def as_concave(obj: Any) -> Concave:
    """Return `obj` as a `Concave`: functions pass through, callables become `Custom`.

    Examples
    --------
    >>> from structot.concave import Sqrt
    >>> as_concave(Sqrt())
    Sqrt()
    """
    if isinstance(obj, Concave):
        return obj
    if callable(obj) and not isinstance(obj, type):  # a class is callable, but is no function
        return Custom(obj)
    raise ValueError(
        "concave must be a function of concave (Discount, ThresholdSqrt, Sqrt, Power, Log, "
        "Truncation, Linear, PiecewiseLinear, Custom) or a callable x -> g(x), for example "
        f"concave.Discount(0.9) or concave.Sqrt(); got {obj!r}"
    )


def _evaluate(function: Callable[[Any], Any], x: Array) -> Array:
    """function(x) in one call if it takes arrays, else element by element."""
    if x.size > 1:
        try:
            out = np.asarray(function(x.copy()), dtype=np.float64)
            if out.shape == x.shape:
                return out
        except Exception:
            pass  # a genuine error comes back from the calls below
    return np.array([_one(function, t) for t in x.tolist()], dtype=np.float64)


def _one(function: Callable[[Any], Any], t: float) -> float:
    try:
        out = function(t)
    except Exception as error:
        raise ValueError(f"Custom: {code(function)} fails at {t!r}: {error}") from error
    try:
        return float(out)
    except (TypeError, ValueError):
        raise ValueError(
            f"Custom: {code(function)} must return a number, at {t!r} it returned {out!r}"
        ) from None


def _check_samples(g: Custom, upper: float) -> None:
    grid = np.linspace(0.0, upper, 513)
    if upper > 0:
        grid = np.union1d(grid, np.geomspace(1e-12 * upper, upper, 257))
    x = np.union1d(grid, 0.5 * (grid[1:] + grid[:-1]))
    y = g(x)

    def at(k: int) -> str:
        return f"g({x[k].item()!r}) = {y[k].item()!r}"

    for k in np.flatnonzero(~np.isfinite(y))[:1]:
        raise ValueError(f"{g!r} is not finite: {at(k)}")
    noise = 1e-12 * np.abs(y).max()
    if abs(y[0]) > noise:
        raise ValueError(f"{g!r} is not zero at zero: {at(0)}; subtract this constant")
    for k in range(0, x.size, 256):
        if abs(g(x[k]) - y[k]) > noise:
            raise ValueError(f"{g!r} is not elementwise: {at(k)} in an array, alone {g(x[k])!r}")
    for k in np.flatnonzero(y[:-1] - y[1:] > noise)[:1]:
        raise ValueError(f"{g!r} is decreasing: {at(k)}, but {at(k + 1)}")
    for stride in (64, 8, 1):  # long chords show a slight convexity, short ones a local one
        i = np.arange(0, x.size, stride)
        weight = (x[i[1:-1]] - x[i[:-2]]) / (x[i[2:]] - x[i[:-2]])
        below = y[i[:-2]] + weight * (y[i[2:]] - y[i[:-2]]) - y[i[1:-1]]
        if below.max(initial=0.0) > noise:
            low, mid, high = i[np.argmax(below) :][:3]
            chord = f"below the chord of {at(low)} and {at(high)}"
            raise ValueError(f"{g!r} is not concave: {at(mid)} lies {chord}")
    if g.derivative is not None:
        slope, mean, slack = g.slope(x[1:-1]), np.diff(y) / np.diff(x), 2 * noise / np.diff(x)
        fits = (slope >= mean[1:] - slack[1:]) & (slope <= mean[:-1] + slack[:-1])
        for k in np.flatnonzero(~fits)[:1]:
            raise ValueError(
                f"{g!r} has slope {slope[k]} at {x[k + 1]}, outside the mean slopes "
                f"{mean[k]} before and {mean[k + 1]} after it"
            )
