"""What a task returned, as one npz file: arrays as they are, everything else as JSON inside."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from structot._files import whole_file

__all__ = ["dump", "load"]

_ARRAY = "__array__"  # marks the place of an array inside the JSON part


def dump(path: Path, record: dict[str, Any]) -> None:
    """Write a record of JSON values and NumPy arrays, nested as it may be."""
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(_without_arrays(record, arrays))
    with whole_file(path) as aside:
        np.savez_compressed(aside, json=np.array(text), **arrays)  # type: ignore[arg-type]


def load(path: Path) -> dict[str, Any] | None:
    """The record in a file, or None where there is none or it cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name != "json"}
            return _with_arrays(json.loads(str(file["json"])), arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _without_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        return {str(key): _without_arrays(entry, arrays) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(entry, arrays) for entry in value]
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            raise TypeError("a record may hold arrays of numbers or text, not of Python objects")
        name = f"array_{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    return value


def _with_arrays(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: _with_arrays(entry, arrays) for key, entry in value.items()}
    if isinstance(value, list):
        return [_with_arrays(entry, arrays) for entry in value]
    return value
