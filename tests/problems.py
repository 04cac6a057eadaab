"""Small transport problems with known answers.

Notation: M cost (n, m), a and b weights, P plan; ``value`` is <P, M> at the plain optimum unless
the function says otherwise.

With STRUCTOT_TEST_ULP=<seed> in the environment every cost drawn here, and every cost that a test
passes through `moved`, is moved up or down by one unit in the last place. Whatever a test asserts
must hold for these costs as well: an answer that changes with the last bit of M was luck.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structot import Result
from structot.datasets import synthetic

Array = NDArray[np.float64]

ULP_SEED = os.environ.get("STRUCTOT_TEST_ULP", "")


def moved(M: Array) -> Array:
    """M, or under STRUCTOT_TEST_ULP its neighbour: every entry one ulp up or down at random.

    Zero and infinite costs stay, because they say which pairs are free or forbidden. The same shape
    is moved in the same way each time, so that a test that draws its problem twice draws the same.
    """
    if not ULP_SEED:
        return M
    up = np.random.default_rng([int(ULP_SEED), *M.shape]).random(M.shape) < 0.5
    return np.where((M == 0) | np.isinf(M), M, np.nextafter(M, np.where(up, np.inf, -np.inf)))


def distance_to_optimum(result: Result, reg: float) -> float:
    """How far, in the sum norm, the plan of a certified result is from the optimal one, reg > 0.

    The objective exceeds its minimum by at least reg · KL(P | P*), and KL >= |P - P*|² / 2T for
    plans of mass T (Pinsker). The gap itself is right to some ulp of the value.
    """
    gap = max(result.value - result.lower_bound, 0.0) + 1e-14 * abs(result.value)
    return float(np.sqrt(2.0 * result.plan.sum() * gap / reg))


class MovedClusters(synthetic.ClusterProblem):
    """Two labelled point clouds whose costs go through `moved`."""

    @property
    def cost(self) -> Array:
        return moved(super().cost)


def clusters(*sizes: int, **options: object) -> MovedClusters:
    """`structot.datasets.clusters` with costs that go through `moved`."""
    drawn = synthetic.clusters(*sizes, **options)  # type: ignore[arg-type]
    return MovedClusters(drawn.X, drawn.Y, drawn.source_labels, drawn.target_labels)


@dataclass(frozen=True)
class KnownProblem:
    """A problem with an optimal plan and the optimal value."""

    M: Array
    a: Array
    b: Array
    plan: Array
    value: float


def single_point(cost: float = 3.0, mass: float = 1.0) -> KnownProblem:
    """One source, one target: all mass on the only edge, value = mass · cost."""
    weight = np.array([mass])
    return KnownProblem(moved(np.array([[cost]])), weight, weight, weight[None], mass * cost)


def dirac(m: int = 5, seed: int = 0) -> KnownProblem:
    """One source, m targets: U(a, b) has one element, P = bᵀ, whatever the objective."""
    rng = np.random.default_rng(seed)
    M = moved(rng.uniform(0.5, 4.0, (1, m)))
    b = rng.dirichlet(np.ones(m))
    a = np.array([b.sum()])
    return KnownProblem(M, a, b, b[None, :], float(M[0] @ b))


def two_diracs(first: float = 0.3, second: float = 0.7) -> KnownProblem:
    """Masses (first, 1 − first) on 0 and 1 to (second, 1 − second): |first − second| moves by 1."""
    M = moved(np.array([[0.0, 1.0], [1.0, 0.0]]))
    a = np.array([first, 1.0 - first])
    b = np.array([second, 1.0 - second])
    plan = np.diag(np.minimum(a, b))
    plan[0, 1] = max(first - second, 0.0)
    plan[1, 0] = max(second - first, 0.0)
    return KnownProblem(M, a, b, plan, abs(first - second))


def permutation(n: int = 6, seed: int = 0) -> KnownProblem:
    """Costs 0 on one permutation and ≥ 1 elsewhere: the permutation is optimal, value 0."""
    rng = np.random.default_rng(seed)
    target = rng.permutation(n)
    M = moved(rng.uniform(1.0, 2.0, (n, n)))
    M[np.arange(n), target] = 0.0
    plan = np.zeros((n, n))
    plan[np.arange(n), target] = 1.0 / n
    weight = np.full(n, 1.0 / n)
    return KnownProblem(M, weight, weight, plan, 0.0)


def sorted_line(n: int = 7, m: int = 5, power: float = 2.0, seed: int = 0) -> KnownProblem:
    """Points on a line with cost |x − y|^power, power ≥ 1: the monotone (north-west) plan."""
    rng = np.random.default_rng(seed)
    x, y = np.sort(rng.normal(size=n)), np.sort(rng.normal(1.0, 2.0, size=m))
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    M = moved(np.abs(x[:, None] - y[None, :]) ** power)
    # P_ij is the overlap of the intervals that source i and target j occupy in (0, 1).
    ends_a, ends_b = np.cumsum(a), np.cumsum(b)
    right = np.minimum(ends_a[:, None], ends_b[None, :])
    left = np.maximum((ends_a - a)[:, None], (ends_b - b)[None, :])
    plan = np.maximum(right - left, 0.0)
    return KnownProblem(M, a, b, plan, float((plan * M).sum()))


def constant_block(g: Callable[[float], float], n: int = 4, cost: float = 2.0) -> KnownProblem:
    """One block of equal costs, uniform weights: ``value`` is the optimum of f, F(S) = g(M(S)).

    The uniform plan is optimal: the centre K = g(n²·cost)/n² of B(F) gives every plan the value
    <P, K> = g(n²·cost)/n², and f of the uniform plan, F(E)/n², attains it.
    """
    weight = np.full(n, 1.0 / n)
    M = moved(np.full((n, n), cost))
    plan = np.full((n, n), 1.0 / n**2)
    return KnownProblem(M, weight, weight, plan, float(g(n * n * cost)) / n**2)
