"""The paper's figures: measures with known answers, and small versions of what they show."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from structot.experiments import Settings, clusters, colors, moons, run, runtime


def drawn(report):
    """Every figure can be drawn from the records alone, and has a caption."""
    assert set(report.captions) == set(report.figures)
    for draw in report.figures.values():
        figure = draw()
        figure.canvas.draw()
        plt.close(figure)
    return True


def test_block_concentration_has_known_answers():
    labels = np.repeat([0, 1, 2], 4)
    assert clusters.block_concentration(np.eye(12) / 12, labels, labels) == pytest.approx(1.0)
    even = np.full((12, 12), 1 / 144)
    assert clusters.block_concentration(even, labels, labels) == pytest.approx(1 / 3)
    # Which class goes to which does not matter.
    turned = np.roll(labels, 4)
    assert clusters.block_concentration(np.eye(12) / 12, labels, turned) == pytest.approx(1.0)


def test_small_thresholds_concentrate_and_large_ones_are_plain_transport():
    """Figure 1: between the two ends of the sweep lies the model."""
    plain = clusters.compute("emd", 0, n=30)
    small = clusters.compute("structured", 0, alpha=1.0, n=30)
    large = clusters.compute("structured", 0, alpha=1e6, n=30)
    assert small["concentration"] > 0.99
    assert plain["concentration"] < 0.8
    assert large["linear"] == pytest.approx(plain["linear"], rel=1e-3)
    assert max(record["gap"] for record in (plain, small, large)) <= clusters.TOL


def test_neighbours_kept_by_known_maps():
    line = np.column_stack([np.arange(8.0), np.zeros(8)])
    same, back = np.eye(8) / 8, np.eye(8)[::-1] / 8
    for plan in (same, back):  # turning the line round keeps neighbours
        assert moons.neighbours_kept(plan, line, line, 2) == pytest.approx(1.0)
        assert moons.drawn_neighbours_kept(plan, line, line, 2) == pytest.approx(1.0, abs=0.15)
    shuffled = np.eye(8)[[0, 4, 1, 5, 2, 6, 3, 7]] / 8
    assert moons.neighbours_kept(shuffled, line, line, 2) < 0.6
    even = np.full((8, 8), 1 / 64)
    spread = moons.drawn_neighbours_kept(even, line, line, 2)
    assert spread == pytest.approx((8 + 16) / 64)  # 8 equal pairs and 16 pairs of neighbours


def test_neighbourhood_groups_keep_neighbours_together():
    """The appendix: more neighbours stay neighbours than with EMD, at a higher plain cost."""
    plain = moons.compute("emd", 0, n=30)
    structured = moons.compute("structured", 0, alpha=0.5, n=30)
    assert structured["converged"]
    assert structured["kept"] > plain["kept"] + 0.1
    assert structured["linear"] >= plain["linear"] * (1 - 1e-9)


def test_runtime_stops_asking_those_who_gave_up():
    settings = Settings(quick=True)
    first = runtime.EXPERIMENT.tasks(settings, {})
    assert {task.arguments["n"] for task in first} == {10}
    done = {task.key: {"converged": task.arguments["method"] == "newton"} for task in first}
    second = [task for task in runtime.EXPERIMENT.tasks(settings, done) if task.key not in done]
    assert [(task.arguments["method"], task.arguments["n"]) for task in second] == [("newton", 20)]


def test_runtime_records_the_certified_time():
    record = runtime.compute("newton", 12, 0, tol=0.1, limit=20.0)
    assert record["converged"]
    assert record["gap"] <= 0.1
    assert record["trace_time"][-1] <= record["seconds"] + 1e-9


def test_photographs_ship_with_scikit_image():
    pytest.importorskip("skimage")
    for name in {name for pair in colors.PAIRS for name in pair}:
        picture = colors.photograph(name, 4)
        assert picture.dtype == np.uint8
        assert picture.shape[2] == 3


class Small:
    """An experiment cut down to some of its tasks' sizes."""

    def __init__(self, experiment, **arguments):
        self.experiment, self.arguments = experiment, arguments
        self.name, self.title, self.needs = experiment.name, experiment.title, ()

    def tasks(self, settings, done):
        from dataclasses import replace

        return [
            replace(task, arguments={**task.arguments, **self.arguments})
            for task in self.experiment.tasks(settings, done)
        ]

    def report(self, settings, done):
        return self.experiment.report(settings, done)


def test_colours_report_compares_all_methods(tmp_path):
    pytest.importorskip("skimage")
    small = Small(colors.EXPERIMENT, step=8, n_samples=60)
    report = run(small, tmp_path, Settings(quick=True), progress=False)
    (pair,) = report.results["pairs"].values()
    assert pair["comparisons"] == 12
    assert pair["holds"] >= 9  # at full size all of them
    assert report.results["gaps_reached"]
    assert "| EMD |" in report.markdown
    assert drawn(report)


def test_runtime_report_draws_those_who_gave_up(tmp_path):
    small = Small(runtime.EXPERIMENT, n=8, limit=0.3)
    report = run(small, tmp_path, Settings(quick=True), progress=False)
    assert set(report.results["seconds"]) == set(runtime.METHODS)
    assert report.results["seconds"]["newton"][0] is not None
    assert drawn(report)
