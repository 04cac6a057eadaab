"""An interior-point method for blocks and cuts, for costs of very different sizes, reg >= 0.

Notation as in `program.py`. With B the bars as rows 1_head - 1_tail, Y - Z = B x, Y, Z >= 0, and
the dual unknowns p, q (together y), z and k in [0, ρ],

    c + ω log(P/r) + Bᵀ k = p ⊕ q + z,     x z = Y (ρ - k) = Z k = μ

and μ -> 0 are the central path, followed by Mehrotra's predictor and corrector. An entropy with
weights over many decades makes every smooth dual function a wall on one side and a plain on the
other; here the plan is an unknown of its own and nothing is exponentiated.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from operator import attrgetter

import numpy as np

from structot._deadline import check_time
from structot._typing import Array
from structot.certificate import (
    Dual,
    dual_by_exact_transport,
    dual_from_cost,
    entropic_bound,
    lowered,
)
from structot.problem import Problem
from structot.solvers._cutting_planes import rounded
from structot.solvers._loop import Step
from structot.solvers.interior_point.chords.newton import Point, newton_step
from structot.solvers.interior_point.chords.program import Pairs, Program, first_knots, refined
from structot.transport import InfeasibleError, c_transform, emd

# Pairs up to which it is tried: its systems are dense in the points, and slow beyond.
MOST_PAIRS = 20_000
# New knots are chosen when the chords cost this many times what is left of the path, Σ x z + ...
_CHORDS = 10.0
# It ends after so many choices of knots that have not brought the gap below this share of it.
_ROUNDS, _CLOSED = 4, 0.9
# The path has ended when Σ x z + ... is this small beside the value, or after so many steps.
_ENDED = 1e-14
_STEPS = 120
# After so many steps in a row that went less than this share of their way it is given up.
_PATIENCE, _SHORT = 40, 0.1
# A path that ends with more than this share of the mass misplaced is begun again with a larger μ.
_MISSED, _RAISE, _LAST_RAISE = 1e-6, 100.0, 1e8
# Certificates are made each time that Σ x z + ... has fallen by this factor.
_NEWS = 0.1
# Halvings of the logarithm of a width at the start of a path; Newton's method does the rest.
_BISECTIONS = 20


def central_path(problem: Problem) -> Iterator[Step | None]:
    """One Newton step per item; where the chords of g have become the obstacle, more knots."""
    pairs = Pairs(problem)
    knots = [first_knots(layer) for layer in pairs.blocks]
    raised, waited, gap = 1.0, 0, np.inf
    P, y, total = _first_plan(pairs, raised)
    while waited < _ROUNDS:
        program = Program(pairs, knots)
        point = yield from _follow(program, _centred(program, P, y, total))
        step, plan = _certified(program, point)
        yield step
        if program.missed(point.x) > _MISSED and raised < _LAST_RAISE:
            raised *= _RAISE  # begun too close to the boundary
            P, y, total = _first_plan(pairs, raised)
            continue
        error = program.chord_error(plan)
        if error <= _ENDED * abs(step.value):
            return
        waited = 0 if step.value - step.lower_bound < _CLOSED * gap else waited + 1
        gap = min(gap, step.value - step.lower_bound)
        knots = [
            refined(layer, own, layer.gather(plan))
            for layer, own in zip(pairs.blocks, knots, strict=True)
        ]
        # Back on the path, to where the new knots begin to matter.
        P, y, total = point.x[: pairs.size], point.y, max(point.total, _CHORDS * error)


def _follow(program: Program, point: Point) -> Generator[Step | None, None, Point]:
    """The path from a point on, to its end or to where only the chords are left of the gap."""
    shown, short = np.inf, 0
    for _ in range(_STEPS):
        check_time()
        following, reach = newton_step(program, point)
        short = short + 1 if reach < _SHORT else 0
        if following is None or short == _PATIENCE:
            break
        point = following
        if point.total > _NEWS * shown:
            yield None
            continue
        shown = point.total
        step, plan = _certified(program, point)
        yield step
        if shown <= max(_ENDED * abs(step.value), program.chord_error(plan) / _CHORDS):
            break
    return point


def _first_plan(pairs: Pairs, raised: float) -> tuple[Array, Array, float]:
    """P, potentials and Σ P z; with the same P z = μ everywhere dear pairs begin with little."""
    problem = pairs.problem
    K = problem.function.greedy(problem.independent)
    y = np.concatenate(c_transform(K, np.zeros(problem.shape[0])))
    y[pairs.marginals == 0] = 0.0
    cost = K[pairs.row, pairs.col]
    slack = np.maximum(cost - pairs.A.T @ y, 0.0)
    value = float(pairs.marginals @ y + pairs.omega @ pairs.r)
    total = raised * max(abs(value), 1e-3 * float(pairs.r @ np.abs(cost)))
    total = total if total > 0.0 else problem.total  # nothing costs anything: any path will do
    with np.errstate(divide="ignore", over="ignore"):
        P = np.minimum(pairs.r, total / pairs.size / slack)
    return P, y, total


def _centred(program: Program, P: Array, y: Array, total: float) -> Point:
    """All unknowns from P, the products all μ; each width λ solves Σ k + μ/λ = κ."""
    pairs, mu = program.pairs.size, total / (program.size + 2 * program.rate.size)
    x, kappa = np.append(P, np.ones(program.size - pairs)), program.c[pairs:]
    truncation = program.tail >= pairs
    width = program.tail[truncation] - pairs
    highest = np.zeros(kappa.size)
    np.maximum.at(highest, width, P[program.head[truncation]])
    low = mu / kappa
    high = highest + (np.bincount(width, minlength=kappa.size) + 1.0) * low
    for _ in range(_BISECTIONS):
        x[pairs:] = np.sqrt(low * high)
        k = program.tensions(x, mu)[0][truncation]
        above = np.bincount(width, k, minlength=kappa.size) + mu / x[pairs:] > kappa
        low, high = np.where(above, x[pairs:], low), np.where(above, high, x[pairs:])
    k, rest = program.tensions(x, mu)
    return Point(x, mu / x, y, mu / rest, mu / k, k, rest)


def _certified(program: Program, point: Point) -> tuple[Step, Array]:
    """A plan and what is proved; the plan once more, for the choice of knots."""
    problem = program.pairs.problem
    K = program.worst_cost(point.k)
    if not (K > -np.inf).all():  # costs so far apart that the first point over- or underflows
        raise FloatingPointError("no point on the central path")
    plan = program.pairs.plan(point.x)
    P = rounded(problem, plan, K)
    u = np.where(problem.a > 0, point.y[: problem.shape[0]], -np.inf)
    proof = max(_proofs(problem, K, plan, u), key=attrgetter("bound"))
    return Step(problem.objective(P), lambda: P, proof.bound, lambda: proof), P


def _proofs(problem: Problem, K: Array, P: Array, u: Array) -> Iterator[Dual]:
    """What potentials below K + ω log(P/r) prove: the loss of their exponentials is that of P."""
    if problem.reg == 0.0:
        K = lowered(K, np.abs(K))
        yield dual_from_cost(problem, K, u)
        yield dual_by_exact_transport(problem, K)
        return
    r = problem.independent
    used = (r > 0.0) & (P > 0.0)
    ceiling = K.copy()
    omega = problem.reg * np.broadcast_to(problem.metric, K.shape)[used]
    ceiling[used] += omega * np.log(P[used] / r[used])
    potentials = [c_transform(ceiling, u)]
    with contextlib.suppress(InfeasibleError, RuntimeError):
        potentials.append(emd(ceiling, problem.a, problem.b).potentials)
    for u, v in potentials:
        yield Dual(u, v, K, entropic_bound(problem, u, v, K))
