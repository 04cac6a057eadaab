"""``structot path``: the table of a path on the screen, in a file and in a picture."""

import json

import numpy as np
import pytest
from command import here, refused

import structot as sot
from structot.datasets.synthetic import clusters

DATA = clusters(12, 9, n_classes=3)
LABELS = DATA.source_labels, DATA.target_labels
GROUPS = ("--source-groups", "rows.csv", "--target-groups", "columns.npy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("path")
    np.save(path / "cost.npy", DATA.cost)
    (path / "rows.csv").write_text("\n".join("abc"[k] for k in DATA.source_labels) + "\n")
    np.save(path / "columns.npy", DATA.target_labels)
    return path


def test_a_path_over_the_discount(folder):
    words = ("path", "cost.npy", *GROUPS, "--discount", "0,0.5,0.9", "--tol", "1e-6")
    answer = here(*words, "--out", "path.csv", "--plot", "path.png", cwd=folder)
    assert answer.returncode == 0, answer.stderr
    structures = [sot.Groups(*LABELS, sot.concave.Discount(d)) for d in (0.0, 0.5, 0.9)]
    table = sot.solve_path(DATA.cost, structures=structures, tol=1e-6).table()
    written = np.genfromtxt(folder / "path.csv", delimiter=",", names=True)
    assert written.dtype.names == ("discount", *list(table)[1:])
    np.testing.assert_allclose(written["discount"], table["dial"])
    for name in ("value", "linear", "concentration"):
        np.testing.assert_allclose(written[name], table[name], rtol=1e-4)
    head, *rows = answer.stdout.splitlines()
    assert head.split()[:3] == ["discount", "value", "linear"]
    assert len(rows) == 3 + 2
    assert rows[-2:] == ["wrote path.csv", "wrote path.png"]
    assert (folder / "path.png").read_bytes().startswith(b"\x89PNG")
    assert refused(here(*words, "--out", "path.csv", cwd=folder), "path.csv", "--force")


@pytest.mark.parametrize(
    ("words", "dial", "values"),
    [
        (["--charge", "0:0.1:3"], "charge", [0.0, 0.05, 0.1]),
        (["--routes", "0:0.4:3"], "routes", [0.0, 0.2, 0.4]),
        (["--reg", "log:0.1:10:3"], "reg", [0.1, 1.0, 10.0]),
        (["--concave", "truncation", "--alpha", "0.1,0.2"], "alpha", [0.1, 0.2]),
        (["--exponent", "0.5,0.9", "--reg", "1"], "exponent", [0.5, 0.9]),
        (["--discount", "0.5", "--reg", "1,2"], "reg", [1.0, 2.0]),
        ([], "discount", np.linspace(0.0, 0.95, 20)),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) and x and isinstance(x[0], str) else "",
)
def test_other_dials_as_lists_and_ranges(folder, words, dial, values):
    answer = here("path", "cost.npy", *GROUPS, *words, "--json", "--tol", 1e-2, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    assert next(iter(told)) == dial
    np.testing.assert_allclose(told[dial], values)
    assert told["converged"] is True
    assert max(told["gap"]) <= 1e-2
    assert min(told["gap"]) >= 0.0


def test_without_groups_there_is_no_concentration(folder):
    words = ("path", "cost.npy", "--reg", "1,10", "--out", "reg.json")
    answer = here(*words, cwd=folder)
    assert answer.returncode == 0, answer.stderr
    told = json.loads((folder / "reg.json").read_text())
    assert told["concentration"] == [None, None]
    assert told["linear"] == sorted(told["linear"])  # more entropy costs more
    assert "nan" not in answer.stdout


def test_a_missed_gap_is_exit_code_one(folder):
    words = ("path", "cost.npy", *GROUPS, "--discount", "0.5,0.9", "--method", "mirror_descent")
    answer = here(*words, "--max-iter", 2, "--json", cwd=folder)
    assert answer.returncode == 1
    assert json.loads(answer.stdout)["converged"] is False
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--discount", "0.5"], ["one of the dials must be a list", "got none"]),
        (["--discount", "0,0.5", "--reg", "1,2"], ["one of the dials", "--discount, --reg"]),
        (["--discount", "0:0.9"], ["--discount", "start:stop:count", "'0:0.9'"]),
        (["--discount", "0:0.9:1"], ["--discount", "start:stop:count"]),
        (["--reg", "log:0:1:3"], ["--reg", "positive"]),
        (["--discount", "none,half"], ["--discount", "'none,half'"]),
        (["--discount", "0.5,1.5"], ["0 <= d < 1"]),
        (["--out", "path.npz"], ["--out path.npz", ".csv or .json"]),
        (["--plot", "path.gif"], ["--plot path.gif", ".png"]),
    ],
    ids=lambda x: " ".join(x),
)
def test_bad_paths_are_one_line(folder, words, said):
    assert refused(here("path", "cost.npy", *GROUPS, *words, cwd=folder), *said)


def test_a_dial_of_groups_needs_groups(folder):
    answer = here("path", "cost.npy", "--discount", "0,0.5", cwd=folder)
    assert refused(answer, "--discount has no effect without groups")
    assert refused(here("path", "cost.npy", cwd=folder), "--source-groups", "values of --reg")


def test_ctrl_c_says_that_nothing_was_kept(folder, monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("structot.solvers.path.solve_path", interrupted)
    answer = here("path", "cost.npy", *GROUPS, "--out", "never.csv", cwd=folder)
    assert answer.returncode == 130
    assert answer.stderr.strip() == "structot: interrupted; nothing was kept."
    assert not (folder / "never.csv").exists()
