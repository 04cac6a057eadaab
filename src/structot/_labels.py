"""What users call labels and groups: one label per point, some missing, or lists of indices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._typing import Array

__all__ = ["Labels", "index_lists", "is_index_lists"]


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per point; it is missing where it is masked, None or NaN, never where it is -1.

    Examples
    --------
    >>> labels = Labels.of("ys", ["cat", None, "dog"], 3)
    >>> labels.classes.tolist(), labels.number.tolist()
    (['cat', 'dog'], [0, -1, 1])
    """

    values: Array  # (n,), anything where the label is missing
    number: Array  # (n,), the place of the label in `classes`; -1 where it is missing
    classes: Array  # sorted; where labels have no order, as they appear
    ordered: bool  # whether the labels have an order

    @classmethod
    def of(cls, name: str, labels: Any, size: int) -> Labels:
        """Check and take apart what a user passes as labels of ``size`` points."""
        mask = np.ma.getmaskarray(labels) if isinstance(labels, np.ma.MaskedArray) else False
        try:
            values = np.asarray(labels)
            if values.dtype.kind in "SU" and not isinstance(labels, np.ndarray):
                values = np.asarray(labels, object)  # keeps NaN apart from "nan", and 1 from "1"
        except ValueError:
            raise ValueError(
                f"{name} must be one label per point or a list of sequences of indices; got a "
                "mixture of both, or sequences inside sequences."
            ) from None
        if values.ndim == 2 and values.shape[1] == 1:
            values, mask = values[:, 0], np.reshape(mask, -1) if np.ndim(mask) else mask
        if values.ndim != 1:
            raise ValueError(
                f"{name} labels must be one-dimensional, one per point; got shape {values.shape}."
            )
        if values.size != size:
            raise ValueError(
                f"{name} has {values.size} labels, but there are {size} points on that side; "
                "pass one label per point. Mark missing ones by np.ma.masked, None or NaN."
            )
        known = np.ones(size, bool) & ~np.asarray(mask)
        if values.dtype.kind in "OfmM":
            known &= ~np.array([_is_missing(x) for x in values], bool)
        number = np.full(size, -1)
        try:
            classes, number[known] = np.unique(values[known], return_inverse=True)
            return cls(values, number, classes, True)
        except TypeError:
            first = {label: k for k, label in enumerate(dict.fromkeys(values[known].tolist()))}
            number[known] = [first[label] for label in values[known].tolist()]
            return cls(values, number, np.array(list(first), object), False)

    @property
    def known(self) -> Array:
        """Where the label is not missing."""
        return self.number >= 0

    @property
    def groups(self) -> Array:
        """The number of each point's group: points of no label are groups of their own, last."""
        number = self.number.copy()
        number[~self.known] = len(self.classes) + np.arange(np.count_nonzero(~self.known))
        return number


_HINT = (
    "Groups are lists of indices of points; for one-hot rows pass np.argmax(rows, 1), for labels "
    "one number or string per point."
)


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


def index_lists(name: str, groups: Sequence[Any], size: int) -> list[Array]:
    """The groups that are not empty, as sorted arrays of indices."""
    arrays = []
    for k, members in enumerate(groups):
        index = np.asarray(sorted(members) if isinstance(members, set | frozenset) else members)
        if index.size == 0:
            continue
        if index.dtype.kind not in "iu":
            raise ValueError(
                f"{name} group {k} must hold indices of points; got {index[:3].tolist()!r}. "
                "For one label per point pass a flat sequence."
            )
        if not (0 <= index.min() and index.max() < size):
            raise ValueError(
                f"{name} group {k} holds index {index.max() if index.min() >= 0 else index.min()}, "
                f"but there are {size} points (0 to {size - 1})."
            )
        arrays.append(np.unique(index.astype(int)))
        if arrays[-1].size < index.size:
            raise ValueError(f"{name} group {k}, {index[:6].tolist()!r}, repeats an index. {_HINT}")
    # One list per point, all equally long, some the same and not of neighbours (which hold the
    # point itself): no groups look like that.
    alike = len(groups) == len(arrays) == size > 1 and len({x.size for x in arrays}) == 1
    strange = alike and any(i not in x for i, x in enumerate(arrays))
    if strange and len({x.tobytes() for x in arrays}) < size:
        raise ValueError(
            f"{name} has one list of indices per point, and some are the same. {_HINT}"
        )
    return arrays


def _is_flat(members: Any) -> bool:
    if isinstance(members, np.ndarray):
        return members.ndim == 1
    nested = Sequence | set | frozenset | np.ndarray
    return not any(isinstance(x, nested) and not isinstance(x, str) for x in members)


def _is_missing(label: object) -> bool:
    if label is None or label is np.ma.masked:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA refuses to say whether it equals itself
        return True
