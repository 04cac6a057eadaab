"""All checks of what users pass in; each message names the argument, what came, the repair."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from structot._typing import Array

# Totals of weights that differ by no more than this part are the same, but for rounding.
SAME_TOTAL = 1e-6
# A cost this many times above the next one below is meant to forbid a pair.
_FORBIDDING = 1e3


def one_of(name: str, value: object, options: Iterable[str], arrived: object | None = None) -> str:
    """``value`` if it is one of ``options``; else an error that offers the closest one.

    With ``arrived``, the user wrote that for ``value``, which is always an error.
    """
    options = list(options)
    if isinstance(value, str) and value in options and arrived is None:
        return value
    close = difflib.get_close_matches(str(value), options, n=1, cutoff=0.6)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    got = value if arrived is None else arrived
    raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}; got {got!r}.{hint}")


def number(name: str, value: object) -> float:
    """A finite or infinite real number, never NaN."""
    try:
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} must be a number; got {value!r}.") from None
    if np.isnan(result):
        raise ValueError(f"{name} is NaN; pass a number.")
    return result


def positive(name: str, value: object) -> float:
    """A number in (0, inf)."""
    result = number(name, value)
    if not 0 < result < np.inf:
        raise ValueError(f"{name} must be positive and finite; got {value!r}.")
    return result


def nonnegative(name: str, value: object) -> float:
    """A number in [0, inf)."""
    result = number(name, value)
    if not 0 <= result < np.inf:
        raise ValueError(f"{name} must be zero or positive and finite; got {value!r}.")
    return result


def count(name: str, value: Any, *, least: int = 1) -> int:
    """A whole number, at least ``least``."""
    try:
        whole = not isinstance(value, bool | np.bool_) and int(value) == value and value >= least
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise ValueError(f"{name} must be a whole number, {least} or more; got {value!r}.")
    return int(value)


def as_array(name: str, value: object, ndim: int) -> Array:
    """Float64 array of ``ndim`` dimensions from lists, frames, integers, float32, ..."""
    if hasattr(value, "toarray"):
        raise ValueError(
            f"{name} is sparse ({type(value).__name__}), and what it does not store has no value "
            f"here; pass {name}.toarray(), with +inf where pairs are meant to be forbidden."
        )
    try:
        array = value if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        array = array.astype(np.float64, copy=False)
        if isinstance(array, np.ma.MaskedArray):
            array = array.filled(np.nan)  # what lies under a mask is no number
    except (TypeError, ValueError) as error:
        if hasattr(value, "bind"):
            raise ValueError(
                f"{name} must be a numeric array; got {type(value).__name__}, a structure: "
                "pass it by name, structure=..."
            ) from None
        raise ValueError(
            f"{name} must be a numeric array with {ndim} dimension(s); "
            f"could not convert {type(value).__name__}: {str(error).rstrip('.')}."
        ) from None
    if array.ndim != ndim and array.size == 0:
        raise ValueError(f"{name} is empty (shape {array.shape}); pass at least one entry.")
    if array.ndim != ndim:
        raise ValueError(
            f"{name} must have {ndim} dimension(s); got shape {array.shape}. "
            + ("Reshape it to (n, m)." if ndim == 2 else "Pass a flat sequence.")
        )
    return array


def prices(name: str, value: object, ndim: int, form: str, infinite: str | None = None) -> Array:
    """Prices, one number or an array of ``ndim`` dimensions, not negative.

    They must be finite unless ``infinite`` says what +inf means.
    """
    try:
        arrived = np.ndim(value)  # type: ignore[arg-type]
    except ValueError:  # rows of different lengths: as_array says so
        arrived = ndim
    array = as_array(name, value, arrived)
    if array.ndim not in (0, ndim):
        raise ValueError(f"{name} must be one number or {form}; got shape {array.shape}.")
    good = array >= 0
    good &= np.isfinite(array) | (infinite is not None)
    if not good.all():
        kinds = "finite and not negative" if infinite is None else "numbers, none negative"
        hint = "" if infinite is None else f", and +inf {infinite}"
        raise ValueError(
            f"{name} must be {kinds}; got {array[~good].ravel()[0]}. "
            f"A price of 0 is no price{hint}."
        )
    return array


def float_type(*arrays: object) -> np.dtype:
    """The float type of the answer: float32 if all floats given are at most that, else float64."""
    types = [np.asarray(x).dtype for x in arrays if x is not None]
    floats = [t for t in types if t.kind == "f"]
    if floats and all(t.itemsize <= 4 for t in floats):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def coarsest_type(*arrays: object) -> np.dtype:
    """The float type with the largest rounding error among those given."""
    types = [np.asarray(x).dtype for x in arrays if x is not None]
    floats = [t for t in types if t.kind == "f"]
    return max(floats, key=lambda t: float(np.finfo(t).eps), default=np.dtype(np.float64))


def as_matrix(name: str, value: object, shape: tuple[int, int]) -> Array:
    """Float64 array of exactly this shape, without NaN."""
    matrix = as_array(name, value, 2)
    if matrix.shape != shape:
        raise ValueError(
            f"{name} has shape {matrix.shape}, but the cost matrix has {shape}; they must agree."
        )
    if np.isnan(matrix).any():
        raise ValueError(f"{name} is NaN at {_first(np.isnan(matrix))}; remove or fill NaN values.")
    return matrix


def as_points(name: str, value: Any) -> Array:
    """Finite points (n, features), at least one."""
    if np.ndim(value) == 1 and np.size(value):
        raise ValueError(
            f"{name} must have shape (points, features); got shape {np.shape(value)}. "
            f"For points on a line pass {name}[:, None]."
        )
    points = as_array(name, value, 2)
    if points.size == 0 or not np.isfinite(points).all():
        raise ValueError(f"{name} must hold finite points, at least one; remove or fill NaN rows.")
    return points


def as_mask(name: str, value: object, shape: tuple[int, int]) -> Array:
    """Boolean array of exactly this shape: a set of pairs."""
    mask = np.asarray(value)
    if mask.shape != shape:
        raise ValueError(
            f"{name} has shape {mask.shape}, but the cost matrix has {shape}; "
            "pass one truth value per pair."
        )
    return mask.astype(bool, copy=False)


def as_cost(value: object, name: str = "M") -> Array:
    """A cost matrix: two-dimensional, not empty, every entry in [0, +inf]."""
    M = as_array(name, value, 2)
    if M.size == 0:
        raise ValueError(
            f"{name} is empty (shape {M.shape}); a problem needs at least one source "
            "and one target point."
        )
    bad = np.isnan(M)
    if bad.any():
        raise ValueError(
            f"{name} is NaN at {_first(bad)}; fill missing costs, or use +inf to forbid a pair."
        )
    bad = M == -np.inf
    if bad.any():
        raise ValueError(
            f"{name} is -inf at {_first(bad)}; costs must be 0 or more, and +inf forbids a pair."
        )
    bad = M < 0
    if bad.any():
        where = _first(bad)
        raise ValueError(
            f"{name} must not be negative; got {M[where]} at {where}. Shift the costs "
            f"({name} - {name}.min() leaves a plain transport plan unchanged) or use +inf to "
            "forbid a pair."
        )
    return M


def refuse_points(M: Any, a: Any) -> None:
    """Two matrices with equally many columns are two samples, not a cost and its weights."""
    first, second = (tuple(getattr(value, "shape", ())) for value in (M, a))
    if len(first) == len(second) == 2 and first[1] == second[1]:
        raise ValueError(
            f"M and a have shapes {first} and {second}, like points of two samples: "
            "pass points to solve_sample, or their cost matrix, e.g. by "
            "scipy.spatial.distance.cdist, and one weight per point."
        )


def as_weights(name: str, value: object | None, size: int) -> Array:
    """Weights of ``size`` points; uniform with total 1 when not given."""
    if value is None:
        return np.full(size, 1.0 / size)
    weights = as_array(name, value, 1)
    if weights.size != size:
        side = "rows" if name == "a" else "columns"
        raise ValueError(
            f"{name} has {weights.size} weights, but the cost matrix has {size} {side}; "
            "pass one weight per point (rows belong to a, columns to b)."
        )
    bad = ~np.isfinite(weights)
    if bad.any():
        raise ValueError(f"{name} is {weights[bad][0]} at {_first(bad)}; weights must be finite.")
    bad = weights < 0
    if bad.any():
        raise ValueError(f"{name} is negative at {_first(bad)} ({weights[bad][0]}); clip it to 0.")
    if not weights.sum() > 0:
        raise ValueError(f"{name} is zero everywhere; at least one weight must be positive.")
    return weights


def balance(a: Array, b: Array, precision: np.dtype) -> tuple[Array, Array]:
    """Give both weight vectors the same total, if they have it up to rounding.

    What was rounded to ``precision``, or to float32 on its way here, passes.
    """
    total_a, total_b = float(np.sum(a)), float(np.sum(b))
    # Rounding n numbers moves their sum by about eps * sqrt(n).
    rounding = 16 * float(np.finfo(precision).eps) * np.sqrt(a.size + b.size)
    check_totals(total_a, total_b, max(rounding, SAME_TOTAL))
    b = b.copy() if total_a == total_b else b * (total_a / total_b)
    # To the last bit, at the heaviest point: a rest of rounding is much to a light one.
    b[np.argmax(b)] += math.fsum(a.tolist()) - math.fsum(b.tolist())
    return a, b


def with_marginals(name: str, matrix: object, a: object, b: object) -> tuple[Array, Array, Array]:
    """A matrix and the weights of its rows and columns, as float64, with sizes that agree.

    For the building blocks of `transport`: weights may be zero everywhere, and the entries of the
    matrix are left to the caller.
    """
    array = np.ascontiguousarray(as_array(name, matrix, 2))
    weights = []
    for side, value, size in zip(("a", "b"), (a, b), array.shape, strict=True):
        x = as_array(side, value, 1)
        if x.size != size:
            raise ValueError(
                f"{side} has {x.size} weights, but {name} has shape {array.shape}; "
                "a belongs to the rows, b to the columns."
            )
        bad = ~((x >= 0) & (x < np.inf))
        if bad.any():
            raise ValueError(f"{side} is {x[bad][0]} at {_first(bad)}; weights are finite, >= 0.")
        weights.append(x)
    check_totals(float(weights[0].sum()), float(weights[1].sum()), SAME_TOTAL)
    return array, weights[0], weights[1]


def check_totals(total_a: float, total_b: float, slack: float) -> None:
    """Refuse totals that differ by more than ``slack``, relative."""
    if abs(total_a - total_b) > slack * max(total_a, total_b):
        raise ValueError(
            f"a and b must have the same total mass; got {total_a:.12g} and {total_b:.12g}. "
            "Normalise them first, e.g. a / a.sum() and b / b.sum(), or relax the marginals with "
            "unbalanced= or mass=."
        )


def as_relaxation(unbalanced: Any, mass: object) -> tuple[float | None, float | None]:
    """The prices (τ_a, τ_b) of ``unbalanced``; None keeps a side as it is, and so does +inf."""
    if unbalanced is None:
        return None, None
    if mass is not None:
        raise ValueError(
            "pass unbalanced=... or mass=..., not both: mass fixes how much is moved, unbalanced "
            "lets a price decide."
        )
    pair = (unbalanced, unbalanced) if np.ndim(unbalanced) == 0 else tuple(unbalanced)
    if len(pair) != 2:
        raise ValueError(
            f"unbalanced must be one price, or (source, target); got {len(pair)} values."
        )
    prices: list[float | None] = []
    for name, value in zip(("source", "target"), pair, strict=True):
        tau = math.inf if value is None else number(f"unbalanced ({name})", value)
        if not tau > 0:
            raise ValueError(
                f"unbalanced ({name}) must be positive, None or inf for a marginal that must hold; "
                f"got {value!r}. Small prices let mass go; at 0 nothing would be moved."
            )
        prices.append(None if tau == math.inf else tau)
    return prices[0], prices[1]


def as_mass(value: object, total_a: float, total_b: float) -> float:
    """The mass to be moved: between 0 and the smaller of both totals."""
    mass, most = nonnegative("mass", value), min(total_a, total_b)
    if mass > most * (1.0 + SAME_TOTAL):
        raise ValueError(
            f"mass must be at most the total of a and of b; got {mass:.12g} with totals "
            f"{total_a:.12g} and {total_b:.12g}. For more than that use unbalanced=."
        )
    return min(mass, most)


def check_forbidden(M: Array, a: Array, b: Array, hard: tuple[bool, bool] = (True, True)) -> None:
    """No point with mass that must move may have all of its pairs forbidden."""
    finite = np.isfinite(M)
    sides = ("row", 1, a, hard[0]), ("column", 0, b, hard[1])
    for name, axis, weights, must in sides:
        lost = ~finite.any(axis=axis) & (weights > 0)
        if must and lost.any():
            where = int(np.flatnonzero(lost)[0])
            raise ValueError(
                f"M forbids (+inf) every pair of {name} {where}, which has mass "
                f"{weights[where]:.6g}; allow at least one pair or set its weight to 0."
            )


def advice_on_costs(M: Array) -> str:
    """A sentence if a finite cost stands so far above all others that it must mean "forbidden".

    Such a price is the same for several pairs, and a thousand times the next one below.
    """
    top = float(M.max(where=np.isfinite(M), initial=0.0))
    if ((top / _FORBIDDING < M) & (M < top)).any():
        return ""
    others = M[(0.0 < M) & (M < top)]
    pairs = int(np.count_nonzero(M == top))
    if pairs < 2 or np.unique(others[:100]).size < 3:
        return ""
    return (
        f"{pairs} pairs cost {top:.3g}, more than a thousand times as much as any other. If that "
        "is to forbid them, use M = +inf: a finite price still lets mass through, at a discount "
        "where groups have one, and costs digits."
    )


def _first(bad: Array) -> Any:
    where = tuple(int(i[0]) for i in np.nonzero(bad))
    return where if len(where) > 1 else where[0]
