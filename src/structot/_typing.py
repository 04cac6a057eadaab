"""Names of types that many modules use."""

from __future__ import annotations

import numpy as np

__all__ = ["Array", "Seed"]

Array = np.ndarray
Seed = int | np.random.Generator  # what makes random numbers reproducible
