"""Tests of tensors run where PyTorch is installed, in one thread: workers share the cores."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
