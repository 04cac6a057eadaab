"""One concave function per block, packed for compiled kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from structot.concave.base import CUSTOM, Array, Concave


@dataclass(frozen=True, eq=False)
class ConcaveTable:
    """Per block b the function  outer[b] * g_b(inner[b] * x),  laid out for compiled kernels.

    The methods are the reference of the kernels, and the only way to call `Custom` functions.
    Block b has kind[b] and the parameters params[offset[b]:offset[b + 1]].

    Examples
    --------
    >>> from structot.concave import Sqrt, pack_table
    >>> table = pack_table([Sqrt(), Sqrt()])
    >>> len(table.functions)
    2
    """

    kind: NDArray[np.int64]  # (B,)
    offset: NDArray[np.int64]  # (B+1,)
    params: Array
    outer: Array  # (B,)
    inner: Array  # (B,)
    functions: tuple[Concave, ...]

    def __len__(self) -> int:
        return len(self.functions)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the compiled kernels read."""
        return self.kind, self.offset, self.params, self.outer, self.inner

    @property
    def has_custom(self) -> bool:
        """Whether some block must be evaluated in Python."""
        return bool(np.any(self.kind == CUSTOM))

    def value(self, b: int, x: ArrayLike) -> Any:
        """Value of block b at x."""
        return float(self.outer[b]) * self.functions[b](self.inner[b] * np.asarray(x))

    def secant(self, b: int, x: ArrayLike, h: ArrayLike) -> Any:
        """Mean slope of block b over [x, x + h]."""
        x, h = self.inner[b] * np.asarray(x), self.inner[b] * np.asarray(h)
        return float(self.outer[b] * self.inner[b]) * self.functions[b].secant(x, h)

    def slope(self, b: int, x: ArrayLike) -> Any:
        """Right slope of block b at x."""
        scale = float(self.outer[b] * self.inner[b])
        return scale * self.functions[b].slope(self.inner[b] * np.asarray(x))


def pack_table(
    functions: Concave | Sequence[Concave],
    outer: ArrayLike = 1.0,
    inner: ArrayLike = 1.0,
    *,
    n_blocks: int | None = None,
) -> ConcaveTable:
    """Pack  outer[b] * g_b(inner[b] * x),  b = 0..B-1, for compiled kernels.

    Parameters
    ----------
    functions : B functions, or one that all blocks share.
    outer, inner : factors > 0, one number or B of them.
    n_blocks : B, needed only if nothing else tells it.

    Examples
    --------
    >>> from structot.concave import Sqrt
    >>> pack_table(Sqrt(), outer=[2.0, 3.0]).value(1, 4.0)
    6.0
    """
    outer, inner = np.asarray(outer, dtype=float), np.asarray(inner, dtype=float)
    shared = (functions,) if isinstance(functions, Concave) else ()
    if n_blocks is None:
        n_blocks = max(outer.size, inner.size) if shared else len(functions)  # type: ignore[arg-type]
    blocks = shared * n_blocks if shared else tuple(functions)  # type: ignore[arg-type]
    if len(blocks) != n_blocks:
        raise ValueError(f"n_blocks = {n_blocks}, but functions has {len(blocks)} entries")
    for b, g in enumerate(shared or blocks):
        if not isinstance(g, Concave):
            raise ValueError(f"functions[{b}] must be a Concave (see as_concave), got {g!r}")
    packed = {id(g): g.pack() for g in shared or blocks}
    if len(packed) == 1:  # the common case: one function, no loop over the blocks
        kind, params = next(iter(packed.values()))
        kinds, sizes = np.full(n_blocks, kind), np.full(n_blocks, params.size)
        params = np.tile(params, n_blocks)
    else:
        rows = [packed[id(g)] for g in blocks]
        kinds, sizes = np.array([r[0] for r in rows]), np.array([r[1].size for r in rows])
        params = np.concatenate([np.empty(0), *(r[1] for r in rows)])
    offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scales = _factors("outer", outer, n_blocks), _factors("inner", inner, n_blocks)
    return ConcaveTable(kinds.astype(np.int64), offset, params, *scales, blocks)


def _factors(name: str, values: Array, n_blocks: int) -> Array:
    if values.shape not in ((), (1,), (n_blocks,)):
        raise ValueError(f"{name} must be one number or {n_blocks}, got shape {values.shape}")
    values = np.array(np.broadcast_to(values, (n_blocks,)), dtype=np.float64)
    bad = np.flatnonzero(~((values >= 0) & (values < np.inf)))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] must be finite and >= 0, got {values[bad[0]]}")
    return values
