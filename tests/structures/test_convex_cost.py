"""ConvexCost: the bound from averaged linearisations, and who may solve it."""

from __future__ import annotations

import numpy as np
import pytest
from problems import moved
from scipy.optimize import LinearConstraint, minimize

from structot import solve
from structot.certificate import verify
from structot.concave import Sqrt
from structot.solvers.solve import METHODS
from structot.structures import ConvexCost, Groups, Modular, Structure

Array = np.ndarray

RNG = np.random.default_rng(0)
M = moved(RNG.random((4, 5)))
A, B = RNG.dirichlet(np.full(4, 3.0)), RNG.dirichlet(np.full(5, 3.0))


def quadratic(weight: float = 1.0, linear: Array | float = 0.0) -> ConvexCost:
    return ConvexCost(
        lambda P: float(np.sum(linear * P) + weight * np.sum(P**2)),
        lambda P: linear + 2 * weight * P,
    )


def smooth_optimum(value: object, gradient: object) -> float:
    """The minimum over U(a, b) by an unrelated method, to about 1e-8."""
    n, m = M.shape
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])[:-1]
    totals = np.concatenate([A, B])[:-1]
    answer = minimize(
        lambda x: value(x.reshape(n, m)),  # type: ignore[operator]
        np.outer(A, B).ravel(),
        jac=lambda x: gradient(x.reshape(n, m)).ravel(),  # type: ignore[operator]
        method="SLSQP",
        bounds=[(0, None)] * (n * m),
        constraints=[LinearConstraint(sums, totals, totals)],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert answer.success, answer.message
    return float(answer.fun)


def assert_certified(structure: Structure, tol: float, optimum: float) -> None:
    result = solve(M, A, B, structure=structure, tol=tol)
    u, v = result.potentials
    scale = abs(optimum)
    assert result.method == "mirror_descent"
    assert result.converged
    assert result.lower_bound <= optimum + 1e-7 * scale
    assert result.value >= optimum - 1e-7 * scale
    assert A @ u + B @ v == pytest.approx(result.lower_bound, abs=1e-12)
    assert (np.add.outer(u, v) <= result.worst_cost + 1e-12).all()
    check = verify(M, A, B, structure, result)
    assert check.holds(1e-9)
    assert check.gap == pytest.approx(result.gap)


# ------------------------------------------------------------------------------------- the bound


@pytest.mark.parametrize("weight", [0.1, 3.0])
def test_quadratic_costs(weight: float) -> None:
    structure = quadratic(weight, M)
    optimum = smooth_optimum(structure.value, structure.subgradient)
    assert_certified(structure, 1e-3, optimum)


def test_a_linear_cost_is_plain_transport() -> None:
    structure = ConvexCost(lambda P: float(np.sum(M * P)), lambda P: M)
    assert_certified(structure, 5e-3, solve(M, A, B).value)


def test_offsets_of_either_sign_are_part_of_the_bound() -> None:
    """f + c has the optimum + c: the constant lives in potentials and worst cost."""
    base = smooth_optimum(lambda P: np.sum(P**2), lambda P: 2 * P)
    for c in (-3.0, 2.0):
        structure = ConvexCost(lambda P, c=c: float(np.sum(P**2)) + c, lambda P: 2 * P)
        assert_certified(structure, 1e-3, base + c)


def test_a_kink_is_no_obstacle() -> None:
    """f = <M, P> + 0.1 Σ |P - Q| for an optimal plan Q of plain transport, which stays optimal."""
    Q = solve(M, A, B).plan
    structure = ConvexCost(
        lambda P: float(np.sum(M * P) + 0.1 * np.sum(np.abs(P - Q))),
        lambda P: M + 0.1 * np.sign(P - Q),
    )
    assert_certified(structure, 5e-3, float(np.sum(M * Q)))


def test_the_total_mass_may_be_any() -> None:
    structure = quadratic(1.0, M)
    result = solve(M, 7 * A, 7 * B, structure=structure, tol=1e-2)
    assert result.converged
    assert verify(M, 7 * A, 7 * B, structure, result).holds(1e-9)
    scaled = ConvexCost(
        lambda P: structure.value(7 * P), lambda P: 7 * structure.subgradient(7 * P)
    )
    assert solve(M, A, B, structure=scaled, tol=1e-2).value == pytest.approx(result.value, rel=2e-2)


def test_forbidden_pairs_stay_empty() -> None:
    cost = M.copy()
    cost[0, 1] = cost[2, 2] = np.inf
    # What the subgradient says on forbidden pairs does not matter.
    structure = ConvexCost(lambda P: float(np.sum(P**2)), lambda P: np.where(cost < 9, 2 * P, 1e9))
    result = solve(cost, A, B, structure=structure, tol=1e-2)
    assert result.converged
    assert result.plan[0, 1] == result.plan[2, 2] == 0.0
    assert np.isposinf(result.worst_cost[[0, 2], [1, 2]]).all()
    assert verify(cost, A, B, structure, result).holds(1e-9)


# ------------------------------------------------------------------------- sums and scalings


def test_sums_and_scalings_are_convex_costs_too() -> None:
    optimum = smooth_optimum(lambda P: np.sum(M * P) + 3 * np.sum(P**2), lambda P: M + 6 * P)
    for structure in (Modular() + quadratic(3.0), 3.0 * quadratic() + Modular(M)):
        assert_certified(structure, 1e-3, optimum)


def test_a_convex_cost_beside_groups() -> None:
    """f_groups + f: the sum of both optima bounds it from below, either plan from above."""
    groups = Groups([0, 0, 1, 1], None, Sqrt(), units="cost")
    both = solve(M, A, B, structure=groups + quadratic(), tol=1e-3)
    assert both.converged
    alone = solve(M, A, B, structure=groups)
    even = solve(M, A, B, structure=quadratic(), tol=1e-3)
    assert both.value >= alone.lower_bound + even.lower_bound
    for plan in (alone.plan, even.plan):
        assert both.lower_bound <= groups.bind(M).extension(plan) + float(np.sum(plan**2)) + 1e-9
    assert verify(M, A, B, groups + quadratic(), both).holds(1e-9)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("auto", "mirror_descent")])
def test_other_methods_refuse(method: str) -> None:
    for structure in (quadratic(), Modular() + quadratic()):
        with pytest.raises(ValueError, match="use method='mirror_descent'"):
            solve(M, A, B, structure=structure, method=method)


def test_entropy_belongs_into_the_function() -> None:
    with pytest.raises(ValueError, match="add the entropy to its value"):
        solve(M, A, B, structure=quadratic(), reg=0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        ConvexCost(lambda P: -float(np.sum(P**2)), lambda P: -2 * P),
        ConvexCost(lambda P: float(np.sum(P**2)), lambda P: -2 * P),
        ConvexCost(lambda P: float(np.sum(P**2)), lambda P: 4 * P),
    ],
    ids=["concave", "wrong sign", "wrong factor"],
)
def test_wrong_functions_are_found_out(wrong: ConvexCost) -> None:
    with pytest.raises(ValueError, match="not convex or subgradient is wrong"):
        solve(M, A, B, structure=wrong, tol=1e-6, max_iter=200)


def test_a_concave_function_that_is_flat_at_the_start_is_found_out() -> None:
    """Its linearisation at the even plan is constant: it would prove that plan optimal at once."""
    concave = ConvexCost(lambda P: -np.sum(P**2), lambda P: -2 * P)
    with pytest.raises(ValueError, match="not convex"):
        solve(np.ones((4, 5)), structure=concave)


def test_verify_finds_a_bound_of_another_function() -> None:
    result = solve(M, A, B, structure=quadratic(2.0), tol=1e-2)
    assert verify(M, A, B, quadratic(2.0), result).polytope <= 1e-9
    assert verify(M, A, B, quadratic(1.0), result).polytope > 1e-2


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="value must be callable"):
        ConvexCost(3, lambda P: P)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="subgradient must be callable"):
        ConvexCost(lambda P: 0.0, None)  # type: ignore[arg-type]
    cases = [
        (ConvexCost(lambda P: P, lambda P: P), "value must return a number"),
        (ConvexCost(lambda P: np.nan, lambda P: P), "value returned nan"),
        (ConvexCost(lambda P: 0.0, lambda P: P[0]), "2 dimension"),
        (ConvexCost(lambda P: 0.0, lambda P: P[:2]), r"returned shape \(2, 5\)"),
        (ConvexCost(lambda P: 0.0, lambda P: np.log(0 * P)), "returned -inf at"),
    ]
    for structure, message in cases:
        with np.errstate(divide="ignore"), pytest.raises(ValueError, match=message):
            solve(M, A, B, structure=structure, max_iter=3)


def test_it_is_no_set_function() -> None:
    F = quadratic().bind(M)
    ask = [lambda: F.value(M > 0), lambda: F.project(M), lambda: F.minimize(), lambda: F.prox(M)]
    for question in ask:
        with pytest.raises(ValueError, match="no set function"):
            question()


def test_repr() -> None:
    assert repr(ConvexCost(np.sum, np.sign)) == "ConvexCost(sum, sign)"
