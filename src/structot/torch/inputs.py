"""What users pass in, as tensors on one device; mistakes get the messages of `_checks`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from structot import _checks
from structot._extras import as_array


def device_of(*values: Any) -> torch.device:
    """Where the first tensor among them lives."""
    return next(x.device for x in values if isinstance(x, Tensor))


def as_cost(M: Any, device: torch.device) -> Tensor:
    """A cost matrix on the device, in floating point; it may forbid pairs (+inf)."""
    if not isinstance(M, Tensor):
        M = torch.as_tensor(np.asarray(M), device=device)
    if not M.is_floating_point():
        _checks.as_cost(as_array(M)) if M.is_complex() else None
        M = M.to(torch.float64)
    if M.dim() != 2 or M.numel() == 0 or not bool((M >= 0).all()):
        _checks.as_cost(as_array(M.double()))  # says what is wrong
    return M


def as_weights(
    a: Any, b: Any, shape: tuple[int, int], device: torch.device
) -> tuple[Tensor, Tensor]:
    """Weights in double precision with equal totals, on the device."""
    found = []
    for name, x, size in zip("ab", (a, b), shape, strict=True):
        if x is None:
            x = torch.full((size,), 1.0 / size, dtype=torch.float64)
        x = torch.as_tensor(x if isinstance(x, Tensor) else np.asarray(x)).detach()
        good = x.dim() == 1 and x.numel() == size and not x.is_complex()
        if not (good and bool((x >= 0).all() & x.isfinite().all() & (x > 0).any())):
            _checks.as_weights(name, as_array(x), size)  # says what is wrong
        found.append(x.to(device=device, dtype=torch.float64))
    totals = found[0].sum(), found[1].sum()
    kinds = [x.dtype for x in (a, b) if isinstance(x, Tensor) and x.is_floating_point()]
    eps = max((torch.finfo(kind).eps for kind in kinds), default=2.2e-16)
    slack = max(16.0 * eps * sum(shape) ** 0.5, _checks.SAME_TOTAL)
    _checks.check_totals(float(totals[0]), float(totals[1]), slack)
    return found[0], found[1] * (totals[0] / totals[1])


def pairwise(X: Any, Y: Any, metric: Any) -> Tensor:
    """M_ij = metric(X_i, Y_j), differentiable in X and Y.

    ``metric`` is "sqeuclidean", "euclidean", "cityblock", "cosine", or a function of both samples
    that returns the whole matrix.
    """
    device = device_of(X, Y)
    X, Y = (
        x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x), device=device)
        for x in (X, Y)
    )
    for name, x in (("X", X), ("Y", Y)):
        if x.dim() != 2 or x.numel() == 0 or not bool(x.isfinite().all()):
            _checks.as_points(name, as_array(x))
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X and Y must have equally many features; got {X.shape[1]} and {Y.shape[1]}."
        )
    X, Y = (x if x.is_floating_point() else x.to(torch.float64) for x in (X, Y))
    Y = Y.to(device=X.device, dtype=X.dtype)
    if callable(metric):
        return metric(X, Y)
    metric = _checks.one_of("metric", metric, ("sqeuclidean", "euclidean", "cityblock", "cosine"))
    if metric == "cosine":
        normed = (x / x.norm(dim=1, keepdim=True) for x in (X, Y))
        return (1.0 - next(normed) @ next(normed).T).clamp(min=0.0)
    if metric == "sqeuclidean":
        return _squared_distances(X, Y)
    # Distances from differences: exact 0 for equal points, and the gradient 0 there.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(X, Y, p=1.0 if metric == "cityblock" else 2.0, compute_mode=mode)


def _squared_distances(X: Tensor, Y: Tensor) -> Tensor:
    """|X_i - Y_j|², feature by feature: nothing cancels, and no array is larger than the matrix."""
    return _Squared.apply(X, Y)


class _Squared(torch.autograd.Function):
    """Squared distances: dM = 2 (X_i - Y_j)·(dX_i - dY_j)."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, Y: Tensor) -> Tensor:
        ctx.save_for_backward(X, Y)
        M = torch.zeros(X.shape[0], Y.shape[0], dtype=X.dtype, device=X.device)
        for x, y in zip(X.T, Y.T, strict=True):
            M += (x[:, None] - y).square_()
        return M

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        X, Y = ctx.saved_tensors
        by_x = 2.0 * (grad.sum(1)[:, None] * X - grad @ Y)
        by_y = 2.0 * (grad.sum(0)[:, None] * Y - grad.T @ X)
        return by_x, by_y
