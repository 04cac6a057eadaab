"""Where the Newton method begins: transport between groups, or a first entropic plan.

Notation. A_k and B_l are the masses of the groups. A plan that moves θ_kl between two groups,
spread as a_i b_j / (A_k B_l) inside their block, costs Σ θ_kl c_kl: f is positively homogeneous in
every block. The best θ is a small transport problem, near the answer where blocks move as a whole.
"""

from __future__ import annotations

import numpy as np

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.problem import Problem
from structot.solvers.start import Start
from structot.submodular.base import inner
from structot.transport import emd, sinkhorn

# The entropy of the first plan, as a part of what the independent plan costs, and how exactly and
# in how many sweeps it is found: a start is not worth more than a few Newton steps.
_REG, _ERROR, _SWEEPS = 0.1, 1e-3, 30


def first_start(problem: Problem, discount: float) -> Start:
    """The start of a problem of which nothing is known: `coarse_start` where it pays, else that of
    plain entropic transport at the worst cost of the independent plan.
    """
    start = coarse_start(problem, discount)
    if start.plan is not None or not problem.marginals.hard:
        return start
    K = problem.function.greedy(problem.independent)
    reg = _REG * inner(problem.independent, K) / problem.total
    if not 0.0 < reg < np.inf:
        return start
    with np.errstate(divide="ignore"):
        log_a, log_b = np.log(problem.a), np.log(problem.b / problem.total)
    K /= -reg
    K += log_a[:, None]
    K += log_b
    found = sinkhorn(K, problem.a, problem.b, tol=_ERROR, max_iter=_SWEEPS)
    plan = problem.feasible(found.plan, overwrite=True)
    u, v = found.potentials
    return Start(plan, (reg * u, reg * v))


def coarse_start(problem: Problem, discount: float) -> Start:
    """The best plan that is a product inside every block, and the potentials of the groups.

    Nothing (an empty start) where an even spread costs ``discount`` times what its pairs cost
    alone, or more, where pairs are forbidden, or where blocks are not made of groups.
    """
    layer = problem.blocks
    assert layer is not None
    k, t = layer.row_group, layer.col_group
    if k is None or t is None:  # blocks of any form: there are no groups to move
        return Start()
    A: Array = np.bincount(k, problem.a)
    B: Array = np.bincount(t, problem.b)
    B *= A.sum() / B.sum()  # where marginals are relaxed the totals may differ
    x = layer.gather(problem.independent)
    price = layer.greedy_edges(x)
    if problem.function.allowed is not None or price @ x > discount * (layer.single_edges() @ x):
        return Start()
    if problem.linear is not None:
        price += layer.gather(problem.linear)
    price *= x
    cost = _sums_by_groups(layer, price, (A.size, B.size))
    del x, price
    masses = np.outer(A, B)
    cost[masses > 0] /= masses[masses > 0] / problem.total
    try:
        answer = emd(cost, A, B)
    except RuntimeError:  # the network simplex gave up: a start is only a help
        return Start()
    theta, (u, v) = answer.plan, answer.potentials
    theta[masses > 0] /= masses[masses > 0]
    plan = theta[k][:, t]
    plan *= problem.a[:, None]
    plan *= problem.b
    return Start(plan, (u[k], v[t]))


def _sums_by_groups(layer: Blocks, price: Array, shape: tuple[int, int]) -> Array:
    """Sum of an array in block order over each pair of groups."""
    k, t, first = layer.row_group, layer.col_group, layer.start[:-1]
    assert k is not None
    assert t is not None
    total = np.zeros(shape)
    # Edges of no cost share a block of their own across all groups, the last one.
    joined = layer.table.outer > 0
    sums = np.add.reduceat(price, first)[joined]
    np.add.at(total, (k[layer.row[first[joined]]], t[layer.col[first[joined]]]), sums)
    for b in np.flatnonzero(~joined):
        free = slice(layer.start[b], layer.start[b + 1])
        np.add.at(total, (k[layer.row[free]], t[layer.col[free]]), price[free])
    return total
