"""Prices that stand for "forbidden", which the methods for arrays leave out first.

As in `solvers/_prohibitive.py`: prices are prohibitive above `PROHIBITIVE_OCTAVES` octaves without
any price.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from structot.submodular.lanes import PROHIBITIVE_OCTAVES

# Exponents of doubles lie within this.
_LEAST, _MOST = -1100, 1100
# Costs that are looked at in one go.
_ENTRIES = 1 << 24


def has_prohibitive(costs: Tensor, charges: np.ndarray) -> bool:
    """Whether some costs (n, m) are far above all others, and every point could do without them.

    Examples
    --------
    >>> C = torch.tensor([[1.0, 2.0], [1e15, 3.0]]).double()
    >>> has_prohibitive(C, np.ones((1, 1)))
    True
    >>> has_prohibitive(torch.tensor([[1.0, 2.0], [1e15, 1e15]]).double(), np.ones((1, 1)))
    False
    """
    used = _octaves(costs)
    exponents = np.frexp(charges[charges > 0])[1]
    used[exponents - _LEAST] = True
    places = np.flatnonzero(used)
    below = places[:-1][np.diff(places) > PROHIBITIVE_OCTAVES]
    if below.size == 0:
        return False
    mild = costs < float(np.ldexp(1.0, int(below[-1]) + _LEAST))
    return bool(mild.any(0).all() & mild.any(1).all() & ~mild.all())


def _octaves(costs: Tensor) -> np.ndarray:
    """The exponents that positive costs have, as marks from `_LEAST` on."""
    seen = torch.zeros(_MOST - _LEAST + 1, dtype=torch.bool, device=costs.device)
    rows = max(1, _ENTRIES // max(costs.shape[1], 1))
    for part in costs.split(rows):
        exponent = torch.frexp(part).exponent.flatten().to(torch.int64)
        exponent = torch.where(part.flatten() > 0, exponent, _MOST)
        seen.index_fill_(0, exponent - _LEAST, True)
    seen[-1] = False
    return seen.cpu().numpy()
