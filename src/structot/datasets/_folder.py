"""Where data files are looked for: an argument, STRUCTOT_DATA, or a cache in the home folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

VARIABLE = "STRUCTOT_DATA"


def folder(data: str | os.PathLike | None = None) -> Path:
    """The data folder: ``data`` if given, else STRUCTOT_DATA, else a cache in the home folder.

    Examples
    --------
    >>> folder("digits").name
    'digits'
    """
    if data is not None:
        return Path(data).expanduser()
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE]).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "structot"


def find(name: str, data: str | os.PathLike | None = None) -> Path:
    """The path of a data file that exists; else an error that says where to put it.

    Parameters
    ----------
    name
        File name inside the data folder.
    data
        The data folder; see `folder` for the default.

    Examples
    --------
    >>> find("no_such_file.npz", "nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: no_such_file.npz is not in the data folder nowhere. Put it there, ...
    """
    path = folder(data) / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{name} is not in the data folder {path.parent}. Put it there, or name the folder "
            f"that holds it: data=..., --data on the command line, or the variable {VARIABLE}."
        )
    return path


def sha256(path: str | os.PathLike) -> str:
    """Checksum of a file, read in pieces.

    Examples
    --------
    >>> import pathlib
    >>> _ = pathlib.Path("empty").write_bytes(b"")
    >>> sha256("empty")[:8]
    'e3b0c442'
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sha256(path: str | os.PathLike, expected: str) -> Path:
    """The path, if the file is the one that was meant; else an error."""
    found = sha256(path)
    if found != expected:
        raise ValueError(
            f"{path} is damaged or another file of that name: its sha256 is {found}, expected "
            f"{expected}. Delete it and fetch it again."
        )
    return Path(path)
