"""Reverse validation, and the step of a Pipeline."""

from __future__ import annotations

import io
import sys
import warnings

import numpy as np
import ot
import pytest

pytest.importorskip("sklearn")

from joblib import parallel_config
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from structot.adaptation import AdaptTo, StructuredTransport, reverse_validation
from structot.datasets import clusters

DATA = clusters(60, rotation=0.2, shift=6.0, seed=1)
XS, YS, XT, YT = DATA.X, DATA.source_labels, DATA.Y, DATA.target_labels


class Scramble:
    """A map that forgets the classes: source points go to target points at random."""

    def fit(self, Xs, ys, Xt):
        self.target = Xt
        return self

    def transform(self, Xs):
        return self.target[np.random.default_rng(0).integers(len(self.target), size=len(Xs))]


class Broken(Scramble):
    def transform(self, Xs):
        return np.full(np.shape(Xs), np.nan)


def test_the_pipeline_trains_on_moved_points_and_leaves_test_points_alone():
    model = make_pipeline(AdaptTo(XT), KNeighborsClassifier(1)).fit(XS, YS)
    by_hand = KNeighborsClassifier(1).fit(StructuredTransport().fit(XS, YS, XT).transform(XS), YS)
    assert np.array_equal(model.predict(XT), by_hand.predict(XT))
    without = KNeighborsClassifier(1).fit(XS, YS)
    assert model.score(XT, YT) > without.score(XT, YT) + 0.2


def test_the_step_can_be_cloned_searched_and_given_another_transport():
    pipe = Pipeline(
        [("adapt", AdaptTo(XT, StructuredTransport())), ("knn", KNeighborsClassifier(1))]
    )
    search = GridSearchCV(pipe, {"adapt__transport__charge": [0.0, 0.05]}, cv=2)
    assert search.fit(XS, YS).best_params_.keys() == {"adapt__transport__charge"}
    copy = clone(pipe)
    assert copy.named_steps["adapt"].transport.get_params() == StructuredTransport().get_params()
    other = AdaptTo(XT, ot.da.SinkhornTransport(reg_e=5.0))
    expected = ot.da.SinkhornTransport(reg_e=5.0).fit(Xs=XS, ys=YS, Xt=XT).transform(Xs=XS)
    np.testing.assert_allclose(other.fit_transform(XS, YS), expected)


def test_the_step_keeps_frames_and_refuses_other_features():
    pd = pytest.importorskip("pandas")
    source, target = (pd.DataFrame(x, columns=["u", "v"]) for x in (XS, XT))
    step = AdaptTo(target).set_output(transform="pandas")
    moved = step.fit_transform(source, YS)
    assert list(moved.columns) == ["u", "v"]
    assert step.transform(target).equals(target)
    assert step.get_feature_names_out().tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="3 features"):
        AdaptTo(XT).fit(XS, YS).transform(np.ones((2, 3)))


def test_a_pipeline_of_frames_trains_and_predicts_on_the_same_kind_of_array():
    pd = pytest.importorskip("pandas")
    source, target = (pd.DataFrame(x, columns=["u", "v"]) for x in (XS, XT))
    model = make_pipeline(AdaptTo(target), KNeighborsClassifier(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # scikit-learn warns where feature names come and go
        found = model.fit(source, YS).predict(target)
        framed = model.set_output(transform="pandas").fit(source, YS).predict(target)
    assert np.array_equal(found, framed)


def test_known_target_labels_reach_the_plan():
    hard = clusters(30, 30, rotation=0.45, seed=2)
    step = AdaptTo(hard.Y, yt=hard.target_labels).fit(hard.X, hard.source_labels)
    wrong = hard.source_labels[:, None] != hard.target_labels[None, :]
    assert step.transport_.coupling_[wrong].sum() == 0


def test_reverse_validation_prefers_a_map_that_keeps_classes():
    found = reverse_validation(
        {"scrambled": Scramble(), "ours": StructuredTransport()}, XS, YS, XT, n_jobs=1
    )
    assert found.best_name == "ours"
    assert found.names == ("scrambled", "ours")
    assert found.best_score == found.scores[1] > found.scores[0] + 0.3
    assert not hasattr(found.best, "coupling_")


def test_reverse_validation_is_what_it_says():
    adapt = StructuredTransport()
    guess = KNeighborsClassifier(1).fit(adapt.fit(XS, YS, XT).transform(XS), YS).predict(XT)
    back = KNeighborsClassifier(1).fit(adapt.fit(XT, guess, XS).transform(XT), guess)
    found = reverse_validation([StructuredTransport()], XS, YS, XT)
    assert found.scores[0] == pytest.approx(np.mean(back.predict(XS) == YS))
    assert found.best_name == 0


def test_reverse_validation_with_several_workers_another_classifier_and_pot():
    grid = [StructuredTransport(), ot.da.SinkhornTransport(reg_e=5.0), ot.da.EMDTransport()]
    options = {"classifier": SVC(), "progress": True}
    alone = reverse_validation(grid, XS, YS, XT, n_jobs=1, **options)
    with parallel_config("threading"):  # processes need seconds to start
        both = reverse_validation(grid, XS, YS, XT, n_jobs=2, **options)
    np.testing.assert_array_equal(alone.scores, both.scores)


def test_reverse_validation_shows_a_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    reverse_validation([Scramble(), Scramble()], XS, YS, XT, progress=True)
    assert "reverse validation" in screen.getvalue()


def test_reverse_validation_with_gaps_in_the_labels():
    gaps = np.ma.masked_array(YS, mask=np.arange(60) % 4 == 0)
    assert reverse_validation([StructuredTransport()], XS, gaps, XT).best_score > 0.8


def test_labels_in_any_form_give_the_same_score():
    known = np.arange(60) % 4 > 0
    masked = reverse_validation([Scramble()], XS, np.ma.masked_array(YS, mask=~known), XT)
    listed = [int(y) if k else None for y, k in zip(YS, known, strict=True)]
    assert reverse_validation([Scramble()], XS, listed, XT).best_score == masked.best_score
    flat = reverse_validation([Scramble()], XS, YS, XT)
    assert reverse_validation([Scramble()], XS, YS[:, None], XT).best_score == flat.best_score


def test_a_map_that_leaves_one_class_is_scored_with_any_classifier():
    """Where all target points coincide they get one label, right for its share of the source."""
    found = reverse_validation(
        [StructuredTransport()], XS, YS, np.ones((20, 2)), classifier=SVC(kernel="linear")
    )
    assert found.best_score in [np.mean(YS == k) for k in range(3)]


def test_candidates_without_a_map_are_left_out():
    with pytest.warns(UserWarning, match="1 candidates gave no finite map"):
        found = reverse_validation({"broken": Broken(), "ours": StructuredTransport()}, XS, YS, XT)
    assert found.best_name == "ours"
    assert np.isnan(found.scores[0])
    with pytest.raises(ValueError, match="no candidate gave a finite map"):
        reverse_validation([Broken()], XS, YS, XT)
    with pytest.raises(ValueError, match="estimators is empty"):
        reverse_validation([], XS, YS, XT)
    with pytest.raises(ValueError, match="fewer than two classes"):
        reverse_validation([Broken()], XS, np.zeros(60), XT)
    with pytest.raises(ValueError, match=r"got one StructuredTransport\. Put it in a list"):
        reverse_validation(StructuredTransport(), XS, YS, XT)
