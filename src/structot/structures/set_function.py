"""SetFunction: any submodular function of the pairs in use, by its values.

Notation. F: sets of edges -> R as a Python function of a Boolean mask (n, m); E edges matter.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from structot._checks import as_mask, as_matrix, one_of
from structot._typing import Array
from structot.structures.base import Structure
from structot.submodular.base import METRICS, Kind, Minimizer, Submodular
from structot.submodular.bound import BoundCost
from structot.submodular.checking import ENUMERATED, check_submodular, tabulate, violation_in_table
from structot.submodular.decomposition import Minor, divide_and_conquer

# A solve that is expected to take longer than this many seconds is announced.
_LONG = 30.0
# What a solve was measured to take: greedy vertices per edge, 4 to 40 in all, and the arithmetic of
# the min-norm point per vertex in seconds / E².
_VERTICES, _ARITHMETIC = 20.0, 1e-8
# Samples of the check at once, four calls each.
_SAMPLES = 200
_TOL = 1e-9
_ROUNDING = 1e-15


class SetFunctionWarning(UserWarning):
    """A structure given by values alone is about to take long."""


class SetFunction(Structure):
    """F(S) = function(mask of S) - function(empty mask), any submodular function of the pairs.

    All that is known are values, so that everything goes through them. Up to 12 pairs that matter,
    F is tabulated once, checked completely, and projected exactly by divide and conquer. Beyond
    that each projection is a min-norm point, and a whole solve takes 4 E to 40 E vertices of E
    calls each: seconds up to about 100 pairs (10 × 10 points), out of reach at 1000. A problem that
    is expected to take longer than half a minute is announced by one `SetFunctionWarning` with the
    expected time. ``method="mirror_descent"`` needs no projection and goes further, to larger gaps.

    Parameters
    ----------
    function
        function(mask) -> float, mask a Boolean array (n, m) of the pairs in S. It must depend on
        the mask alone and be submodular.
    support
        The pairs that matter, as a Boolean array (n, m) or a list of pairs (i, j): the function
        never sees others. All by default. The fewer, the faster.
    check
        Look for a violation of submodularity when the structure meets a cost matrix, in all sets
        or by samples (see `check_submodular`), and raise a ValueError that shows it.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> used = SetFunction(lambda S: float(S.any(axis=1).sum()) ** 0.5)  # sources in use
    >>> result = sot.solve(np.eye(3), structure=sot.Modular() + used)
    >>> result.converged
    True
    """

    def __init__(
        self,
        function: Callable[[Array], float],
        support: object | None = None,
        *,
        check: bool = True,
    ) -> None:
        if not callable(function):
            raise ValueError(
                f"function must be callable with a Boolean mask (n, m); got {function!r}."
            )
        self.function = function
        self.support = support
        self.check = bool(check)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        finite = np.isfinite(M)
        allowed = None if finite.all() else finite
        F = CalledFunction(self.function, M.shape, allowed, _support(self.support, M.shape))
        edges = np.flatnonzero(F._edges())
        _announce(F, edges.size)
        if edges.size <= ENUMERATED:
            table = TabulatedFunction(F, edges)
            violation = violation_in_table(table.values, edges, F.shape, _TOL)
            self._refuse(violation)
            return BoundCost.of(None, [table])
        self._refuse(check_submodular(F, samples=_SAMPLES, tol=_TOL) if self.check else None)
        return BoundCost.of(None, [F])

    def _refuse(self, violation: object | None) -> None:
        if violation is not None and self.check:
            raise ValueError(
                f"{violation}\nOnly submodular functions have a convex extension; "
                "correct the function (check=False skips this test at your own risk)."
            )

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        support = "" if self.support is None else ", support=..."
        return f"SetFunction({name}{support})"


class CalledFunction(Submodular):
    """The user's function, normalised, its answers checked."""

    def __init__(
        self,
        function: Callable[[Array], float],
        shape: tuple[int, int],
        allowed: Array | None,
        support: Array | None,
    ) -> None:
        self.shape, self.allowed, self.support = shape, allowed, support
        self._function = function
        self._matter = self._edges()
        self._empty = self._call(np.zeros(shape, bool))

    def _call(self, mask: Array) -> float:
        try:
            answer = self._function(mask)
        except (
            ArithmeticError,
            np.linalg.LinAlgError,
        ) as error:  # the solvers would take it for their own
            raise ValueError(
                f"function raised {error!r} for a set of {int(mask.sum())} pairs; it must have a "
                "value for every set."
            ) from error
        try:
            value = float(answer)
        except (TypeError, ValueError):
            raise ValueError(
                f"function must return a number for every mask; got {answer!r}."
            ) from None
        if not np.isfinite(value):
            raise ValueError(
                f"function must be finite; got {value} for a set of {int(mask.sum())} pairs. "
                "Forbid pairs with M = +inf."
            )
        return value

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        # A copy of its own: what the function does to it is nobody else's affair.
        return self._call(mask & self._matter) - self._empty


class TabulatedFunction(Submodular):
    """F from the table of all of its values: set number s holds edge k if bit k of s is set."""

    kind: ClassVar[Kind] = "simple"

    def __init__(self, F: Submodular, edges: Array) -> None:
        self.shape, self.allowed, self.support = F.shape, F.allowed, F._edges()
        self._flat = edges
        self._bits = 1 << np.arange(edges.size)
        self.values = tabulate(F, edges)

    def _code(self, mask: Array) -> int:
        return int(self._bits[mask.ravel()[self._flat]].sum())

    def value(self, mask: Array) -> float:
        mask = as_mask("mask", mask, self.shape)
        if self.allowed is not None and mask[~self.allowed].any():
            return np.inf
        return float(self.values[self._code(mask)])

    def greedy(self, P: Array) -> Array:
        P = as_matrix("P", P, self.shape)
        order = np.argsort(-P.ravel()[self._flat], kind="stable")
        K = self._blank_cost()
        chain = self.values[np.cumsum(self._bits[order])]
        K.ravel()[self._flat[order]] = np.diff(chain, prepend=0.0)
        return K

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        one_of("metric", metric, METRICS)
        if metric == "entropy":
            return super().project(Z, metric)
        Z = as_matrix("Z", Z, self.shape)
        # The table knows every set: no violation that is more than rounding is let through.
        return divide_and_conquer(self, Z, minimizer=self._minimum, tol=_ROUNDING)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        shift = np.zeros(self.shape) if shift is None else as_matrix("shift", shift, self.shape)
        none = np.zeros(self.shape, bool)
        # Edges that do not matter to F are worth taking when their shift alone is negative.
        rest = self._allowed() & ~self._edges() & (shift < 0)
        mask, value = self._least(none, self._edges(), shift)
        return Minimizer(mask | rest, value + float(shift[rest].sum()))

    def _minimum(self, minor: Minor, shift: Array) -> Minimizer:
        return self._least(minor.settled, minor.edges, shift)

    def _least(self, settled: Array, edges: Array, shift: Array) -> Minimizer:
        """argmin F(S ∪ settled) - F(settled) + shift(S) over all sets S of these edges."""
        codes, sums = np.zeros(1, int), np.zeros(1)
        inside = edges.ravel()[self._flat]
        for bit, x in zip(self._bits[inside], shift.ravel()[self._flat[inside]], strict=True):
            codes = np.concatenate([codes, codes | bit])
            sums = np.concatenate([sums, sums + x])
        start = self._code(settled)
        values = self.values[codes | start] - self.values[start] + sums
        best = int(np.argmin(values))
        mask = np.zeros(self.shape, bool)
        mask.ravel()[self._flat] = (self._bits & codes[best]) > 0
        return Minimizer(mask, float(values[best]))


def _support(support: object | None, shape: tuple[int, int]) -> Array | None:
    """A Boolean array (n, m) from what a user may pass."""
    if support is None:
        return None
    array = np.asarray(support)
    if array.dtype == bool:
        return as_mask("support", array, shape)
    pairs = array.reshape(0, 2).astype(int) if array.size == 0 else array
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            "support must be a Boolean array (n, m) or a list of pairs (i, j); "
            f"got an array of {array.dtype} with shape {array.shape}."
        )
    if pairs.size and not ((pairs >= 0) & (pairs < shape)).all():
        bad = pairs[~((pairs >= 0) & (pairs < shape)).all(axis=1)][0].tolist()
        raise ValueError(f"support holds the pair {tuple(bad)}, but M has shape {shape}.")
    mask = np.zeros(shape, bool)
    mask[pairs[:, 0], pairs[:, 1]] = True
    return mask


def _announce(F: CalledFunction, edges: int) -> None:
    """Warn if a solve with this function is expected to take long."""
    half = np.zeros(F.shape, bool)
    half[::2] = F._allowed()[::2]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        F.value(half)
        times.append(time.perf_counter() - start)
    call = float(np.median(times))
    if edges <= ENUMERATED:
        seconds = 2.0**edges * call
    else:
        vertex = edges * call + _ARITHMETIC * edges**2
        seconds = _VERTICES * edges * vertex
    if seconds > _LONG:
        warnings.warn(
            f"SetFunction knows only values of F: with {edges} pairs and {1e6 * call:.0f} µs per "
            f"call a solve is expected to take about {_duration(seconds)}. Restrict it with "
            "support=, use fewer points, set time_limit, or use method='mirror_descent'.",
            SetFunctionWarning,
            stacklevel=6,
        )


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"
