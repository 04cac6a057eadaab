"""Files that are either whole or not there: written aside, then renamed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["refuse_existing", "whole_file", "write_text"]


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


def refuse_existing(path: Path | None, force: bool) -> None:
    """Raise FileExistsError when ``path`` is there and may not be overwritten."""
    if path is not None and path.exists() and not force:
        raise FileExistsError(f"{path} exists; pass --force to overwrite it, or another name.")
