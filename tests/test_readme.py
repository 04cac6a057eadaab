"""Every Python snippet of the documents runs, as a reader types it; figures are as measured."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e-?\d+)?")


def _snippets(path: Path) -> list[tuple[int, str]]:
    """(line number before the first line, code) of each fenced Python block."""
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, hit.start(1)), hit.group(1)) for hit in FENCE.finditer(text)]


GUIDE = [ROOT / "docs" / "index.md", ROOT / "docs" / "choosing.md"]
GUIDE += [path for path in sorted((ROOT / "docs" / "guide").glob("*.md")) if _snippets(path)]


@pytest.mark.parametrize("page", [README, *GUIDE], ids=lambda page: page.name)
def test_snippets_run(page, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    for optional in ("gensim", "torch"):
        if f"\nimport {optional}\n" in page.read_text() or f"from {optional}" in page.read_text():
            pytest.importorskip(optional)
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    snippets = _snippets(page)
    assert snippets, f"{page.name} has no ```python block"
    namespace: dict[str, object] = {"__name__": "__main__"}
    try:
        for line, code in snippets:
            # Leading newlines make the line numbers of a traceback those of the page.
            exec(compile("\n" * line + code, str(page), "exec"), namespace)
    finally:
        plt.close("all")


def test_the_output_of_the_readme_is_what_its_first_example_prints(tmp_path, monkeypatch, capsys):
    """Up to what another processor may change; what depends on the clock is not shown."""
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    exec(compile(_snippets(README)[0][1], str(README), "exec"), {"__name__": "__main__"})
    (shown,) = re.findall(r"^```\n(Result\(.*?)^```$", README.read_text("utf-8"), re.M | re.S)
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1].startswith("  effort")
    for ours, there in zip(shown.splitlines(), printed[:-1], strict=True):
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", there)
        if not ours.startswith("  gap"):
            expected = [float(text) for text in NUMBER.findall(there)]
            assert [float(text) for text in NUMBER.findall(ours)] == pytest.approx(expected, 1e-2)


def test_benchmark_page_and_ratios_are_what_was_measured():
    pytest.importorskip("matplotlib")
    from benchmarks import report
    from benchmarks.run import TASKS

    environment, rows = report.read()
    assert list(dict.fromkeys(row.task for row in rows)) == list(TASKS)
    assert report.PAGE.read_text(encoding="utf-8") == report.page(environment, rows)
    text = README.read_text(encoding="utf-8")
    assert text.count(report.MARKS[0]) == text.count(report.MARKS[1]) == 1
    assert report.with_ratios(text, rows) == text


def test_a_missed_goal_is_said():
    pytest.importorskip("matplotlib")
    from benchmarks import report

    environment, rows = report.read()
    missed = [replace(row, ratio=9 * row.limit) if row.limit else row for row in rows]
    page = report.page(environment, missed)
    assert page.count("**no**") == sum(row.limit is not None for row in rows)
    assert f"0 of {page.count('**no**')} goals are met" in page
    assert page.count(", the goal is ") == page.count("**no**")


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_pages_link_to_files_that_exist(path):
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", path.read_text(encoding="utf-8"))
    assert [target for target in targets if not (path.parent / target).exists()] == []


def test_readme_links_to_files_that_exist():
    text = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert not missing


def test_a_package_index_shows_no_picture_and_no_link_that_it_cannot_reach():
    """pyproject.toml rewrites what leads into the repository; the rest of the README stays."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rules = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]
    text = README.read_text(encoding="utf-8")
    for rule in rules:
        text = re.sub(rule["pattern"], rule["replacement"], text)
    assert "![" not in text
    assert re.findall(r"\]\((?!https?:)", text) == []
    assert "*Picture `docs/figures/dials.png`: Three plans" in text
    assert "`docs/theory.md`" in text
    assert "[POT](https://pythonot.github.io)" in text
    assert _code(text) == _code(README.read_text(encoding="utf-8"))


def _code(text: str) -> list[str]:
    """The fenced blocks of a text in Markdown."""
    return re.findall(r"^```.*?^```$", text, re.MULTILINE | re.DOTALL)
