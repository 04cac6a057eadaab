"""From what users call groups to layers of disjoint groups, one number per point in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from structot._labels import Labels, index_lists, is_index_lists
from structot._typing import Array


@dataclass(frozen=True)
class DisjointGroups:
    """Disjoint groups: ``number[i]`` counts them from 0, -1 for a point in none of them.

    ``group[number]`` is the number of the group among all groups of the `Grouping`.
    """

    number: Array  # (points,)
    group: Array


@dataclass(frozen=True)
class Grouping:
    """Groups of points, coloured into layers such that groups of one layer do not overlap."""

    count: int
    layers: tuple[DisjointGroups, ...]
    coverage: Array  # (points,) how many groups hold the point
    names: tuple[Any, ...]  # the label of each group, or its place in the list; None for a point

    @classmethod
    def of(cls, name: str, groups: Any, size: int) -> Grouping:
        """From None (every point for itself); one label per point, where a masked, None or NaN
        label makes the point its own group; or a list of sequences of indices, which may overlap
        and where a point in none is its own group. Labels are numbered in sorted order, lists as
        they come, points on their own after them; empty groups are left out.
        """
        if groups is None:
            return cls._disjoint(np.arange(size), ())
        if is_index_lists(groups):
            return cls.coloured(index_lists(name, groups, size), size)
        labels = Labels.of(name, groups, size)
        return cls._disjoint(labels.groups, labels.classes.tolist())

    @classmethod
    def _disjoint(cls, number: Array, names: Sequence[Any]) -> Grouping:
        count = int(number.max()) + 1
        layers = (DisjointGroups(number, np.arange(count)),)
        names = (*names, *(None,) * (count - len(names)))
        return cls(count, layers, np.ones(number.size, int), names)

    @property
    def is_disjoint(self) -> bool:
        return len(self.layers) == 1

    def membership(self) -> scipy.sparse.csr_array:
        """(groups, points): 1 where the point is in the group, which may overlap others."""
        group, point = [], []
        for layer in self.layers:
            inside = np.flatnonzero(layer.number >= 0)
            group.append(layer.group[layer.number[inside]])
            point.append(inside)
        place = np.concatenate(group), np.concatenate(point)
        shape = self.count, self.coverage.size
        return scipy.sparse.csr_array((np.ones(place[0].size), place), shape=shape)

    @classmethod
    def coloured(cls, groups: list[Array], size: int) -> Grouping:
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
        layers = (
            DisjointGroups(x, np.array(k, int)) for x, k in zip(numbers, members, strict=True)
        )
        names = (*range(len(groups)), *(None,) * alone.size)
        return cls(len(names), tuple(layers), coverage, names)


def group_numbers(name: str, groups: object | None, size: int) -> Array:
    """The number of the one group of each point, for groups that must not overlap."""
    grouping = Grouping.of(name, groups, size)
    if not grouping.is_disjoint:
        point = int(np.argmax(grouping.coverage))
        raise ValueError(
            f"{name} must be disjoint groups here, but point {point} is in "
            f"{grouping.coverage[point]} of them; pass one label per point."
        )
    (layer,) = grouping.layers
    return layer.group[layer.number]
