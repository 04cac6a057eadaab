"""Files that are either whole or not there: written aside, then renamed; and strict JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["json_text", "refuse_existing", "whole_file", "write_text"]


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; renamed to ``path`` when the block ends well, removed when not.

    The name aside keeps the suffix, because writers choose the format by it.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "a.txt") as aside:
    ...     _ = aside.write_text("all of it")
    >>> [entry.name for entry in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.stem}.{os.getpid()}.part{path.suffix}")
    try:
        yield aside
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with whole_file(path) as aside:
        aside.write_text(text, encoding="utf-8")


def json_text(value: Any) -> str:
    """Strict JSON: arrays as lists, NumPy numbers as numbers, NaN and infinity as null.

    Examples
    --------
    >>> json_text([np.inf, np.int64(1)]).split()
    ['[', 'null,', '1', ']']
    """
    return json.dumps(_plain(value), indent=1, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def refuse_existing(path: Path | None, force: bool) -> None:
    """Raise when ``path`` is there and may not be overwritten, or cannot be written at all.

    Called before the work, so that hours of it are not lost for want of a place to keep it.
    """
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass the name of a file.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} exists; pass --force to overwrite it, or another name.")
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise PermissionError(f"{path} cannot be written: {folder} is no folder open to writing.")
