"""StructuredTransport: the model it solves, labels on both sides, scikit-learn."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import ot
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist

pytest.importorskip("sklearn")

import sklearn
from problems import clusters, distance_to_optimum
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import structot as sot
from structot.adaptation import StructuredTransport

DATA = clusters(30, 40, rotation=0.2, seed=1)
XS, YS, XT, YT = DATA.X, DATA.source_labels, DATA.Y, DATA.target_labels


CHARGE, REG = 0.25, 0.4  # by default, in units of the spread of the cost


def unit(M):
    """The spread of a cost: its standard deviation without the means of rows and columns."""
    return np.std(M - M.mean(axis=0) - M.mean(axis=1, keepdims=True) + M.mean())


def fitted(**options):
    return StructuredTransport(**options).fit(XS, YS, XT)


def within_class(P, ys=YS, yt=YT):
    return P[ys[:, None] == yt[None, :]].sum() / P.sum()


def assert_same_plan(one, two, plan=None):
    """Plans with entropy are unique: two of them differ by no more than both gaps allow."""
    plan = one.coupling_ if plan is None else plan
    near = sum(distance_to_optimum(x.result_, REG) for x in (one, two))
    assert np.abs(plan - two.coupling_).sum() <= near


def masked(labels, known):
    return np.ma.masked_array(labels, mask=~known)


# ---- the model -----------------------------------------------------------------------------------


def test_default_is_the_fixed_charge_with_entropy():
    adapt = fitted(tol=1e-12)
    M = cdist(XS, XT)
    M /= unit(M)
    prices = CHARGE * np.tile(np.bincount(YS)[:, None], (1, 40))
    structure = sot.Modular() + sot.Coverage(YS, weights=prices)
    result = sot.solve(M, structure=structure, reg=REG, tol=1e-12)
    near = sum(distance_to_optimum(x, REG) for x in (adapt.result_, result))
    assert np.abs(adapt.coupling_ - result.plan).sum() <= near
    check = sot.certificate.verify(adapt.cost_, None, None, structure, adapt.result_, reg=REG)
    assert check.holds()
    assert adapt.cost_scale_ == pytest.approx(unit(cdist(XS, XT)))
    assert adapt.metric_ == "euclidean"


def test_the_cost_scale_does_not_see_what_no_plan_sees():
    """u_i + v_j added to the cost changes no plan of plain transport, and not the unit either."""
    M = cdist(XS, XT)
    rng = np.random.default_rng(0)
    shifted = M + rng.uniform(0, 9, (30, 1)) + rng.uniform(0, 9, (1, 40))
    options = {"metric": "precomputed", "charge": 0.0, "tol": 1e-12}
    one, two = (StructuredTransport(**options).fit(x, YS) for x in (M, shifted))
    assert two.cost_scale_ == pytest.approx(one.cost_scale_)
    assert_same_plan(one, two)


def test_concave_is_the_papers_model():
    g = sot.concave.ThresholdSqrt(1.0)
    adapt = fitted(structure="groups", concave=g, tol=1e-5)
    M = cdist(XS, XT) / adapt.cost_scale_
    value = sot.solve(M, structure=sot.Groups(YS, None, g, units="cost"), tol=1e-5).value
    assert adapt.result_.value == pytest.approx(value, rel=2e-5)
    np.testing.assert_allclose(adapt.coupling_.sum(axis=0), 1 / 40, atol=1e-12)
    own = fitted(structure="groups", tol=1e-5).result_.value
    value = sot.solve(M, structure=sot.Groups(YS), tol=1e-5).value  # Discount(0.75), block units
    assert own == pytest.approx(value, rel=2e-5)


def test_without_structure_and_entropy_it_is_plain_transport():
    adapt = fitted(charge=0.0, reg=0.0, metric="sqeuclidean", cost_scale=None)
    value = ot.emd2([], [], cdist(XS, XT, "sqeuclidean"))
    assert adapt.result_.value == pytest.approx(value)
    with pytest.warns(UserWarning, match="plain optimal transport"):
        plain = StructuredTransport(reg=0.0).fit(Xs=XS, Xt=XT)
    assert plain.result_.value == pytest.approx(ot.emd2([], [], plain.cost_))


def test_entropy_without_labels_is_sinkhorn():
    with pytest.warns(UserWarning, match="plain optimal transport"):
        adapt = StructuredTransport(reg=0.1, tol=1e-12).fit(Xs=XS, Xt=XT)
    P = ot.sinkhorn([], [], adapt.cost_, 0.1, method="sinkhorn_log", stopThr=1e-13, numItermax=9999)
    near = distance_to_optimum(adapt.result_, 0.1) + 1e-10
    assert np.abs(adapt.coupling_ - P).sum() <= near


def test_a_higher_charge_opens_less():
    """The minimiser of A + charge · B has less of B, and more of A, as the charge grows."""
    parts = []
    for charge in (0.0, 0.1, 0.3, 2.0):
        adapt = fitted(charge=charge, tol=1e-8)
        prices = np.tile(np.bincount(YS)[:, None], (1, 40))
        routes = sot.Coverage(YS, weights=prices).bind(adapt.cost_)
        opened = routes.extension(adapt.coupling_)
        parts.append((opened, adapt.result_.value - charge * opened))
    opened, rest = np.transpose(parts)
    assert (np.diff(opened) < -1e-3 * opened[0]).all()
    assert (np.diff(rest) > 0).all()


def test_scale_of_the_data_does_not_matter():
    first = fitted(tol=1e-12)
    again = StructuredTransport(tol=1e-12).fit(1e3 * XS, YS, 1e3 * XT)
    assert_same_plan(first, again)
    # Images are means over the rows, of mass 1/30 and in a box: so far do they move with the plan.
    near = 30 * np.ptp(XT) * np.abs(first.coupling_ - again.coupling_).sum()
    moved = again.transform(1e3 * XS) / 1e3
    np.testing.assert_allclose(moved, first.transform(XS), atol=near + 1e-12)


def test_order_of_the_points_does_not_matter():
    rng = np.random.default_rng(0)
    i, j = rng.permutation(30), rng.permutation(40)
    first = fitted(tol=1e-12)
    again = StructuredTransport(tol=1e-12).fit(XS[i], YS[i], XT[j])
    assert_same_plan(first, again, first.coupling_[i][:, j])


def test_weights_are_normalised_and_used():
    w = np.random.default_rng(0).uniform(0.5, 2.0, 30)
    w[3] = 0.0
    adapt = StructuredTransport().fit(XS, YS, XT, sample_weight_source=5 * w)
    np.testing.assert_allclose(adapt.coupling_.sum(axis=1), w / w.sum(), atol=1e-12)
    assert np.isfinite(adapt.transform(XS)).all()  # the point without mass moves with its neighbour


# ---- groups and labels ---------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["mask", "None", "NaN"])
def test_unlabelled_source_points_are_their_own_groups(missing):
    known = np.arange(30) % 3 > 0
    ys = {
        "mask": masked(YS, known),
        "None": [int(y) if k else None for y, k in zip(YS, known, strict=True)],
        "NaN": np.where(known, YS, np.nan),
    }[missing]
    adapt = StructuredTransport(tol=1e-12).fit(XS, ys, XT)
    numbers = np.where(known, YS, 100 + np.arange(30))
    same = StructuredTransport(tol=1e-12).fit(XS, numbers, XT)
    assert_same_plan(adapt, same)


def test_target_groups_by_labels_callable_and_clusters():
    groups = YT.copy()
    by_labels = fitted(target_groups=groups, tol=1e-8)
    by_call = fitted(target_groups=lambda X: groups, tol=1e-8)
    np.testing.assert_allclose(by_labels.coupling_, by_call.coupling_, atol=1e-9)
    own = fitted(tol=1e-8)
    assert abs(by_labels.coupling_ - own.coupling_).max() > 1e-5
    ward = fitted(target_groups="clusters", tol=1e-8)
    from sklearn.cluster import AgglomerativeClustering

    numbers = AgglomerativeClustering(12).fit_predict(XT)  # 0.3 · 40
    same = fitted(target_groups=numbers, tol=1e-8)
    np.testing.assert_allclose(ward.coupling_, same.coupling_, atol=1e-9)


def test_random_state_reaches_a_callable():
    seen = []

    def groups(X, random_state=None):
        seen.append(random_state)
        return np.zeros(len(X))

    fitted(target_groups=groups, random_state=7)
    assert seen == [7]


@pytest.mark.parametrize("concave", [None, sot.concave.ThresholdSqrt(1.0)])
def test_known_target_labels_forbid_mismatches_and_change_the_plan(concave):
    hard = clusters(30, 30, rotation=0.45, seed=2)
    options = {} if concave is None else {"structure": "groups", "concave": concave}
    free = StructuredTransport(**options).fit(hard.X, hard.source_labels, hard.Y)
    known = np.arange(30) % 3 == 0
    yt = masked(hard.target_labels, known)
    held = StructuredTransport(**options).fit(hard.X, hard.source_labels, hard.Y, yt)
    wrong = (hard.source_labels[:, None] != hard.target_labels[None, :]) & known[None, :]
    assert free.coupling_[wrong].sum() > 0.02
    assert held.coupling_[wrong].sum() == 0
    assert np.isinf(held.cost_[wrong]).all()
    shares = [
        within_class(x.coupling_, hard.source_labels, hard.target_labels) for x in (free, held)
    ]
    assert shares[1] > shares[0] + 0.05


def test_all_target_labels_known_gives_one_problem_per_class():
    hard = clusters(30, 30, rotation=0.45, seed=2)
    adapt = StructuredTransport().fit(hard.X, hard.source_labels, hard.Y, hard.target_labels)
    P = adapt.coupling_
    assert adapt.result_.converged
    assert within_class(P, hard.source_labels, hard.target_labels) == pytest.approx(1.0)


def test_labels_that_no_plan_can_keep_are_penalised_in_a_term_of_their_own():
    ys = np.repeat([0, 1], [20, 10])
    yt = np.repeat([0, 1], [10, 30])
    with pytest.warns(UserWarning, match="cost more instead of being forbidden"):
        adapt = StructuredTransport().fit(XS, ys, XT, yt)
    # Class 0 has 2/3 of the mass on one side and 1/4 on the other: 5/12 must change class.
    assert within_class(adapt.coupling_, ys, yt) == pytest.approx(7 / 12, abs=1e-3)
    assert np.isfinite(adapt.cost_).all()
    assert adapt.cost_.max() == pytest.approx(cdist(XS, XT).max() / unit(cdist(XS, XT)))


def test_a_class_that_the_source_lacks_is_named():
    names = np.array(["x", "y", "z"])[YS]
    with pytest.warns(UserWarning, match="ys has no class 'a', 'b', 'c'"):
        adapt = StructuredTransport(tol=1e-8).fit(XS, names, XT, np.array(["a", "b", "c"])[YT])
    np.testing.assert_allclose(adapt.coupling_, fitted(tol=1e-8).coupling_, atol=1e-8)


@pytest.mark.parametrize(("n", "m"), [(30, 60), (21, 33), (9, 300)])
def test_equal_shares_of_the_classes_can_be_kept_whatever_the_rounding(n, m):
    ys, yt = np.arange(n) % 3, np.arange(m) % 3
    Y = np.random.default_rng(0).normal(size=(m, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapt = StructuredTransport().fit(XS[:n], ys, Y, yt)
    assert adapt.coupling_[ys[:, None] != yt[None, :]].sum() == 0


def test_minus_one_is_a_label_and_a_warning_names_the_mask():
    ys = np.where(YS == 0, -1, YS)
    with pytest.warns(UserWarning, match=r"ys holds the label -1.*np\.ma\.masked_equal\(ys, -1\)"):
        adapt = StructuredTransport(tol=1e-8).fit(XS, ys, XT)
    np.testing.assert_allclose(adapt.coupling_, fitted(tol=1e-8).coupling_, atol=1e-9)
    hard = clusters(30, 30, rotation=0.45, seed=2)
    relabelled = [np.where(y == 0, -1, y) for y in (hard.source_labels, hard.target_labels)]
    with pytest.warns(UserWarning, match="holds the label -1"):
        held = StructuredTransport().fit(hard.X, relabelled[0], hard.Y, relabelled[1])
    assert within_class(held.coupling_, *relabelled) == pytest.approx(1.0)


def test_minus_one_as_in_pot_is_a_missing_label_and_one_warning_says_so():
    known = np.arange(40) % 4 == 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pot = StructuredTransport().fit(XS, YS, XT, np.where(known, YT, -1))
    assert len(caught) == 1
    assert "taken as missing, as in POT" in str(caught[0].message)
    ours = StructuredTransport().fit(XS, YS, XT, masked(YT, known))
    assert np.array_equal(pot.coupling_, ours.coupling_)


def test_soft_labels():
    adapt = fitted()
    soft = adapt.transform_labels(ys=YS)
    expected = np.stack([adapt.coupling_[YS == k].sum(axis=0) for k in range(3)], axis=1) * 40
    np.testing.assert_allclose(soft, expected, atol=1e-12)
    np.testing.assert_allclose(adapt.inverse_transform_labels(yt=YT).sum(axis=1), 1.0)
    names = np.array(["c", "a", "b"])[YS]
    np.testing.assert_allclose(adapt.transform_labels(names), soft[:, [1, 2, 0]], atol=1e-12)
    half = adapt.transform_labels(masked(YS, YS > 0))
    np.testing.assert_allclose(half, soft[:, 1:] / soft[:, 1:].sum(axis=1, keepdims=True))


def test_labels_agree_with_pot():
    adapt, peer = fitted(), ot.da.EMDTransport().fit(Xs=XS, Xt=XT)
    peer.coupling_ = adapt.coupling_
    np.testing.assert_allclose(adapt.transform_labels(YS), peer.transform_labels(YS), atol=1e-12)
    np.testing.assert_allclose(
        adapt.inverse_transform_labels(YT), peer.inverse_transform_labels(YT), atol=1e-12
    )


# ---- scikit-learn --------------------------------------------------------------------------------


def test_parameters_clone_and_refit():
    adapt = StructuredTransport(charge=0.05, target_groups="clusters")
    before = adapt.get_params()
    adapt.fit(XS, YS, XT)
    first = adapt.coupling_.copy()
    assert adapt.get_params() == before
    adapt.fit(XS, YS, XT)
    assert np.array_equal(adapt.coupling_, first)
    copy = clone(adapt)
    assert copy.get_params() == before
    assert not hasattr(copy, "coupling_")
    with pytest.raises(NotFittedError):
        copy.transform(XS)
    assert np.array_equal(copy.set_params(charge=0.05).fit(XS, YS, XT).coupling_, first)


def test_a_fit_that_fails_leaves_the_last_one_as_it_was():
    adapt = fitted()
    moved = adapt.transform(XS)
    with pytest.raises(ValueError, match="one label per point"):
        adapt.fit(XS[:, :1], YS[:3], XT[:, :1])
    assert np.array_equal(adapt.transform(XS), moved)


def test_inputs_are_not_changed():
    copies = [x.copy() for x in (XS, YS, XT)]
    fitted().transform(XS)
    for before, after in zip(copies, (XS, YS, XT), strict=True):
        assert np.array_equal(before, after)


def test_pickle():
    adapt = fitted(concave=None)
    again = pickle.loads(pickle.dumps(adapt))
    assert np.array_equal(again.transform(XS), adapt.transform(XS))
    assert again.result_.gap == adapt.result_.gap


def test_frames_in_and_out():
    pd = pytest.importorskip("pandas")
    source = pd.DataFrame(XS, columns=["u", "v"], index=np.arange(30) + 100)
    target = pd.DataFrame(XT, columns=["u", "v"])
    adapt = StructuredTransport().set_output(transform="pandas")
    moved = adapt.fit_transform(source, pd.Series(YS), target)
    assert list(moved.columns) == ["u", "v"]
    assert list(moved.index) == list(source.index)
    np.testing.assert_allclose(moved.to_numpy(), fitted().transform(XS))
    assert adapt.get_feature_names_out().tolist() == ["u", "v"]
    assert isinstance(clone(adapt).fit(XS, YS, XT).transform(XS), pd.DataFrame)
    assert clone(adapt).fit(XS, YS, XT).get_feature_names_out().tolist() == ["x0", "x1"]
    with pytest.raises(ValueError, match="same columns in the same order"):
        adapt.transform(target[["v", "u"]])
    with pytest.raises(ValueError, match=r"Xt has the columns \['v', 'u'\], but fit saw"):
        clone(adapt).fit(source, YS, target[["v", "u"]])
    adapt.set_output(transform="default")
    assert isinstance(adapt.transform(source), np.ndarray)
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(fitted().transform(XS), pd.DataFrame)


def test_points_that_all_coincide_and_a_column_of_labels():
    adapt = StructuredTransport().fit(
        np.ones((4, 2)), np.array([[0], [0], [1], [1]]), np.ones((3, 2))
    )
    np.testing.assert_allclose(adapt.transform(np.zeros((1, 2))), 0.0)
    assert (adapt.cost_ == 0).all()
    assert adapt.result_.converged


def test_unknown_metrics_and_few_points():
    with pytest.raises(ValueError, match="metric='euclidian' does not work"):
        fitted(metric="euclidian")
    one = StructuredTransport(target_groups="clusters").fit(XS, YS, XT[:1])
    np.testing.assert_allclose(one.transform(XS), np.tile(XT[:1], (30, 1)))
    with pytest.warns(UserWarning, match="no known label"):
        StructuredTransport().fit(XS, [None] * 30, XT)


def test_float32_stays_float32():
    adapt = StructuredTransport().fit(XS.astype(np.float32), YS, XT.astype(np.float32))
    assert adapt.transform(XS.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fitted().transform(XS[:, :1]), "1 features, but StructuredTransport is expecting"),
        (lambda: fitted().inverse_transform(np.ones((2, 3))), "Xt has 3 features"),
        (lambda: StructuredTransport().fit(XS, YS), "fit needs Xt"),
        (lambda: StructuredTransport().fit(Xt=XT), "fit needs Xs"),
        (lambda: fitted().transform(), "transform needs Xs"),
        (
            lambda: StructuredTransport().fit(XS, YS[:5], XT),
            "5 labels.* 30 points",
        ),
        (lambda: StructuredTransport().fit(XS, YS, XT[:, :1]), "equally many features"),
        (lambda: StructuredTransport().fit(csr_matrix(XS), YS, XT), r"pass Xs\.toarray\(\)"),
        (
            lambda: StructuredTransport().fit(XS, YS, XT, sample_weight_source=np.ones(9)),
            "sample_weight_source has 9 weights for 30 points",
        ),
        (lambda: fitted(out_of_sample="near"), "Did you mean 'nearest'"),
        (lambda: fitted(cost_scale="average"), "cost_scale must be one of"),
        (lambda: fitted(target_groups="ward"), "target_groups must be one of 'clusters'"),
        (lambda: StructuredTransport().fit(XS, [1, "a"] * 15, XT), "which have no order"),
        (lambda: fitted(reg=-1.0), "reg must be zero or positive"),
        (lambda: fitted(charge=-1.0), "charge must be zero or positive"),
        (lambda: fitted(concave=sot.concave.Sqrt()), "concave belongs to structure='groups'"),
        (lambda: fitted(structure="groups", charge=1.0), "charge belongs to structure='charge'"),
        (lambda: fitted(structure="charges"), "Did you mean 'charge'"),
        (lambda: fitted(map="affine"), "map must be one of"),
        (lambda: fitted(proportions="estimated"), "Did you mean 'estimate'"),
        (lambda: fitted(proportions=[1.0, 2.0]), "proportions has 2 weights, but ys has 3"),
        (lambda: fitted(proportions={0: 1.0, 1: 1.0, "2": 1.0}), r"missing \[2\], unknown \['2'\]"),
        (
            lambda: fitted(metric="precomputed"),
            "Xs is the cost, one column per target point; it has 2 columns for 40 points",
        ),
        (
            lambda: StructuredTransport(metric="precomputed").fit(cdist(XS, XT), YS).transform(XS),
            "fit got costs: Xt",
        ),
        (lambda: StructuredTransport().fit(XS * np.nan, YS, XT), "Input Xs contains NaN"),
        (lambda: fitted().transform_labels(), "ys is missing"),
        (lambda: fitted().transform_labels(YS[:3]), "3 labels, but there are 30 points"),
        (lambda: fitted().transform(XS, batch_size=0), "batch_size must be a whole number"),
        (lambda: fitted().get_feature_names_out(["a"]), "input_features must be the 2 names"),
        (lambda: fitted().set_output(transform="table"), "transform must be one of"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("kind", ["KL", "TV"])
def test_a_point_that_sends_nothing_is_mapped_like_a_new_one(kind):
    """One source point is too far away to be worth its way."""
    data = clusters(20, 25, seed=3)
    Xs = np.vstack([data.X, [[500.0, 500.0]]])
    ys = np.append(data.source_labels, data.source_labels[0])
    adapt = StructuredTransport(unbalanced=(0.05, None), unbalanced_type=kind, reg=0.0)
    moved = adapt.fit_transform(Xs=Xs, ys=ys, Xt=data.Y)
    assert adapt.result_.converged
    assert np.isfinite(moved).all()
    sent = adapt.coupling_.sum(axis=1)
    np.testing.assert_allclose(adapt.coupling_.sum(axis=0), 1 / 25)
    if kind == "TV":
        assert sent[-1] == 0
        rest = StructuredTransport(reg=0.0).fit(Xs=data.X, ys=ys[:-1], Xt=data.Y)
        assert np.abs(moved[-1] - Xs[-1]).max() < 20  # by the way of its nearest neighbour
        assert np.isfinite(rest.transform(Xs=Xs)).all()
    with pytest.raises(ValueError, match="unbalanced"):
        StructuredTransport(unbalanced=-1.0).fit(Xs=data.X, ys=data.source_labels, Xt=data.Y)


def test_a_relaxed_source_follows_other_proportions():
    """All targets of one class: a source that must send all mixes the classes."""
    data = clusters(30, 30, seed=1, rotation=0.0)
    one = data.Y[data.target_labels == 0]
    own = data.source_labels == 0
    plans = [
        StructuredTransport(unbalanced=relaxed).fit(Xs=data.X, ys=data.source_labels, Xt=one)
        for relaxed in (None, (0.05, None))
    ]
    shares = [adapt.coupling_[own].sum() for adapt in plans]
    assert shares[0] == pytest.approx(1 / 3)
    assert shares[1] > 0.9
