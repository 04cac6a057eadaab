"""StructuredTransport: domain adaptation as a scikit-learn estimator with POT's method names.

Notation
--------
Xs, ys      source points (n, d) and their labels; Xt, yt the same for the target (m, d)
M           cost between them, divided by its scale; a, b their weights
P           the plan, attribute ``coupling_``
"""

from __future__ import annotations

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
from structot.adaptation._labels import forbid_mismatches, labels_of_both, propagate, shares, sides
from structot.adaptation._maps import MAPS, maps, warn_about_medoids
from structot.adaptation._model import Cost, Model, is_precomputed, weights
from structot.adaptation.domains import warn_about_domain, warn_about_units
from structot.adaptation.mapping import OUT_OF_SAMPLE
from structot.adaptation.proportions import (
    check_proportions,
    class_shares,
    reweighted,
)
from structot.result import Result
from structot.solvers.solve import solve
from structot.structures import Modular, Structure


class StructuredTransport(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Carry source points onto a target sample so that points of one class travel together.

        min_{P in U(a,b)}  <P, M> + charge Σ_kl |U_k| |V_l| max_{U_k × V_l} P + reg · entropy(P)

    U_k are the source classes, V_l the target points one by one (or ``target_groups``): opening a
    route between a class and a target has a price, so that a class that needs the route anyway uses
    it for all its points. The answer is certified to ``tol``.

    Parameters
    ----------
    structure
        "charge": the formula above. "groups": the paper's model, min_P Σ_kl g(cost used in block
        kl), see ``concave``. "routes": `Routes` between the classes and ``target_groups``, which
        keeps classes together without spreading their points; it needs target groups that mean
        something (by default Ward clusters, 1.5 per class) and is made for `predict_target`.
    charge
        Price of opening a route. None: for "charge" 0.25 in units of the cost scale, per unit of
        mass that a class spreads evenly over a target group; for "routes" 0.3, as in `Routes`.
    concave
        For "groups": a function of `structot.concave` (or any concave function), which sees
        costs in units of ``cost_scale``. None: ``Discount(0.75)`` of the cost of each block.
    reg
        Weight of the entropy, in units of the cost scale. None: 0.4 for "charge", else 0, the exact
        model.
    metric
        "auto": Euclidean distances; where fewer than a fifth of the features carry nearly all the
        variance, as with features in unlike units, "seuclidean", which divides each by its
        standard deviation over both samples. Or any metric of
        `scipy.spatial.distance.cdist`, by name or as a function. With the Euclidean ones
        ("euclidean", "sqeuclidean", "seuclidean", "mahalanobis") a point goes to the average of
        where its mass goes; with others to the weighted medoid, the target point with the least
        average distance, and a warning says so. "precomputed": Xs is the cost (n, m) itself.
    cost_scale
        What the costs are divided by: their "spread" (the standard deviation of what is left
        without the means of rows and columns, the only part that tells plans apart), "mean",
        "median" or "max"; None leaves them alone.
    target_groups
        None: every target point is its own group. Or labels, lists of indices, a callable of Xt
        that returns either, or a number of Ward clusters, or "clusters": 0.3 of them per target
        point. Groups that overlap need ``reg=0``.
    unbalanced, unbalanced_type
        As in `solve`, τ in units of the scaled cost: ``(τ, None)`` relaxes the source, whose points
        then need not send all they have where the target has other proportions of the classes.
        Smaller is freer; see docs/experiments/target_shift.md. A point that sent nothing is mapped
        as a new one would be.
    proportions
        Class weights of the source in the transport: "source", as they are; "estimate", those of
        the target without a label of it, for classes that lie apart; or one weight per class, in
        sorted order or by name.
    map
        "barycentric": every point to the mean of where its mass goes, which draws a class
        together. "class-affine": between that and one affine map per class, which keeps the
        variance within a third; the nearer to it, the more points n a class has for the directions
        in which it extends (by n / (n + r + 1), r their effective number).
    method, tol
        As in `solve`.
    out_of_sample
        How points not seen in `fit` move: with the "nearest" fitted point, or by a "smooth" average
        over the ten nearest.
    random_state
        Handed to a callable ``target_groups`` that takes it; nothing else is random.

    Attributes
    ----------
    coupling_
        The plan P, shape (n, m).
    result_
        The `Result` of the solve, with its certificate, in units of the scaled cost.
    cost_, cost_scale_, metric_
        The scaled cost M (+inf where known labels forbid a pair), the number it was divided by, and
        the metric, "auto" resolved.
    classes_, proportions_
        The source classes, sorted, and their weights in the transport; where labels were given.
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
    >>> adapt.predict_target().shape
    (40,)
    """

    def __init__(
        self,
        structure: str = "charge",
        charge: float | None = None,
        concave: Any = None,
        reg: float | None = None,
        metric: Any = "auto",
        cost_scale: str | None = "spread",
        target_groups: Any = None,
        unbalanced: Any = None,
        unbalanced_type: str = "KL",
        proportions: Any = "source",
        map: str = "barycentric",
        method: Any = "auto",
        tol: float = 1e-3,
        out_of_sample: str = "nearest",
        random_state: Any = None,
    ) -> None:
        self.structure = structure
        self.charge = charge
        self.concave = concave
        self.reg = reg
        self.metric = metric
        self.cost_scale = cost_scale
        self.target_groups = target_groups
        self.unbalanced = unbalanced
        self.unbalanced_type = unbalanced_type
        self.proportions = proportions
        self.map = map
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
            Source and target points, shapes (n, d) and (m, d). With ``metric="precomputed"`` Xs is
            the cost (n, m) and Xt may be left out, but for `transform`.
        ys
            Source labels; a missing one (mask, None or NaN) makes a point its own group. None is
            plain transport, with a warning.
        yt
            Target labels as far as known, missing ones as above, or -1 as in POT where this is no
            class of ys. Pairs of different known classes are forbidden; where no plan can avoid
            them all, they cost ten times the largest cost in a term of their own, and a warning
            says so.
        sample_weight_source, sample_weight_target
            Weights of the points, normalised here; uniform by default.
        """
        _checks.one_of("out_of_sample", self.out_of_sample, OUT_OF_SAMPLE)
        _checks.one_of("map", self.map, MAPS)
        check_proportions(self.proportions)
        model = Model.of(self)
        source, target = _output.samples(Xs, Xt, is_precomputed(self.metric))
        cost = Cost.of(self.metric, self.cost_scale, source, target)
        n, m = cost.M.shape
        labels, known = labels_of_both(as_array(ys), as_array(yt), n, m)
        a = weights("sample_weight_source", sample_weight_source, n)
        b = weights("sample_weight_target", sample_weight_target, m)
        if target is not None and not is_precomputed(cost.metric):
            warn_about_units(source, target, stacklevel=3)
            warn_about_medoids(self.map, cost.metric, stacklevel=3)
        if labels is None or not labels.known.any():
            what = "ys was not given" if labels is None else "ys holds no known label"
            text = f"{what}: without classes this is plain optimal transport, labels are not used."
            warnings.warn(text, UserWarning, stacklevel=2)
            M = cost.M
            result = self._solve(like(M, Xs), a, b, Modular(), model.reg)
            labels = t = None
        else:
            structure = model.bind(labels, target, m)

            def plan(t: Array) -> Array:
                weights_t = reweighted(a, labels, t)
                return self._solve(like(cost.M, Xs), weights_t, b, structure, model.reg).plan

            points = None if is_precomputed(self.metric) else source
            t = class_shares(self.proportions, plan, points, target, a, b, labels)
            M, a = cost.M, reweighted(a, labels, t)
            if known is not None:
                M, penalty = forbid_mismatches(M, sides(self, a, b), labels, known)
                structure = structure if penalty is None else structure + Modular(penalty)
            result = self._solve(like(M, Xs), a, b, structure, model.reg)
        _output.remember(self, Xs, source.shape[1])
        self._keep(result, M, cost, source, target, labels, t)
        self._dtype = _checks.float_type(Xs) if Xt is None else _checks.float_type(Xs, Xt)
        return self

    def _solve(self, M: Any, a: Array, b: Array, structure: Structure, reg: float) -> Result:
        """The answer as arrays; samples that are tensors are matched on their device."""
        relaxed = {"unbalanced": self.unbalanced, "unbalanced_type": self.unbalanced_type}
        options = {"reg": reg, "method": self.method, "tol": self.tol, **relaxed}
        return solve(M, a, b, structure=structure, **options).numpy()

    def _keep(
        self,
        result: Result,
        M: Array,
        cost: Cost,
        source: Array,
        target: Array | None,
        labels: Labels | None,
        t: Array | None,
    ) -> None:
        """Everything that is left of a fit."""
        self.cost_, self.cost_scale_, self.metric_ = M, cost.scale, cost.metric
        self.result_, self.coupling_ = result, result.plan
        self.xs_, self.xt_ = source, target
        self._labels = labels
        if labels is None:
            for name in ("classes_", "proportions_"):
                self.__dict__.pop(name, None)
        else:
            self.classes_, self.proportions_ = labels.classes, t
        self._forward, self._backward = maps(
            self.map, cost.metric, result.plan, source, target, labels
        )

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
        return propagate("ys", ys, self.coupling_.T)

    def inverse_transform_labels(self, yt: Any = None) -> Array:
        """Soft labels of the source points from those of the target; as `transform_labels`."""
        check_is_fitted(self, "coupling_")
        return propagate("yt", yt, self.coupling_)

    def predict_target(self) -> Array:
        """The class of each target point of `fit`, shape (m,): the one it receives most mass from.

        A point that receives none takes the class of the nearest transported source point.
        """
        best = self.predict_target_proba().argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_target_proba(self) -> Array:
        """The share of each class in the mass of each target point, shape (m, classes).

        Columns are in the order of ``classes_``; rows sum to 1. Source points without a label do
        not count; a target point without labelled mass is of the class of the nearest transported
        source point (where costs were given, of the cheapest one).
        """
        check_is_fitted(self, "coupling_")
        if self._labels is None:
            raise ValueError("fit saw no source labels; pass ys to fit to predict classes.")
        proba = shares(self._labels, self.coupling_.T)
        empty = proba.sum(axis=1) == 0
        if empty.any():
            known = self._labels.known
            far = self.cost_[known][:, empty]
            if self._backward is not None and self.xt_ is not None:
                far = cdist(self._forward(self.xs_[known], self.out_of_sample), self.xt_[empty])
            number = self._labels.number[known]
            proba[empty, number[far.argmin(axis=0)]] = 1.0
        return proba

    def set_output(self, *, transform: str | None = None) -> StructuredTransport:
        """Choose what `transform` returns: "default", "pandas" or "polars"; None changes nothing.

        As in scikit-learn, which cannot wrap methods whose first argument has POT's name.
        """
        _output.choose(self, transform)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names of the features that `transform` returns: those of the input.

        Where the input is a cost, they are x0, x1, ... for the features of Xt.
        """
        check_is_fitted(self, "coupling_")
        if is_precomputed(self.metric_) and self.xt_ is not None:
            return np.array([f"x{k}" for k in range(self.xt_.shape[1])], object)
        return _output.names(self, input_features)

    def _move(self, name: str, value: Any, which: str, batch_size: int | None) -> Any:
        check_is_fitted(self, "coupling_")
        verb = "transform" if name == "Xs" else "inverse_transform"
        if value is None:
            raise ValueError(f"{verb} needs {name}: {verb}({name}=...).")
        move = getattr(self, which)
        if move is None:
            missing = "Xt" if name == "Xs" else "positions of the source points"
            raise ValueError(f"{verb} needs points, and fit got costs: {missing} are not known.")
        points = _output.points(name, value)
        _output.check_features(self, name, value, points.shape[1])
        size = None if batch_size is None else _checks.count("batch_size", batch_size)
        how = _checks.one_of("out_of_sample", self.out_of_sample, OUT_OF_SAMPLE)
        if name == "Xs" and self._backward is not None and self.xt_ is not None:
            warn_about_domain(points, self.xs_, self.xt_, _WRONG_DOMAIN, stacklevel=4)
        moved = move(points, how, size).astype(self._dtype, copy=False)
        return _output.contain(self, moved, value)


_WRONG_DOMAIN = (
    "most of the points given to transform lie nearer to the target sample than to the source "
    "sample, as source points do not, but transform carries points of the source domain. A model "
    "that is to predict in the target domain needs AdaptTo(Xt) in its Pipeline, not "
    "StructuredTransport()."
)
