"""The site: no public name is left out, every example is one, and a dead link is found."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import pytest

import structot

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("plot_*.py"))


def _load(name: str):
    """A module of the folder docs, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


reference = _load("reference")
check_links = _load("check_links")


NAMES = [
    f"{module}.{name}".lstrip(".")
    for module in ("", *reference.public_modules())
    for name in reference.public_names(module)
]


def test_the_reference_lists_every_public_name():
    pages = reference.pages()
    for module in ("", *reference.public_modules()):
        text = pages[f"{module or 'index'}.rst"]
        for name in reference.public_names(module):
            listed = rf"^\s+(structot\.)?{name}$|py:data:: {name}$"
            assert re.search(listed, text, re.MULTILINE), (module, name)
    for module in reference.public_modules():
        assert f"<{module}>" in pages["index.rst"]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_public_name_is_documented_with_an_example(name):
    module, _, last = f"structot.{name}".rpartition(".")
    try:
        value = getattr(importlib.import_module(module), last)
    except ModuleNotFoundError as error:
        pytest.skip(f"{name} needs {error.name}")
    if not reference.is_described(value):  # a constant or an alias: its value is shown
        return
    text = inspect.getdoc(value) or ""
    assert len(text.split()) >= 3, "no docstring"
    assert ">>> " in text, "no example"


def test_there_are_enough_scripts():
    assert len(SCRIPTS) >= 12


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_has_a_title_a_picture_and_a_sentence_to_take_home(path):
    text = path.read_text(encoding="utf-8")
    title, line, *_ = (ast.get_docstring(ast.parse(text)) or "").splitlines()
    assert len(line) >= len(title)
    assert set(line) == {"="}
    assert "plt.subplots" in text or ".plot" in text
    assert text.rstrip().splitlines()[-1].startswith("#")
    assert "# **To take home:** " in text


def test_the_citation_names_the_paper_and_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {structot.__version__}\n" in text
    assert text.index("preferred-citation") < text.index('title: "Structured Optimal Transport"')


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "beside.txt").write_text("here, and on no other machine")
    tmp_path = tmp_path / "site"
    tmp_path.mkdir()
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">fine</a><a href="b.html#gone">no anchor</a><img src="no.png">'
        '<a href="#top">no anchor</a><a href="https://example.org/x">elsewhere</a>'
        '<a href="../beside.txt">outside</a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="a.html">fine</a>')
    assert check_links.dead_links(tmp_path) == [
        "a.html: #top",
        "a.html: ../beside.txt",
        "a.html: b.html#gone",
        "a.html: no.png",
    ]
