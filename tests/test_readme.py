"""Every Python snippet of the README runs, in order and in one namespace, as a reader types it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FENCE = re.compile(r"^```python[^\n]*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


def _snippets(path: Path) -> list[tuple[int, str]]:
    """(line number before the first line, code) of each fenced Python block."""
    text = path.read_text(encoding="utf-8")
    return [(text.count("\n", 0, hit.start(1)), hit.group(1)) for hit in FENCE.finditer(text)]


def test_readme_snippets_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: None)
    snippets = _snippets(README)
    assert snippets, "README.md has no ```python block"
    namespace: dict[str, object] = {"__name__": "__main__"}
    try:
        for line, code in snippets:
            # Leading newlines make the line numbers of a traceback those of the README.
            exec(compile("\n" * line + code, str(README), "exec"), namespace)
    finally:
        plt.close("all")


def test_readme_table_is_what_was_measured():
    pytest.importorskip("matplotlib")
    from benchmarks.run import HERE, TASKS, earlier, with_table

    rows = earlier(HERE / "results.json")
    assert list(rows) == list(TASKS)
    text = README.read_text(encoding="utf-8")
    assert with_table(text, [row for task in rows.values() for row in task]) == text


def test_readme_links_to_files_that_exist():
    text = README.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", text)
    missing = [target for target in targets if not (ROOT / target).exists()]
    assert not missing
