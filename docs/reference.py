"""The pages of the API reference, from the public names themselves: none can be left out.

pages() -> {file name: reStructuredText}
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import structot

__all__ = ["GalleryOrder", "is_described", "pages", "public_modules", "public_names", "write"]

# What is shown together on the first page; a name that is in none of them comes last.
_PARTS = {
    "Solving": ("solve", "solve_sample", "solve_batch", "solve_path"),
    "Answers": ("Result", "Path", "Status", "Trace", "ConvergenceWarning"),
    "Structures": (
        *("Groups", "Routes", "Coverage", "Hierarchy", "Modular", "ChainCut", "GraphCut"),
        *("Rank", "LogDet", "SetFunction", "ConvexCost"),
    ),
    "Domain adaptation": ("StructuredTransport", "AdaptTo"),
}
_MODULE_PAGE = """{title}
{line}

.. automodule:: structot.{module}
   :no-members:

.. currentmodule:: structot.{module}

{lists}
"""


class GalleryOrder:
    """Sorts the gallery from first steps to particulars; scripts not named here come last."""

    FIRST = (
        *("first_plan", "choose_dial", "explore", "certificate", "worst_cost", "routes", "cells"),
        *("relaxed", "fixed_charge", "hierarchy", "neighborhoods", "chain_cut", "entropy"),
        *("own_function", "domain_adaptation", "word_mover", "colors", "batch", "methods"),
    )

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        stem = name.removeprefix("plot_").removesuffix(".py")
        place = self.FIRST.index(stem) if stem in self.FIRST else len(self.FIRST)
        return place, stem


def public_modules() -> list[str]:
    """The modules among the public names of the package."""
    return [name for name in structot.__all__ if isinstance(getattr(structot, name), ModuleType)]


def public_names(module: str = "") -> list[str]:
    """What a module offers, other than modules; the package itself by default."""
    found = importlib.import_module(f"structot.{module}".rstrip("."))
    names = getattr(found, "__all__", [])
    return [name for name in names if not isinstance(_get(found, name), ModuleType)]


def _get(module: ModuleType, name: str) -> object:
    """What the name stands for; None where an optional dependency of it is not installed."""
    try:
        return getattr(module, name)
    except ModuleNotFoundError:
        return None


def pages() -> dict[str, str]:
    """File name -> text of every page, without the folder."""
    modules = public_modules()
    found = {f"{module}.rst": _module_page(module) for module in modules}
    found["index.rst"] = _first_page(modules)
    return found


def write(folder: Path) -> None:
    """Write the pages that have changed, so that Sphinx reads only these again."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _first_page(modules: list[str]) -> str:
    names = public_names()
    shown = {name for part in _PARTS.values() for name in part}
    parts = {**_PARTS, "More": tuple(sorted(set(names) - shown))}
    text = ["API reference", "=============", "", "``import structot as sot``", ""]
    text += [".. currentmodule:: structot", ""]
    for title, listed in parts.items():
        present = [name for name in listed if name in names]
        if present:
            text += [title, "-" * len(title), "", _summary(present), ""]
    text += ["Modules", "-------", "", ".. toctree::", "   :maxdepth: 1", ""]
    text += [f"   structot.{module} <{module}>" for module in modules]
    return "\n".join(text) + "\n"


def _module_page(module: str) -> str:
    found = importlib.import_module(f"structot.{module}")
    names = public_names(module)
    values = {name: _get(found, name) for name in names}
    data = [name for name, value in values.items() if not is_described(value)]
    in_front = [name for name in names if name in _names_in_front() and name not in data]
    in_front = [name for name in in_front if getattr(structot, name) is values[name]]
    own = [name for name in names if name not in (*data, *in_front)]
    lists = _summary(own) if own else ""
    if in_front:  # described once, where users import them from
        entries = "\n".join(f"   structot.{name}" for name in in_front)
        lists += f"\n\n.. autosummary::\n   :nosignatures:\n\n{entries}"
    for name in data:
        lists += f"\n\n.. py:data:: {name}\n   :no-index:\n\n   ``{getattr(found, name)!r}``\n"
    title = f"structot.{module}"
    return _MODULE_PAGE.format(title=title, line="=" * len(title), module=module, lists=lists)


def _names_in_front() -> set[str]:
    return set(public_names())


def is_described(value: object) -> bool:
    """Whether its docstring is its description: classes and functions, compiled ones too."""
    return value is None or inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))


def _summary(names: list[str]) -> str:
    entries = "\n".join(f"   {name}" for name in names)
    return f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{entries}"
