"""The protocol of concave functions, and the numbers of their compiled forms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Kinds of packed functions. Cached machine code depends on these numbers: append, never renumber.
CUSTOM = -1  # no compiled form: must be called from Python
LINEAR, THRESHOLD_SQRT, SQRT, POWER, LOG, TRUNCATION, PIECEWISE_LINEAR, STEP = range(8)


class Concave(ABC):
    """g : [0, inf) -> [0, inf), concave, non-decreasing, g(0) = 0.

    Arguments are finite and >= 0. Scalars give a float, everything else an array.

    Examples
    --------
    >>> from structot.concave import Sqrt
    >>> isinstance(Sqrt(), Concave), Sqrt()(4.0)
    (True, 2.0)
    """

    def __call__(self, x: ArrayLike) -> Any:
        """g(x)."""
        return self._apply(self._value, _argument("x", x))

    def slope(self, x: ArrayLike, side: str = "right") -> Any:
        """One-sided derivative g'(x+) or g'(x-); at 0 both mean g'(0+), which may be inf.

        Parameters
        ----------
        x : points.
        side : "right" or "left"; they differ at kinks only.
        """
        if side not in ("right", "left"):
            raise ValueError(f'side must be "right" or "left", got {side!r}')
        return self._apply(lambda t: self._slope(t, side == "left"), _argument("x", x))

    def secant(self, x: ArrayLike, h: ArrayLike) -> Any:
        """(g(x + h) - g(x)) / h without cancellation; the right slope where h = 0.

        Parameters
        ----------
        x, h : start and length of the steps, broadcast against each other.

        Examples
        --------
        >>> from structot.concave import Sqrt
        >>> Sqrt().secant(1.0, 1e-18)
        0.5
        """
        start, step = np.broadcast_arrays(_argument("x", x), _argument("h", h))
        return self._apply(self._secant, start, step)

    @property
    def is_linear(self) -> bool:
        """Whether g(x) = c x; then c is `slope(0)`."""
        pieces = self._pieces()
        return pieces is not None and bool(np.all(pieces[1] == pieces[1][0]))

    @property
    def is_piecewise_linear(self) -> bool:
        """Whether `pieces` and `truncations` are available."""
        return self._pieces() is not None

    def pieces(self) -> tuple[Array, Array]:
        """Breaks (K,) and slopes (K+1,) of a piecewise linear g."""
        pieces = self._pieces()
        if pieces is None:
            raise ValueError(
                f"{self!r} is not piecewise linear; use Linear, Truncation or PiecewiseLinear"
            )
        return pieces

    def truncations(self) -> tuple[float, Array, Array]:
        """Write g(x) = c_0 x + sum_t c_t min(x, alpha_t) with all c_t > 0, c_0 >= 0.

        Returns
        -------
        c_0, (c_t), (alpha_t).

        Examples
        --------
        >>> from structot.concave import PiecewiseLinear
        >>> PiecewiseLinear([1.0, 3.0], [2.0, 1.0, 0.5]).truncations()
        (0.5, array([1. , 0.5]), array([1., 3.]))
        """
        breaks, slopes = self.pieces()
        drops = slopes[:-1] - slopes[1:]  # min(x, alpha) has slope 1 up to alpha, then 0
        return float(slopes[-1]), drops[drops > 0], breaks[drops > 0]

    @abstractmethod
    def pack(self) -> tuple[int, Array]:
        """Kind and parameters for the compiled kernels (kind CUSTOM: there is no compiled form)."""

    def check(self, upper: float) -> None:  # noqa: B027  most families have nothing to do
        """Raise ValueError unless g is concave and non-decreasing on [0, upper], g(0) = 0.

        Only `Custom` has to look; the other families are valid by construction.
        """

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if f.repr]  # type: ignore[arg-type]
        while shown and shown[-1].default is not MISSING:
            if getattr(self, shown[-1].name) != shown[-1].default:
                break
            shown.pop()
        return f"{type(self).__name__}({', '.join(code(getattr(self, f.name)) for f in shown)})"

    @abstractmethod
    def _value(self, x: Array) -> Array: ...

    @abstractmethod
    def _slope(self, x: Array, left: bool) -> Array: ...

    @abstractmethod
    def _secant(self, x: Array, h: Array) -> Array: ...

    def _pieces(self) -> tuple[Array, Array] | None:
        return None

    @staticmethod
    def _apply(function: Callable[..., Array], *arguments: Array) -> Any:
        shape = arguments[0].shape
        # Both branches of np.where are evaluated: 0/0 in the one not taken is no news.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            out = function(*(argument.ravel() for argument in arguments))
        return out.reshape(shape) if shape else float(out[0])


def _argument(name: str, value: ArrayLike) -> Array:
    array = np.asarray(value, dtype=np.float64)
    bad = ~((array >= 0) & (array < np.inf))
    if bad.any():
        at = np.argwhere(bad)[0]
        where = f" at index {tuple(at.tolist())}" if at.size else ""
        raise ValueError(f"{name} must be finite and >= 0, got {array[tuple(at)]}{where}")
    return array


def code(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "float('inf')"
    return getattr(value, "__name__", repr(value))
