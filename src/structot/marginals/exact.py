"""Exact transport with a linear cost and marginals of any kind but KL: one dummy point per side.

Notation. K the cost, τ_a and τ_b the prices of TV. Mass of source i that does not reach a target
that wants it is destroyed where it is, or carried to a target j and destroyed there: it costs
d_i = min(τ_a, min_j K_ij + τ_b). In the same way what target j gets from no source costs
c_j = min(τ_b, min_i K_ij + τ_a). Created *and* destroyed mass never pays for K + τ_a + τ_b >= 0. So
a dummy target at d, a dummy source at c, and a free edge between both are the whole problem.
"""

from __future__ import annotations

import math

import numpy as np

from structot._typing import Array
from structot.marginals.pair import Marginals
from structot.marginals.sides import KL, TV, Partial, Side
from structot.transport import ExactResult, emd


def relaxed_emd(K: Array, marginals: Marginals) -> ExactResult:
    """min_{P >= 0} <P, K> + D_a(P1) + D_b(Pᵀ1) for hard, TV and partial sides.

    Potentials satisfy u ⊕ v <= K; RuntimeError where the network simplex gives up.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> relaxed_emd(np.array([[3.0]]), Marginals.of(one, one, (1.0, 1.0), "TV")).value
    2.0
    """
    if not marginals.linear:
        raise RuntimeError("the network simplex solves linear programs; KL marginals are none")
    if marginals.hard:
        return emd(K, marginals.a, marginals.b)
    n, m = K.shape
    a, b = marginals.a, marginals.b
    cost = np.zeros((n + 1, m + 1))
    cost[:n, :m] = K
    if marginals.partial:
        cost[n, m] = np.inf
        assert marginals.mass is not None
        rest_a, rest_b = a.sum() - marginals.mass, b.sum() - marginals.mass
        a, b = np.append(a, max(rest_b, 0.0)), np.append(b, max(rest_a, 0.0))
    else:
        tau_a, tau_b = (_price(side) for side in marginals.sides)
        over, under = K.min(axis=1) + tau_b, K.min(axis=0) + tau_a
        cost[:n, m], cost[n, :m] = np.minimum(tau_a, over), np.minimum(tau_b, under)
        a, b = np.append(a, b.sum()), np.append(b, a.sum())
    b[-1] += math.fsum(a.tolist()) - math.fsum(b.tolist())
    b[-1] = max(b[-1], 0.0)
    answer = emd(cost, a, b)
    plan, (u, v) = answer.plan, answer.potentials
    P = np.ascontiguousarray(plan[:n, :m])
    if not marginals.partial:
        for i in np.flatnonzero((plan[:n, m] > 0) & (over < tau_a)):
            P[i, np.argmin(K[i])] += plan[i, m]
        for j in np.flatnonzero((plan[n, :m] > 0) & (under < tau_b)):
            P[np.argmin(K[:, j]), j] += plan[n, j]
    return ExactResult(P, answer.value, (u[:n] + v[m], v[:m] - v[m]))


def _price(side: Side) -> float:
    assert not isinstance(side, KL | Partial)
    return side.tau if isinstance(side, TV) else math.inf
