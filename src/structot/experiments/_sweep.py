"""What `clusters` and `moons` share: EMD, entropic transport, and structured for a sweep of α."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structot._typing import Array
from structot.datasets.synthetic import ClusterProblem
from structot.experiments._runner import Records, Settings, Task
from structot.experiments._tables import certificate
from structot.result import Result
from structot.solvers.solve import solve
from structot.structures.base import Structure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REG = 0.05  # of entropic transport, in units of the mean cost
_KINDS = ("emd", "entropic")


def names(alphas: Sequence[float]) -> list[str]:
    """The plans of one draw, plain ones first."""
    return [*_KINDS, *(f"alpha-{alpha:g}" for alpha in alphas)]


def words(name: str) -> str:
    """What a reader calls the plan."""
    fixed = {"emd": "EMD", "entropic": f"entropic, reg {REG:g} mean(M)"}
    return fixed.get(name) or f"structured, α = {name.removeprefix('alpha-')}"


def sweep(
    compute: Callable[..., dict], settings: Settings, alphas: Sequence[float], draws: int = 5
) -> list[Task]:
    """One task per plan and draw, ``compute(kind, seed, alpha)``; the key is NAME-SEED."""
    tasks = []
    for seed in range(settings.seeds or draws):
        for kind in _KINDS:
            tasks.append(Task(f"{kind}-{seed}", compute, {"kind": kind, "seed": seed}))
        for alpha in alphas:
            arguments = {"kind": "structured", "seed": seed, "alpha": alpha}
            tasks.append(Task(f"alpha-{alpha:g}-{seed}", compute, arguments))
    return tasks


def solve_kind(kind: str, M: Array, structure: Structure, tol: float) -> Result:
    """The plan of a kind: ``"emd"``, ``"entropic"`` or ``"structured"``."""
    options: dict[str, Any] = {
        "emd": {},
        "entropic": {"reg": REG * M.mean()},
        "structured": {"structure": structure},
    }[kind]
    return solve(M, tol=tol, time_limit=60.0, **options)


def record(result: Result, tol: float, seed: int, **measures: float) -> dict[str, Any]:
    """What a task returns; plans are kept of the first draw only, which is drawn."""
    plan = result.plan if seed == 0 else np.zeros((0, 0))
    return {**certificate(result, tol), **measures, "linear": result.value_linear, "plan": plan}


@dataclass(frozen=True)
class Draws:
    """The records of a sweep by plan and field, one entry per draw."""

    done: Records

    @property
    def seeds(self) -> list[int]:
        return sorted({int(key.rsplit("-", 1)[1]) for key in self.done})

    def __call__(self, name: str, field: str) -> list[float]:
        return [self.done[f"{name}-{seed}"][field] for seed in self.seeds]

    def mean(self, name: str, field: str) -> float:
        return float(np.mean(self(name, field)))


def draw_plans(
    done: Records,
    data: ClusterProblem,
    alphas: Sequence[float],
    title: Callable[[dict[str, Any]], str],
    *,
    colors: tuple[Array, Array | None],
    groups: tuple[Array | None, Array | None] = (None, None),
    along: str = "",
    **options: Any,
) -> Figure:
    """The first draw: matchings above, by groups of the points, and plans below."""
    import matplotlib.pyplot as plt

    from structot import plot

    shown = names(alphas)
    figure, axes = plt.subplots(2, len(shown), layout="constrained", **options)
    for name, (top, bottom) in zip(shown, axes.T, strict=True):
        found = done[f"{name}-0"]
        plot.matching(data.X, data.Y, found["plan"], *colors, ax=top)
        plot.plan(found["plan"], *groups, ax=bottom).set(xlabel="", ylabel="")
        top.set_title(f"{words(name)}\n{title(found)}", fontsize=9)
    axes[1, 0].set(xlabel=f"target points{along}", ylabel=f"source points{along}")
    return figure
