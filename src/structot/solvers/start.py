"""Where a solver may begin: an earlier plan, potentials, or result."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structot import _checks
from structot._typing import Array
from structot.problem import Problem
from structot.result import Result


@dataclass(frozen=True)
class Start:
    """A feasible plan and potentials to begin from, in the units of the problem, or None."""

    plan: Array | None = None
    potentials: tuple[Array, Array] | None = None
    between_groups: bool = False  # whether it is what transport between groups gave

    @classmethod
    def of(cls, init: object, problem: Problem) -> Start:
        """From what a user may pass as ``init``: a plan, potentials (u, v), a `Result`, or None."""
        if init is None:
            return cls()
        if isinstance(init, Result):
            return cls(_plan(init.plan, problem), _potentials(init.potentials, problem))
        if isinstance(init, tuple):
            return cls(potentials=_potentials(init, problem))
        return cls(plan=_plan(init, problem))


def _plan(value: object, problem: Problem) -> Array:
    P = _checks.as_matrix("init", value, problem.shape)
    if not (np.isfinite(P) & (P >= 0)).all():
        raise ValueError("init must be a plan with finite entries, none negative.")
    return problem.feasible(P / problem.units.mass)


def _potentials(value: tuple, problem: Problem) -> tuple[Array, Array]:
    if len(value) != 2:
        raise ValueError(
            f"init must be a plan (n, m), potentials (u, v), or a Result; got {len(value)} arrays."
        )
    pair = []
    for name, x, size in zip("uv", value, problem.shape, strict=True):
        x = _checks.as_array(f"init potential {name}", x, 1)
        if x.size != size or not np.isfinite(x).all():
            raise ValueError(
                f"init potential {name} must hold {size} finite numbers; got {x.size} numbers, "
                f"{int(np.isfinite(x).sum())} of them finite."
            )
        pair.append(x / problem.units.cost)
    return pair[0], pair[1]
