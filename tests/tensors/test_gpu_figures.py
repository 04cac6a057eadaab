"""What the README says of a GPU is what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

ROOT = Path(__file__).resolve().parents[2]


def test_the_lines_of_the_readme_are_those_of_the_results() -> None:
    from benchmarks import gpu

    found = json.loads(gpu.RESULTS.read_text("utf-8"))
    text = (ROOT / "README.md").read_text("utf-8")
    for line in gpu.sentences(found):
        assert line in text
