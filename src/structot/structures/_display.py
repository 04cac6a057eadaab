"""Short forms of long arguments, for reprs."""

from __future__ import annotations

import numpy as np


def show(value: object) -> str:
    """A label array as it was written when short, by its length when long."""
    if value is None or np.isscalar(value):
        return repr(value)
    size = len(value)  # type: ignore[arg-type]
    if size > 8:
        return f"<{size} labels>"
    return repr(value.tolist() if isinstance(value, np.ndarray) else list(value))  # type: ignore[call-overload]
