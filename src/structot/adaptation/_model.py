"""What `StructuredTransport` solves: its cost, its weights, its structure.

Notation
--------
M       cost between source and target points (n, m), divided by its scale
U_k     the source classes; V_l the target groups
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from structot import _checks
from structot._labels import Labels
from structot._typing import Array
from structot.adaptation.mapping import chosen_metric, metric_options
from structot.concave import Discount
from structot.groups import clusters
from structot.structures import Coverage, Groups, Modular, Routes, Structure

STRUCTURES = ("charge", "groups", "routes")
PRECOMPUTED = "precomputed"
_CLUSTERS_PER_POINT = 0.3  # Ward clusters of the target, for "clusters"
_CLUSTERS_PER_CLASS = 1.5  # the same for routes, by default
# What None stands for, by structure; charge and reg in units of the cost scale.
_CHARGE = {"charge": 0.25, "routes": 0.3}
_REG = {"charge": 0.4, "groups": 0.0, "routes": 0.0}
_DISCOUNT = Discount(0.75)
_ROUNDING = 1e-12  # of the largest cost


def spread(M: Array) -> float:
    """Standard deviation of M_ij less its row and column means (plus the mean of all).

    Plans of plain transport see no other part of the cost: adding u_i + v_j to it changes the
    value by a constant. In many dimensions all distances are nearly equal, and the mean of M says
    little about the differences between plans; this does.

    Examples
    --------
    >>> spread(np.array([[5.0, 7.0], [7.0, 9.0]])), spread(np.array([[0.0, 2.0], [2.0, 0.0]]))
    (0.0, 1.0)
    """
    rows, cols = M.mean(axis=1, keepdims=True), M.mean(axis=0, keepdims=True)
    return float(np.std(M - rows - cols + M.mean()))


SCALES: dict[str, Any] = {"spread": spread, "mean": np.mean, "median": np.median, "max": np.max}


@dataclass(frozen=True, eq=False)
class Cost:
    """The scaled cost, the number it was divided by, and the metric, "auto" resolved."""

    metric: Any
    M: Array
    scale: float

    @classmethod
    def of(cls, metric: Any, scale: str | None, source: Array, target: Array | None) -> Cost:
        """Costs between two samples; ``source`` is the cost itself where it is precomputed."""
        metric = chosen_metric(metric, source, target)
        if is_precomputed(metric):
            M = _checks.as_cost(source, "Xs")
        else:
            assert target is not None
            options = metric_options(metric, source, target)
            try:
                M = cdist(source, target, metric, **options)
            except ValueError as error:
                raise ValueError(f"metric={metric!r} does not work: {error}") from None
        if scale is None:
            return cls(metric, M, 1.0)
        measure = SCALES[_checks.one_of("cost_scale", scale, SCALES)]
        # Where all costs are equal but for rounding they have no spread; where all are 0 there is
        # nothing to measure with.
        for unit in (float(measure(M)), float(np.mean(M))):
            if unit > _ROUNDING * float(np.max(M)):
                return cls(metric, M / unit, unit)
        return cls(metric, M, 1.0)


def is_precomputed(metric: Any) -> bool:
    """Whether costs are given in place of points."""
    return isinstance(metric, str) and metric == PRECOMPUTED


@dataclass(frozen=True)
class Model:
    """Structure, dials and entropy with every None replaced by the structure's own default."""

    structure: str
    charge: float
    concave: Any
    reg: float
    target_groups: Any
    random_state: Any

    @classmethod
    def of(cls, estimator: Any) -> Model:
        """The parameters of an estimator, checked."""
        name = _checks.one_of("structure", estimator.structure, STRUCTURES)
        for parameter, others in (("concave", "groups"), ("charge", "charge' or 'routes")):
            if getattr(estimator, parameter) is not None and name not in others:
                raise ValueError(
                    f"{parameter} belongs to structure='{others}'; got it with structure={name!r}. "
                    f"Leave it None, or change the structure."
                )
        charge = _CHARGE.get(name, 0.0) if estimator.charge is None else estimator.charge
        reg = _REG[name] if estimator.reg is None else estimator.reg
        groups = estimator.target_groups
        return cls(
            name,
            _checks.nonnegative("charge", charge),
            estimator.concave,
            _checks.nonnegative("reg", reg),
            groups,
            estimator.random_state,
        )

    def bind(self, ys: Labels, target: Array | None, m: int) -> Structure:
        """The structure for these source labels and target points."""
        groups = self._groups(target, len(ys.classes))
        source = ys.groups
        if self.structure == "groups":
            if self.concave is None:
                return Groups(source, groups, _DISCOUNT)
            return Groups(source, groups, self.concave, units="cost")
        if self.charge == 0:
            return Modular()
        if self.structure == "routes":
            return Routes(source, groups, self.charge)
        rows, cols = Coverage(source, groups).groupings((len(source), m))
        pairs = np.outer(rows.membership().sum(axis=1), cols.membership().sum(axis=1))
        return Modular() + Coverage(source, groups, weights=self.charge * pairs)

    def _groups(self, target: Array | None, classes: int) -> Any:
        groups = self.target_groups
        if groups is None and self.structure == "routes":
            groups = max(1, round(_CLUSTERS_PER_CLASS * classes))
            if target is not None:
                groups = min(groups, len(target))
        if isinstance(groups, str | int | np.integer) or callable(groups):
            if target is None:
                raise ValueError(
                    "target_groups is made from the target points, and with metric='precomputed' "
                    "there are none; pass Xt, or one label per target point."
                )
            if isinstance(groups, str):
                _checks.one_of("target_groups", groups, ("clusters",))
                return clusters(target, max(1, round(_CLUSTERS_PER_POINT * len(target))))
            if isinstance(groups, int | np.integer):
                return clusters(target, _checks.count("target_groups", groups))
            if "random_state" in inspect.signature(groups).parameters:
                return groups(target, random_state=self.random_state)
            return groups(target)
        return groups


def weights(name: str, value: Any, size: int) -> Array:
    """Weights of the points, summing to 1; uniform by default."""
    if value is None:
        return np.full(size, 1.0 / size)
    found = _checks.as_array(name, value, 1).size
    if found != size:
        raise ValueError(f"{name} has {found} weights for {size} points; pass one per point.")
    checked = _checks.as_weights(name, value, size)
    return checked / checked.sum()
