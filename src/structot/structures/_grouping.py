"""From what users call groups to layers of disjoint groups, one number per point in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Layer:
    """Disjoint groups: ``number[i]`` counts them from 0, -1 for a point in none of them.

    ``group[number]`` is the number of the group among all groups of the `Grouping`.
    """

    number: Array  # (points,)
    group: Array


@dataclass(frozen=True)
class Grouping:
    """Groups of points, coloured into layers such that groups of one layer do not overlap."""

    count: int
    layers: tuple[Layer, ...]
    coverage: Array  # (points,) how many groups hold the point

    @classmethod
    def of(cls, name: str, groups: object | None, size: int) -> Grouping:
        """From None (every point for itself); one label per point, where a masked, None or NaN
        label makes the point its own group; or a list of sequences of indices, which may overlap
        and where a point in none is its own group. Labels are numbered in sorted order, lists as
        they come, points on their own after them; empty groups are left out.
        """
        if groups is None:
            return cls._disjoint(np.arange(size))
        if is_index_lists(groups):
            return cls._coloured(_from_lists(name, groups, size), size)  # type: ignore[arg-type]
        return cls._disjoint(_from_labels(name, groups, size))

    @classmethod
    def _disjoint(cls, number: Array) -> Grouping:
        count = int(number.max()) + 1
        return cls(count, (Layer(number, np.arange(count)),), np.ones(number.size, int))

    @classmethod
    def _coloured(cls, groups: list[Array], size: int) -> Grouping:
        """Each group into the first layer that holds none of its points.

        For windows that slide along a sentence, and for intervals in general, no colouring needs
        fewer layers. Points in no group conflict with none: they end the first layer.
        """
        numbers: list[Array] = [np.full(size, -1)]
        members: list[list[int]] = [[]]
        coverage = np.zeros(size, int)
        for k, group in enumerate(groups):
            coverage[group] += 1
            colour = next((c for c, x in enumerate(numbers) if (x[group] < 0).all()), len(numbers))
            if colour == len(numbers):
                numbers.append(np.full(size, -1))
                members.append([])
            numbers[colour][group] = len(members[colour])
            members[colour].append(k)
        alone = np.flatnonzero(coverage == 0)
        numbers[0][alone] = len(members[0]) + np.arange(alone.size)
        members[0].extend(range(len(groups), len(groups) + alone.size))
        coverage[alone] = 1
        layers = (Layer(x, np.array(k, int)) for x, k in zip(numbers, members, strict=True))
        return cls(len(groups) + alone.size, tuple(layers), coverage)


def group_numbers(name: str, groups: object | None, size: int) -> Array:
    """The number of the one group of each point, for groups that must not overlap."""
    grouping = Grouping.of(name, groups, size)
    if len(grouping.layers) > 1:
        point = int(np.argmax(grouping.coverage))
        raise ValueError(
            f"{name} must be disjoint groups here, but point {point} is in "
            f"{grouping.coverage[point]} of them; pass one label per point."
        )
    (layer,) = grouping.layers
    return layer.group[layer.number]


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


def _from_lists(name: str, groups: Sequence[Sequence[int]], size: int) -> list[Array]:
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
    return arrays


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
    number = np.empty(size, int)
    number[~lost] = inverse
    number[lost] = len(names) + np.arange(int(lost.sum()))
    return number


def _is_missing(label: object) -> bool:
    if label is None or label is np.ma.masked:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA refuses to say whether it equals itself
        return True
