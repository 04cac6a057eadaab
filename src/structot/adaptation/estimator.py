"""StructuredTransport: domain adaptation as a scikit-learn estimator with POT's method names.

Notation
--------
Xs, ys      source points (n, d) and their labels; Xt, yt the same for the target (m, d)
M           cost between them, divided by its scale; a, b their weights
P           the plan, attribute ``coupling_``
"""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from structot import _checks
from structot._extras import as_array, like
from structot._labels import Labels
from structot._typing import Array
from structot.adaptation import _output
from structot.adaptation._labels import class_labels, forbid_mismatches, warn_about_minus_one
from structot.adaptation.mapping import OUT_OF_SAMPLE, PointMap, is_euclidean, metric_options
from structot.groups import clusters
from structot.solvers.solve import solve
from structot.structures import Coverage, Groups, Modular, Structure

_SCALES: dict[str, Any] = {"mean": np.mean, "median": np.median, "max": np.max}
_CLUSTERS_PER_POINT = 0.3  # of Ward clusters in the target


class StructuredTransport(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Carry source points onto a target sample so that points of one class travel together.

        min_{P in U(a,b)}  <P, M> + charge Σ_kl T_kl max_{U_k × V_l} P + reg · entropy(P)

    U_k are the source classes, V_l the target points one by one (or ``target_groups``), T_kl the
    total cost of their block: opening a route between a class and a target has a price, so that a
    class that needs the route anyway uses it for all its points. The answer is certified to
    ``tol``. With ``concave`` it is the paper's model  min_P Σ_kl g(cost used in block kl).

    Parameters
    ----------
    charge
        Price of opening a route, as a share of the cost of the whole block.
    reg
        Weight of the entropy, relative to the cost scale. 0 is the exact model.
    concave
        A function of `structot.concave` (or any concave function): the paper's model, in place of
        the plain cost plus charge; meant for ``reg=0``. It sees costs in units of ``cost_scale``,
        so that with "mean" a threshold α counts average pairs.
    metric
        Any metric of `scipy.spatial.distance.cdist`, by name or as a function. With "euclidean" and
        "sqeuclidean" a point goes to the average of where its mass goes; with others to the
        weighted medoid, the target point with the least average distance, and a warning says so.
    cost_scale
        "mean", "median" or "max" of the costs, by which they are divided; None leaves them alone.
    target_groups
        None: every target point is its own group. Or labels, lists of indices, a callable of Xt
        that returns either, or "clusters": Ward clusters, 0.3 per target point. Groups that
        overlap need ``reg=0``.
    method, tol
        As in `solve`.
    out_of_sample
        How points not seen in `fit` move: with the "nearest" fitted point, or by a "smooth" average
        of the displacements of the ten nearest.
    random_state
        Handed to a callable ``target_groups`` that has an argument of this name; nothing else is
        random.

    Attributes
    ----------
    coupling_
        The plan P, shape (n, m).
    result_
        The `Result` of the solve, with its certificate, in units of the scaled cost.
    cost_, cost_scale_
        The scaled cost M (+inf where known labels forbid a pair) and the number it was divided by.
    xs_, xt_
        The points of `fit`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from structot.datasets import clusters
    >>> data = clusters(30, 40, seed=1)
    >>> adapt = StructuredTransport().fit(Xs=data.X, ys=data.source_labels, Xt=data.Y)
    >>> adapt.transform(Xs=data.X).shape, adapt.result_.converged
    ((30, 2), True)
    """

    def __init__(
        self,
        charge: float = 0.02,
        reg: float = 0.05,
        concave: Any = None,
        metric: Any = "euclidean",
        cost_scale: str | None = "mean",
        target_groups: Any = None,
        method: Any = "auto",
        tol: float = 1e-3,
        out_of_sample: str = "nearest",
        random_state: Any = None,
    ) -> None:
        self.charge = charge
        self.reg = reg
        self.concave = concave
        self.metric = metric
        self.cost_scale = cost_scale
        self.target_groups = target_groups
        self.method = method
        self.tol = tol
        self.out_of_sample = out_of_sample
        self.random_state = random_state

    def fit(
        self,
        Xs: Any = None,
        ys: Any = None,
        Xt: Any = None,
        yt: Any = None,
        sample_weight_source: Any = None,
        sample_weight_target: Any = None,
    ) -> StructuredTransport:
        """Find the plan between two samples.

        Parameters
        ----------
        Xs, Xt
            Source and target points, shapes (n, d) and (m, d).
        ys
            Source labels; a missing one (mask, None or NaN, never -1) makes a point its own group.
            None is plain transport, with a warning.
        yt
            Target labels as far as known, missing ones as above. Pairs of different known classes
            are forbidden; where no plan can avoid them all, they cost ten times the largest cost
            in a term of their own, and a warning says so.
        sample_weight_source, sample_weight_target
            Weights of the points, normalised here; uniform by default.
        """
        source, target = self._samples(Xs, Xt)
        ys, yt = as_array(ys), as_array(yt)
        labels_s = None if ys is None else class_labels("ys", ys, len(source))
        labels_t = None if yt is None else class_labels("yt", yt, len(target))
        warn_about_minus_one("ys", labels_s)
        warn_about_minus_one("yt", labels_t)
        a = _weights("sample_weight_source", sample_weight_source, len(source))
        b = _weights("sample_weight_target", sample_weight_target, len(target))
        reg = _checks.nonnegative("reg", self.reg)
        _checks.one_of("out_of_sample", self.out_of_sample, OUT_OF_SAMPLE)
        options = metric_options(self.metric, source, target)
        M, scale = self._cost(source, target, options)
        if not is_euclidean(self.metric):
            warnings.warn(
                f"metric={self.metric!r} has no barycentric map: points are mapped to weighted "
                "medoids, which are target points.",
                UserWarning,
                stacklevel=2,
            )
        penalty = None
        if labels_s is not None and labels_t is not None:
            M, penalty = forbid_mismatches(M, a, b, labels_s, labels_t)
        structure = self._structure(labels_s, target)
        if penalty is not None:
            structure = structure + Modular(penalty)
        given = like(M, Xs)  # samples that are tensors are matched on their device
        result = solve(given, a, b, structure=structure, reg=reg, method=self.method, tol=self.tol)
        result = result.numpy()
        _output.remember(self, Xs, source.shape[1])
        self.cost_, self.cost_scale_ = M, scale
        self.result_, self.coupling_ = result, result.plan
        self.xs_, self.xt_ = source, target
        self._dtype = _checks.float_type(Xs, Xt)
        P = self.coupling_
        self._forward = PointMap.of(P, source, target, self.metric, **options)
        self._backward = PointMap.of(P.T, target, source, self.metric, **options)
        return self

    def fit_transform(
        self, Xs: Any = None, ys: Any = None, Xt: Any = None, yt: Any = None, **fit_params: Any
    ) -> Any:
        """`fit`, then `transform` of the source points."""
        return self.fit(Xs, ys, Xt, yt, **fit_params).transform(Xs)

    def transform(
        self,
        Xs: Any = None,
        ys: Any = None,
        Xt: Any = None,
        yt: Any = None,
        batch_size: int | None = None,
    ) -> Any:
        """Source points, fitted or new, carried to the target domain.

        Parameters
        ----------
        Xs
            Points of the source domain, shape (any, d).
        ys, Xt, yt
            Not used; POT has them.
        batch_size
            Points at a time; by default as many as need no more than about a hundred megabytes.
        """
        return self._move("Xs", Xs, "_forward", batch_size)

    def inverse_transform(
        self,
        Xt: Any = None,
        *,
        Xs: Any = None,
        ys: Any = None,
        yt: Any = None,
        batch_size: int | None = None,
    ) -> Any:
        """Target points, fitted or new, carried to the source domain; as `transform`."""
        return self._move("Xt", Xt, "_backward", batch_size)

    def transform_labels(self, ys: Any = None) -> Array:
        """Soft labels of the target points: the share of each source class in their mass.

        Parameters
        ----------
        ys
            One label per source point of `fit`. Missing ones say nothing: shares are of the
            labelled mass, all 0 where none arrives.

        Returns
        -------
        Array
            Shape (m, classes), classes in sorted order.
        """
        check_is_fitted(self, "coupling_")
        return _propagate("ys", ys, self.coupling_.T)

    def inverse_transform_labels(self, yt: Any = None) -> Array:
        """Soft labels of the source points from those of the target; as `transform_labels`."""
        check_is_fitted(self, "coupling_")
        return _propagate("yt", yt, self.coupling_)

    def set_output(self, *, transform: str | None = None) -> StructuredTransport:
        """Choose what `transform` returns: "default", "pandas" or "polars"; None changes nothing.

        As in scikit-learn, which cannot wrap methods whose first argument has POT's name.
        """
        _output.choose(self, transform)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features that `transform` returns: those of the input."""
        check_is_fitted(self, "coupling_")
        return _output.names(self, input_features)

    def _samples(self, Xs: Any, Xt: Any) -> tuple[Array, Array]:
        for name, value in (("Xs", Xs), ("Xt", Xt)):
            if value is None:
                raise ValueError(f"fit needs {name}: fit(Xs=..., ys=..., Xt=...).")
        source, target = _output.points("Xs", Xs), _output.points("Xt", Xt)
        if source.shape[1] != target.shape[1]:
            raise ValueError(
                "Xs and Xt must have equally many features; got "
                f"{source.shape[1]} and {target.shape[1]}."
            )
        _output.check_columns("Xt", Xt, _output.columns(Xs))
        return source, target

    def _cost(self, source: Array, target: Array, options: dict[str, Array]) -> tuple[Array, float]:
        try:
            M = cdist(source, target, self.metric, **options)
        except ValueError as error:
            raise ValueError(f"metric={self.metric!r} does not work: {error}") from None
        if self.cost_scale is None:
            return M, 1.0
        name = _checks.one_of("cost_scale", self.cost_scale, _SCALES)
        scale = float(_SCALES[name](M))
        if not scale > 0:  # e.g. all points coincide: there is nothing to measure with
            return M, 1.0
        return M / scale, scale

    def _structure(self, ys: Labels | None, target: Array) -> Structure:
        if ys is None or not ys.known.any():
            what = "ys was not given" if ys is None else "ys holds no known label"
            text = f"{what}: without classes this is plain optimal transport, labels are not used."
            warnings.warn(text, UserWarning, stacklevel=3)
            return Modular()
        groups = self._groups_of(target)
        if self.concave is not None:
            return Groups(ys.groups, groups, self.concave, units="cost")
        charge = _checks.nonnegative("charge", self.charge)
        if charge == 0:
            return Modular()
        return Modular() + Coverage(ys.groups, groups, weights=charge, units="block")

    def _groups_of(self, target: Array) -> Any:
        groups = self.target_groups
        if isinstance(groups, str):
            _checks.one_of("target_groups", groups, ("clusters",))
            return clusters(target, max(1, round(_CLUSTERS_PER_POINT * len(target))))
        if not callable(groups):
            return groups
        if "random_state" in inspect.signature(groups).parameters:
            return groups(target, random_state=self.random_state)
        return groups(target)

    def _move(self, name: str, value: Any, which: str, batch_size: int | None) -> Any:
        check_is_fitted(self, "coupling_")
        if value is None:
            verb = "transform" if name == "Xs" else "inverse_transform"
            raise ValueError(f"{verb} needs {name}: {verb}({name}=...).")
        points = _output.points(name, value)
        _output.check_features(self, name, value, points.shape[1])
        size = None if batch_size is None else _checks.count("batch_size", batch_size)
        how = _checks.one_of("out_of_sample", self.out_of_sample, OUT_OF_SAMPLE)
        moved = getattr(self, which)(points, how, size).astype(self._dtype, copy=False)
        return _output.contain(self, moved, value)


def _weights(name: str, value: Any, size: int) -> Array:
    if value is None:
        return np.full(size, 1.0 / size)
    found = _checks.as_array(name, value, 1).size
    if found != size:
        raise ValueError(f"{name} has {found} weights for {size} points; pass one per point.")
    weights = _checks.as_weights(name, value, size)
    return weights / weights.sum()


def _propagate(name: str, labels: Any, P: Array) -> Array:
    """Rows of P as shares of the classes of their columns."""
    if labels is None:
        raise ValueError(f"{name} is missing; pass one label per point of fit.")
    found = class_labels(name, labels, P.shape[1])
    member = np.equal.outer(found.number, np.arange(len(found.classes)))
    mass = P @ member.astype(float)
    total = mass.sum(axis=1, keepdims=True)
    return np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
