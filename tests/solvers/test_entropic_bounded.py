"""The best step within the domain of the multipliers, against its conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest

from structot.blocks.function import Blocks
from structot.blocks.hessian import GroupedHessian
from structot.marginals import Marginals
from structot.problem import Problem
from structot.solvers.entropic.bounded import Model, bounded_step
from structot.solvers.entropic.elimination import solve_free
from structot.structures import Groups


def _layer(rng: np.random.Generator, n: int, m: int, own: bool) -> Blocks:
    rows, columns = rng.integers(0, 4, n), np.arange(m) if own else rng.integers(0, 3, m)
    problem = Problem.of(rng.random((n, m)) + 0.1, structure=Groups(rows, columns))
    assert problem.blocks is not None
    return problem.blocks


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_a_system_of_the_free_multipliers(own: bool, share: float) -> None:
    rng = np.random.default_rng(1)
    n, m = 110, 90
    G = GroupedHessian(_layer(rng, n, m, own))
    theta = rng.random((n, m))
    D = np.concatenate([theta.sum(axis=1), theta.sum(axis=0)]) + 0.1
    G.clear()
    G.couple(theta)
    G.add_diagonal(D)
    H = np.diag(D)
    H[:n, n:], H[n:, :n] = theta, theta.T
    free, x = rng.random(n + m) < share, rng.normal(size=(n + m, 2))
    expected = np.zeros_like(x)
    expected[free] = np.linalg.solve(H[np.ix_(free, free)], x[free])
    for _ in range(2):  # H is left as it was
        np.testing.assert_allclose(solve_free(G, free, x), expected, rtol=0, atol=1e-12)


def _dense(H: np.ndarray, g: np.ndarray) -> Model:
    def solve(X: np.ndarray, still: np.ndarray) -> np.ndarray:
        out = np.zeros_like(X)
        out[~still] = np.linalg.solve(H[np.ix_(~still, ~still)], X[~still])
        return out

    return Model(solve, lambda x: H @ x, g, np.zeros(g.size))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["TV", "partial"])
def test_the_best_step_of_the_model(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    n, m = 7, 6
    a, b = rng.random(n) + 0.2, rng.random(m) + 0.2
    marginals = (
        Marginals.of(a, b, (0.3, 0.2), "TV")
        if kind == "TV"
        else Marginals.of(a, b, mass=0.5 * min(a.sum(), b.sum()))
    )
    theta = rng.random((n, m))
    H = np.diag(np.concatenate([theta.sum(axis=1), theta.sum(axis=0)]) + 0.5)
    H[:n, n:], H[n:, :n] = theta, theta.T
    p, q = marginals.clip(0.3 * rng.normal(size=n), 0.3 * rng.normal(size=m))
    g = rng.normal(size=n + m)
    step = bounded_step(_dense(H, g), marginals, (p, q), None, lambda s: None)
    z = np.concatenate([p, q])
    low, high = marginals.ends(p, q)
    level = 0.0
    push = g - H @ step.s
    if kind == "partial":
        # The level of the rows is free: what pushes against it is what the rows leave behind.
        level = float((z + step.s - high)[:n].max())
        high = high + level * (np.arange(n + m) < n)
        assert push[:n].sum() == pytest.approx(marginals.left_behind)
    end = z + step.s
    assert (end <= high + 1e-9).all()
    assert (end >= low - 1e-9).all()
    inside = (end < high - 1e-9) & (end > low + 1e-9)
    assert np.abs(push[inside]).max(initial=0.0) < 1e-9
    assert (push[end >= high - 1e-9] > -1e-9).all()
    assert (push[end <= low + 1e-9] < 1e-9).all()
    rest = marginals.left_behind if kind == "partial" else 0.0
    assert step.slope == pytest.approx(float(g @ step.s) - rest * level)
