"""From what users call groups to one number per point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def group_numbers(name: str, groups: object | None, size: int) -> Array:
    """The number of the group of each of ``size`` points, counted from 0.

    ``groups``: None (every point for itself); one label per point, where a masked, None or NaN
    label makes the point its own group; or a list of sequences of indices, where a point in none
    is its own group. Labels are numbered in sorted order, points on their own after them.
    """
    if groups is None:
        return np.arange(size)
    if is_index_lists(groups):
        return _from_lists(name, groups, size)  # type: ignore[arg-type]
    return _from_labels(name, groups, size)


def is_index_lists(groups: object) -> bool:
    """Whether this is a list of groups of indices and not one label per point."""
    if not isinstance(groups, list | tuple) or len(groups) == 0:
        return False
    return all(
        isinstance(g, Sequence | set | frozenset | range | np.ndarray)
        and not isinstance(g, str | bytes)
        and _is_flat(g)
        for g in groups
    )


def _is_flat(members: object) -> bool:
    if isinstance(members, np.ndarray):
        return members.ndim == 1
    return not any(
        isinstance(x, Sequence | set | frozenset | np.ndarray) and not isinstance(x, str)
        for x in members  # type: ignore[attr-defined]
    )


def _from_lists(name: str, groups: Sequence[Sequence[int]], size: int) -> Array:
    number = np.full(size, -1)
    for k, members in enumerate(groups):
        index = np.asarray(sorted(members) if isinstance(members, set | frozenset) else members)
        if index.size and index.dtype.kind not in "iu":
            raise ValueError(
                f"{name} group {k} must hold indices of points; got {index[:3].tolist()!r}. "
                "For one label per point pass a flat sequence."
            )
        index = index.astype(int)
        if index.size and not (0 <= index.min() and index.max() < size):
            raise ValueError(
                f"{name} group {k} holds index {index.max() if index.min() >= 0 else index.min()}, "
                f"but there are {size} points (0 to {size - 1})."
            )
        taken = index[number[index] >= 0]
        if taken.size:
            raise ValueError(
                f"{name} groups {number[taken[0]]} and {k} both hold point {taken[0]}; "
                "this structure needs disjoint groups: remove the point from one of them."
            )
        number[index] = k
    return _with_singletons(number, len(groups))


def _from_labels(name: str, labels: object, size: int) -> Array:
    mask = np.ma.getmaskarray(labels) if isinstance(labels, np.ma.MaskedArray) else None
    try:
        values = np.asarray(labels)
        if values.dtype.kind in "SU" and not isinstance(labels, np.ndarray):
            values = np.asarray(labels, object)  # keeps NaN apart from "nan", and 1 from "1"
    except ValueError:
        raise ValueError(
            f"{name} must be one label per point or a list of sequences of indices; got a mixture "
            "of both, or sequences inside sequences."
        ) from None
    if values.ndim != 1:
        raise ValueError(
            f"{name} labels must be one-dimensional, one per point; got shape {values.shape}."
        )
    if values.size != size:
        raise ValueError(
            f"{name} has {values.size} labels, but there are {size} points on that side; "
            "pass one label per point."
        )
    missing = np.array([_is_missing(x) for x in values]) if values.dtype.kind in "OfmM" else None
    lost = np.zeros(size, bool)
    for part in (mask, missing):
        if part is not None:
            lost |= part
    known = values[~lost]
    try:
        names, inverse = np.unique(known, return_inverse=True)
    except TypeError:  # labels of several types have no order: number them as they appear
        first = {label: k for k, label in enumerate(dict.fromkeys(known.tolist()))}
        names, inverse = np.array(list(first), object), np.array([first[x] for x in known.tolist()])
    number = np.full(size, -1)
    number[~lost] = inverse
    return _with_singletons(number, len(names))


def _with_singletons(number: Array, groups: int) -> Array:
    alone = number < 0
    number[alone] = groups + np.arange(int(alone.sum()))
    # Empty groups would leave holes in the numbering.
    return np.unique(number, return_inverse=True)[1]


def _is_missing(label: object) -> bool:
    if label is None or label is np.ma.masked:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA refuses to say whether it equals itself
        return True
