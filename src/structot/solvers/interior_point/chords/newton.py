"""Newton's equations of the central path.

In x alone they have the matrix L = diag((ω + z) / x) + Bᵀ diag(θ) B: diagonally dominant, with no
positive entry off the diagonal, so that its factors are exact to rounding in every entry, however
small. What is left is the system A L⁻¹ Aᵀ of the marginals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import coo_array, csc_array
from scipy.sparse.linalg import splu

from structot._typing import Array
from structot.solvers.interior_point.chords.program import Program

# A step ends at this share of the way to the first unknown that would become negative.
_BOUNDARY = 0.99
# What the diagonal of the last system is raised by until its factorisation succeeds.
_RAISED = (1e-14, 1e-12, 1e-10, 1e-8)


@dataclass(frozen=True)
class Point:
    """The unknowns; rest = ρ - k."""

    x: Array
    z: Array
    y: Array
    Y: Array
    Z: Array
    k: Array
    rest: Array

    @property
    def products(self) -> tuple[tuple[Array, Array], ...]:
        """What is complementary."""
        return (self.x, self.z), (self.Y, self.rest), (self.Z, self.k)

    @property
    def total(self) -> float:
        return float(sum(s @ t for s, t in self.products))

    @property
    def count(self) -> int:
        return sum(s.size for s, _ in self.products)


def newton_step(program: Program, point: Point) -> tuple[Point | None, float]:
    """One predictor and corrector and its length; None when arithmetic can do no more."""
    mu = point.total / point.count
    with np.errstate(all="ignore"):
        try:
            system = System(program, point)
        except (LinAlgError, RuntimeError):
            return None, 0.0
        guess = system.solve([np.zeros(s.size) for s, _ in point.products])
        reach = _reach(point, guess, 1.0)
        left = sum(
            float((s + reach * ds) @ (t + reach * dt))
            for (s, t), (ds, dt) in zip(point.products, guess.products, strict=True)
        )
        centre = mu * min(max((left / point.total) ** 3, 1e-6), 1.0)
        target = [centre - np.clip(ds * dt, -mu, mu) for ds, dt in guess.products]
        step = system.solve(target)
        reach = _reach(point, step, _BOUNDARY)
    moved = {name: s + reach * getattr(step, name) for name, s in vars(point).items()}
    if not reach > 1e-10 or not all(np.isfinite(s).all() for s in moved.values()):
        return None, 0.0
    return Point(**moved), reach


def _reach(point: Point, step: Point, boundary: float) -> float:
    """The longest step, at most 1, that keeps all unknowns positive."""
    worst = max(
        float(np.max(-change / own, initial=0.0))
        for pair, changes in zip(point.products, step.products, strict=True)
        for own, change in zip(pair, changes, strict=True)
    )
    return min(1.0, boundary / worst) if worst > 0.0 else 1.0


class System:
    """Newton's equations at a point, factorised."""

    def __init__(self, program: Program, point: Point) -> None:
        self.program, self.point, pairs = program, point, program.pairs
        self.theta = 1.0 / (point.Y / point.rest + point.Z / point.k)
        head, tail, every = program.head, program.tail, np.arange(program.size)
        diagonal = (program.omega + point.z) / point.x
        diagonal += np.bincount(head, self.theta, minlength=program.size)
        diagonal += np.bincount(tail, self.theta, minlength=program.size)
        places = np.concatenate([every, head, tail]), np.concatenate([every, tail, head])
        data = np.concatenate([diagonal, -self.theta, -self.theta])
        L = csc_array(coo_array((data, places), shape=(every.size, every.size)))
        self.L = splu(
            L, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
        )
        right = np.zeros((program.size, pairs.used.size))
        right[: pairs.size] = pairs.A[pairs.used].T.toarray()
        S = pairs.A[pairs.used] @ self.L.solve(right)[: pairs.size]
        self.scale = 1.0 / np.sqrt(S.diagonal())
        self.S = 0.5 * (S + S.T) * self.scale[:, None] * self.scale
        self.factor = _cholesky(self.S)

    def solve(self, target: list[Array]) -> Point:
        """The step towards these products."""
        program, point, pairs = self.program, self.point, self.program.pairs
        cx, cY, cZ = (t - u * v for t, (u, v) in zip(target, point.products, strict=True))
        f = cx / point.x + point.z - program.c - program.B.T @ point.k
        f[: pairs.size] += pairs.A.T @ point.y
        f[: pairs.size] -= pairs.omega * np.log(point.x[: pairs.size] / pairs.r)
        e = program.B @ point.x - (point.Y - point.Z) - cY / point.rest + cZ / point.k
        f -= program.B.T @ (self.theta * e)
        missing = pairs.marginals - pairs.A @ (point.x + self.L.solve(f))[: pairs.size]
        dy = np.zeros(missing.size)
        dy[pairs.used] = self._multipliers(missing[pairs.used])
        f[: pairs.size] += pairs.A.T @ dy
        dx = self.L.solve(f)
        dk = self.theta * (program.B @ dx + e)
        dY, dZ = (cY + point.Y * dk) / point.rest, (cZ - point.Z * dk) / point.k
        return Point(dx, (cx - point.z * dx) / point.x, dy, dY, dZ, dk, -dk)

    def _multipliers(self, missing: Array) -> Array:
        right = self.scale * missing
        s = cho_solve(self.factor, right, check_finite=False)
        for _ in range(2):
            s = s + cho_solve(self.factor, right - self.S @ s, check_finite=False)
        return self.scale * s


def _cholesky(S: Array) -> tuple[Array, bool]:
    if not np.isfinite(S).all():
        raise LinAlgError
    for raised in _RAISED:
        try:
            return cho_factor(S + raised * np.eye(S.shape[0]), lower=True, check_finite=False)
        except LinAlgError:
            continue
    raise LinAlgError
