"""The prox of `Groups` for tensors: one sort and one majorant for all blocks at once.

prox(V) = argmin_X f(X) + ρ/2 Σ w (X - V)², X >= floor, is block by block the decreasing regression
of V_(k) - s_k / ρ in the order of falling V, s_k the slope of g from Σ_{l<k} w_(l) over w_(k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from structot.blocks.function import Blocks
from structot.concave import ConcaveTable
from structot.concave.base import (
    LINEAR,
    LOG,
    PIECEWISE_LINEAR,
    POWER,
    SQRT,
    STEP,
    THRESHOLD_SQRT,
    TRUNCATION,
)
from structot.torch.majorant import decreasing_regression


@dataclass(frozen=True, eq=False)
class BlockProx:
    """The blocks of a layer on a device.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> M = np.array([[1.0, 2.0], [2.0, 1.0]])
    >>> (layer,) = sot.Groups([0, 0], [0, 0]).bind(M).layers
    >>> prox = BlockProx.of(layer, torch.device("cpu"))
    >>> V = layer.gather(np.array([[0.9, 0.5], [0.6, 0.8]]))
    >>> np.allclose(prox(torch.tensor(V), 1.0), layer.prox_edges(V, 1.0).X)
    True
    """

    table: ConcaveTable
    w: Tensor  # (E,) weights in block order
    block: Tensor  # (E,) the block of every edge
    last_slopes: Tensor  # (B,) the least that an edge of a block adds per weight

    @classmethod
    def of(cls, layer: Blocks, device: torch.device) -> BlockProx:
        """Of a layer whose functions are not written in Python."""
        if layer.interpreted:
            raise ValueError("functions written in Python are evaluated by NumPy only")
        sizes = torch.as_tensor(np.diff(layer.start), device=device)
        block = torch.repeat_interleave(
            torch.arange(sizes.numel(), device=device), sizes, output_size=layer.w.size
        )
        w, slopes = (torch.as_tensor(x, device=device) for x in (layer.w, layer.last_slopes))
        return cls(layer.table, w, block, slopes)

    def __call__(self, V: Tensor, rho: float, floor: float = -np.inf) -> Tensor:
        """X in block order, for V in block order."""
        # What is no higher than this ends at the floor, and need not be sorted.
        level = floor + self.last_slopes / rho
        chosen = (level[self.block] < V).nonzero()[:, 0]
        chosen = chosen[V[chosen].argsort(descending=True)]
        chosen = chosen[self.block[chosen].argsort(stable=True)]
        block, w, v = self.block[chosen], self.w[chosen], V[chosen]
        sizes = torch.bincount(block, minlength=len(self.table))
        before = w.cumsum(0) - w
        before -= before[sizes.cumsum(0) - sizes][block] if w.numel() else 0.0
        v = v - secants(self.table, block, before.clamp_(min=0.0), w) / rho
        X = torch.full_like(V, floor)
        X[chosen] = decreasing_regression(v, w, sizes.cpu().numpy()).clamp_(min=floor)
        return X


def secants(table: ConcaveTable, block: Tensor, x: Tensor, h: Tensor) -> Tensor:
    """Mean slopes of the functions of these blocks over [x, x + h], h > 0, without cancellation.

    The formulas are those of `structot.concave`, where they are explained.
    """
    scale = torch.as_tensor(np.stack((table.outer * table.inner, table.inner)), device=x.device)
    kind = torch.as_tensor(table.kind, device=x.device)[block]
    found = torch.zeros_like(x)
    for known in np.unique(table.kind).tolist():
        here = slice(None) if (table.kind == known).all() else (kind == known).nonzero()[:, 0]
        b, inner = block[here], scale[1, block[here]]
        found[here] = _secant(table, known, b, inner * x[here], inner * h[here])
    return scale[0, block] * found


def _secant(table: ConcaveTable, kind: int, block: Tensor, x: Tensor, h: Tensor) -> Tensor:
    """Of blocks whose functions are of one kind."""
    first = torch.as_tensor(table.offset[:-1], device=x.device)[block]
    params = torch.as_tensor(np.append(table.params, 0.0), device=x.device)
    if kind == LINEAR:
        return torch.ones_like(x)
    if kind == SQRT:
        return 1.0 / (x.sqrt() + (x + h).sqrt())
    if kind == STEP:
        return torch.where(x > 0.0, 0.0, 1.0 / h)
    if kind == TRUNCATION:
        return _truncation(params[first], x, h)
    if kind == LOG:
        s = params[first]
        ratio = h / (s + x)
        return s / (s + x) * (ratio.log1p() / ratio)
    if kind == POWER:
        return _power(params[first], x, h)
    if kind == THRESHOLD_SQRT:
        return _threshold_sqrt(params[first], params[first + 1], x, h)
    assert kind == PIECEWISE_LINEAR
    return _piecewise_linear(table, block, x, h)


def _truncation(alpha: Tensor, x: Tensor, h: Tensor) -> Tensor:
    return torch.minimum((alpha - x).clamp(min=0.0), h) / h


def _power(p: Tensor, x: Tensor, h: Tensor) -> Tensor:
    ratio = h / x
    growth = p * ratio.log1p()
    near = x ** (p - 1.0) * torch.where(ratio < 1e-17, p, growth.expm1() / ratio)
    far = ((x + h) ** p - x**p) / h
    return torch.where((growth > 1.0) | (x == 0.0), far, near)


def _threshold_sqrt(alpha: Tensor, scale: Tensor, x: Tensor, h: Tensor) -> Tensor:
    below = torch.minimum((alpha - x).clamp(min=0.0), h)
    y, above = (x - alpha).clamp(min=0.0), h - below
    mean = 1.0 / ((y / scale + 0.25).sqrt() + ((y + above) / scale + 0.25).sqrt())
    return below / h + above / h * mean


def _piecewise_linear(table: ConcaveTable, block: Tensor, x: Tensor, h: Tensor) -> Tensor:
    """The last slope, and at every break a truncation by what the slope loses there."""
    sizes = (np.diff(table.offset) - 1) // 3  # breaks of every block
    most = int(sizes.max(initial=0))
    breaks, losses = np.zeros((2, sizes.size, most))
    last = np.ones(sizes.size)
    for b in np.flatnonzero(table.kind == PIECEWISE_LINEAR):
        k, own = sizes[b], table.params[table.offset[b] : table.offset[b + 1]]
        slopes = own[k : 2 * k + 1]
        breaks[b, :k], losses[b, :k], last[b] = own[:k], -np.diff(slopes), slopes[-1]
    total = torch.as_tensor(last, device=x.device)[block]
    for place, loss in zip(breaks.T, losses.T, strict=True):
        at, lost = (torch.as_tensor(z.copy(), device=x.device)[block] for z in (place, loss))
        total += lost * _truncation(at, x, h)
    return total
