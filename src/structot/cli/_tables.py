"""Matrices, weights and labels from .npy, .npz and text files (.csv, .tsv, .txt).

A text file may begin with a row of names and a column of an index, as pandas writes them. They are
left out where the file can be read in one way only, and a line on the error stream says so; where
it can be read in two ways, the options ``--header`` and ``--index`` are asked for. A column of
labels or weights may also stand in the file of points, and is then asked for by its name.
"""

from __future__ import annotations

import csv
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from structot._typing import Array
from structot.cli._common import existing_file

__all__ = ["Column", "Names", "column_of", "read_labels", "read_matrix", "read_weights"]

_BEGINS = {".npy": b"\x93NUMPY", ".npz": b"PK"}
_TEXT = (".csv", ".tsv", ".txt")
_SUFFIXES = (*_BEGINS, *_TEXT)
_DELIMITERS = ",;\t "


@dataclass(frozen=True)
class Names:
    """Whether .csv files begin with a row of names and a column of them; None: look."""

    header: bool | None = None
    index: bool | None = None

    def refuse_without_csv(self, *paths: Path | None) -> None:
        """Raise when an option was given that none of these files has a use for."""
        if any(path is not None and path.suffix.lower() in _TEXT for path in paths):
            return
        for option, value in (("header", self.header), ("index", self.index)):
            if value is not None:
                given = f"--{option}" if value else f"--no-{option}"
                raise ValueError(f"{given} is about .csv files, and none was passed.")


LOOK = Names()


@dataclass(frozen=True)
class Column:
    """A column of a text file, by the name in its first row."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path}, column {self.name!r}"

    def cells(self) -> list[str]:
        """What stands below the name."""
        rows = _rows(self.path)
        _refuse_ragged(self.path, rows)
        place = rows[0].index(self.name)
        return [row[place] for row in rows[1:]]


def column_of(path: Path | None, name: Path | None, names: Names = LOOK) -> Column | Path | None:
    """The column of ``path`` that ``name`` means where it is no file; ``name`` where it may be one.

    A name that is neither a file nor in the first row is refused.
    """
    if path is None or name is None or name.exists() or names.header is False:
        return name
    if path.suffix.lower() not in _TEXT:
        return name
    existing_file(path)
    first = _rows(path)[0]
    if str(name) in first:
        return Column(path, str(name))
    if name.suffix or any(map(_is_number, first)):
        return name
    raise ValueError(
        f"{name} is neither a file nor a name in the first row of {path} "
        f"({_some(cell for cell in first if cell)})."
    )


def read_matrix(
    path: Path,
    names: Names = LOOK,
    what: str = "a cost",
    without: Sequence[str] = (),
    groups: str = "",
) -> Array:
    """A cost matrix, or points in rows; of a text file, numbers, with or without names of rows and
    columns.

    The columns called ``without`` are left out; ``groups`` is the option that would leave out one
    of labels.
    """
    if _suffix(path) in _TEXT:
        rows = _rows(path)
        _refuse_ragged(path, rows)
        if without:
            rows, names = _without_columns(path, rows, without), replace(names, header=True)
        rows, columns = _numeric_part(path, rows, names)
        for number, row in enumerate(rows, start=1):
            for place, cell in enumerate(row):
                if not _is_number(cell):
                    column = [other[place] for other in rows]
                    why = _why_no_number(cell, columns[place] if columns else "", column, groups)
                    raise ValueError(f"{path}: {cell!r} in row {number} is no number{why}.")
        return np.array(rows, float)
    array = _array(path, ("cost", "M", "C"))
    if array.ndim != 2:
        raise ValueError(f"{path}: {what} must be a matrix; got shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path}: {what} must hold numbers; got {array.dtype}.")
    return array if array.dtype.kind == "f" else array.astype(float)


def read_weights(path: Path | Column | None, size: int, names: Names = LOOK) -> Array | None:
    """One number per point; None without a file."""
    if path is None:
        return None
    cells = _column(path, size, ("weights", "a", "b"), names)
    if not all(_is_number(cell) for cell in cells):
        raise ValueError(f"{path}: weights must be numbers.")
    return np.array([float(cell) for cell in cells])


def read_labels(path: Path | Column | None, size: int, names: Names = LOOK) -> list[Any] | None:
    """One label per point, None where a cell of a text is empty; None without a file."""
    if path is None:
        return None
    cells = _column(path, size, ("labels", "groups"), names)
    return [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]


# --------------------------------------------------------------------------------------------------
# Names of rows and columns
# --------------------------------------------------------------------------------------------------


def _refuse_ragged(path: Path, rows: list[list[str]]) -> None:
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        raise ValueError(f"{path}: rows of different length ({_some(widths)}).")


def _without_columns(path: Path, rows: list[list[str]], without: Sequence[str]) -> list[list[str]]:
    """The rows without these columns; a line on the error stream says what is left."""
    kept = [place for place, name in enumerate(rows[0]) if name not in without]
    left = [rows[0][place] for place in kept]
    if not any(left):
        raise ValueError(f"{path} holds no columns beside {_some(without)}.")
    coordinates = _some(name for name in left if name)
    sys.stderr.write(f"{path}: {_some(without)} by name, coordinates from {coordinates}.\n")
    return [[row[place] for place in kept] for row in rows]


def _why_no_number(cell: str, name: str, column: list[str], groups: str) -> str:
    """What may be meant by a cell that is no number, as the end of a sentence."""
    if _is_number(cell.replace(",", ".")):
        return "; write decimals with a point"
    if name and groups and not any(map(_is_number, column)):
        return f"; if {name!r} is a column of labels, pass {groups} {name}"
    return f", below {name!r}" if name else ""


def _numeric_part(
    path: Path, rows: list[list[str]], names: Names
) -> tuple[list[list[str]], list[str]]:
    """The rows without the names of columns and of rows, and the names of columns, if any."""
    header = _has_header(path, rows) if names.header is None else names.header
    data = rows[header:]
    if not data:
        raise ValueError(f"{path} holds a line of names, but no numbers.")
    index = names.index
    if index is None:
        index = (header and not rows[0][0]) or _has_index(path, data)
    _say_skipped(path, header and names.header is None, index and names.index is None)
    columns = rows[0] if header else []
    return ([row[1:] for row in data], columns[1:]) if index else (data, columns)


def _has_header(path: Path, rows: list[list[str]]) -> bool:
    """Whether the first row holds names: words, or 0, 1, 2, ... above numbers with a point."""
    first, below = rows[0], rows[1:]
    words = [not _is_number(cell) for cell in first]
    if any(words[1:]) or (words[0] and (len(first) == 1 or any(_is_number(r[0]) for r in below))):
        return True
    if not below or not _counts_up(first[1:] if words[0] else first):
        return False
    return _are_names(path, "row", "--header", [cell for row in below for cell in row[1:]])


def _has_index(path: Path, rows: list[list[str]]) -> bool:
    """Whether the first column holds names: words, or 0, 1, 2, ... beside numbers with a point."""
    first = [row[0] for row in rows]
    if len(rows[0]) == 1:
        return False
    if not any(_is_number(cell.replace(",", ".")) for cell in first):
        return True
    others = [cell for row in rows for cell in row[1:]]
    return _counts_up(first) and _are_names(path, "column", "--index", others)


def _counts_up(cells: Sequence[str]) -> bool:
    """Whether these are the names that pandas gives, 0, 1, 2, ...; a single 0 tells nothing."""
    return len(cells) > 1 and list(cells) == [str(k) for k in range(len(cells))]


def _are_names(path: Path, what: str, option: str, others: list[str]) -> bool:
    """Whole numbers 0, 1, 2, ... are names where other numbers are not whole; else, who knows."""
    if all(cell.lstrip("-").isdigit() for cell in others):
        raise ValueError(
            f"{path}: the first {what} reads 0, 1, 2, ...: are these names or numbers? Pass "
            f"{option} if they are names, {option.replace('--', '--no-')} if they are numbers."
        )
    return True


def _say_skipped(path: Path, header: bool, index: bool) -> None:
    what = " and ".join(["the first row"] * header + ["the first column"] * index)
    options = " and ".join(["--no-header"] * header + ["--no-index"] * index)
    if what:
        sys.stderr.write(f"{path}: left out {what}, taken for names ({options} to keep).\n")


def _column(path: Path | Column, size: int, keys: tuple[str, ...], names: Names) -> list[Any]:
    """One entry per point; the number of points tells whether there is a row of names."""
    if isinstance(path, Column):
        return path.cells()
    if _suffix(path) not in _TEXT:
        cells = _array(path, keys).ravel().tolist()
    else:
        rows, named = _rows(path, one_column=True), False
        indexed = len(rows[0]) == 2 and len(rows) > 1 and all(len(row) == 2 for row in rows)
        indexed = indexed and _is_index(rows, size, names.index)
        rows = [row[1:] for row in rows] if indexed else rows
        if len(rows) > 1 and any(len(row) > 1 for row in rows):
            raise ValueError(
                f"{path} has {max(map(len, rows))} columns; pass one entry per point, in one "
                "column or one row (--index leaves out the first of two columns)."
            )
        cells = [cell for row in rows for cell in row]
        if len(rows) == len(cells) == size + 1:
            cells, named = _without_extra_line(cells, names.header)
        _say_skipped(path, named and names.header is None, indexed and names.index is None)
    if len(cells) != size:
        name = " If the first of them is a name, pass --header." if len(cells) == size + 1 else ""
        raise ValueError(f"{path} has {len(cells)} entries, but there are {size} points.{name}")
    return cells


def _is_index(rows: list[list[str]], size: int, told: bool | None) -> bool:
    """Whether the first of two columns counts the points, or stands below an empty name."""
    first = [row[0] for row in rows[max(len(rows) - size, 0) :]]
    return told if told is not None else _counts_up(first) or not rows[0][0]


def _without_extra_line(cells: list[str], told: bool | None) -> tuple[list[str], bool]:
    """One line too many is a name above the column or an empty last line, if only one can be;
    and whether it was a name."""
    name = bool(cells[0]) and not _is_number(cells[0]) and cells[0] not in cells[1:]
    if told or (told is None and name and cells[-1]):
        return cells[1:], True
    return (cells[:-1] if not (name or cells[-1]) else cells), False


# --------------------------------------------------------------------------------------------------
# Files
# --------------------------------------------------------------------------------------------------


def _suffix(path: Path) -> str:
    existing_file(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path}: unknown kind of file; pass {', '.join(_SUFFIXES)}.")
    return path.suffix.lower()


def _rows(path: Path, one_column: bool = False) -> list[list[str]]:
    """The cells of a text file; in one column a line may be empty and an entry may hold spaces."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8.") from None
    lines = text.splitlines()
    if not one_column:
        lines = [line for line in lines if line.strip()]
    if not any(line.strip() for line in lines):
        raise ValueError(f"{path} is empty.")
    among = _DELIMITERS if len(lines) == 1 or not one_column else _DELIMITERS.strip(" ")
    delimiter = next((d for d in among if any(d in line.strip() for line in lines)), ",")
    if not one_column:  # a comma may be that of decimals: what parts cells is in every line
        delimiter = next((d for d in ";\t" if all(d in line for line in lines)), delimiter)
    if delimiter == " ":
        return [line.split() or [""] for line in lines]
    return [
        [cell.strip() for cell in row] or [""] for row in csv.reader(lines, delimiter=delimiter)
    ]


def _array(path: Path, names: tuple[str, ...]) -> Array:
    """The array of a .npy, or the one array of a .npz, or the one of these names."""
    suffix = path.suffix.lower()
    with path.open("rb") as opened:
        if not opened.read(8).startswith(_BEGINS[suffix]):
            raise ValueError(f"{path} is no {suffix} file inside; if it is text, name it .csv.")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, Array):
            return loaded
        with loaded:
            known = [name for name in names if name in loaded.files]
            if len(loaded.files) != 1 and len(known) != 1:
                raise ValueError(
                    f"{path} holds {_some(loaded.files)}; store one array, or name it {names[0]!r}."
                )
            return loaded[known[0] if known else loaded.files[0]]
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(f"{path} cannot be read: {error}.") from None
    except ValueError as error:
        if str(path) in str(error):
            raise
        if "allow_pickle" in str(error):
            reason = "it holds Python objects; save numbers, or labels as strings."
        else:
            reason = str(error)
        raise ValueError(f"{path} cannot be read: {reason}") from None


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _some(things: Any) -> str:
    listed = sorted(map(str, things))
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
