"""Running experiments: resumable, whole files, nothing lost without being asked."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from structot import experiments
from structot.experiments import Report, Settings, Task, _records, run


def square(number, log):
    """Leaves a trace of being called."""
    with open(log, "a") as file:
        file.write(f"{number}\n")
    return {"square": np.float64(number**2), "array": np.arange(number), "nested": {"a": [number]}}


def total(squares, log):
    return {"total": sum(squares), "gap": float("nan")}


def fail_at_two(number, log):
    if number == 2:
        raise KeyboardInterrupt
    return square(number, log)


@dataclass(frozen=True)
class Squares:
    """Two stages: squares of the first numbers, then their sum."""

    log: Path
    function: object = square
    name: str = "squares"
    title: str = "sum of squares"
    needs: tuple = ()

    def tasks(self, settings, done):
        count = (settings.seeds or 4) if not settings.quick else 2
        first = [
            Task(f"square-{i}", self.function, {"number": i, "log": str(self.log)})
            for i in range(count)
        ]
        if not all(task.key in done for task in first):
            return first
        squares = [done[task.key]["square"] for task in first]
        return [*first, Task(f"total-{count}", total, {"squares": squares, "log": str(self.log)})]

    def report(self, settings, done):
        count = sum(key.startswith("square") for key in done)
        value = done[f"total-{count}"]["total"]
        return Report(
            {"total": value, "gap": done[f"total-{count}"]["gap"], "arrays": done["square-1"]},
            f"The sum is {value}.",
            {"picture": lambda: plt.subplots(figsize=(1, 1))[0]},
        )


def calls(log):
    return log.read_text().split() if log.exists() else []


def test_both_stages_run_and_everything_is_written(tmp_path):
    report = run(Squares(tmp_path / "log"), tmp_path, Settings(), progress=False)
    assert report.results["total"] == 0 + 1 + 4 + 9
    folder = tmp_path / "squares"
    # Strict JSON: NaN is null, arrays are lists.
    written = json.loads((folder / "results.json").read_text(), parse_constant=pytest.fail)
    assert written["total"] == 14
    assert written["gap"] is None
    assert written["arrays"]["array"] == [0]
    assert (folder / "report.md").read_text() == "The sum is 14.0.\n"
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")
    made = json.loads((folder / "run.json").read_text())
    assert set(made["seconds_by_task"]) == {*(f"square-{i}" for i in range(4)), "total-4"}
    assert made["seconds"] == pytest.approx(sum(made["seconds_by_task"].values()))
    assert not [path for path in folder.rglob("*") if "part" in path.name]


def test_finished_work_is_neither_repeated_nor_rewritten(tmp_path):
    log = tmp_path / "log"
    run(Squares(log), tmp_path, Settings(), progress=False)
    results = tmp_path / "squares" / "results.json"
    os.utime(results, (1, 1))
    again = run(Squares(log), tmp_path, Settings(), progress=False)
    assert again.results["total"] == 14
    assert calls(log) == list("0123")
    assert results.stat().st_mtime == 1


def test_an_interrupted_run_is_resumed(tmp_path):
    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt):
        run(Squares(log, fail_at_two), tmp_path, Settings(), progress=False)
    folder = tmp_path / "squares"
    assert sorted(p.stem for p in (folder / "tasks").iterdir()) == ["square-0", "square-1"]
    assert not (folder / "results.json").exists()
    assert run(Squares(log), tmp_path, Settings(), progress=False).results["total"] == 14
    assert calls(log) == list("0123")


def test_a_damaged_record_is_computed_again(tmp_path):
    log = tmp_path / "log"
    run(Squares(log), tmp_path, Settings(), progress=False)
    path = tmp_path / "squares" / "tasks" / "square-3.npz"
    path.write_bytes(path.read_bytes()[:50])
    assert run(Squares(log), tmp_path, Settings(), progress=False).results["total"] == 14
    assert calls(log) == list("01233")


def test_more_seeds_extend_and_fewer_are_refused(tmp_path):
    log = tmp_path / "log"
    run(Squares(log), tmp_path, Settings(), progress=False)
    assert run(Squares(log), tmp_path, Settings(seeds=5), progress=False).results["total"] == 30
    assert calls(log) == list("01234")
    with pytest.raises(FileExistsError, match="--force"):
        run(Squares(log), tmp_path, Settings(quick=True), progress=False)
    assert json.loads((tmp_path / "squares" / "results.json").read_text())["total"] == 30


def test_force_computes_anew_and_leaves_foreign_files(tmp_path):
    log = tmp_path / "log"
    run(Squares(log), tmp_path, Settings(), progress=False)
    foreign = tmp_path / "squares" / "notes.txt"
    foreign.write_text("mine")
    quick = run(Squares(log), tmp_path, Settings(quick=True), progress=False, force=True)
    assert quick.results["total"] == 1
    assert calls(log) == list("012301")
    assert foreign.read_text() == "mine"


def test_processes_give_the_same(tmp_path):
    log = tmp_path / "log"
    report = run(Squares(log), tmp_path, Settings(jobs=2), progress=False)
    assert report.results["total"] == 14
    assert sorted(calls(log)) == list("0123")


def test_progress_without_a_terminal_is_lines_of_text(tmp_path, capsys):
    run(Squares(tmp_path / "log"), tmp_path, Settings(), progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "squares: 4 tasks\n" in captured.err
    assert "5 of 5 done" in captured.err
    assert "\x1b" not in captured.err


def test_records_come_back_as_they_went(tmp_path):
    record = {"x": np.eye(2), "y": {"z": [np.float32(0.5), np.arange(3)]}, "text": "α", "no": None}
    _records.dump(tmp_path / "record.npz", record)
    back = _records.load(tmp_path / "record.npz")
    np.testing.assert_array_equal(back["x"], np.eye(2))
    assert back["y"]["z"][0] == 0.5
    np.testing.assert_array_equal(back["y"]["z"][1], [0, 1, 2])
    assert (back["text"], back["no"]) == ("α", None)
    with pytest.raises(TypeError, match="Python objects"):
        _records.dump(tmp_path / "bad.npz", {"x": np.array([{}, 1], object)})
    assert not (tmp_path / "bad.npz").exists()


def test_registry_knows_its_experiments():
    assert {"clusters", "runtime", "moons", "colors"} <= set(experiments.NAMES)
    for name in experiments.NAMES:
        experiment = experiments.get(name)
        assert experiment.name == name
        assert experiment.title
        assert "\n" not in experiment.title
    with pytest.raises(ValueError, match="Did you mean 'clusters'"):
        experiments.get("cluster")
