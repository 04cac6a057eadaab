"""Classes of source and target points: which pairs they forbid, and what to say about them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from structot._labels import Labels
from structot._typing import Array
from structot.marginals import Marginals
from structot.transport import InfeasibleError

_PENALTY = 10.0  # of a known mismatch that cannot be forbidden, in units of the largest cost


def class_labels(name: str, labels: Any, size: int) -> Labels:
    """One class per point, as scikit-learn takes them: also as a column, and of one type."""
    if np.ndim(labels) == 2 and np.shape(labels)[1] == 1:
        labels = (labels if isinstance(labels, np.ma.MaskedArray) else np.asarray(labels))[:, 0]
    found = Labels.of(name, labels, size)
    if not found.ordered:
        kinds = sorted({type(label).__name__ for label in found.classes.tolist()})
        raise ValueError(
            f"{name} mixes labels of types {', '.join(kinds)}, which have no order; "
            "use one type for all labels."
        )
    return found


def warn_about_minus_one(name: str, labels: Labels | None) -> None:
    """-1 is a label like any other here; in POT it marks a missing one."""
    if labels is not None and any(_is_minus_one(label) for label in labels.classes.tolist()):
        warnings.warn(
            f"{name} holds the label -1, which is taken as a class like any other. If it marks "
            f"missing labels, as in POT, mask them: np.ma.masked_equal({name}, -1).",
            UserWarning,
            stacklevel=3,
        )


def _is_minus_one(label: object) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label == -1


def mismatch(source: Labels, target: Labels) -> Array:
    """Which pairs (i, j) are known to be of different classes, shape (n, m)."""
    place = {label: k for k, label in enumerate(source.classes.tolist())}
    same = np.array([place.get(label, -1) for label in target.classes.tolist()] + [-1])
    differ = source.number[:, None] != same[target.number][None, :]
    return differ & source.known[:, None] & target.known[None, :]


def forbid_mismatches(
    M: Array, marginals: Marginals, source: Labels, target: Labels
) -> tuple[Array, Array | None]:
    """M with known mismatches forbidden; or M and a penalty on them where that is impossible."""
    differ = mismatch(source, target)
    if not differ.any():
        return M, None
    try:
        marginals.feasible(np.zeros(M.shape), allowed=~differ)
    except InfeasibleError:
        unseen = [str(x) for x in target.classes.tolist() if x not in set(source.classes.tolist())]
        why = "a class has more mass on one side than on the other"
        if unseen:
            why = f"ys has no class {', '.join(unseen[:5])}"
        warnings.warn(
            f"no plan keeps all known target labels ({why}): mismatched pairs cost more instead of "
            "being forbidden.",
            UserWarning,
            stacklevel=3,
        )
        # A point without any partner of its class pays in every plan: it may go where it likes.
        free = np.logical_or.outer(differ.all(axis=1), differ.all(axis=0))
        return M, np.where(differ & ~free, _PENALTY * (M.max() or 1.0), 0.0)
    return np.where(differ, np.inf, M), None
