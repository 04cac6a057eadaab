"""``structot explore``: points, a cost or nothing becomes a page; wrong input one line."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from command import here, refused

import structot as sot
from structot.datasets.synthetic import clusters


@pytest.fixture
def folder(tmp_path):
    data = clusters(8, 6, n_classes=2)
    np.savetxt(tmp_path / "a.csv", data.X, delimiter=",")
    np.savetxt(tmp_path / "b.csv", data.Y, delimiter=",")
    np.save(tmp_path / "cost.npy", data.cost)
    for name, labels in (("ya", data.source_labels), ("yb", data.target_labels)):
        (tmp_path / f"{name}.csv").write_text("".join(f"{'uv'[k]}\n" for k in labels))
    return tmp_path


GROUPS = ("--source-groups", "ya.csv", "--target-groups", "yb.csv")


def _data(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.DOTALL)
    return json.loads(found.group(1))


def test_points_and_their_cost_give_the_same_figures(folder):
    answer = here("explore", "a.csv", "b.csv", *GROUPS, "--steps", 3, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    assert "wrote explore.html" in answer.stdout
    answer = here("explore", "cost.npy", *GROUPS, "--steps", 3, "--out", "c.html", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    points, cost = _data(folder / "explore.html"), _data(folder / "c.html")
    assert points["title"] == "a and b"
    assert points["groups"] == cost["groups"] == ["u", "v"]
    assert points["distances"]
    assert not cost["distances"]
    for one, other in zip(points["paths"], cost["paths"], strict=True):
        values = [[stop["value"] for stop in path["stops"]] for path in (one, other)]
        np.testing.assert_allclose(*values, rtol=1e-6)


def test_figures_are_those_of_solve_path(folder):
    here("explore", "cost.npy", *GROUPS, "--steps", 3, cwd=folder)
    ys, yt = ((folder / name).read_text().split() for name in ("ya.csv", "yb.csv"))
    path = sot.solve_path(
        np.load(folder / "cost.npy"),
        structures=[sot.Groups(ys, yt, sot.concave.Discount(d)) for d in (0.0, 0.475, 0.95)],
        tol=1e-3,
    )
    shown = _data(folder / "explore.html")["paths"][0]["stops"]
    np.testing.assert_allclose([stop["value"] for stop in shown], path.table()["value"])


def test_without_files_it_shows_the_clouds(tmp_path):
    answer = here("explore", "--steps", 2, "--out", "page.html", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    data = _data(tmp_path / "page.html")
    assert len(data["source"]["points"]) == len(data["target"]["points"]) == 60


def test_a_missed_gap_is_exit_code_1_and_marked(folder):
    words = ("cost.npy", *GROUPS, "--steps", 2, "--tol", 1e-15, "--time-limit", 0.01)
    answer = here("explore", *words, cwd=folder)
    stops = [stop for path in _data(folder / "explore.html")["paths"] for stop in path["stops"]]
    assert answer.returncode == (0 if all(stop["converged"] for stop in stops) else 1)


def test_wrong_input_is_refused(folder):
    np.save(folder / "many.npy", np.ones((401, 3)))
    np.save(folder / "line.npy", np.ones(4))
    np.savetxt(folder / "flat.csv", np.ones((4, 3)) * 0.5, delimiter=",")
    for words, said in (
        (("a.csv", "b.csv"), ("without groups", "--source-groups")),
        (("a.csv", "b.csv", "a.csv", *GROUPS), ("got 3 files",)),
        (GROUPS, ("belong to points",)),
        (("many.npy", *GROUPS), ("401 source points", "at most 400")),
        (("a.csv", "flat.csv", *GROUPS), ("same coordinates", "2 and 3")),
        (("line.npy", "b.csv", *GROUPS), ("a file of points must be a matrix", "(4,)")),
        (("gone.csv", "b.csv", *GROUPS), ("gone.csv", "does not exist")),
        (("cost.npy", *GROUPS, "--out", "page.txt"), ("must end in .html",)),
        (("a.csv", "b.csv", *GROUPS, "--metric", "nonsense"), ("nonsense",)),
        (("cost.npy", *GROUPS, "--metric", "euclidean"), ("--metric is about points",)),
        (("--metric", "euclidean"), ("belong to points",)),
    ):
        assert refused(here("explore", *words, cwd=folder), *said), words
    (folder / "explore.html").write_text("mine")
    assert refused(here("explore", "cost.npy", *GROUPS, cwd=folder), "--force")
