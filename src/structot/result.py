"""The answer of `solve`: a plan, what it costs, and the proof of how good it is."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from structot._files import whole_file
from structot._typing import Array

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Status(Enum):
    """How a solve ended, as a sentence."""

    CONVERGED = "The certified gap is at most the tolerance."
    ITERATION_LIMIT = "The iteration limit was reached before the gap."
    TIME_LIMIT = "The time limit was reached before the gap."
    STOPPED = "The callback asked to stop before the gap was reached."
    STALLED = "The method can get no further in floating point; the gap was not reached."
    NOT_FINITE = "The iterates overflowed or became NaN; the best answer before is returned."

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, eq=False)
class Trace:
    """The history of a solve, one entry per certificate: the best value and bound so far."""

    iteration: Array
    time: Array
    value: Array
    lower_bound: Array

    def __len__(self) -> int:
        return len(self.iteration)


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A plan with its certificate: lower_bound <= optimum <= value.

    Attributes
    ----------
    plan
        P, shape (n, m), in U(a, b) to rounding.
    value
        The objective at the plan: f(P), plus the entropy term when reg > 0.
    value_structured, value_linear
        f(P) and <P, M>.
    lower_bound
        Proved by the potentials and the worst cost, less the rounding error of evaluating it.
    potentials
        (u, v). For reg = 0: u ⊕ v <= worst_cost, and the bound is a·u + b·v, for reg > 0 the dual
        function a·u + b·v - reg Σ d r (exp((u ⊕ v - K)/(reg d)) - 1), less rounding in both cases.
    worst_cost
        K in B(F), +inf on forbidden pairs: what the adversary plays. For a `ConvexCost` the linear
        function of plans below f that proves the bound.
    ground_cost
        M as it was given.
    gap
        max(0, value - lower_bound) / |value|, and 0 where both are 0.
    atol
        The absolute error of the value that counts as nothing: its rounding error (at most a tenth
        of what ``tol`` allows, unless the value is no more than that error), or what was asked for.
    status, converged, method, n_iter, time, trace
        How the solve went.
    """

    plan: Array
    value: float
    value_structured: float
    value_linear: float
    lower_bound: float
    gap: float
    atol: float
    potentials: tuple[Array, Array]
    worst_cost: Array
    ground_cost: Array = field(repr=False)
    status: Status
    method: str
    n_iter: int
    time: float
    trace: Trace = field(repr=False)

    @property
    def converged(self) -> bool:
        """Whether the certified gap was reached."""
        return self.status is Status.CONVERGED

    def sparse_plan(self) -> csr_array:
        """The plan as a sparse array of its positive entries."""
        from scipy.sparse import csr_array

        return csr_array(self.plan)

    def save(self, path: str | os.PathLike) -> None:
        """Write everything to one npz file, aside first, so that no half file is left behind."""
        with whole_file(_with_suffix(path)) as aside:
            np.savez_compressed(
                aside,
                plan=self.plan,
                worst_cost=self.worst_cost,
                ground_cost=self.ground_cost,
                u=self.potentials[0],
                v=self.potentials[1],
                numbers=np.array([getattr(self, name) for name in _NUMBERS]),
                n_iter=self.n_iter,
                text=np.array([self.status.name, self.method]),
                **{f"trace_{name}": getattr(self.trace, name) for name in _TRACE},
            )

    @classmethod
    def load(cls, path: str | os.PathLike) -> Result:
        """Read what `save` wrote."""
        path = _with_suffix(path)
        with open(path, "rb") as opened:
            if opened.read(2) != b"PK":
                raise ValueError(f"{path} is no npz file; pass a file written by Result.save.")
        with np.load(path, allow_pickle=False) as file:
            missing = {"plan", "worst_cost", "ground_cost", "numbers", "text"} - set(file.files)
            if missing:
                raise ValueError(
                    f"{path} is no saved Result (no {', '.join(sorted(missing))}); "
                    "pass a file written by Result.save."
                )
            if file["numbers"].size != len(_NUMBERS):
                raise ValueError(f"{path} was saved by another version of structot; solve again.")
            numbers = dict(zip(_NUMBERS, file["numbers"].tolist(), strict=True))
            status, method = file["text"].tolist()
            return cls(
                plan=file["plan"],
                worst_cost=file["worst_cost"],
                ground_cost=file["ground_cost"],
                potentials=(file["u"], file["v"]),
                status=Status[status],
                method=method,
                n_iter=int(file["n_iter"]),
                trace=Trace(**{name: file[f"trace_{name}"] for name in _TRACE}),
                **numbers,
            )

    def __repr__(self) -> str:
        n, m = self.plan.shape
        return (
            f"Result({n}×{m} plan by {self.method!r})\n"
            f"  value        {self.value:.8g}\n"
            f"  lower bound  {self.lower_bound:.8g}\n"
            f"  gap          {self.gap:.1e}\n"
            f"  status       {self.status}\n"
            f"  effort       {self.n_iter} iterations, {self.time:.3g} s"
        )


def _with_suffix(path: str | os.PathLike) -> Path:
    name = os.fspath(path)
    return Path(name if name.endswith(".npz") else name + ".npz")


_NUMBERS = ("value", "value_structured", "value_linear", "lower_bound", "gap", "atol", "time")
_TRACE = ("iteration", "time", "value", "lower_bound")
