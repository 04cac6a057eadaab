"""Matrices, weights and labels from .npy, .npz and .csv files."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from structot._typing import Array
from structot.cli._common import existing_file

__all__ = ["read_labels", "read_matrix", "read_weights"]

_SUFFIXES = (".npy", ".npz", ".csv")
_DELIMITERS = ",;\t "


def read_matrix(path: Path) -> Array:
    """A cost matrix; of a .csv, numbers in rows, with or without a line of names.

    Where that line begins with an empty cell, as pandas writes it, the first column holds names.
    """
    if _suffix(path) == ".csv":
        head, *rows = _rows(path)
        if all(_is_number(cell) for cell in head):
            rows = [head, *rows]
        elif not head[0]:
            rows = [row[1:] for row in rows]
        if not rows:
            raise ValueError(f"{path} holds a line of names, but no numbers.")
        widths = {len(row) for row in rows}
        if len(widths) != 1:
            raise ValueError(f"{path}: rows of different length ({_some(widths)}).")
        for number, row in enumerate(rows, start=1):
            for cell in row:
                if not _is_number(cell):
                    raise ValueError(f"{path}: {cell!r} in row {number} is no number.")
        return np.array(rows, float)
    array = _array(path, ("cost", "M", "C"))
    if array.ndim != 2:
        raise ValueError(f"{path}: a cost is a matrix; got shape {array.shape}.")
    return _numbers(path, array)


def read_weights(path: Path | None, size: int) -> Array | None:
    """One number per point; None without a file."""
    if path is None:
        return None
    cells = _column(path, size, ("weights", "a", "b"))
    if not all(_is_number(cell) for cell in cells):
        raise ValueError(f"{path}: weights must be numbers.")
    return np.array([float(cell) for cell in cells])


def read_labels(path: Path | None, size: int) -> list[Any] | None:
    """One label per point, None where a cell of a .csv is empty; None without a file."""
    if path is None:
        return None
    cells = _column(path, size, ("labels", "groups"))
    return [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]


def _column(path: Path, size: int, names: tuple[str, ...]) -> list[Any]:
    if _suffix(path) == ".csv":
        rows = _rows(path, one_column=True)
        cells = [cell for row in rows for cell in row]
        if len(cells) == len(rows):
            cells = _without_extra_line(cells, size)
    else:
        cells = _array(path, names).ravel().tolist()
    if len(cells) != size:
        raise ValueError(f"{path} has {len(cells)} entries, but there are {size} points.")
    return cells


def _without_extra_line(cells: list[str], size: int) -> list[str]:
    """One line too many is a name above the column or an empty last line, if only one can be."""
    if len(cells) == size + 1:
        name = bool(cells[0]) and not _is_number(cells[0]) and cells[0] not in cells[1:]
        if name and cells[-1]:
            return cells[1:]
        if not (name or cells[-1]):
            return cells[:-1]
    return cells


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
    if delimiter == " ":
        return [line.split() or [""] for line in lines]
    return [
        [cell.strip() for cell in row] or [""] for row in csv.reader(lines, delimiter=delimiter)
    ]


def _array(path: Path, names: tuple[str, ...]) -> Array:
    """The array of a .npy, or the one array of a .npz, or the one of these names."""
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
        raise ValueError(f"{path} cannot be read: {error}") from None


def _numbers(path: Path, array: Array) -> Array:
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{path}: a cost holds numbers; got {array.dtype}.")
    return array if array.dtype.kind == "f" else array.astype(float)


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def _some(things: Any) -> str:
    listed = sorted(map(str, things))
    return ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
