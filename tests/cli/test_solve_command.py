"""``structot solve`` and the manners all commands share."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from command import MODULE, SCRIPT, environment, here, refused, structot

import structot as sot
from structot.datasets.synthetic import clusters

DATA = clusters(12, 9, n_classes=3)
LABELS = DATA.source_labels, DATA.target_labels
GROUPS = ("--source-groups", "rows.csv", "--target-groups", "columns.npy")
WEIGHTS = {"a": np.arange(1, 13) / 78, "b": np.arange(1, 10) / 45}
OPTIONS = (*GROUPS, "--alpha", 10, "--units", "cost")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("solve")
    np.save(path / "cost.npy", DATA.cost)
    (path / "rows.csv").write_text("\n".join("abc"[k] for k in DATA.source_labels) + "\n")
    np.save(path / "columns.npy", DATA.target_labels)
    return path


@pytest.fixture(scope="module")
def expected():
    structure = sot.Groups(
        DATA.source_labels, DATA.target_labels, sot.concave.ThresholdSqrt(10.0), units="cost"
    )
    return sot.solve(DATA.cost, structure=structure)


def test_a_mistyped_command_is_answered_by_a_question(tmp_path):
    assert refused(here("explroe", cwd=tmp_path), "Did you mean 'explore', 'reproduce'? See ")


def test_answer_for_scripts_is_that_of_the_library(folder, expected):
    answer = structot("solve", "cost.npy", *OPTIONS, "--json", "--out", "plan.npz", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    told = json.loads(answer.stdout)
    assert told["value"] == pytest.approx(expected.value, rel=1e-4)
    assert told["lower_bound"] <= expected.value
    assert told["gap"] <= told["tol"] == 1e-4
    assert told["converged"] is True
    assert told["shape"] == [12, 9]
    saved = sot.Result.load(folder / "plan.npz")
    assert saved.value == told["value"]
    np.testing.assert_allclose(saved.plan.sum(axis=1), 1 / 12)

    again = structot("solve", "cost.npy", *OPTIONS, "--out", "plan.npz", cwd=folder)
    assert refused(again, "plan.npz", "--force")
    forced = here("solve", "cost.npy", *OPTIONS, "--out", "plan.npz", "--force", cwd=folder)
    assert forced.returncode == 0, forced.stderr
    assert not [entry for entry in folder.iterdir() if "part" in entry.name]


def test_answer_for_people_is_plain_text_without_a_terminal(folder, expected):
    answer = structot("solve", "cost.npy", *OPTIONS, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    value = re.search(r"^value +(\S+)", answer.stdout, re.MULTILINE)
    assert float(value[1]) == pytest.approx(expected.value, rel=1e-4)
    assert "lower bound" in answer.stdout
    assert "The certified gap is at most the tolerance." in answer.stdout
    assert "\x1b" not in answer.stdout + answer.stderr


def test_a_missed_gap_is_exit_code_one_with_the_best_answer(folder):
    answer = structot(
        *("solve", "cost.npy", *OPTIONS, "--method", "mirror_descent", "--max-iter", 3),
        *("--out", "missed.npz", "--json"),
        cwd=folder,
    )
    assert answer.returncode == 1
    told = json.loads(answer.stdout)
    assert told["converged"] is False
    assert told["gap"] > 1e-4
    assert "iteration limit" in told["status"]
    assert (folder / "missed.npz").exists()
    assert "Warning" not in answer.stderr


def on_a_terminal(words, cwd, **extra):
    """What the command writes when a terminal is watching."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*MODULE, *map(str, words)],
        cwd=cwd,
        env=environment(TERM="xterm-256color", **extra),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    text = b""
    while True:
        try:
            part = os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        text += part
    os.close(master)
    assert process.wait(60) == 0
    return text.decode()


def test_colour_on_a_terminal_unless_no_color(folder):
    colour = re.compile(r"\x1b\[[0-9;]*3[0-7]m")
    words = ("solve", "cost.npy", *OPTIONS)
    assert colour.search(on_a_terminal(words, folder))
    assert not colour.search(on_a_terminal(words, folder, NO_COLOR="1"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.npy"], ["absent.npy", "does not exist"]),
        (["."], ["folder"]),
        (["text.dat"], [".npy", ".csv"]),
        (["broken.npz"], ["broken.npz", "cannot be read"]),
        (["ragged.csv"], ["rows of different length"]),
        (["names.csv"], ["no numbers"]),
        (["nan.csv"], ["M is NaN at (0, 1)"]),
        (["empty.csv"], ["empty.csv is empty"]),
        (["cost.npy", "--out", "cost.npy/plan.npz"], ["cannot be written"]),
        (["cost.npy", "--out", "plan"], ["--out plan", ".npz or .csv"]),
        (["cost.npy", "--out", "plan.txt"], ["--out plan.txt", ".npz or .csv"]),
        (["text.npy"], ["text.npy is no .npy file", ".csv"]),
        (["text.npz"], ["text.npz is no .npz file"]),
        (["objects.npy"], ["objects.npy", "Python objects", "strings"]),
        (["cost.npy", "--out", "folder.npz", "--force"], ["folder.npz is a folder"]),
        (["words.csv"], ["'two'", "row 2"]),
        (["vector.npy"], ["matrix"]),
        (["negative.npy"], ["cost matrix", "negative", "two files"]),
        (["cost.npy", "--source-groups", "columns.npy"], ["9 entries", "12 points"]),
        (["cost.npy", *GROUPS, "--concave", "cubic"], ["--concave", "'cubic'"]),
        (["cost.npy", "--method", "newtn"], ["Did you mean 'newton'"]),
        (["cost.npy", "--tol", "small"], ["--tol"]),
        (["cost.npy", *GROUPS, "--alpha", "-1"], ["alpha"]),
        (["cost.npy", *GROUPS, "--units", "metres"], ["--units"]),
        (["cost.npy", "--colour"], ["--colour", "--help"]),
        ([], ["COST"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(folder, words, said):
    (folder / "text.dat").write_text("1,2\n")
    (folder / "broken.npz").write_bytes(b"PK\x03\x04 nothing")
    (folder / "ragged.csv").write_text("1,2\n3\n")
    (folder / "words.csv").write_text("1,2\n3,two\n")
    (folder / "names.csv").write_text("a,b\n")
    (folder / "nan.csv").write_text("1,nan\n3,4\n")
    (folder / "empty.csv").write_text("\n")
    (folder / "folder.npz").mkdir(exist_ok=True)
    (folder / "text.npy").write_text("1,2\n3,4\n")
    (folder / "text.npz").write_text("1,2\n3,4\n")
    np.save(folder / "objects.npy", np.array([["a", 1]], object), allow_pickle=True)
    np.save(folder / "vector.npy", np.ones(3))
    np.save(folder / "negative.npy", -np.ones((2, 2)))
    assert refused(here("solve", *words, cwd=folder), *said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent.npy"], ["absent.npy does not exist"]),
        (["cost.npy", "--colour"], ["--colour", "--help"]),
        (["cost.npy", "--method", "newtn"], ["Did you mean 'newton'"]),
    ],
)
def test_the_process_ends_so_too(folder, words, said):
    """A file, an option, and what only the solver can refuse."""
    assert refused(structot("solve", *words, cwd=folder), *said)


@pytest.mark.parametrize(
    ("words", "structure"),
    [
        ([], sot.Groups(*LABELS)),
        (["--discount", 0.5], sot.Groups(*LABELS, sot.concave.Discount(0.5))),
        (["--alpha", 0.1], sot.Groups(*LABELS, sot.concave.ThresholdSqrt(0.1))),
        (
            ["--alpha", 9, "--scale", 2, "--units", "cost"],
            sot.Groups(*LABELS, sot.concave.ThresholdSqrt(9.0, 2.0), units="cost"),
        ),
        (
            ["--concave", "truncation", "--alpha", 0.1],
            sot.Groups(*LABELS, sot.concave.Truncation(0.1)),
        ),
        (["--concave", "log", "--scale", 0.2], sot.Groups(*LABELS, sot.concave.Log(0.2))),
        (["--exponent", 0.5], sot.Groups(*LABELS, sot.concave.Power(0.5))),
        (["--concave", "sqrt"], sot.Groups(*LABELS, sot.concave.Sqrt())),
        (["--concave", "linear"], sot.Modular()),
        (
            ["--breaks", "0.1,0.3", "--slopes", "1,0.5,0.2"],
            sot.Groups(*LABELS, sot.concave.PiecewiseLinear([0.1, 0.3], [1.0, 0.5, 0.2])),
        ),
        (
            ["--charge", 0.05],
            sot.Modular() + sot.Coverage(*LABELS, weights=0.05, units="block"),
        ),
        (["--routes", 0.2], sot.Routes(*LABELS, 0.2)),
        (["--routes", 0.5, "--units", "cost"], sot.Routes(*LABELS, 0.5, units="cost")),
        (
            ["--charge", 3, "--units", "cost"],
            sot.Modular() + sot.Coverage(*LABELS, weights=3.0),
        ),
    ],
    ids=lambda x: " ".join(map(str, x)) if isinstance(x, list) else "",
)
def test_every_structure_of_the_options(folder, words, structure):
    answer = here("solve", "cost.npy", *GROUPS, *words, "--json", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert told["value"] == pytest.approx(sot.solve(DATA.cost, structure=structure).value, rel=2e-4)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_labels_and_weights_may_be_columns_of_the_points(folder, suffix):
    """One table per side, as it comes: coordinates, a name of the point, a class, a weight."""
    comma = {".csv": ",", ".tsv": "\t"}[suffix]
    for name, points, labels in zip("ab", (DATA.X, DATA.Y), LABELS, strict=True):
        frame = pd.DataFrame(points, columns=["height", "width"])
        frame.insert(0, "class", [f"kind {k}" for k in labels])
        frame["weight"] = WEIGHTS[name]
        frame.index = [f"point {k}" for k in range(len(frame))]
        frame.to_csv(folder / f"{name}{suffix}", sep=comma)
    files = (f"a{suffix}", f"b{suffix}")
    groups = ("--source-groups", "class", "--target-groups", "class")
    weights = ("--source-weights", "weight", "--target-weights", "weight")
    answer = here("solve", *files, *groups, *weights, "--routes", 0.3, "--json", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    assert f"a{suffix}: class, weight by name, coordinates from height, width." in answer.stderr
    structure = sot.Routes(*LABELS)
    expected = sot.solve_sample(DATA.X, DATA.Y, *WEIGHTS.values(), structure=structure)
    assert json.loads(answer.stdout)["value"] == pytest.approx(expected.value, rel=2e-4)

    answer = here("solve", *files, *groups[:2], *weights, cwd=folder)
    assert answer.returncode == 2
    assert "'class' is a column of labels, pass --target-groups class" in answer.stderr
    answer = here("solve", *files, "--source-groups", "clas", cwd=folder)
    assert refused(
        answer,
        "clas is neither a file nor a name in the first row",
        "(class, height, weight, width)",
    )
    answer = here("solve", *files, *groups, "--no-header", cwd=folder)
    assert answer.returncode == 2
    assert "'class' in row 1 is no number" in answer.stderr


def test_a_file_is_meant_before_a_column_of_its_name(folder):
    for name, points in (("a.csv", DATA.X), ("b.csv", DATA.Y)):
        pd.DataFrame(points, columns=["x", "rows.csv"]).to_csv(folder / name, index=False)
    words = ("a.csv", "b.csv", "--source-groups", "rows.csv", "--json")
    answer = here("solve", *words, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    expected = sot.solve_sample(DATA.X, DATA.Y, structure=sot.Groups(LABELS[0]))
    assert json.loads(answer.stdout)["value"] == pytest.approx(expected.value, rel=2e-4)


def test_points_of_both_sides_stand_for_their_cost(folder):
    np.savetxt(folder / "a.csv", DATA.X, delimiter=",")
    np.savetxt(folder / "b.csv", DATA.Y, delimiter=",")
    words = ("a.csv", "b.csv", *GROUPS, "--routes", 0.3, "--metric", "cityblock", "--json")
    answer = here("solve", *words, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    structure = sot.Routes(*LABELS)
    expected = sot.solve_sample(DATA.X, DATA.Y, structure=structure, metric="cityblock")
    assert json.loads(answer.stdout)["value"] == pytest.approx(expected.value, rel=2e-4)
    assert refused(here("solve", "a.csv", "b.csv", "--metric", "odd", cwd=folder), "--metric odd")
    assert refused(here("solve", "a.csv", "b.csv", "a.csv", cwd=folder), "got 3 files")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--alpha", 1], ["--alpha has no effect without groups"]),
        (["--discount", 0.5], ["--discount has no effect without groups"]),
        (["--units", "block"], ["--units has no effect without groups"]),
        (["--charge", 1], ["--charge has no effect without groups"]),
        ([*GROUPS, "--concave", "power"], ["--concave power needs --exponent"]),
        ([*GROUPS, "--concave", "power", "--alpha", 0.5], ["--alpha has no effect", "--exponent"]),
        ([*GROUPS, "--concave", "threshold-sqrt"], ["needs --alpha"]),
        ([*GROUPS, "--concave", "sqrt", "--alpha", 1], ["--alpha has no effect", "no parameter"]),
        ([*GROUPS, "--discount", 0.5, "--alpha", 1], ["--alpha and --discount fit no concave"]),
        ([*GROUPS, "--charge", 1, "--discount", 0.5], ["--discount", "--charge"]),
        ([*GROUPS, "--routes", 1, "--charge", 0.5], ["--charge", "--routes"]),
        ([*GROUPS, "--routes", 1, "--units", "block"], ["--units", "'mean'"]),
        (["--metric", "euclidean"], ["--metric is about points"]),
        ([*GROUPS, "--discount", 1.5], ["0 <= d < 1"]),
        ([*GROUPS, "--breaks", "0.1", "--slopes", "one,two"], ["--slopes", "'one,two'"]),
        ([*GROUPS, "--breaks", "0.1"], ["--breaks fit no concave"]),
    ],
    ids=lambda x: " ".join(map(str, x)),
)
def test_an_option_without_effect_is_refused(folder, words, said):
    assert refused(here("solve", "cost.npy", *words, cwd=folder), *said)


def test_a_threshold_that_is_never_reached_is_said(folder):
    answer = here("solve", "cost.npy", *GROUPS, "--alpha", 10, "--json", cwd=folder)
    assert answer.returncode == 0
    (line,) = answer.stderr.splitlines()
    assert "linear on [0, 1]" in line


def test_a_plan_is_saved_as_a_table(folder, expected):
    words = ("solve", "cost.npy", *OPTIONS, "--tol", "1e-6", "--out", "plan.csv", "--force")
    answer = here(*words, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    plan = np.loadtxt(folder / "plan.csv", delimiter=",")
    assert plan.shape == (12, 9)
    np.testing.assert_allclose(plan.sum(axis=1), 1 / 12, rtol=1e-12)
    extension = expected.structure.bind(DATA.cost).extension(plan)
    assert extension == pytest.approx(expected.value, rel=1e-4)
    assert not (folder / "plan.csv.npz").exists()


def test_how_the_plan_looks_is_told(folder):
    answer = here("solve", "cost.npy", *GROUPS, "--discount", 0.95, cwd=folder)
    result = sot.solve(DATA.cost, structure=sot.Groups(*LABELS, sot.concave.Discount(0.95)))
    assert f"{result.concentration:.0%} of the mass of a group" in answer.stdout
    assert re.search(r"^partners +\S+ of 9 per source point", answer.stdout, re.MULTILINE)
    assert re.search(r"^gap +\d", answer.stdout, re.MULTILINE)  # never negative


@pytest.fixture
def interruptible():
    """Python's own answer to Ctrl-C, which a suite that runs in the background does not inherit."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_keeps_the_best_answer_so_far(folder, monkeypatch):
    """As a terminal would send it, after the third iteration of a solve without end."""
    slow = sot.solve

    def interrupting(*arguments, callback, **options):
        def watch(state):
            if state.iteration == 3:
                signal.raise_signal(signal.SIGINT)
            return callback(state)

        return slow(*arguments, callback=watch, **options)

    monkeypatch.setattr("structot.solvers.solve.solve", interrupting)
    words = ("solve", "cost.npy", *OPTIONS, "--method", "mirror_descent", "--tol", 0)
    answer = here(*words, "--out", "stopped.npz", "--json", cwd=folder)
    assert answer.returncode == 130
    assert "interrupted; this is the best answer so far." in answer.stderr
    told = json.loads(answer.stdout)
    assert told["iterations"] == 3
    assert told["status"] == "Interrupted before the gap was reached."
    assert sot.Result.load(folder / "stopped.npz").value == told["value"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("interruptible")
def test_a_second_ctrl_c_ends_at_once_and_keeps_nothing(folder, monkeypatch):
    def interrupted(*arguments, **options):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("structot.solvers.solve.solve", interrupted)
    answer = here("solve", "cost.npy", "--out", "never.npz", cwd=folder)
    assert answer.returncode == 130
    assert answer.stderr.splitlines()[-1] == "structot: interrupted; nothing was kept."
    assert not (folder / "never.npz").exists()


def test_debug_shows_the_traceback(folder):
    answer = here("solve", "absent.npy", "--debug", cwd=folder)
    assert answer.returncode == 2
    assert "Traceback" in answer.stderr
    assert answer.stderr.strip().splitlines()[-1] == "structot: absent.npy does not exist."


@pytest.mark.parametrize("command", [[], ["solve"], ["path"], ["colors"], ["reproduce"], ["demo"]])
def test_help_everywhere_with_examples(command, tmp_path):
    answer = here(*command, "--help", cwd=tmp_path, COLUMNS="120")
    assert answer.returncode == 0
    assert "Examples" in answer.stdout
    assert " ".join(["structot", *command]) in answer.stdout


def test_without_words_it_shows_its_help(tmp_path):
    answer = structot(cwd=tmp_path)
    assert answer.returncode == 0
    assert "Commands" in answer.stdout


def test_the_installed_script_is_the_module(tmp_path):
    answer = subprocess.run([SCRIPT, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == sot.__version__


def test_a_reader_that_leaves_early_is_no_error(folder):
    # "| true" closes the pipe before anything is written into it.
    line = f"{sys.executable} -m structot --version | true"
    answer = subprocess.run(
        line, shell=True, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )
    assert answer.stderr == ""


def test_relaxed_marginals_are_options(folder):
    np.savetxt(folder / "heavy.csv", np.full(12, 0.2))
    weights = ("--source-weights", "heavy.csv", "--json")
    told = {}
    for words in (("--unbalanced", "3"), ("--unbalanced", "3,none", "--unbalanced-type", "TV")):
        answer = here("solve", "cost.npy", *weights, *words, cwd=folder)
        assert answer.returncode == 0, answer.stderr
        told[len(words)] = json.loads(answer.stdout)
    a = np.full(12, 0.2)
    expected = sot.solve(DATA.cost, a, unbalanced=(3.0, None), unbalanced_type="TV")
    assert told[4]["value"] == pytest.approx(expected.value, rel=1e-9)
    assert told[4]["mass_moved"] == pytest.approx(1.0)
    assert told[4]["mass_left"] == pytest.approx([1.4, 0.0])
    assert 0 < told[2]["mass_moved"] < 2.4
    part = here("solve", "cost.npy", "--mass", "0.25", cwd=folder)
    assert part.returncode == 0, part.stderr
    assert "0.75 at the source" in part.stdout
    assert refused(here("solve", "cost.npy", "--unbalanced", "much", cwd=folder), "--unbalanced")
    assert refused(here("solve", "cost.npy", *weights[:2], cwd=folder), "unbalanced")
