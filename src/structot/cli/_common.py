"""What the commands share: streams, options, and how a run ends."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

__all__ = [
    "BAD_INPUT",
    "DONE",
    "INTERRUPTED",
    "NO_GAP",
    "Debug",
    "Force",
    "Interrupted",
    "console",
    "known_suffix",
    "report_error",
]

DONE, NO_GAP, BAD_INPUT, UNEXPECTED, INTERRUPTED = 0, 1, 2, 3, 130

# What wrong input, a missing file or a missing package raise; anything else is a mistake of ours.
INPUT_ERRORS = (ValueError, OSError, ImportError)

Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what is there.")]


class Interrupted(Exception):
    """Ctrl-C, with a sentence that says what is kept."""


def console() -> Console:
    """The output stream; rich leaves out colours where NO_COLOR is set or nobody watches."""
    return Console(highlight=False, soft_wrap=True)


def report_error(error: BaseException, debug: bool, where: str = "") -> int:
    """Say what went wrong in one line, and the exit code for it."""
    if debug:
        traceback.print_exception(error)
    bad_input = isinstance(error, INPUT_ERRORS)
    text = " ".join(_message(error).split())
    if not bad_input:
        text = f"unexpected {type(error).__name__}: {text} (--debug shows where)"
    sys.stderr.write(f"structot: {where}{text}\n")
    return BAD_INPUT if bad_input else UNEXPECTED


def _message(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error) or type(error).__name__


def existing_file(path: Path) -> Path:
    """``path`` if it is a file."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; pass a file.")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist.")
    return path


def known_suffix(option: str, path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Refuse a file whose name does not say one of these formats."""
    if path is not None and path.suffix not in suffixes:
        raise ValueError(f"{option} {path}: the name must end in {' or '.join(suffixes)}.")
