"""Choosing without target labels: the criteria by hand, what `select` does with them."""

from __future__ import annotations

import io
import sys

import numpy as np
import ot
import pytest

pytest.importorskip("sklearn")

from joblib import parallel_config
from sklearn.metrics import silhouette_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from structot.adaptation import StructuredTransport, select
from structot.adaptation.criteria import CRITERIA
from structot.datasets import clusters
from structot.experiments._adaptation_rejected import REJECTED

DATA = clusters(60, rotation=0.2, shift=6.0, seed=1)
XS, YS, XT, YT = DATA.X, DATA.source_labels, DATA.Y, DATA.target_labels


class Scramble:
    """A map that forgets the classes: source points go to target points at random."""

    def fit(self, Xs, ys, Xt):
        rng = np.random.default_rng(0)
        self.target = Xt
        self.coupling_ = np.zeros((len(Xs), len(Xt)))
        self.goal = rng.integers(len(Xt), size=len(Xs))
        self.coupling_[np.arange(len(Xs)), self.goal] = 1.0 / len(Xs)
        return self

    def transform(self, Xs):
        return self.target[np.resize(self.goal, len(Xs))]


class Broken(Scramble):
    def transform(self, Xs):
        return np.full(np.shape(Xs), np.nan)


@pytest.mark.parametrize("name", ["bootstrap", "separation"])
def test_a_map_that_keeps_classes_is_preferred_to_one_that_forgets_them(name):
    grid = {"scrambled": Scramble(), "ours": StructuredTransport()}
    found = select(grid, XS, YS, XT, criterion=name)
    assert found.best_name == "ours"
    assert found.names == ("scrambled", "ours")
    assert found.best_score == found.scores[1] > found.scores[0]
    assert not hasattr(found.best, "coupling_")


def test_criteria_by_hand():
    adapt = StructuredTransport().fit(XS, YS, XT)
    guess = KNeighborsClassifier(1).fit(adapt.transform(XS), YS).predict(XT)
    Q = adapt.predict_target_proba()

    def score(criterion):
        return select([StructuredTransport()], XS, YS, XT, criterion=criterion).best_score

    assert score("separation") == pytest.approx(silhouette_score(XT, guess))
    assert score(REJECTED["agreement"]) == np.mean(adapt.predict_target() == guess)
    inside = adapt.coupling_[YS[:, None] == guess[None, :]].sum()
    assert score(REJECTED["coherence"]) == pytest.approx(inside)
    logs = np.log(np.maximum(Q, 1e-300))
    assert score(REJECTED["entropy"]) == pytest.approx((Q * logs).sum() / 60)
    rows = adapt.coupling_ * 60
    effective = np.exp(-(rows * np.log(np.maximum(rows, 1e-300))).sum(axis=1))
    assert score(REJECTED["partners"]) == pytest.approx(-effective.mean())
    back = KNeighborsClassifier(1).fit(adapt.fit(XT, guess, XS).transform(XT), guess)
    assert score(REJECTED["reverse"]) == pytest.approx(np.mean(back.predict(XS) == YS))


def test_a_permutation_of_points_undoes_itself_and_is_not_stable():
    """Why reverse validation is not offered: it likes plans that invert themselves."""
    rng = np.random.default_rng(3)
    source, target = rng.normal(size=(2, 60, 5))
    labels = np.arange(60) % 3  # nothing to find
    sharp = {"sharp": StructuredTransport(charge=0.0, reg=0.001)}
    undone = select(sharp, source, labels, target, criterion=REJECTED["reverse"]).best_score
    assert undone > 0.8
    assert select(sharp, source, labels, target, criterion="bootstrap").best_score < 0.7


@pytest.mark.parametrize("name", [*CRITERIA, *REJECTED])
def test_every_criterion_takes_pot_and_any_classifier_and_does_not_depend_on_workers(name):
    grid = [StructuredTransport(), ot.da.SinkhornTransport(reg_e=5.0)]
    options = {"classifier": SVC(), "criterion": REJECTED.get(name, name)}
    alone = select(grid, XS, YS, XT, n_jobs=1, **options)
    with parallel_config("threading"):  # processes need seconds to start
        both = select(grid, XS, YS, XT, n_jobs=2, **options)
    np.testing.assert_array_equal(alone.scores, both.scores)
    assert np.isfinite(alone.scores).all()


def test_a_criterion_of_ones_own():
    found = select(
        {charge: StructuredTransport(charge=charge) for charge in (0.1, 0.3)},
        XS,
        YS,
        XT,
        criterion=lambda adapted: -adapted.candidate.charge,
    )
    assert found.best_name == 0.1


def test_selection_shows_a_bar_on_a_terminal(monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    select([Scramble(), Scramble()], XS, YS, XT, progress=True)
    assert "selection" in screen.getvalue()


def test_labels_in_any_form_give_the_same_score():
    known = np.arange(60) % 4 > 0
    masked = select([StructuredTransport()], XS, np.ma.masked_array(YS, mask=~known), XT)
    listed = [int(y) if k else None for y, k in zip(YS, known, strict=True)]
    assert select([StructuredTransport()], XS, listed, XT).best_score == masked.best_score
    alone = select([StructuredTransport()], XS[known], YS[known], XT)
    assert alone.best_score == masked.best_score
    flat = select([Scramble()], XS, YS, XT)
    assert select([Scramble()], XS, YS[:, None], XT).best_score == flat.best_score


@pytest.mark.parametrize("name", CRITERIA)
def test_targets_that_all_coincide_get_a_score(name):
    found = select(
        [StructuredTransport()],
        XS,
        YS,
        np.ones((20, 2)),
        classifier=SVC(kernel="linear"),
        criterion=name,
    )
    assert np.isfinite(found.best_score)


def test_candidates_without_a_map_are_left_out():
    with pytest.warns(UserWarning, match="1 candidates gave no finite map"):
        found = select({"broken": Broken(), "ours": StructuredTransport()}, XS, YS, XT)
    assert found.best_name == "ours"
    assert np.isnan(found.scores[0])
    with pytest.raises(ValueError, match="no candidate gave a finite map"):
        select([Broken()], XS, YS, XT)
    with pytest.raises(ValueError, match="candidates is empty"):
        select([], XS, YS, XT)
    with pytest.raises(ValueError, match="fewer than two classes"):
        select([Broken()], XS, np.zeros(60), XT)
    with pytest.raises(ValueError, match=r"got one StructuredTransport\. Put it in a list"):
        select(StructuredTransport(), XS, YS, XT)
    with pytest.raises(ValueError, match="Did you mean 'separation'"):
        select([StructuredTransport()], XS, YS, XT, criterion="separations")
