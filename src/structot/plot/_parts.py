"""What the pictures share: colours, axes, plans, and groups with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structot._extras import optional
from structot._labels import Labels, index_lists, is_index_lists
from structot._typing import Array
from structot.result import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")


@dataclass(frozen=True, eq=False)
class Groups:
    """The number of the group of each point, and the names of the groups that have one."""

    number: Array  # (points,)
    names: tuple[str, ...]  # of the first groups; points on their own come after them

    @classmethod
    def of(cls, name: str, groups: Any, size: int) -> Groups:
        """From labels or lists of indices; None is one group without a name.

        Of groups that overlap, a point is in the first that holds it.
        """
        if groups is None:
            return cls(np.zeros(size, int), ())
        if not is_index_lists(groups):
            labels = Labels.of(name, groups, size)
            return cls(labels.groups, tuple(str(x) for x in labels.classes.tolist()))
        lists = index_lists(name, groups, size)
        number = len(lists) + np.arange(size)  # a point in none is on its own
        for k in reversed(range(len(lists))):
            number[lists[k]] = k
        return cls(number, tuple(str(k) for k in range(len(lists))))


def as_plan(result: Result | Array) -> Array:
    """The plan of a result, or a plan."""
    P = np.asarray(result.plan if isinstance(result, Result) else result, float)
    if P.ndim != 2:
        raise ValueError(f"result must be a Result or a plan (n, m); got shape {P.shape}.")
    return P


def axes(ax: Axes | None, size: tuple[float, float] = (4, 4)) -> Axes:
    """The given axis, or that of a new figure."""
    if ax is not None:
        return ax
    plt = optional("matplotlib.pyplot", "structot.plot")
    return plt.subplots(figsize=size, layout="constrained")[1]
