"""Tensors: the same verbs on their device, and a loss to train with.

`structot.solve`, `solve_sample` and `solve_batch` come here by themselves where they are given
tensors; ``structot[torch]`` brings what it needs.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from structot._extras import optional

if TYPE_CHECKING:
    from structot.torch.loss import StructuredLoss as StructuredLoss
    from structot.torch.result import Results as Results
    from structot.torch.result import TensorResult as TensorResult

# What can be had: nothing where PyTorch is not installed.
__all__ = ["Results", "StructuredLoss", "TensorResult"] if importlib.util.find_spec("torch") else []

_HOME = {"Results": "result", "StructuredLoss": "loss", "TensorResult": "result"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    optional("torch", f"structot.torch.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
