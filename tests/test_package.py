"""The package as installed: light import, version, typing marker, documented names, doctests."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import importlib.resources
import inspect
import json
import pkgutil
import subprocess
import sys

import pytest

import structot

HEAVY = ("numba", "ot", "torch", "sklearn", "matplotlib", "pandas")
OPTIONAL = (
    *("matplotlib", "skimage", "sklearn", "joblib", "typer", "rich", "markdown_it", "torch"),
    "skada",
    "triton",
)


def _modules() -> list[str]:
    """Dotted names of all modules of the package, found without importing the leaves."""
    found = pkgutil.walk_packages(structot.__path__, prefix="structot.")
    return ["structot", *sorted(module.name for module in found)]


def _import(name: str):
    """The module, or a skip if only an optional dependency of an extra is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in OPTIONAL:
            pytest.skip(f"{name} needs {missing}")
        raise


def test_import_is_light():
    code = "import json, sys, structot; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = {name.partition(".")[0] for name in json.loads(answer.stdout)}
    assert "structot" in loaded
    assert loaded.isdisjoint(HEAVY), sorted(loaded.intersection(HEAVY))


def test_version_matches_metadata():
    assert structot.__version__ == importlib.metadata.version("structot")


def test_typing_marker_is_shipped():
    assert importlib.resources.files("structot").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", sorted(structot.__all__))
def test_public_name_resolves_and_is_documented(name):
    value = getattr(structot, name)
    assert name in dir(structot)
    if inspect.ismodule(value) or callable(value):
        text = inspect.getdoc(value) or ""
        # A dataclass without a docstring shows its own signature instead.
        assert text.strip()
        assert not text.startswith(f"{name}(")


@pytest.mark.parametrize("name", _modules())
def test_doctests(name, tmp_path, monkeypatch):
    module = _import(name)
    monkeypatch.chdir(tmp_path)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    report: list[str] = []
    for example in doctest.DocTestFinder().find(module):
        runner.run(example, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)
