"""The price of routes from its formula, and tariffs against their budgets by linear programs."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from structot.submodular import BoundCost

Array = np.ndarray

EPS = float(np.finfo(float).eps)


def price_of(F: BoundCost, P: Array) -> float:
    """<C, P> + Σ w t, point by point; only the prices and groups are taken from the structure."""
    assert F.linear is not None
    used = P > 0
    total = math.fsum((F.linear[used] * P[used]).tolist())
    lanes = F.lanes
    if lanes is None:
        return total
    for k, t in np.ndindex(lanes.price.shape):
        i, j = np.flatnonzero(lanes.rows == k), np.flatnonzero(lanes.cols == t)
        block = P[np.ix_(i, j)]
        shares = [math.fsum(x) / w for x, w in zip(block, lanes.a[i], strict=True) if w > 0]
        shares += [math.fsum(x) / w for x, w in zip(block.T, lanes.b[j], strict=True) if w > 0]
        total += float(lanes.price[k, t]) * max(shares, default=0.0)
    return total


def overpaid(F: BoundCost, K: Array) -> float:
    """Σ over routes: what the cheapest tariffs above K - C cost beyond the price, and rounding."""
    assert F.linear is not None
    finite = np.isfinite(F.linear)
    D = np.where(finite, K - np.where(finite, F.linear, 0.0), 0.0)
    size = np.where(finite, np.abs(K) + np.abs(np.where(finite, F.linear, 0.0)), 0.0)
    rows, cols, a, b, price = _groups(F)
    excess = 0.0
    for k, t in np.ndindex(price.shape):
        i, j = np.flatnonzero((rows == k) & (a > 0)), np.flatnonzero((cols == t) & (b > 0))
        gain = np.maximum(D[np.ix_(i, j)] - 4 * EPS * size[np.ix_(i, j)], 0.0)
        if not gain.any():
            continue
        # Rows in units of what they allow and columns in units of what they may carry, so that the
        # tolerances of HiGHS mean something for points of little weight, too.
        most, limits = gain.max(), np.concatenate([a[i], b[j]])
        carried = np.minimum.outer(a[i], b[j]).ravel()
        sums = np.vstack(
            [np.kron(np.eye(i.size), np.ones(j.size)), np.kron(np.ones(i.size), np.eye(j.size))]
        )
        worth = gain.ravel() / most * carried
        best = linprog(
            -worth / worth.max(),
            sums * carried / limits[:, None],
            np.ones(limits.size),
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        # What HiGHS sends, made to fit exactly: no more than the cheapest tariffs must cost.
        X = np.maximum(best.x, 0.0).reshape(gain.shape) * carried.reshape(gain.shape)
        X *= _fitting(a[i], X.sum(axis=1))[:, None]
        X *= _fitting(b[j], X.sum(axis=0))
        paid = math.fsum((gain * X).ravel().tolist())
        excess += max(0.0, float(paid - price[k, t] * (1 + 1e-12) - 1e-9 * paid))
    return excess


def _fitting(limit: Array, sent: Array) -> Array:
    return np.minimum(1.0, np.divide(limit, sent, out=np.ones_like(sent), where=sent > 0))


def _groups(F: BoundCost) -> tuple[Array, Array, Array, Array, Array]:
    if F.lanes is not None:
        return F.lanes.rows, F.lanes.cols, F.lanes.a, F.lanes.b, F.lanes.price
    n, m = F.shape  # no route has a price: one group each, at none
    return np.zeros(n, int), np.zeros(m, int), np.ones(n), np.ones(m), np.zeros((1, 1))
