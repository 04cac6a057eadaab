"""Dependencies that only some parts need, and what to install where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["optional"]

_EXTRAS = {  # module -> what it is called, and the extra that brings it
    "joblib": ("joblib", "text"),
    "rich": ("rich", "cli"),
    "skimage": ("scikit-image", "image"),
    "sklearn": ("scikit-learn", "ml"),
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
