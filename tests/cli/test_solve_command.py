"""``structot solve`` and the manners all commands share."""

import json
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
from command import MODULE, SCRIPT, environment, here, refused, structot

import structot as sot
from structot.cli import _tables
from structot.datasets.synthetic import clusters

DATA = clusters(12, 9, n_classes=3)
GROUPS = ("--source-groups", "rows.csv", "--target-groups", "columns.npy")
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
        (["text.txt"], [".npy", ".csv"]),
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
        (["negative.npy"], ["M"]),
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
    (folder / "text.txt").write_text("1,2\n")
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


# --------------------------------------------------------------------------------------------------
# Files
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "1,2\n3,4\n",
        "a,b\n1,2\n3,4\n",
        ",0,1\n0,1,2\n1,3,4\n",  # as pandas writes it, with an index
        "1;2\n3;4",
        "1\t2\n3\t4\n",
        "1 2\n\n3  4\n",
    ],
)
def test_matrices_from_text(tmp_path, text):
    path = tmp_path / "cost.csv"
    path.write_text(text)
    np.testing.assert_array_equal(_tables.read_matrix(path), [[1, 2], [3, 4]])


def test_matrices_from_archives(tmp_path):
    np.savez(tmp_path / "one.npz", anything=np.eye(2))
    np.savez(tmp_path / "named.npz", cost=np.eye(2), other=np.ones(3))
    np.savez(tmp_path / "unclear.npz", first=np.eye(2), second=np.ones(3))
    for name in ("one.npz", "named.npz"):
        np.testing.assert_array_equal(_tables.read_matrix(tmp_path / name), np.eye(2))
    with pytest.raises(ValueError, match="first, second"):
        _tables.read_matrix(tmp_path / "unclear.npz")


def test_one_line_too_many_is_a_name_or_nothing_or_a_mistake(tmp_path):
    path = tmp_path / "labels.csv"

    def read(text):
        path.write_text(text)
        return _tables.read_labels(path, 3)

    assert read("class a\nclass b\nclass a\n") == ["class a", "class b", "class a"]
    assert read("label\na\nb\na\n") == ["a", "b", "a"]
    assert read("a\nb\na\n\n") == ["a", "b", "a"]
    for text in ("a\nb\na\na\n", "0\n1\n1\n2\n", "label\na\nb\n\n"):  # which line is extra?
        with pytest.raises(ValueError, match="4 entries, but there are 3 points"):
            read(text)


@pytest.mark.parametrize("text", ["a\nb\n\nd\n", "label\na\nb\n\nd\n", "a,b,,d\n"])
def test_labels_from_text_may_be_missing(tmp_path, text):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert _tables.read_labels(path, 4) == ["a", "b", None, "d"]


def test_weights_from_files(tmp_path):
    (tmp_path / "w.csv").write_text("0.5\n0.25\n0.25\n")
    np.testing.assert_array_equal(_tables.read_weights(tmp_path / "w.csv", 3), [0.5, 0.25, 0.25])
    (tmp_path / "w.csv").write_text("0.5\nhalf\n0.25\n")
    with pytest.raises(ValueError, match="numbers"):
        _tables.read_weights(tmp_path / "w.csv", 3)
