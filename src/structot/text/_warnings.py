"""Warnings that point at the line of the user, however deep they arise."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first frame outside of this library."""
    package, level = __name__.split(".")[0], 2  # 1 is this function, 2 is who calls it
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_of(package, frame.f_globals.get("__name__", "")):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _is_of(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
