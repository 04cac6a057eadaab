"""Hierarchy: groups inside groups."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

from structot._checks import as_array
from structot._typing import Array
from structot.concave import Concave
from structot.structures._display import show
from structot.structures._grouping import Grouping, group_numbers
from structot.structures.base import Combination, Structure
from structot.structures.groups import DEFAULT, Groups
from structot.submodular.bound import BoundCost


class Hierarchy(Structure):
    """F(S) = Σ_t ω_t Σ_kl g_t( M(S ∩ U^t_k × V^t_l) ): one `Groups` per level, nested.

    Pairs are discounted for sharing a class, and again for sharing a superclass.

    Parameters
    ----------
    levels_source, levels_target
        One grouping per level (each as in `Groups`, but disjoint), of the same number on both
        sides, the finest first or last. Every group of a finer level must lie in one group of the
        next coarser one. None as a whole: every target point its own group at every level.
    concave
        g, one for all levels or one per level.
    weights
        ω, one number per level. By default 1 / levels, so that a linear g is plain transport.
    units
        As in `Groups`.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> animals = [["cat", "dog", "eel"], ["land", "land", "sea"]]
    >>> levels = sot.Hierarchy(animals, animals, sot.concave.Sqrt())
    >>> sot.solve(1.0 - 0.5 * np.eye(3), structure=levels).converged
    True
    """

    def __init__(
        self,
        levels_source: Sequence[object],
        levels_target: Sequence[object] | None = None,
        concave: Concave | Callable | Sequence[Concave | Callable] = DEFAULT,
        weights: object | None = None,
        *,
        units: str = "block",
    ) -> None:
        self.source = _levels("levels_source", levels_source)
        count = len(self.source)
        self.target = (
            [None] * count
            if levels_target is None
            else _levels("levels_target", levels_target, count)
        )
        functions = list(concave) if isinstance(concave, Sequence) else [concave] * count
        if len(functions) != count:
            raise ValueError(
                f"concave has {len(functions)} functions for {count} levels; "
                "pass one per level, or one for all."
            )
        if weights is None:
            self.weights = np.full(count, 1.0 / count)
        else:
            self.weights = as_array("weights", weights, 1)
        if (
            self.weights.size != count
            or not (np.isfinite(self.weights) & (self.weights >= 0)).all()
        ):
            raise ValueError(
                f"weights must be {count} finite numbers, one per level and none negative; "
                f"got {self.weights.tolist()}."
            )
        self.levels = [
            Groups(source, target, g, units=units)
            for source, target, g in zip(self.source, self.target, functions, strict=True)
        ]

    def groupings(self, shape: tuple[int, int]) -> tuple[Grouping, Grouping]:
        """Those of the first level."""
        return self.levels[0].groupings(shape)

    @property
    def dial(self) -> float | None:
        dials = {level.dial for level in self.levels}
        return dials.pop() if len(dials) == 1 else None

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        _check_nested("levels_source", self.source, M.shape[0])
        if self.target[0] is not None:
            _check_nested("levels_target", self.target, M.shape[1])
        terms = zip(self.weights.tolist(), self.levels, strict=True)
        return Combination(tuple(terms))._bound(M, a, b)

    def __repr__(self) -> str:
        sides = [[show(level) for level in side] for side in (self.source, self.target)]
        source, target = (f"[{', '.join(side)}]" for side in sides)
        target = "" if self.target[0] is None else f", {target}"
        return f"Hierarchy({source}{target}, weights={self.weights.tolist()})"


def _levels(name: str, levels: Sequence[object], count: int | None = None) -> list[object]:
    if isinstance(levels, str) or not hasattr(levels, "__len__") or len(levels) == 0:
        raise ValueError(f"{name} must be a list of groupings, one per level; got {levels!r}.")
    first = levels[0]
    if isinstance(first, str) or not hasattr(first, "__len__"):
        raise ValueError(
            f"{name} must be a list of groupings, one per level; got one grouping. "
            f"For a single level pass [{name}]."
        )
    if count is not None and len(levels) != count:
        raise ValueError(
            f"{name} has {len(levels)} levels, but levels_source has {count}; they must agree."
        )
    return list(levels)


def _check_nested(name: str, levels: list, size: int) -> None:
    """Every group of a finer level lies inside one group of the next coarser one."""
    numbers = [group_numbers(f"{name}[{t}]", level, size) for t, level in enumerate(levels)]
    order = sorted(range(len(levels)), key=lambda t: -int(numbers[t].max()))
    for fine, coarse in itertools.pairwise(order):
        parent = np.full(int(numbers[fine].max()) + 1, -1)
        parent[numbers[fine]] = numbers[coarse]
        torn = np.flatnonzero(parent[numbers[fine]] != numbers[coarse])
        if torn.size:
            i = int(torn[0])
            j = int(
                np.flatnonzero(
                    (numbers[fine] == numbers[fine][i]) & (numbers[coarse] != numbers[coarse][i])
                )[0]
            )
            raise ValueError(
                f"{name} is not nested: points {min(i, j)} and {max(i, j)} share a group in level "
                f"{fine} but not in the coarser level {coarse}."
            )
