"""Files of numbers and labels: what is read is what was meant, and what was left out is said."""

import numpy as np
import pandas as pd
import pytest
from command import here, refused

from structot.cli import _tables
from structot.cli._tables import Names


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


def test_what_is_no_number_is_named_with_what_may_be_meant(tmp_path):
    path = tmp_path / "points.csv"
    for text, said in (
        ("x;y\n1,5;2,5\n3,5;4\n", "'1,5' in row 1 is no number; write decimals with a point"),
        ("x,y,kind\n1,2,a\n3,4,b\n", "'a' in row 1 .* pass --source-groups kind"),
        ("x,y\n1,2\n3,\n", "'' in row 2 is no number, below 'y'"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=said):
            _tables.read_matrix(path, groups="--source-groups")


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
        with pytest.raises(ValueError, match=r"4 entries, but there are 3 points"):
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


# --------------------------------------------------------------------------------------------------
# What pandas writes
# --------------------------------------------------------------------------------------------------

COST = np.array([[0.5, 2.0, 1.5], [1.0, 0.25, 3.0], [2.0, 1.0, 0.125], [0.75, 1.25, 2.5]])


@pytest.mark.parametrize("names", ["numbers", "words"])
@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("header", [True, False])
def test_frames_with_and_without_names(tmp_path, capsys, header, index, names):
    frame = pd.DataFrame(COST)
    if names == "words":
        frame.index, frame.columns = list("wxyz"), ["one", "two", "three"]
    path = tmp_path / "cost.csv"
    frame.to_csv(path, header=header, index=index)
    np.testing.assert_array_equal(_tables.read_matrix(path), COST)
    told = capsys.readouterr().err
    assert ("the first row" in told) == ("--no-header" in told) == header
    assert ("the first column" in told) == ("--no-index" in told) == index
    assert (told == "") == (not header and not index)


@pytest.mark.parametrize(
    ("header", "index", "asked"),
    [(True, False, "--header"), (False, True, "--index"), (False, False, None)],
)
def test_whole_numbers_below_whole_numbers_are_asked_about(tmp_path, header, index, asked):
    path = tmp_path / "cost.csv"
    cost = np.array([[5, 2, 1], [1, 6, 3]])
    pd.DataFrame(cost).to_csv(path, header=header, index=index)
    if asked is not None:
        with pytest.raises(ValueError, match=f"names or numbers.*{asked} if.*{asked[2:]} if they"):
            _tables.read_matrix(path)
    read = _tables.read_matrix(path, Names(header, index))
    np.testing.assert_array_equal(read, cost)


def test_distances_that_count_up_can_be_read(tmp_path):
    """The first row of |i - j| reads 0, 1, 2, ... and is none of names."""
    path = tmp_path / "cost.csv"
    cost = np.abs(np.arange(3)[:, None] - np.arange(3))
    pd.DataFrame(cost).to_csv(path, header=False, index=False)
    with pytest.raises(ValueError, match="--no-header if they are numbers"):
        _tables.read_matrix(path)
    np.testing.assert_array_equal(_tables.read_matrix(path, Names(False, False)), cost)
    path.write_text("0,1,2\n")  # one row: no names without numbers below
    assert _tables.read_matrix(path).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("name", ["label", None])
@pytest.mark.parametrize("labels", [["a", "b", "a"], [4, 7, 4]])
def test_series_of_labels(tmp_path, capsys, labels, name, index):
    path = tmp_path / "labels.csv"
    pd.Series(labels, name=name).to_csv(path, index=index)
    if name is None:  # the name is then 0, which may be a label
        with pytest.raises(ValueError, match=r"4 entries, but there are 3 points.*pass --header"):
            _tables.read_labels(path, 3)
        read = _tables.read_labels(path, 3, Names(header=True))
    else:
        read = _tables.read_labels(path, 3)
        assert "the first row" in capsys.readouterr().err
    assert read == [str(label) for label in labels]


def test_an_index_without_a_header_and_two_columns_of_labels(tmp_path):
    path = tmp_path / "labels.csv"
    pd.Series(["a", "b", "a"]).to_csv(path, header=False)
    assert _tables.read_labels(path, 3) == ["a", "b", "a"]
    path.write_text("a,x\nb,y\na,x\n")
    with pytest.raises(ValueError, match=r"2 columns.*--index"):
        _tables.read_labels(path, 3)
    assert _tables.read_labels(path, 3, Names(index=True)) == ["x", "y", "x"]


def test_what_was_left_out_is_said_by_the_command(tmp_path):
    pd.DataFrame(COST).to_csv(tmp_path / "cost.csv")
    pd.Series(list("aabb"), name="class").to_csv(tmp_path / "rows.csv")
    answer = here("solve", "cost.csv", "--source-groups", "rows.csv", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "plan         4 × 3" in answer.stdout
    assert "cost.csv: left out the first row and the first column" in answer.stderr
    assert "rows.csv: left out the first row and the first column" in answer.stderr
    assert answer.stderr.count("left out") == 2  # one line for each file
    kept = here("solve", "cost.csv", "--no-header", cwd=tmp_path)
    assert refused(kept, "''", "row 1 is no number")


def test_an_option_about_tables_without_a_table_is_refused(tmp_path):
    np.save(tmp_path / "cost.npy", COST)
    for option in ("--header", "--no-index"):
        assert refused(here("solve", "cost.npy", option, cwd=tmp_path), option, ".csv")
