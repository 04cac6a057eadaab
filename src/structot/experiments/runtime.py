"""The paper's Figure 1, right: time to a fixed gap against the size of the problem.

The paper's three algorithms and the library's two, on the same problems, each with its own default
options, stopped by the same certified gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from structot.concave import ThresholdSqrt
from structot.datasets.synthetic import clusters
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._tables import certificate, table
from structot.result import Result
from structot.solvers.solve import solve
from structot.structures.groups import Groups

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EXPERIMENT", "compute"]

METHODS = {
    "mirror_descent": "mirror descent (MDA)",
    "saddle_mirror_descent": "saddle mirror descent (SP-MD)",
    "mirror_prox": "mirror prox (SP-MP)",
    "splitting": "splitting",
    "newton": "newton",
}
ALPHA = 5.0


@dataclass(frozen=True)
class _Plan:
    """What is measured: sizes, the gap, seconds after which a method gives up."""

    sizes: tuple[int, ...]
    tol: float
    limit: float
    seeds: int


def _plan(settings: Settings) -> _Plan:
    if settings.quick:
        return _Plan((10, 20, 40), 0.1, 5.0, settings.seeds or 1)
    return _Plan((10, 20, 50, 100, 200, 400), 0.02, 60.0, settings.seeds or 3)


def compute(method: str, n: int, seed: int, tol: float, limit: float) -> dict[str, Any]:
    """Seconds to the gap, and the trace, after a small solve that pays for compilation."""
    _solve(method, 8, seed, tol, 5.0)
    result = _solve(method, n, seed, tol, limit)
    return {**certificate(result, tol), **{f"trace_{k}": v for k, v in vars(result.trace).items()}}


def _solve(method: str, n: int, seed: int, tol: float, limit: float) -> Result:
    data = clusters(n, n_classes=3, seed=seed)
    structure = Groups(data.source_labels, data.target_labels, ThresholdSqrt(ALPHA), units="cost")
    return solve(data.cost, structure=structure, method=method, tol=tol, time_limit=limit)


def _key(method: str, n: int, seed: int, plan: _Plan) -> str:
    return f"{method}-n{n}-gap{plan.tol:g}-limit{plan.limit:g}-{seed}"


def tasks(settings: Settings, done: Records) -> list[Task]:
    """One size after the other: who missed the gap for every draw is not asked for more."""
    plan = _plan(settings)
    tasks = []
    for method in METHODS:
        for n in plan.sizes:
            keys = [_key(method, n, seed, plan) for seed in range(plan.seeds)]
            for seed, key in enumerate(keys):
                arguments = {"method": method, "n": n, "seed": seed}
                arguments |= {"tol": plan.tol, "limit": plan.limit}
                tasks.append(Task(key, compute, arguments))
            if not any(done[key]["converged"] for key in keys if key in done):
                break
    return tasks


def report(settings: Settings, done: Records) -> Report:
    """Median seconds by method and size; None where the gap was not reached by most."""
    plan = _plan(settings)
    seconds = {m: [_median(done, m, n, plan) for n in plan.sizes] for m in METHODS}
    rows = [
        [METHODS[method], *("–" if s is None else s for s in times)]
        for method, times in seconds.items()
    ]
    text = (
        f"Median seconds (draws: {plan.seeds}) to a certified gap of {plan.tol:g}, 3 "
        f"classes, α = {ALPHA:g}. A dash: not reached within {plan.limit:g} s for most draws; "
        "after a size where no draw reached it larger ones were not tried.\n\n"
        + table(["method", *(f"n = {n}" for n in plan.sizes)], rows)
    )
    gaps = {key: record["gap"] for key, record in done.items()}
    results = {"sizes": list(plan.sizes), "tol": plan.tol, "time_limit": plan.limit}
    results |= {"seeds": plan.seeds, "seconds": seconds, "gaps_by_task": gaps}
    figures = {
        "runtime": lambda: draw_times(results),
        "convergence": lambda: draw_convergence(done, plan),
    }
    captions = {
        "runtime": "Median seconds to the certified gap, against the number of points.",
        "convergence": "Certified gap against time on one problem.",
    }
    return Report(results, text, figures, captions)


def _median(done: Records, method: str, n: int, plan: _Plan) -> float | None:
    keys = [_key(method, n, seed, plan) for seed in range(plan.seeds)]
    if not all(key in done for key in keys):
        return None
    times = [done[key]["seconds"] if done[key]["converged"] else np.inf for key in keys]
    median = float(np.median(times))
    return median if np.isfinite(median) else None


def draw_times(results: dict[str, Any]) -> Figure:
    """Both axes logarithmic; a cross where a method gave up."""
    import matplotlib.pyplot as plt

    from structot.plot import COLORS

    figure, ax = plt.subplots(figsize=(5.6, 4.2), layout="constrained")
    markers = ("o", "s", "^", "D", "v")
    sizes = results["sizes"]
    for number, (method, times) in enumerate(results["seconds"].items()):
        color = COLORS[number]  # as in the figure of the convergence
        known = [(n, t) for n, t in zip(sizes, times, strict=True) if t is not None]
        if known:
            style = "--" if number < 3 else "-"
            ax.plot(
                *zip(*known, strict=True),
                linestyle=style,
                marker=markers[number],
                color=color,
                markersize=5,
                label=METHODS[method],
            )
        if None in times:
            ax.plot(sizes[times.index(None)], results["time_limit"], "x", color=color, markersize=8)
    ax.axhline(results["time_limit"], color="0.7", linewidth=0.8)
    ax.text(sizes[0], results["time_limit"], " gave up", va="bottom", fontsize=8, color="0.4")
    ax.set(xscale="log", yscale="log", xlabel="points on each side", xticks=sizes)
    ax.set_xticklabels([str(n) for n in sizes])
    ax.minorticks_off()
    ax.set_ylabel(f"seconds to gap {results['tol']:g}")
    # Above the axes: inside it would lie on the curves or on the words, wherever there is room now.
    figure.legend(loc="outside upper center", ncols=2, frameon=False, fontsize=8)
    return figure


def draw_convergence(done: Records, plan: _Plan) -> Figure:
    """Bands of value and bound of all methods at the largest size all of them were tried at."""
    import matplotlib.pyplot as plt

    from structot import plot
    from structot.outcome import Trace

    tried = [n for n in plan.sizes if all(_key(m, n, 0, plan) in done for m in METHODS)]
    figure, ax = plt.subplots(figsize=(6.2, 4.6), layout="constrained")
    traces = {}
    for method, label in METHODS.items():
        record = done[_key(method, max(tried), 0, plan)]
        traces[label] = Trace(**{f.name: record[f"trace_{f.name}"] for f in fields(Trace)})
    plot.convergence(traces, ax=ax)
    figure.suptitle(f"n = {max(tried)}", fontsize=10)
    return figure


EXPERIMENT = Experiment(
    "runtime", "Time to a fixed certified gap against problem size (Figure 1, right)", tasks, report
)
