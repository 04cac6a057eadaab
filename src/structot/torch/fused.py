"""The levels of `dual.levels` in one Triton kernel: no array is written but the levels themselves.

One program has the blocks of a few column groups of one row group, (k, l .. l + BL), and goes over
their pairs in tiles once per round of Newton's method. Imported only where there is Triton.
"""

from __future__ import annotations

import torch
import triton  # type: ignore[import-not-found,import-untyped,unused-ignore]
import triton.language as tl  # type: ignore[import-not-found,import-untyped,unused-ignore]
from torch import Tensor

# Pairs of a tile, and column groups of a program where each has one point.
_TILE, _GROUPS = 2048, 32


@triton.jit
def _levels(  # type: ignore[no-untyped-def]
    V,
    supply,
    guess,
    level,
    S,
    L,
    T,
    rounds,
    exact: tl.constexpr,
    guessed: tl.constexpr,
    BS: tl.constexpr,
    BL: tl.constexpr,
    BT: tl.constexpr,
):
    block = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1) * BL + tl.arange(0, BL)
    inside = group < L
    stride = (block * 0 + L) * T  # of eight bytes: blocks may have more than 2³¹ pairs
    V += block * S * stride
    s = tl.arange(0, BS)[:, None, None]
    t = tl.arange(0, BT)[None, None, :]
    places = s * stride + group[None, :, None] * T + t
    here = inside[None, :, None] & (s >= 0) & (t >= 0)
    top = tl.full((BL,), -float("inf"), tl.float64)
    for first in range(0, S, BS):
        for start in range(0, T, BT):
            there = here & (s < S - first) & (t < T - start)
            x = tl.load(V + first * stride + start + places, mask=there, other=-float("inf"))
            top = tl.maximum(top, tl.max(tl.max(x, 2), 0))
    amount = tl.load(supply + block * L + group, mask=inside, other=1.0)
    top = tl.where(inside, top, 0.0)
    least = top - amount
    now = least
    if guessed:
        known = tl.load(guess + block * L + group, mask=inside, other=0.0)
        now = tl.where(known < top, known, least)
    left = rounds
    while left > 0:
        number = tl.zeros((BL,), tl.float64)
        above = tl.zeros((BL,), tl.float64)
        for first in range(0, S, BS):
            for start in range(0, T, BT):
                there = here & (s < S - first) & (t < T - start)
                x = tl.load(V + first * stride + start + places, mask=there, other=-float("inf"))
                more = x - now[None, :, None]
                counts = more > 0.0
                above += tl.sum(tl.sum(tl.where(counts, more, 0.0), 2), 0)
                number += tl.sum(tl.sum(tl.where(counts, 1.0, 0.0).to(tl.float64), 2), 0)
        new = tl.maximum(now + (above - amount) / tl.maximum(number, 1.0), least)
        moved = tl.abs(new - now) > exact * (tl.abs(new) + amount)
        now = new
        left = tl.where(tl.sum((moved & inside).to(tl.int32), 0) > 0, left - 1, 0)
    tl.store(level + block * L + group, now, mask=inside)


def levels(V: Tensor, supply: Tensor, guess: Tensor | None, rounds: int, exact: float) -> Tensor:
    """t (B, K, L) with Σ_block (V - t)₊ = supply, for V (B, K, S, L, T) without gaps in memory."""
    B, K, S, L, T = V.shape
    V, supply = V.contiguous(), supply.contiguous()
    level = torch.empty_like(supply)
    BT = min(triton.next_power_of_2(T), 64)
    BL = max(_GROUPS // BT, 1)
    BS = max(min(triton.next_power_of_2(S), _TILE // (BT * BL)), 1)
    known = level if guess is None else guess.contiguous()
    with torch.cuda.device(V.device):
        _levels[(B * K, triton.cdiv(L, BL))](
            *(V, supply, known, level, S, L, T, rounds, exact),
            guessed=guess is not None,
            BS=BS,
            BL=BL,
            BT=BT,
        )
    return level
