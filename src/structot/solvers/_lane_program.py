"""Routes as one linear program for HiGHS: the referee of the interior-point method.

Notation as in `structot.submodular.lanes`. The dual program

    max a·u + b·v   subject to   u_i + v_j - α_il - β_kj <= C_ij,   α, β >= 0 within their budgets,

has one row per pair and one per route; its multipliers are the plan and the shares t. Marginals
relaxed by TV are bounds |u| <= τ; to move a given mass is u, v <= 0 and one more potential.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csc_array, hstack

from structot._deadline import check_time
from structot._typing import Array
from structot.problem import Problem
from structot.solvers._highs import MEAN_WEIGHT, call_highs, power_of_two


class LaneProgram:
    """The dual program on the pairs and lanes of points with positive weight."""

    def __init__(self, problem: Problem) -> None:
        assert problem.lanes is not None
        assert problem.linear is not None
        self.problem, self.lanes, self.cost = problem, problem.lanes, problem.linear
        self.live = np.outer(problem.a > 0, problem.b > 0) & np.isfinite(self.cost)
        n, m = problem.shape
        # Where α (n, L) and β (K, m) begin among the variables, after u and v.
        self.alpha = n + m
        self.beta = self.alpha + n * self.lanes.price.shape[1]
        self.width = self.beta + m * self.lanes.price.shape[0]

    def solve(self, algorithm: str, time_limit: float | None) -> tuple[Array, Array, Array] | None:
        """(P, K, u): multipliers as plan, the worst cost, row potentials; None without success."""
        problem, lanes = self.problem, self.lanes
        n, m = problem.shape
        mass = power_of_two(problem.total / (MEAN_WEIGHT * max(n, m)))
        a, b = problem.a / mass, problem.b / mass
        lower, upper = np.zeros(self.width), np.full(self.width, np.inf)
        # Points of no weight and one potential per problem are free to be anything: fix them.
        fixed = np.concatenate([a == 0, b == 0])
        fixed[int(np.argmax(a))] |= problem.marginals.hard
        low, high = problem.marginals.bounds
        lower[: n + m] = np.where(fixed, 0.0, low)
        upper[: n + m] = np.where(fixed, 0.0, high)
        upper[self.alpha : self.beta][np.repeat(a == 0, lanes.price.shape[1])] = 0.0
        upper[self.beta :][np.tile(b == 0, lanes.price.shape[0])] = 0.0
        check_time()
        matrix, goal = self._matrix(a, b), [-a, -b, np.zeros(self.width - n - m)]
        if problem.marginals.both_partial and problem.marginals.mass is not None:
            total = np.repeat([1.0, 0.0], [int(self.live.sum()), lanes.price.size])
            matrix = hstack([matrix, csc_array(total[:, None])], format="csc")
            goal.append(np.array([-problem.marginals.mass / mass]))
            lower, upper = np.append(lower, -np.inf), np.append(upper, np.inf)
        answer = call_highs(
            np.concatenate(goal),
            matrix,
            np.concatenate([self.cost[self.live], lanes.price.ravel() / mass]),
            np.column_stack([lower, upper]),
            algorithm,
            time_limit,
        )
        if answer is None:
            return None
        x, multipliers = answer
        P = np.zeros(problem.shape)
        P[self.live] = np.maximum(mass * multipliers[: -lanes.price.size], 0.0)
        tariffs = np.maximum(x[self.alpha : self.width], 0.0)  # to HiGHS -1e-9 is no less than 0
        alpha = tariffs[: self.beta - self.alpha].reshape(n, -1)
        beta = tariffs[self.beta - self.alpha :].reshape(-1, m)
        K = lanes.surcharge(*lanes.within_budget(alpha, beta)) + self.cost
        u = x[:n] + (x[-1] if problem.marginals.both_partial else 0.0)
        return P, K, np.where(problem.a > 0, u, -np.inf)

    def _matrix(self, a: Array, b: Array) -> csc_array:
        """Rows u_i + v_j - α_il - β_kj (one per pair) and the budgets (one per route)."""
        lanes = self.lanes
        (n, m), (count, other) = self.problem.shape, lanes.price.shape
        i, j = np.nonzero(self.live)
        pair = np.arange(i.size)
        k, l = lanes.rows[i], lanes.cols[j]
        point, group = np.divmod(np.arange(n * other), other)
        side, target = np.divmod(np.arange(count * m), m)
        rows = [pair, pair, pair, pair]
        rows += [
            i.size + lanes.rows[point] * other + group,
            i.size + side * other + lanes.cols[target],
        ]
        columns = [i, n + j, self.alpha + i * other + l, self.beta + k * m + j]
        columns += [np.arange(self.alpha, self.beta), np.arange(self.beta, self.width)]
        one = np.ones(i.size)
        values = [one, one, -one, -one, a[point], b[target]]
        shape = (i.size + lanes.price.size, self.width)
        places = np.concatenate(rows), np.concatenate(columns)
        return coo_array((np.concatenate(values), places), shape=shape).tocsc()
