"""Matrices, weights and labels from .npy, .npz and .csv files."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from structot.cli._common import existing_file

__all__ = ["read_labels", "read_matrix", "read_weights"]

_SUFFIXES = (".npy", ".npz", ".csv")
_DELIMITERS = ",;\t "


def read_matrix(path: Path) -> np.ndarray:
    """A cost matrix; of a .csv, numbers in rows, with or without a line of names."""
    if _suffix(path) == ".csv":
        rows = _rows(path)
        if rows and not all(_is_number(cell) for cell in rows[0]):
            rows = rows[1:]
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


def read_weights(path: Path, size: int) -> np.ndarray:
    """One number per point."""
    cells = _column(path, size, ("weights", "a", "b"))
    if not all(_is_number(cell) for cell in cells):
        raise ValueError(f"{path}: weights must be numbers.")
    return np.array([float(cell) for cell in cells])


def read_labels(path: Path, size: int) -> Any:
    """One label per point; an empty cell of a .csv is a missing label."""
    cells = _column(path, size, ("labels", "groups"))
    return [None if isinstance(cell, str) and not cell.strip() else cell for cell in cells]


def _column(path: Path, size: int, names: tuple[str, ...]) -> list[Any]:
    if _suffix(path) == ".csv":
        rows = _rows(path, keep_empty=True)
        cells = [cell for row in rows for cell in row]
        # One line of names above one entry per point.
        if len(cells) == size + 1 and len(rows) == len(cells):
            cells = cells[1:]
    else:
        cells = _array(path, names).ravel().tolist()
    if len(cells) != size:
        raise ValueError(f"{path} has {len(cells)} entries, but there are {size} points.")
    return cells


def _suffix(path: Path) -> str:
    existing_file(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise ValueError(f"{path}: unknown kind of file; pass {', '.join(_SUFFIXES)}.")
    return path.suffix.lower()


def _rows(path: Path, keep_empty: bool = False) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is no text in UTF-8.") from None
    lines = text.splitlines()
    if not keep_empty:
        lines = [line for line in lines if line.strip()]
    if not any(line.strip() for line in lines):
        raise ValueError(f"{path} is empty.")
    delimiter = next((d for d in _DELIMITERS if any(d in line.strip() for line in lines)), ",")
    if delimiter == " ":
        return [line.split() or [""] for line in lines]
    return [
        [cell.strip() for cell in row] or [""] for row in csv.reader(lines, delimiter=delimiter)
    ]


def _array(path: Path, names: tuple[str, ...]) -> np.ndarray:
    """The array of a .npy, or the one array of a .npz, or the one of these names."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
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


def _numbers(path: Path, array: np.ndarray) -> np.ndarray:
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
