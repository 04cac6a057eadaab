"""scikit-learn's manners: its checks, labels of any type, transduction, costs, shares, maps."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from scipy.spatial.distance import cdist

pytest.importorskip("sklearn")

from problems import clusters
from sklearn.utils.estimator_checks import check_estimator

import structot as sot
from structot.adaptation import AdaptTo, StructuredTransport
from structot.adaptation.class_affine import trust
from structot.adaptation.mapping import barycenters

DATA = clusters(30, 40, rotation=0.2, seed=1)
XS, YS, XT, YT = DATA.X, DATA.source_labels, DATA.Y, DATA.target_labels


# ---- scikit-learn's own checks -------------------------------------------------------------------


class TransportToItself(StructuredTransport):
    """The checks know of no second sample: the target is the source."""

    def fit(self, X, y=None):
        """As the parent's."""
        return super().fit(X, y, X)

    def fit_transform(self, X, y=None):
        """As the parent's."""
        return self.fit(X, y).transform(X)


class AdaptToItself(AdaptTo):
    """The same for the step."""

    def fit(self, X, y=None):
        """As the parent's."""
        return super().fit(X, y, Xt=X)


MOVES = "fit_transform moves training points, transform leaves test points: that is its purpose"
EXPECTED = {
    AdaptToItself: {
        "check_transformer_general": MOVES,
        "check_transformer_data_not_an_array": MOVES,
    },
    TransportToItself: {
        "check_n_features_in_after_fitting": "its first argument has POT's name, Xs, and so has "
        "the message",
    },
}


@pytest.mark.parametrize("kind", [TransportToItself, AdaptToItself])
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(kind):
    done = check_estimator(kind(), expected_failed_checks=EXPECTED[kind], on_fail=None)
    failed = {x["check_name"]: str(x["exception"])[:300] for x in done if x["status"] == "failed"}
    assert failed == {}
    assert len([x for x in done if x["status"] == "passed"]) > 25


# ---- labels --------------------------------------------------------------------------------------


def test_continuous_labels_are_refused_as_scikit_learn_refuses_them():
    with pytest.raises(ValueError, match=r"ys must hold classes; Unknown label type.* 0\.5"):
        StructuredTransport().fit(XS, YS + 0.5, XT)
    whole = StructuredTransport().fit(XS, YS.astype(float), XT)
    assert np.array_equal(whole.coupling_, StructuredTransport().fit(XS, YS, XT).coupling_)


def test_labels_of_other_types_are_shown_as_python_writes_them():
    with pytest.raises(ValueError, match=r"ys holds numbers such as 0, yt holds text such as '0'"):
        StructuredTransport().fit(XS, YS, XT, YT.astype(str))
    with pytest.raises(ValueError, match=r"ys holds text such as '0', yt holds numbers such as 0"):
        StructuredTransport().fit(XS, YS.astype(str), XT, YT)
    with pytest.warns(UserWarning, match=r"ys has no class 7, 8"):
        StructuredTransport().fit(XS, YS, XT, np.where(YT == 0, 0, 6 + YT))


def test_missing_target_labels_as_pot_marks_them_stand_among_labels_of_any_type():
    hidden = np.arange(40) % 2 == 0
    plain = StructuredTransport().fit(XS, YS, XT, np.ma.masked_array(YT, mask=hidden))
    names = [-1 if gone else str(label) for label, gone in zip(YT, hidden, strict=True)]
    for labels in (names, np.array(names, object), tuple(names)):
        with pytest.warns(UserWarning, match="taken as missing, as in POT") as said:
            adapt = StructuredTransport().fit(XS, YS.astype(str), XT, labels)
        assert len(said) == 1
        np.testing.assert_allclose(adapt.coupling_, plain.coupling_)
    with pytest.raises(ValueError, match=r"ys has labels of type Color such as .* no order"):
        StructuredTransport().fit(XS, [Color(1 + label) for label in YS], XT)


class Color(enum.Enum):
    """Labels that have no order."""

    RED, GREEN, BLUE = 1, 2, 3


@pytest.mark.parametrize("kind", [str, float, np.uint8, bool, object])
def test_labels_of_any_type_come_back_as_they_were(kind):
    names = (YS > 0).astype(kind) if kind is bool else YS.astype(kind)
    adapt = StructuredTransport().fit(XS, names, XT)
    guess = adapt.predict_target()
    assert guess.shape == (40,)
    assert set(guess.tolist()) <= set(names.tolist())


# ---- transduction --------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["charge", "groups"])
def test_targets_are_labelled_by_the_mass_they_receive(structure):
    adapt = StructuredTransport(structure=structure).fit(XS, YS, XT)
    proba = adapt.predict_target_proba()
    np.testing.assert_allclose(proba, adapt.transform_labels(YS))
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.array_equal(adapt.predict_target(), adapt.classes_[proba.argmax(axis=1)])
    assert np.mean(adapt.predict_target() == YT) > 0.9


def test_a_target_without_mass_takes_the_class_of_the_nearest_carried_point():
    w = np.ones(40)
    w[[3, 17]] = 0.0
    adapt = StructuredTransport().fit(XS, YS, XT, sample_weight_target=w)
    near = cdist(adapt.transform(XS), XT).argmin(axis=0)
    proba = adapt.predict_target_proba()
    assert np.array_equal(adapt.predict_target()[[3, 17]], YS[near][[3, 17]])
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert (proba[[3, 17]].max(axis=1) == 1).all()
    assert np.isfinite(adapt.inverse_transform(XT)).all()


def test_unlabelled_source_points_do_not_vote():
    known = np.arange(30) % 2 == 0
    adapt = StructuredTransport().fit(XS, np.ma.masked_array(YS, mask=~known), XT)
    mass = np.stack([adapt.coupling_[known & (YS == k)].sum(axis=0) for k in range(3)], axis=1)
    np.testing.assert_allclose(adapt.predict_target_proba(), mass / mass.sum(axis=1, keepdims=True))
    with pytest.warns(UserWarning, match="plain optimal transport"):
        plain = StructuredTransport().fit(Xs=XS, Xt=XT)
    with pytest.raises(ValueError, match="fit saw no source labels"):
        plain.predict_target()


# ---- costs in place of points --------------------------------------------------------------------


def test_precomputed_costs_give_the_same_plan_labels_and_images():
    M = cdist(XS, XT)
    points = StructuredTransport(metric="euclidean").fit(XS, YS, XT)
    costs = StructuredTransport(metric="precomputed").fit(M, YS)
    assert np.array_equal(costs.coupling_, points.coupling_)
    assert np.array_equal(costs.predict_target(), points.predict_target())
    assert costs.n_features_in_ == 40
    both = StructuredTransport(metric="precomputed").fit(M, YS, XT)
    np.testing.assert_allclose(both.transform(M), points.transform(XS))
    new = cdist(XS[:3] + 1e-6, XT)
    np.testing.assert_allclose(both.transform(new), points.transform(XS)[:3])
    assert both.get_feature_names_out().tolist() == ["x0", "x1"]
    pd = pytest.importorskip("pandas")
    assert isinstance(both.set_output(transform="pandas").transform(M), pd.DataFrame)
    with pytest.raises(ValueError, match="positions of the source points are not known"):
        both.inverse_transform(XT)
    with pytest.raises(ValueError, match="proportions='estimate' needs points"):
        StructuredTransport(metric="precomputed", proportions="estimate").fit(M, YS)
    with pytest.raises(ValueError, match="target_groups is made from the target points"):
        StructuredTransport(metric="precomputed", target_groups="clusters").fit(M, YS)


# ---- class proportions ---------------------------------------------------------------------------


def uneven(seed):
    """Thirds in the source, (.7, .2, .1) in the target."""
    data = clusters(60, 300, rotation=0.2, seed=seed)
    keep = np.concatenate(
        [np.flatnonzero(data.target_labels == k)[:c] for k, c in enumerate((70, 20, 10))]
    )
    return data.X, data.source_labels, data.Y[keep], data.target_labels[keep]


def test_given_proportions_are_the_class_weights_of_the_plan():
    for given in ([7.0, 2.0, 1.0], {2: 0.1, 0: 0.7, 1: 0.2}):
        adapt = StructuredTransport(proportions=given).fit(XS, YS, XT)
        totals = np.bincount(YS, adapt.coupling_.sum(axis=1))
        np.testing.assert_allclose(totals, [0.7, 0.2, 0.1])
        np.testing.assert_allclose(adapt.proportions_, [0.7, 0.2, 0.1])
    inside = adapt.coupling_.sum(axis=1)[YS == 0]
    np.testing.assert_allclose(inside, inside[0])
    even = StructuredTransport().fit(XS, YS, XT)
    np.testing.assert_allclose(even.proportions_, np.bincount(YS) / 30)


def test_estimated_proportions_come_near_those_of_the_target_and_help():
    right = {"source": [], "estimate": []}
    for seed in range(4):
        X, ys, Y, yt = uneven(seed)
        for kind, found in right.items():
            adapt = StructuredTransport(proportions=kind).fit(X, ys, Y)
            found.append(np.mean(adapt.predict_target() == yt))
        assert np.abs(adapt.proportions_ - [0.7, 0.2, 0.1]).sum() < 0.2
    assert np.mean(right["estimate"]) > np.mean(right["source"]) + 0.1


# ---- a map that keeps the shape of a class -------------------------------------------------------


def inner_variance(X, labels):
    return np.array([X[labels == k].var(axis=0).sum() for k in np.unique(labels)])


@pytest.mark.parametrize("count", [60, 90])
def test_the_class_affine_map_keeps_the_variance_of_a_class_in_and_out_of_sample(count):
    data = clusters(count, rotation=0.2, seed=1)
    new = clusters(300, rotation=0.2, seed=2)
    args = data.X, data.source_labels, data.Y
    before = inner_variance(data.X, data.source_labels)
    drawn = StructuredTransport().fit(*args)
    assert (inner_variance(drawn.transform(data.X), data.source_labels) < before / 3).all()
    adapt = StructuredTransport(map="class-affine").fit(*args)
    for points, labels in ((data.X, data.source_labels), (new.X, new.source_labels)):
        ratio = inner_variance(adapt.transform(points), labels) / inner_variance(points, labels)
        assert (ratio > 2 / 3).all()
        assert (ratio < 4 / 3).all()
    back = inner_variance(adapt.inverse_transform(data.Y), data.target_labels)
    assert (back > inner_variance(data.Y, data.target_labels) / 2).all()


def test_the_class_affine_map_is_the_map_between_normal_distributions():
    """Where the target is a stretched copy, the stretch comes out if it is within a third."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(400, 2)), rng.normal(size=(400, 2)) + 60.0])
    ys = np.repeat([0, 1], 400)
    stretch = np.array([1.1, 0.9])
    adapt = StructuredTransport(map="class-affine", reg=0.01, tol=1e-2).fit(X, ys, X * stretch + 3)
    moved = adapt.transform(X)
    spread = [moved[ys == k].std(axis=0) / X[ys == k].std(axis=0) for k in (0, 1)]
    np.testing.assert_allclose(spread, [stretch, stretch], rtol=0.03)
    np.testing.assert_allclose(adapt.inverse_transform(moved).std(axis=0), X.std(axis=0), rtol=0.03)


def test_the_class_affine_map_trusts_a_shape_by_the_points_behind_it():
    """κ is the multiple of a sample covariance that is nearest to the truth, here by simulation."""
    rng = np.random.default_rng(0)
    deviation = np.array([3.0, 2.0, 1.0, 0.5, 0.1])
    truth = np.diag(deviation**2)
    for count in (8, 40):
        S = [np.cov((rng.normal(size=(count, 5)) * deviation).T) for _ in range(4000)]
        best = np.mean([np.sum(s * truth) for s in S]) / np.mean([np.sum(s * s) for s in S])
        many = rng.normal(size=(200 * count, 5)) * deviation
        found = trust(many, np.repeat(np.arange(200), count))
        np.testing.assert_allclose(found, best, rtol=0.05)


def test_the_class_affine_map_in_more_dimensions_than_points():
    """There few points know little of a shape: the map stays near the barycentric one."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 50)), rng.normal(size=(24, 50))
    ys = np.arange(20) % 2
    ys = np.ma.masked_array(ys, mask=np.arange(20) == 7)  # a point of no class
    adapt = StructuredTransport(map="class-affine", out_of_sample="smooth").fit(X, ys, Y)
    moved, drawn = adapt.transform(X), barycenters(adapt.coupling_, Y)
    np.testing.assert_allclose(moved[7], drawn[7])
    before, after, least = (inner_variance(x[~ys.mask], ys.compressed()) for x in (X, moved, drawn))
    assert (after > 1.1 * least).all()
    assert (after < before / 2).all()
    assert np.isfinite(adapt.transform(rng.normal(size=(5, 50)))).all()
    assert np.isfinite(adapt.inverse_transform(Y)).all()


def test_the_class_affine_map_does_not_depend_on_the_units_of_features():
    units = np.array([1e3, 1.0])
    one = StructuredTransport(map="class-affine", metric="seuclidean").fit(XS, YS, XT)
    other = StructuredTransport(map="class-affine", metric="seuclidean")
    other.fit(XS * units, YS, XT * units)
    moved = one.transform(XS)
    np.testing.assert_allclose(other.transform(XS * units), moved * units, rtol=1e-6, atol=1e-6)


# ---- routes and relaxed marginals ----------------------------------------------------------------


def test_routes_label_the_target_by_its_groups():
    data = clusters(30, 45, rotation=0.4, seed=1)
    groups = data.target_labels
    adapt = StructuredTransport("routes", target_groups=groups, tol=1e-4)
    adapt.fit(data.X, data.source_labels, data.Y)
    assert adapt.result_.converged
    structure = sot.Routes(data.source_labels, groups, 0.3)
    value = sot.solve(adapt.cost_, structure=structure, tol=1e-4).value
    assert adapt.result_.value == pytest.approx(value, rel=2e-4)
    assert np.mean(adapt.predict_target() == data.target_labels) > 0.9
    ward = StructuredTransport("routes").fit(data.X, data.source_labels, data.Y)
    assert len(np.unique(ward.result_.structure.target)) == 4  # 1.5 per class, rounded to even
    own = StructuredTransport("routes", target_groups=4).fit(data.X, data.source_labels, data.Y)
    np.testing.assert_allclose(own.coupling_, ward.coupling_)


def test_relaxed_marginals_help_where_class_shares_differ_and_leave_no_hole():
    right = {None: [], (1.0, None): []}
    for seed in range(3):
        X, ys, Y, yt = uneven(seed)
        for relaxed, found in right.items():
            adapt = StructuredTransport(unbalanced=relaxed).fit(X, ys, Y)
            found.append(np.mean(adapt.predict_target() == yt))
        np.testing.assert_allclose(adapt.coupling_.sum(axis=0), 1 / 100)
    assert np.mean(right[1.0, None]) > np.mean(right[None]) + 0.05
    # So little is carried that some points send nothing: they are mapped as new points would be.
    far = np.vstack([X, X[:1] + 1e3])
    sparse = StructuredTransport(charge=0.0, reg=0.0, unbalanced=0.5, metric="euclidean")
    sparse.fit(far, np.append(ys, 0), Y)
    assert (sparse.coupling_.sum(axis=1) == 0).any()
    assert np.isfinite(sparse.transform(far)).all()
    assert np.isfinite(sparse.inverse_transform(Y)).all()
    np.testing.assert_allclose(sparse.predict_target_proba().sum(axis=1), 1.0)
