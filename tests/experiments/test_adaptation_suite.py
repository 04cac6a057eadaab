"""The suite of adaptation families: fair draws, settings chosen without the family they are for."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from structot.experiments import _adaptation_constants as constants
from structot.experiments import _adaptation_criteria as criteria
from structot.experiments import adaptation, digits, small_digits, transduction
from structot.experiments._adaptation_methods import BY_KEY, accuracies, nearest
from structot.experiments._adaptation_suite import CASES, FAMILIES, SAMPLE, TABLES
from structot.experiments._runner import Settings

QUICK = Settings(quick=True)
FREE = [case for case in CASES if not case.needs_data]


@pytest.mark.parametrize("case", FREE, ids=lambda case: case.key)
def test_draws_can_be_repeated_differ_by_seed_and_hold_every_class(case):
    one, again, other = case.draw(3, None), case.draw(3, None), case.draw(4, None)
    assert np.array_equal(one.Xt, again.Xt)
    assert not np.array_equal(one.Xt[:20], other.Xt[:20])
    assert max(len(one.Xs), len(one.Xt)) <= SAMPLE
    assert all(np.isfinite(points).all() for points in (one.Xs, one.Xt, one.queries))
    assert len(one.ys) == len(one.Xs)
    assert set(one.truth.tolist()) <= set(one.ys.tolist())
    assert one.scaled == (case.family in TABLES)


def test_queries_are_no_target_points_where_there_are_others():
    for case in FREE:
        draw = case.draw(0, None)
        seen = {row.tobytes() for row in draw.Xt}
        new = [row.tobytes() not in seen for row in draw.queries]
        assert all(new) or case.family in TABLES


def test_keys_are_unique_and_fit_for_files():
    keys = [case.key for case in CASES]
    assert len(set(keys)) == len(keys)
    assert all(set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-") for key in keys)
    assert len(FAMILIES) == 8


def made_up_constants(seed):
    """Every change of the metric loses a point, every other map gains one; alarms are right."""
    shares = {name: {str(x): [value] for x in constants.LOOKED_AT} for name, value in SHARES}
    for name, value in SHARES:
        shares[name]["batches"] = {str(x): [value] for x in constants.BATCHES}
    return {
        "default": 70.0 + seed,
        "affine": 70.0 + seed,
        "metric": [69.0 + seed] * len(constants.METRIC),
        "maps": [71.0 + seed] * len(constants.MAPS),
        "variance": {"default": 0.1, "affine": 0.9},
        "domain": {**shares, "harm": 10.0},
        "units": {"right": 1.0, "wrong": 3.0, "harm": 1.0, "scaled": 1e-8, "raw": 0.5},
    }


SHARES = (("right", 0.0), ("wrong", 0.6))


def made_up(settings, score):
    """Records of every task, their accuracies made up from the family, the method, the setting."""
    done = {}
    for _ in range(2):
        for task in adaptation.tasks(settings, done):
            if task.key in done:
                continue
            case = next(c for c in CASES if c.key == task.arguments["case"])
            seed = task.arguments["seed"]
            if "grid" in task.arguments:
                grid, method = task.arguments["grid"], task.arguments["method"]
                found = [score(case.family, method, point) + 0.1 * seed for point in grid]
                done[task.key] = {"accuracy": found}
            elif task.key.startswith("constants"):
                done[task.key] = made_up_constants(seed)
            else:
                count = len(criteria.CANDIDATES)
                right = np.linspace(50.0, 60.0, count)
                scores = {"good": right.tolist(), "bad": (-right).tolist()}
                done[task.key] = {"default": 57.0, "accuracy": right.tolist(), "scores": scores}
    return done


def score(family, method, point):
    """Entropic: squared distances are far better on wine and a little worse elsewhere."""
    if method == "default":
        return 70.0
    if method == "entropic":
        squared = point["metric"] == "sqeuclidean" and point["reg_e"] == 0.05
        return 90.0 if squared and family == "wine" else 59.0 if squared else 60.0
    return 50.0


def test_the_setting_of_a_family_is_chosen_on_the_other_families():
    done = made_up(QUICK, score)
    families = [f for f in FAMILIES if f in {case.family for case in adaptation.cases(QUICK)}]
    left_out = adaptation.accuracy(QUICK, done, "entropic", 0).mean(axis=1)
    best = adaptation.accuracy(QUICK, done, "entropic", 1).mean(axis=1)
    wine = families.index("wine")
    assert left_out[wine] < 61  # though one setting would have had 90
    assert best[wine] > 89
    assert (np.delete(left_out, wine) < 60).all()  # wine chose for the others


def test_the_report_says_what_the_records_say():
    report = adaptation.report(QUICK, made_up(QUICK, score))
    cell = report.results["suite"]["methods"]["entropic"]
    left_out, best = np.mean(cell["left_out"]), np.mean(cell["best"])
    ours = np.mean(report.results["suite"]["methods"]["default"]["left_out"])
    assert cell["default_minus_left_out"][0] == pytest.approx(ours - left_out)
    assert cell["default_minus_best"][0] == pytest.approx(ours - best)
    assert "is above entropic (POT) at its best fixed setting" in report.markdown
    judged = report.results["criteria"]
    assert judged["good"]["correlation"][0] == pytest.approx(1.0)
    assert judged["good"]["minus_random"][0] == pytest.approx(5.0)
    assert judged["good"]["minus_default"][0] == pytest.approx(3.0)
    assert judged["bad"]["minus_random"][0] == pytest.approx(-5.0)
    assert "Better than a random pick: good. Worse: bad." in report.markdown
    found = report.results["constants"]
    lost = found["metric"][constants.METRIC[0].title]["reported"]
    assert (lost["mean"], lost["width"]) == pytest.approx((-1.0, 0.0))
    assert found["domain"]["`_SURPRISE` = 0.5"] == [0.0, 100.0, 100.0]
    assert found["domain"]["`_SURPRISE` = 0.75"] == [0.0, 0.0, 0.0]
    assert found["units"]["`_APART` = 2"][:2] == [0.0, 100.0]  # and no misuse that cost anything
    assert "| class-affine | 0.90 |" in report.markdown


def test_methods_run_on_a_draw_and_a_map_that_is_not_finite_scores_nothing(monkeypatch):
    draw = next(case for case in FREE if case.family == "iris").draw(0, None)
    for method in ("none", "lasso", "default", "first", "affine", "routes"):
        assert accuracies(method, [BY_KEY[method].grid[0]], draw)[0] > 40.0
    monkeypatch.setattr(
        BY_KEY["none"].make, "transform", lambda self, Xs: np.full(Xs.shape, np.nan)
    )
    assert accuracies("none", [{}], draw) == [0.0]
    assert len(nearest(draw).steps) == 2


def test_constants_are_changed_one_at_a_time_and_put_back():
    from structot.adaptation import class_affine, mapping

    before = mapping._FEW_OF_ALL, class_affine.trust
    case = next(case for case in FREE if case.family == "iris")
    record = constants.measure(case.key, 0, None)
    assert (mapping._FEW_OF_ALL, class_affine.trust) == before
    assert len(record["metric"]) == len(constants.METRIC)
    assert record["maps"][0] == record["default"]
    assert record["maps"][1] != record["maps"][0]
    assert record["variance"]["affine"] > record["variance"]["default"]
    assert record["units"]["scaled"] < 1e-5 < record["units"]["raw"]


def test_criteria_are_judged_on_a_draw(monkeypatch):
    monkeypatch.setattr(criteria, "CANDIDATES", ({"charge": 0.0}, {"charge": 0.25}))
    case = next(case for case in FREE if case.family == "Gaussian classes")
    record = criteria.judge(case.key, 0, None)
    assert len(record["accuracy"]) == 2
    assert record["accuracy"][1] == record["default"]
    assert all(np.isfinite(values).all() for values in record["scores"].values())


def test_transduction_labels_the_sample_itself(monkeypatch):
    domains = small_digits.load()
    monkeypatch.setattr(
        digits,
        "load",
        lambda data, blur: dict(zip(("mnist", "usps"), domains.values(), strict=True)),
    )
    monkeypatch.setattr(transduction, "TARGET", 120)
    for method in ("entropic", "charge", "routes"):
        grid = [transduction.BY_KEY[method].grid[0]]
        record = transduction.evaluate(("mnist", "usps"), method, grid, 0, None)
        assert record["plan"][0] > 30.0
        assert record["nearest"][0] > 30.0
