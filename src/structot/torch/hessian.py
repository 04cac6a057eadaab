"""The negative Hessian of the smooth dual, factorised: Newton's directions.

Notation. Θ = X / reg on the pairs that are not capped; the capped pairs of a block (k, l) are one
pool with the weight θ_kl = exp(t) / (reg · their number), R (B, K, S, L) and N (B, K, L, T) count
them by row and by column. Pools of different source groups share no row, so that

    H_rr = diag(Θ1) + blocks_k  R_k diag(θ_k) R_kᵀ         (S x S each)
    H_cc = diag(Θᵀ1) + blocks_l  Σ_k θ_kl N_kl N_klᵀ       (T x T each)
    H_rc = Θ + R θ N.

H_cc is eliminated block by block. With own targets, T = 1, it is diagonal and H_rc = X / reg.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from structot._deadline import check_time
from structot.torch.dual import Point, capped_plan
from structot.torch.stack import Stack, Tile, per_problem

# What is added to a unit diagonal, one after the other, until a factorisation succeeds.
_JITTER = (1e-13, 1e-11, 1e-9, 1e-7, 1e-4)
# Rows of the Schur complement made at a time: only its lower half is needed.
_ROWS = 2048
# The part of the curvature of the plan r that every point has at least, while a plan is sought.
LENT = 1e-2


@dataclass(frozen=True, eq=False)
class Factors:
    """H + D = [[H_rr, W Zᵀ], [Z Wᵀ, Z Zᵀ]], and L Lᵀ = scale (H_rr - W Wᵀ) scale."""

    W: Tensor  # (B, n, m), n = K S and m = L T
    Z: Tensor  # (B, L, T, T), lower triangular
    L: Tensor  # (B, n, n), lower triangular
    scale: Tensor  # (B, n)

    def solve(self, rows: Tensor, cols: Tensor) -> tuple[Tensor, Tensor]:
        """(x, y) with (H + D)(x, y) = (rows, cols), shapes (B, K, S) and (B, L, T)."""
        z = _divide(self.Z, cols.flatten(1)[:, None])  # (B, 1, m)
        rest = rows.flatten(1) - (self.W @ z.mT)[..., 0]
        x = torch.cholesky_solve((self.scale * rest)[..., None], self.L)[..., 0] * self.scale
        y = _divide(self.Z, z - x[:, None] @ self.W, transposed=True)
        return x.view_as(rows), y.view_as(cols)


def newton_direction(
    stack: Stack, point: Point, reg: Tensor, damping: Tensor
) -> tuple[Tensor, Tensor]:
    """(x, y) with (H + D)(x, y) = (a - X1, b - Xᵀ1)."""

    def direction(
        p: Tensor,
        q: Tensor,
        rows: Tensor,
        cols: Tensor,
        level: Tensor | None,
        reg: Tensor,
        damping: Tensor,
    ) -> tuple[Tensor, ...]:
        here = Point(p, q, reg, rows, cols, level)  # φ is of no use here
        factors = factorize(stack, here, reg, damping)
        return factors.solve(stack.a - rows, stack.b - cols)

    p, q, _, rows, cols, level = point
    x, y = stack.recorded(direction, p, q, rows, cols, level, reg, damping)
    return x, y


def factorize(
    stack: Stack, point: Point, reg: Tensor, damping: Tensor, lent: float = LENT
) -> Factors:
    """The factors of H + D at a point that was evaluated.

    D damps in proportion to the diagonal of H, and lends that part of the curvature of the plan r
    to points that have less: those whose part of the plan is not alive yet. The gauge, a constant
    that moves between p and q, is fixed by a·x = 0.
    """
    B, K, S, L, T = stack.C.shape
    new: dict[str, Any] = {"dtype": torch.float64, "device": stack.C.device}
    add = partial(_added, reg=reg, damping=damping, lent=lent)
    Z = _column_factors(stack, point, reg, add)
    W = torch.empty(B, K * S, L * T, **new)
    cells = W.view(B, K, S, L * T)
    schur = torch.zeros(B, K * S, K * S, **new)
    blocks = schur.view(B, K, S, K, S).diagonal(dim1=1, dim2=3).permute(0, 3, 1, 2)  # (B, K, S, S)
    single, diagonal = torch.empty_like(stack.a), torch.empty_like(stack.a)
    for tile in stack.tiles():
        check_time()
        theta, pools = _curvature(stack, point, reg, tile)
        single[tile] = theta.sum((3, 4))
        diagonal[tile] = single[tile]
        if pools is not None:
            roots = pools.rows * pools.weight.sqrt()[:, :, None]  # (b, k, S, L)
            blocks[tile] = roots @ roots.mT
            diagonal[tile] += roots.square_().sum(3)
            pools.add_coupling(theta)
        flat = theta.flatten(3).flatten(1, 2)  # (b, k S, m)
        cells[tile] = _divide(Z[tile[0]], flat).view(*theta.shape[:3], -1)
    for i in range(0, K * S, _ROWS):
        j = min(i + _ROWS, K * S)
        schur[:, i:j, :j].baddbmm_(W[:, i:j], W[:, :j].mT, alpha=-1.0)
    single += add(diagonal, stack.a)
    schur.diagonal(dim1=1, dim2=2).add_(single.flatten(1))
    a = stack.a.flatten(1) * (reg * stack.total).rsqrt()[:, None]
    schur.baddbmm_(a[:, :, None], a[:, None])
    L_, scale = _cholesky(schur, diagonal.flatten(1), stack)
    return Factors(W, Z, L_, scale)


@dataclass(frozen=True, eq=False)
class _Pools:
    """The pools of a tile."""

    rows: Tensor  # R (b, k, S, L)
    cols: Tensor  # N (b, k, L, T)
    weight: Tensor  # θ (b, k, L)

    def add_coupling(self, theta: Tensor) -> None:
        """Θ + R θ N, in place."""
        right = self.weight[..., None] * self.cols
        theta.addcmul_(self.rows[..., None], right[:, :, None])


def _curvature(stack: Stack, point: Point, reg: Tensor, tile: Tile) -> tuple[Tensor, _Pools | None]:
    """Θ of a tile, and its pools."""
    rate = 1.0 / reg[tile[0]]
    X, capped = capped_plan(stack, point.p, point.q, reg, point.level, tile)
    X.mul_(per_problem(rate, X))
    if capped is None:
        return X, None
    assert point.level is not None
    X.masked_fill_(capped, 0.0)
    number = capped.sum((2, 4))
    height = point.level[tile].exp() * per_problem(rate, number)
    T = capped.shape[4]
    rows = (capped[..., 0] if T == 1 else capped.sum(4)).to(torch.float64)
    cols = (number[..., None] if T == 1 else capped.sum(2)).to(torch.float64)
    return X, _Pools(rows, cols, height / number.clamp(min=1))


def _column_factors(
    stack: Stack, point: Point, reg: Tensor, add: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Z with Z Zᵀ = H_cc + D, (B, L, T, T)."""
    B, _, _, L, T = stack.C.shape
    if T == 1:
        diagonal = point.cols * per_problem(1.0 / reg, point.cols)
        return (diagonal + add(diagonal, stack.b)).sqrt()[..., None]
    single = torch.zeros_like(stack.b)
    H = torch.zeros(B, L, T, T, dtype=torch.float64, device=stack.C.device)
    for tile in stack.tiles():
        check_time()
        theta, pools = _curvature(stack, point, reg, tile)
        assert pools is not None
        single[tile[0]] += theta.sum((1, 2))
        roots = (pools.cols * pools.weight.sqrt()[..., None]).movedim(1, 3)  # (b, L, T, k)
        H[tile[0]] += roots @ roots.mT
    own = H.diagonal(dim1=2, dim2=3)
    own += single + add(own + single, stack.b)
    scale = own.rsqrt()
    H *= scale[..., None] * scale[..., None, :]
    return _factor(H.flatten(0, 1), stack).view_as(H) / scale[..., None]


def _added(diagonal: Tensor, weights: Tensor, reg: Tensor, damping: Tensor, lent: float) -> Tensor:
    """The diagonal of D; 1 for points without weight, which stay where they are."""
    least = lent * weights * per_problem(1.0 / reg, weights)
    added = per_problem(damping, diagonal) * diagonal + (least - diagonal).clamp(min=0.0)
    return torch.where(weights > 0, added, 1.0)


def _divide(Z: Tensor, x: Tensor, transposed: bool = False) -> Tensor:
    """x Z⁻ᵀ, or x Z⁻¹: for x (B, rows, m), block of columns by block of columns."""
    B, L, T, _ = Z.shape
    if T == 1:
        return x / Z.view(B, 1, L)
    blocks = x.view(B, -1, L, T).transpose(1, 2)  # (B, L, rows, T)
    triangle = Z if transposed else Z.mT
    found = torch.linalg.solve_triangular(triangle, blocks, upper=not transposed, left=False)
    return found.transpose(1, 2).reshape(x.shape)


def _cholesky(S: Tensor, size: Tensor, stack: Stack) -> tuple[Tensor, Tensor]:
    """The factor of scale S scale with a unit diagonal, and scale; S is overwritten.

    ``size`` is what the diagonal of S was before the elimination: a difference that is rounding
    beside it is none.
    """
    diagonal = S.diagonal(dim1=1, dim2=2)
    scale = torch.maximum(diagonal, 1e-14 * size).rsqrt()
    S *= scale[:, :, None]
    S *= scale[:, None]
    return _factor(S, stack), scale


def _factor(A: Tensor, stack: Stack) -> Tensor:
    """Cholesky factors of matrices with a unit diagonal, which is raised where that is needed."""
    diagonal = A.diagonal(dim1=1, dim2=2)
    diagonal.fill_(1.0)
    for jitter in _JITTER:
        L, info = torch.linalg.cholesky_ex(A)
        failed = (info != 0) | ~L.diagonal(dim1=1, dim2=2).sum(1).isfinite()
        if stack.replays is not None and stack.replays.recording:
            stack.replays.failures.append(failed.any())
            return L
        if not bool(failed.any()):
            return L
        diagonal += jitter * failed[:, None]
    # H has over- or underflowed: the gradient itself is the direction.
    return torch.where(failed[:, None, None], torch.eye(A.shape[1]).to(L), L)
