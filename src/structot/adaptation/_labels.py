"""Classes of source and target points: which pairs they forbid, and what to say about them."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np

from structot import _checks
from structot._labels import Labels
from structot._typing import Array
from structot.marginals import Marginals
from structot.transport import InfeasibleError

_PENALTY = 10.0  # of a known mismatch that cannot be forbidden, in units of the largest cost
_SHOWN = 5  # labels in a message


def class_labels(name: str, labels: Any, size: int) -> Labels:
    """One class per point, as scikit-learn takes them: also as a column, and of one type."""
    if hasattr(labels, "__array__") and not isinstance(labels, np.ndarray):
        labels = np.asarray(labels)  # series, and containers that NumPy's functions do not take
    if np.ndim(labels) == 2 and np.shape(labels)[1] == 1:
        labels = (labels if isinstance(labels, np.ma.MaskedArray) else np.asarray(labels))[:, 0]
    found = Labels.of(name, labels, size)
    if not found.ordered:
        kinds = sorted({type(label).__name__ for label in found.classes.tolist()})
        if len(kinds) == 1:
            raise ValueError(
                f"{name} has labels of type {kinds[0]} such as {found.classes[0]!r}, which have no "
                "order; use numbers or text, e.g. their names."
            )
        raise ValueError(
            f"{name} mixes labels of types {', '.join(kinds)}, which have no order; "
            "use one type for all labels."
        )
    broken = [x for x in found.classes.tolist() if isinstance(x, float) and x != int(x)]
    if broken:
        raise ValueError(
            f"{name} must hold classes; Unknown label type: continuous values such as "
            f"{broken[0]!r}. For a regression divide them into bins first, e.g. by np.digitize."
        )
    return found


def labels_of_both(ys: Any, yt: Any, n: int, m: int) -> tuple[Labels | None, Labels | None]:
    """Source and target labels that can be compared; at most one warning about -1.

    POT marks a missing target label by -1. Where no source point has this label, it is taken so.
    """
    source = None if ys is None else class_labels("ys", ys, n)
    if yt is not None and source is not None and not _has_minus_one(source):
        yt, hidden = _without_minus_one(yt)
        if hidden:
            _warn(_AS_IN_POT)
    target = None if yt is None else class_labels("yt", yt, m)
    marked = [_has_minus_one(labels) for labels in (source, target)]
    if target is not None and source is not None:
        _same_type(source, target)
    if any(marked):
        name = "ys" if marked[0] else "yt"
        _warn(
            f"{name} holds the label -1, which is taken as a class like any other. If it marks "
            f"missing labels, mask them: np.ma.masked_equal({name}, -1)."
        )
    return source, target


_AS_IN_POT = (
    "yt holds the label -1 and ys does not: those target labels are taken as missing, "
    "as in POT. Pass np.ma.masked_equal(yt, -1) to say so."
)


def _without_minus_one(yt: Any) -> tuple[Any, bool]:
    """The target labels with -1 masked, also among labels of another type; whether there were."""
    values = np.asarray(yt, object) if isinstance(yt, list | tuple) else np.asarray(yt)
    masked = np.ma.getmaskarray(yt) if isinstance(yt, np.ma.MaskedArray) else False
    found = [_is_minus_one(x) for x in values.ravel().tolist()]
    gone = np.array(found, bool).reshape(values.shape) & ~np.asarray(masked)
    return (np.ma.masked_array(values, mask=gone | masked), True) if gone.any() else (yt, False)


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


def _same_type(source: Labels, target: Labels) -> None:
    """Numbers are compared with numbers, text with text; anything else agrees by luck only."""
    kinds = [{_kind(x) for x in labels.classes.tolist()} for labels in (source, target)]
    if all(kinds) and not kinds[0] & kinds[1]:
        examples = (repr(labels.classes.tolist()[0]) for labels in (source, target))
        raise ValueError(
            f"ys holds {_words(kinds[0])} such as {next(examples)}, yt holds {_words(kinds[1])} "
            f"such as {next(examples)}: no target label can equal a source label. Convert one of "
            "them, e.g. by .astype(ys.dtype)."
        )


def _kind(label: object) -> str:
    if isinstance(label, numbers.Number):
        return "number"
    return "text" if isinstance(label, str) else type(label).__name__


def _words(kinds: set[str]) -> str:
    plural = {"number": "numbers", "text": "text"}
    return " and ".join(sorted(plural.get(kind, f"labels of type {kind}") for kind in kinds))


def _has_minus_one(labels: Labels | None) -> bool:
    return labels is not None and any(_is_minus_one(label) for label in labels.classes.tolist())


def _is_minus_one(label: object) -> bool:
    return isinstance(label, int | float) and not isinstance(label, bool) and label == -1


def mismatch(source: Labels, target: Labels) -> Array:
    """Which pairs (i, j) are known to be of different classes, shape (n, m)."""
    place = {label: k for k, label in enumerate(source.classes.tolist())}
    same = np.array([place.get(label, -1) for label in target.classes.tolist()] + [-1])
    differ = source.number[:, None] != same[target.number][None, :]
    return differ & source.known[:, None] & target.known[None, :]


def sides(estimator: Any, a: Array, b: Array) -> Marginals:
    """What the ``unbalanced`` of an estimator makes of its weights."""
    kind = _checks.one_of("unbalanced_type", estimator.unbalanced_type, ("KL", "TV"))
    return Marginals.of(a, b, _checks.as_relaxation(estimator.unbalanced, None), kind)


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
        known = set(source.classes.tolist())
        unseen = [repr(x) for x in target.classes.tolist() if x not in known]
        why = "a class has more mass on one side than on the other"
        if unseen:
            more = ", ..." if len(unseen) > _SHOWN else ""
            why = f"ys has no class {', '.join(unseen[:_SHOWN])}{more}"
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


def propagate(name: str, labels: Any, P: Array) -> Array:
    """Rows of P as shares of the classes of their columns."""
    if labels is None:
        raise ValueError(f"{name} is missing; pass one label per point of fit.")
    return shares(class_labels(name, labels, P.shape[1]), P)


def shares(labels: Labels, P: Array) -> Array:
    """The share of each class in the labelled mass of each row of P; 0 where there is none."""
    member = np.equal.outer(labels.number, np.arange(len(labels.classes)))
    mass = P @ member.astype(float)
    total = mass.sum(axis=1, keepdims=True)
    return np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
