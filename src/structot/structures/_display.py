"""Short forms of long arguments, for reprs."""

from __future__ import annotations

import numpy as np


def show(value: object) -> str:
    """Labels or groups as they were written when short, by their number when long."""
    if value is None or np.isscalar(value):
        return repr(value)
    items = value.tolist() if isinstance(value, np.ndarray) else list(value)  # type: ignore[call-overload]
    nested = any(isinstance(x, np.ndarray | list | tuple) for x in items)
    if len(items) > 8:
        return f"<{len(items)} {'groups' if nested else 'labels'}>"
    return repr([x.tolist() if isinstance(x, np.ndarray) else x for x in items])
