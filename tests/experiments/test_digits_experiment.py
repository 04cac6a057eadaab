"""The digit experiments: fair tuning, paired samples, intervals, resuming, and what comes out."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
from scipy import stats

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

from sklearn.neighbors import KNeighborsClassifier

from structot.experiments import _adaptation as adaptation
from structot.experiments import _adaptation_report as tables
from structot.experiments import digits, small_digits
from structot.experiments._adaptation import Comparison, Domain, Setting, evaluate
from structot.experiments._runner import Settings, run

SETTING = small_digits.SETTING
accuracy_of = partial(evaluate, small_digits.load, {}, SETTING, tuning=False)


def test_structured_beats_emd_and_no_adaptation_by_a_clear_margin():
    seeds = range(6)
    scores = {
        method: np.array([accuracy_of(method, [{}], seed)["accuracy"][0] for seed in seeds])
        for method in ("none", "emd", "default")
    }
    for other in ("none", "emd"):
        mean, width = tables.interval(scores["default"] - scores[other])
        assert mean > 10.0
        assert mean - width > 5.0


def test_every_method_of_the_table_runs_and_ours_are_certified():
    for method in adaptation.METHODS:
        record = accuracy_of(method.key, [method.grid[len(method.grid) // 2]], 0)
        assert 20.0 < record["accuracy"][0] < 100.0, method.key
        if method.key in ("paper", "structured", "ward", "default"):
            assert record["gap"][0] <= 1e-3
            assert record["plan_mass"][0] == pytest.approx(1.0, abs=1e-9)


def test_nearest_label_is_the_nearest_neighbour():
    rng = np.random.default_rng(0)
    X, y, queries = rng.normal(size=(30, 5)), rng.integers(0, 4, 30), rng.normal(size=(100, 5))
    expected = KNeighborsClassifier(1).fit(X, y).predict(queries)
    assert np.array_equal(adaptation.nearest_label(X, y, queries), expected)


@pytest.mark.parametrize("sampling", adaptation.SAMPLINGS)
def test_samples_are_sorted_distinct_and_balanced_if_asked_for(sampling):
    domain = small_digits.load()["digits"]
    index = adaptation.sample(domain, sampling, np.random.default_rng(0))
    labels = domain.y_train[index]
    assert len(set(index.tolist())) == adaptation.SAMPLE
    assert (np.diff(labels) >= 0).all()
    assert (np.ptp(np.bincount(labels, minlength=10)) == 0) == (sampling == "balanced")


def test_known_target_labels_reach_every_transport_and_the_classifier():
    labelled = Setting("digits", "shifted", known=2)
    for method in ("none", "entropic", "structured"):
        grid = [adaptation.BY_KEY[method].grid[0]]
        with_labels = evaluate(small_digits.load, {}, labelled, method, grid, 0, False)
        assert with_labels["accuracy"][0] > accuracy_of(method, grid, 0)["accuracy"][0] + 2.0
    kept = adaptation._known_labels(np.array([3, 3, 3, 5, 5, 5]), 2)
    assert kept.tolist() == [3, 3, None, 5, 5, None]


def test_tuning_never_sees_the_test_images():
    def load(blur):
        return {
            name: Domain(d.x_train, d.y_train, np.full((3, 64), np.nan), np.full(3, 99))
            for name, d in small_digits.load().items()
        }

    tuned = partial(evaluate, load, {}, SETTING, "emd", [{}], tuning=True)
    assert tuned(seed=100)["accuracy"][0] > 20.0


def test_the_parameters_are_the_best_on_the_tuning_seeds_and_only_those():
    comparison = Comparison(
        small_digits.load, {}, (SETTING,), ("none", "entropic"), seeds=2, tuning_seeds=(100, 101)
    )
    first = comparison.tasks({})
    assert len(first) == 2  # nothing to tune for "none"
    scores = [[10, 20, 30, 0, 0, 0, 0], [0, 25, 0, 40, 0, 0, 0]]
    done = {t.key: {"accuracy": s} for t, s in zip(first, scores, strict=True)}
    grid = adaptation.BY_KEY["entropic"].grid
    assert comparison.chosen(done)[SETTING.name]["entropic"] == grid[1]
    second = comparison.tasks(done)[2:]
    assert [t.arguments["seed"] for t in second] == [0, 0, 1, 1]
    assert {str(t.arguments["grid"]) for t in second} == {"[{}]", str([grid[1]])}
    keys = [t.key for t in [*first, *second]]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[\w.-]+", key) for key in keys)


def test_thin_grids_vary_every_parameter():
    for thin in (3, 5):
        comparison = Comparison(small_digits.load, {}, (SETTING,), (), seeds=1, thin=thin)
        grid = comparison.grid("structured")
        assert {len({point[name] for point in grid}) > 1 for name in ("charge", "reg")} == {True}


def test_interval_is_the_t_interval():
    x = np.random.default_rng(0).normal(size=12)
    expected = stats.ttest_1samp(x, 0.0).confidence_interval(0.95)
    mean, width = tables.interval(x)
    np.testing.assert_allclose((mean - width, mean + width), (expected.low, expected.high))


def test_verdict_says_above_below_and_neither():
    noise = np.random.default_rng(0).normal(size=20)
    ours = 60.0 + noise
    cells = {
        "structured": ours,
        "emd": ours - 20.0 + 0.1 * noise,
        "lasso": ours + noise[::-1],
        "paper": ours + 5.0 + 0.1 * noise[::-1],
    }
    data = {
        "reference": "structured",
        "settings": {SETTING.name: {m: {"accuracy": x} for m, x in cells.items()}},
    }
    text = tables.verdict(data, {"pool": [SETTING]})
    assert re.search(
        r"above EMD \(\+20.*not told apart from group lasso.*below structured, exact", text
    )


def test_small_digits_runs_reports_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(small_digits, "KEYS", ("none", "emd", "structured"))
    settings = Settings(quick=True, seeds=2)
    report = run(small_digits.EXPERIMENT, tmp_path, settings, progress=False)
    folder = tmp_path / "small_digits"
    for name in ("results.json", "report.md", "small_digits_plans.png"):
        assert (folder / name).stat().st_size > 1000
    assert "| EMD |" in report.markdown
    assert "structured, fixed charge + entropy, is" in report.markdown
    stamp = {path: path.stat().st_mtime_ns for path in (folder / "tasks").iterdir()}
    again = run(small_digits.EXPERIMENT, tmp_path, settings, progress=False)
    assert again.markdown == report.markdown
    assert stamp == {path: path.stat().st_mtime_ns for path in (folder / "tasks").iterdir()}


def test_digits_experiment_on_small_images(tmp_path, monkeypatch):
    """The full experiment with 8×8 images in place of MNIST and USPS."""

    def load(data, blur=0.0):
        small = small_digits.load()
        return {"mnist": small["digits"], "usps": small["shifted"]}

    keys = ("none", "emd", "lasso", "paper", "structured", "ward", "default", "first")
    few = tuple(adaptation.BY_KEY[key] for key in keys)
    monkeypatch.setattr(digits, "load", load)
    monkeypatch.setattr(digits, "SIDE", 8)
    monkeypatch.setattr(digits, "METHODS", few)
    monkeypatch.setattr(digits, "BLURRED", ("none", "lasso", "structured", "ward"))
    monkeypatch.setattr(digits, "LABELLED", ("none", "lasso", "structured", "ward"))
    report = run(digits.EXPERIMENT, tmp_path, Settings(quick=True, seeds=1), progress=False)
    assert "41.2 / 33.1" in report.markdown
    assert "MNIST → USPS, balanced" in report.markdown
    cell = report.results["main"]["settings"]["mnist-usps-balanced"]["structured"]
    assert cell["mean"] == pytest.approx(np.mean(cell["accuracy"]))
    assert cell["structured_minus_this"] == 0.0
    assert (tmp_path / "digits" / "digits_transported.png").exists()


def test_digits_covers_both_directions_samplings_and_every_method():
    main, blurred, labelled = digits._parts(Settings())
    assert main.seeds == 20
    assert len(main.tuning_seeds) == 5
    assert set(main.tuning_seeds).isdisjoint(range(main.seeds))
    assert set(main.settings) == {
        Setting(s, t, how) for s, t in digits.DIRECTIONS for how in ("balanced", "random")
    }
    assert {"none", "emd", "entropic", "laplace", "lasso", "lasso_l2", "structured"} <= set(
        main.methods
    )
    assert {setting.blur for setting in blurred.settings} == {1.0}
    assert {setting.known for setting in labelled.settings} == {1, 2}
    parts = [set(part.settings) for part in (main, blurred, labelled)]
    assert not any(parts[i] & parts[k] for i, k in ((0, 1), (0, 2), (1, 2)))


def test_images_become_unit_vectors_of_the_right_size():
    images = np.random.default_rng(0).random((4, 16, 16)).astype(np.float32)
    for blur in (0.0, 1.0):
        vectors = digits._unit(images, blur)
        assert vectors.shape == (4, 256)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0)


def test_the_report_says_what_the_defaults_lose(monkeypatch):
    """Records made up: the defaults 0.6 points below those of 0.1, and a point below tuned ones."""
    right = {"default": 49.0, "first": 49.6, "paper": 52.0, "lasso": 51.0}
    done = {}
    for _ in range(2):
        for task in digits.tasks(Settings(quick=True), done):
            if task.key not in done:
                a = task.arguments
                value = right.get(a["method"], 50.0) + 0.1 * a["seed"]
                found = [value] * len(a["grid"])
                done[task.key] = {"accuracy": found, "gap": [1e-4], "plan_mass": [1.0]}
    text = digits.report(Settings(quick=True), done).markdown
    assert "the defaults lose 0.6 ± 0.0 points against those of 0.1: they lose more than" in text
    assert "here, balanced, +1.0 ± 0.0." in text
    assert "| tuned parameters | -1.0 ± 0.0 |" in text
