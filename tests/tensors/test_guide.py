"""The page about tensors: its snippets run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "tensors.md"


def test_snippets_run() -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    assert len(snippets) == 4
    namespace: dict[str, object] = {"__name__": "__main__"}
    for code in snippets:
        exec(compile(code, str(PAGE), "exec"), namespace)
