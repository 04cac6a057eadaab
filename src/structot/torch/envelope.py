"""Derivatives of optimal values that were found with arrays, by any method.

As in `gradients`: dV = <∂f/∂M, dM> + u·da + v·db at the plan and the potentials of the answer, and
with entropy what r = a bᵀ / T and the metric d (the ground cost over its mean, for `Groups`) add:

    reg Σ h(P, r) dd + reg Σ d (1 - P/r) dr,      h(x, r) = x log(x/r) - x + r.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from structot._typing import Array
from structot.problem import Problem
from structot.result import Result
from structot.structures.derivatives import Derivatives, derivatives
from structot.torch.gradients import weight_gradients


def differentiable_value(result: Result, M: Tensor, a: Any, b: Any) -> Tensor:
    """The value of an answer as a function of the tensors it was solved for."""
    value = torch.as_tensor(result.value, dtype=torch.float64, device=M.device)
    inputs = [x if isinstance(x, Tensor) else None for x in (M, a, b)]
    needed = any(x is not None and x.requires_grad for x in inputs)
    if not (needed and torch.is_grad_enabled()):
        return value
    return _Value.apply(*inputs, value, result)


class _Value(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, M: Tensor, a: Tensor, b: Tensor, value: Tensor, result: Result) -> Tensor:
        ctx.given, ctx.result = (M, a, b), result
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.result.mass is not None and any(ctx.needs_input_grad[1:3]):
            raise NotImplementedError(
                "the value of partial transport has derivatives with respect to M only; "
                "detach a and b."
            )
        slopes = value_derivatives(ctx.result.numpy())
        found = []
        for needed, slope, given in zip(ctx.needs_input_grad[:3], slopes, ctx.given, strict=True):
            found.append(grad.to(given) * torch.as_tensor(slope).to(given) if needed else None)
        return (*found, None, None)


def value_derivatives(result: Result) -> Derivatives:
    """The derivatives of the optimal value; of hard marginals the totals are kept equal.

    A relaxed marginal of weight τ adds to the dual a·u (TV) or τ a·(1 - exp(-u/τ)) (KL), and is
    differentiated by a as it stands there.
    """
    M, (a, b), reg = np.asarray(result.ground_cost, float), result.weights, result.reg
    P = np.asarray(result.plan, float)
    problem = Problem.of(
        *(M, a, b),
        structure=result.structure,
        reg=reg,
        unbalanced=result.unbalanced,
        unbalanced_type=result.unbalanced_type,
        mass=result.mass,
    )
    f = derivatives(problem.structure, M, a, b, P, np.asarray(result.worst_cost, float))
    prices = result.unbalanced or (None, None)
    u, v = (
        _dual_slope(np.asarray(x, float), price, result.unbalanced_type)
        for x, price in zip(result.potentials, prices, strict=True)
    )
    u, v = u + f.a, v + f.b
    if reg > 0:
        r = problem.independent
        inside = (r > 0) if problem.function.allowed is None else (r > 0) & problem.function.allowed
        f = f._replace(M=f.M + reg * _metric_slopes(problem, P, r, inside))
        lost = np.where(inside, reg * problem.metric * (r - P), 0.0)
        half = 0.5 * lost.sum()  # r = a bᵀ / √(Σa Σb)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = u + np.where(a > 0, lost.sum(axis=1) / a, 0.0) - half / a.sum()
            v = v + np.where(b > 0, lost.sum(axis=0) / b, 0.0) - half / b.sum()
    if result.unbalanced is not None:
        return Derivatives(f.M, u, v)
    slopes = weight_gradients(*(torch.as_tensor(x) for x in (u, v, a, b)))
    return Derivatives(f.M, slopes[0].numpy(), slopes[1].numpy())


def _dual_slope(u: Array, price: float | None, kind: str) -> Array:
    """The derivative of the dual term of a marginal by its weights."""
    return u if price is None or kind == "TV" else -price * np.expm1(-u / price)


def _metric_slopes(problem: Problem, P: Array, r: Array, inside: Array) -> Array:
    """∂/∂M of Σ d h(P, r), d = w / mean(w) with the ground cost as weights w."""
    layer = problem.blocks
    if layer is None or layer.is_coverage:
        return np.zeros_like(P)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.where(P > 0, P * np.log(np.where(P > 0, P, 1.0) / r), 0.0) - P + r
    h = np.where(inside, h, 0.0)
    mean, edges = layer.mean_weight, layer.w.size
    # Pairs of no cost have a fixed part of the mean as their weight: d does not move with them.
    priced = np.isfinite(problem.M) & (problem.M > 0)
    weighted = float(np.sum(np.where(priced, problem.M, 0.0) * h))
    return np.where(
        np.isfinite(problem.M), np.where(priced, h / mean, 0.0) - weighted / (mean**2 * edges), 0.0
    )
