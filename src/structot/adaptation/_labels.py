"""Labels with gaps: which are known, and what classes they name."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot.structures._grouping import _is_missing

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Labels:
    """One label per point; ``known`` is False where it is missing (mask, None or NaN).

    Examples
    --------
    >>> labels = Labels.of("ys", ["cat", None, "dog"], 3)
    >>> labels.known.tolist(), labels.classes.tolist()
    ([True, False, True], ['cat', 'dog'])
    """

    values: Array  # (n,), anything where not known
    known: Array  # (n,) bool
    classes: Array  # known classes, sorted

    @classmethod
    def of(cls, name: str, labels: Any, size: int) -> Labels:
        """Check and take apart what a user passes as ``ys`` or ``yt``."""
        mask = np.ma.getmaskarray(labels) if isinstance(labels, np.ma.MaskedArray) else None
        values = np.asarray(labels)
        if values.dtype.kind in "SU" and not isinstance(labels, np.ndarray):
            values = np.asarray(labels, object)  # keeps NaN apart from "nan"
        if values.ndim == 2 and values.shape[1] == 1:
            values, mask = values[:, 0], None if mask is None else mask[:, 0]
        if values.ndim != 1 or values.size != size:
            raise ValueError(
                f"{name} must hold one label per point, {size} in all; got shape {values.shape}. "
                "Mark missing labels by np.ma.masked, None or NaN."
            )
        known = np.ones(size, bool)
        if values.dtype.kind in "OfmM":
            known = ~np.array([_is_missing(x) for x in values], bool)
        if mask is not None:
            known &= ~mask
        return cls(values, known, _sorted_classes(name, values[known]))

    @property
    def groups(self) -> np.ma.MaskedArray:
        """As `Groups` and `Coverage` take them: a missing label is masked, hence its own group."""
        number = np.ma.masked_array(np.zeros(self.known.size, np.int64), mask=~self.known)
        number[self.known] = self.index(self.classes)[self.known]
        return number

    def index(self, classes: Array) -> Array:
        """The position of each label in ``classes``; -1 where it is missing or not among them."""
        place = {label: k for k, label in enumerate(classes.tolist())}
        found = [
            place.get(label, -1) if known else -1
            for label, known in zip(self.values.tolist(), self.known, strict=True)
        ]
        return np.array(found, np.int64)


def _sorted_classes(name: str, known: Array) -> Array:
    try:
        return np.unique(known)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in known.tolist()})
        raise ValueError(
            f"{name} mixes labels of types {', '.join(kinds)}, which have no order; "
            "use one type for all labels."
        ) from None


def mismatch(source: Labels, target: Labels) -> Array:
    """Which pairs (i, j) are known to be of different classes, shape (n, m)."""
    classes = np.array(
        list(dict.fromkeys([*source.classes.tolist(), *target.classes.tolist()])), object
    )
    rows, cols = source.index(classes), target.index(classes)
    differ = rows[:, None] != cols[None, :]
    return differ & (rows >= 0)[:, None] & (cols >= 0)[None, :]


def warn_about_minus_one(labels: dict[str, Labels | None]) -> None:
    """-1 is a label like any other here; in POT it marks a missing one."""
    for name, entry in labels.items():
        if entry is not None and any(_is_minus_one(label) for label in entry.classes.tolist()):
            warnings.warn(
                f"{name} holds the label -1, which is taken as a class like any other. If it marks "
                f"missing labels, as in POT, mask them: np.ma.masked_equal({name}, -1).",
                UserWarning,
                stacklevel=3,
            )


def _is_minus_one(label: object) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label == -1
