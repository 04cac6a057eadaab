"""Where the Newton method begins if there are few points: transport between groups.

Notation. A_k and B_l are the masses of the groups. A plan that moves θ_kl between two groups,
spread as a_i b_j / (A_k B_l) inside their block, costs Σ θ_kl c_kl: f is positively homogeneous in
every block. The best θ is a small transport problem, near the answer where blocks move as a whole,
and elsewhere a better start than the independent plan or an entropic one.
"""

from __future__ import annotations

import numpy as np

from structot._typing import Array
from structot.blocks.function import Blocks
from structot.problem import Problem
from structot.solvers.start import Start
from structot.transport import emd


def coarse_start(problem: Problem) -> Start:
    """The best plan that is a product inside every block, and the potentials of the groups.

    Nothing (an empty start) where pairs are forbidden, where blocks are not made of groups, or
    where marginals are relaxed with kinks: there the potentials of groups may lie beyond them.
    """
    layer = problem.blocks
    assert layer is not None
    k, t = layer.row_group, layer.col_group
    if k is None or t is None or problem.function.allowed is not None:
        return Start()
    if not problem.marginals.smooth:
        return Start()
    A: Array = np.bincount(k, problem.a)
    B: Array = np.bincount(t, problem.b)
    B *= A.sum() / B.sum()  # where marginals are relaxed the totals may differ
    x = layer.gather(problem.independent)
    price = layer.greedy_edges(x)
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
    return Start(plan, (u[k], v[t]), between_groups=True)


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
