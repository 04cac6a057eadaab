"""Dependencies that only some parts need, and what to install where one is missing."""

from __future__ import annotations

import importlib
import sys
from typing import Any

__all__ = ["as_array", "has_tensors", "like", "optional"]

_EXTRAS = {  # module -> what it is called, and the extra that brings it
    "joblib": ("joblib", "text"),
    "matplotlib": ("matplotlib", "plot"),
    "rich": ("rich", "cli"),
    "skimage": ("scikit-image", "image"),
    "skada": ("skada", "skada"),
    "sklearn": ("scikit-learn", "ml"),
    "torch": ("PyTorch", "torch"),
}


def optional(module: str, user: str) -> Any:
    """A module of an optional dependency; where it is missing, an error that tells the way out.

    Parameters
    ----------
    module
        Its dotted name.
    user
        What needs it, the beginning of the error message.

    Examples
    --------
    >>> optional("json.decoder", "an example").__name__
    'json.decoder'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        root = module.partition(".")[0]
        project, extra = _EXTRAS[root]
        text = f"{user} needs {project}: pip install 'structot[{extra}]'."
        raise ModuleNotFoundError(text, name=root) from None


def has_tensors(*values: object) -> bool:
    """Whether one of them is a tensor. Where nobody has imported torch, none is.

    Examples
    --------
    >>> has_tensors([1.0], None)
    False
    """
    torch = sys.modules.get("torch")
    return torch is not None and any(isinstance(x, torch.Tensor) for x in values)


def as_array(x: Any) -> Any:
    """A tensor as an array without gradients; anything else as it is."""
    return x.detach().cpu().numpy() if has_tensors(x) else x


def like(array: Any, original: Any) -> Any:
    """An array as a tensor on the device of the original, if that is one."""
    if not has_tensors(original):
        return array
    return sys.modules["torch"].as_tensor(array, device=original.device)
