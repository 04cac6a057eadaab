"""Least concave majorants of many blocks at once, and the isotonic regression that they give.

Notation. The points (x_k, y_k) of a block, x increasing, are merged as hulls: chunks of two points
are hulls, and in every round the hulls of neighbouring chunks become one. Of a left hull and a
right one all points between the ends i and j of their bridge, the line above both, are dropped.
With m the slope of i j for a guess of i and j,

- if the point before i lies above that line, i moves left; if that after j does, j moves right;
- if only the one after i does, the bridge falls more steeply than m: i moves right, j not left; and
  if only the one before j does, j moves left, i not right;
- if both inner neighbours do, the lines through i and j and these neighbours meet left or right of
  the gap between the hulls, and i moves right or j moves left.

Every look halves an interval, so that a round takes a number of looks that is logarithmic in the
size of the hulls, whatever the data, and all pairs of hulls of all blocks are looked at together.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def decreasing_regression(values: Tensor, weights: Tensor, sizes: np.ndarray) -> Tensor:
    """argmin Σ w (x - v)² over x that decrease in every block, (N,).

    The slopes of the least concave majorant of (Σ w, Σ w v), sums from the left.

    Parameters
    ----------
    values, weights
        v and w > 0 (N,), block after block.
    sizes
        (B,) the number of elements of each block; on the host, where rounds are planned.

    Examples
    --------
    >>> v, w = torch.tensor([1.0, 3.0, 2.0, 5.0]).double(), torch.ones(4).double()
    >>> decreasing_regression(v, w, np.array([3, 1])).tolist()
    [2.0, 2.0, 2.0, 5.0]
    """
    sizes = sizes[sizes > 0]
    if values.numel() == 0:
        return values.clone()
    lengths = torch.as_tensor(sizes, device=values.device)
    ends = lengths.cumsum(0)
    block = torch.repeat_interleave(
        torch.arange(sizes.size, device=values.device), lengths, output_size=values.numel()
    )
    # Sums of what differs from the mean of the block: small, so that differences of them are right.
    mean = _differences((weights * values).cumsum(0)[ends - 1]) / _differences(
        weights.cumsum(0)[ends - 1]
    )
    y = (weights * (values - mean[block])).cumsum(0)
    points = values.new_zeros(values.numel() + sizes.size, dtype=torch.complex128)
    # Every block begins at the sums of those before it.
    points[torch.arange(values.numel(), device=values.device) + block + 1] = torch.complex(
        weights.cumsum(0), y
    )
    firsts = ends[:-1] + torch.arange(1, sizes.size, device=values.device)
    points[firsts] = points[firsts - 1]
    kept = vertices(points, sizes + 1)
    begins = torch.zeros(points.numel(), dtype=torch.bool, device=values.device)
    begins[firsts] = True
    # Steps from the end of a block to the beginning of the next are none.
    length = kept.diff()[~begins[kept[1:]]]
    # What a pool sums up to by itself: differences of long sums have lost some digits.
    above, below = (
        torch.segment_reduce(x, "sum", lengths=length, unsafe=True)
        for x in (weights * (values - mean[block]), weights)
    )
    fit = torch.repeat_interleave(above / below, length, output_size=values.numel())
    return fit + mean[block]


def vertices(points: Tensor, sizes: np.ndarray) -> Tensor:
    """The numbers of the points that are vertices of the majorants, in order.

    Parameters
    ----------
    points
        x + iy (N,), block after block, x increasing in each of them.
    sizes
        (B,) the number of points of each block, none of them 0.
    """
    device = points.device
    at = torch.arange(points.numel(), device=device)
    chunks = -(-sizes // 2)  # of every block
    count = torch.full((int(chunks.sum()),), 2, device=device)
    count[torch.as_tensor(chunks.cumsum() - 1, device=device)] -= torch.as_tensor(
        sizes % 2, device=device
    )
    while chunks.max() > 1:
        left, merged = _pairs(chunks, device)
        first = count.cumsum(0) - count
        i, j = _bridges(points, first[left], count[left], count[left + 1])
        dropped = torch.zeros(points.numel() + 1, dtype=torch.int32, device=device)
        dropped[i + 1] += 1
        dropped[j] -= 1
        alive = (dropped[:-1].cumsum(0) == 0).nonzero()[:, 0]
        count[left] += count[left + 1] - (j - i - 1)
        count = count[merged]
        chunks = -(-chunks // 2)
        if alive.numel() < points.numel():
            points, at = points[alive], at[alive]
    return at


def _pairs(chunks: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """The chunks that have a right neighbour to be merged with, and the first of each new chunk."""
    counts = torch.as_tensor(chunks, device=device)
    total = int(chunks.sum())
    first = torch.repeat_interleave(counts.cumsum(0) - counts, counts, output_size=total)
    last = torch.repeat_interleave(counts.cumsum(0) - 1, counts, output_size=total)
    number = torch.arange(total, device=device)
    even = (number - first) % 2 == 0
    return (even & (number < last)).nonzero()[:, 0], even.nonzero()[:, 0]


def _bridges(z: Tensor, first: Tensor, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """The ends of the bridges between hulls of so many points, side by side from first."""
    middle = first + left  # where the right hull begins
    end = middle + right - 1
    low, high = torch.stack((first, middle)), torch.stack((middle - 1, end))
    least, most = low[:, None], high[:, None]
    # Neighbours that there are: before i, after i, before j, after j.
    away = torch.tensor([[[-1], [1]], [[-1], [1]]], device=z.device)
    for _ in range(_looks(left) + _looks(right)):
        guess = (low + high) >> 1  # (2, P): i and j
        near = guess[:, None] + away  # (2, 2, P)
        there = (near >= least) & (near <= most)
        ends = z[guess]
        beside = z[near.clamp_(min=0, max=z.numel() - 1)] - ends[:, None]
        across = ends[1] - ends[0]
        above = there & ((across.conj() * beside).imag > 0.0)
        (outer_i, inner_i), (inner_j, outer_j) = above
        # Lines through i and j and their inner neighbours, at the first point of the right hull.
        slope = torch.stack((beside[0, 1], beside[1, 0]))
        height = ends.imag + slope.imag / slope.real * (z[middle].real - ends.real)
        lower = height[0] <= height[1]
        left_i = outer_i
        right_i = inner_i & ~outer_j & (~inner_j | ~lower)
        right_j = outer_j
        left_j = inner_j & ~outer_i & (~inner_i | lower)
        not_right_i = ~inner_i & ~outer_i  # i supports a line of slope m: j says where it is
        not_left_j = ~inner_j & ~outer_j
        done = not_right_i & not_left_j
        low_i = torch.where(right_i, guess[0] + 1, torch.where(done, guess[0], low[0]))
        high_i = torch.where(left_i, guess[0] - 1, torch.where(not_right_i, guess[0], high[0]))
        low_j = torch.where(right_j, guess[1] + 1, torch.where(not_left_j, guess[1], low[1]))
        high_j = torch.where(left_j, guess[1] - 1, torch.where(done, guess[1], high[1]))
        low, high = torch.stack((low_i, low_j)), torch.stack((high_i, high_j))
        high = torch.maximum(low, high)  # rounding may have its own opinion of lines that coincide
    i, j = torch.minimum((low + high) >> 1, torch.stack((middle - 1, end)))
    return i, j


def _looks(count: Tensor) -> int:
    """How many halvings leave one of so many places."""
    return int(count.max()).bit_length() + 1


def _differences(x: Tensor) -> Tensor:
    return torch.diff(x, prepend=x.new_zeros(1))
