"""The timed tasks: 2-D Gaussian classes, uniform weights, ours against a peer.

Notation: M cost, a uniform weights, ys and yt source and target labels, g concave, α its threshold.
Each task is a function of ``quick`` that returns rows; ``TASKS`` is the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import ot

import structot as sot
from benchmarks.measure import Contestants, peak_memory, race, say
from benchmarks.rows import Row, compare, growth_exponent
from structot.datasets import ClusterProblem, clusters

LIMIT = 120.0  # seconds after which one of our solvers gives up
SLOW_LIMIT = 120.0  # the same for one step size of the paper's solver
Task = Callable[[bool], list[Row]]
TASKS: dict[str, Task] = {}


def task(function: Task) -> Task:
    """Enter a task into the registry under the name of its function."""
    TASKS[function.__name__] = function
    return function


# --------------------------------------------------------------------------------------------------
# Data and baselines
# --------------------------------------------------------------------------------------------------


def _classes(n: int, n_classes: int) -> ClusterProblem:
    return clusters(n, n_classes=min(n_classes, n), seed=0)


def _costs(problem: ClusterProblem, power: int) -> Any:
    """Distances between the points, or their squares."""
    return problem.cost ** (power / 2)


def _groups(problem: ClusterProblem, g: Any) -> Any:
    return sot.Groups(problem.source_labels, problem.target_labels, g, units="cost")


def _ours(M: Any, structure: Any, tol: float, **options: Any) -> Callable[[], Any]:
    options = {"time_limit": LIMIT, **options}
    return lambda: sot.solve(M, structure=structure, tol=tol, **options)


def _emd(M: Any) -> Callable[[], Any]:
    a, b = (np.full(size, 1.0 / size) for size in M.shape)
    # POT's own bound of 1e5 pivots is no part of the comparison.
    return lambda: ot.emd(a, b, M, numItermax=10_000_000)


def _group_lasso(M: Any, labels: Any) -> Callable[[], Any]:
    a, b = (np.full(size, 1.0 / size) for size in M.shape)
    scaled = M / M.max()
    return lambda: ot.da.sinkhorn_lpl1_mm(a, labels, b, scaled, reg=0.05, eta=0.1)


def _sinkhorn(M: Any, reg: float, threshold: float) -> Callable[[], Any]:
    a, b = (np.full(size, 1.0 / size) for size in M.shape)
    return lambda: ot.sinkhorn(
        a, b, M, reg, method="sinkhorn_log", numItermax=100_000, stopThr=threshold
    )


# --------------------------------------------------------------------------------------------------
# Tasks with a goal
# --------------------------------------------------------------------------------------------------


STEPS = (1.0, 2.0, 3.0, 4.0, 5.0)


@task
def mirror_prox(quick: bool) -> list[Row]:
    """Newton against the paper's own algorithm, which gets the best step of a small grid."""
    n, tol = (50, 1e-1) if quick else (100, 1e-2)

    def make(size: int) -> Contestants:
        data = _classes(size, 3)
        M, structure = data.cost, _groups(data, sot.concave.ThresholdSqrt(5.0))
        limit = SLOW_LIMIT if size == n else 0.5
        steps = {
            f"step {step:g}": partial(_mirror_prox, M, structure, step, tol, limit)
            for step in STEPS
        }
        return {"newton": _ours(M, structure, tol, method="newton"), **steps}

    times = race(make, n)
    paper = {name: timing for name, timing in times.items() if name != "newton"}
    best, baseline = min(paper.items(), key=lambda item: (item[1].answer.gap > tol, item[1].median))
    reached = baseline.answer.gap <= tol
    note = f"{best}, gap {baseline.answer.gap:.1e}" + ("" if reached else " when stopped")
    case = f"n = {n}, 3 classes, α = 5, gap {tol:g}"
    return [
        compare(
            "mirror_prox",
            case,
            f"mirror prox, {best}",
            times["newton"],
            baseline,
            1 / 100,
            "≥ 100× faster",
            tol=tol,
            note=note,
        )
    ]


def _mirror_prox(M: Any, structure: Any, step: float, tol: float, limit: float) -> Any:
    """The only place that knows how a step size reaches the paper's solver."""
    return sot.solve(
        M,
        structure=structure,
        method=sot.solvers.MirrorProx(step=step),
        tol=tol,
        time_limit=limit,
        max_iter=1_000_000,
    )


@task
def linear_program(quick: bool) -> list[Row]:
    """Newton against HiGHS on the exact linear program of a piecewise-linear g."""
    tol = 1e-6

    def make(size: int) -> Contestants:
        data = _classes(size, 3)
        M = data.cost
        block = M.sum() / 9  # average total cost of a block: breaks keep their meaning at any n
        g = sot.concave.PiecewiseLinear([0.01 * block, 0.1 * block], [1.0, 0.3, 0.05])
        structure = _groups(data, g)
        return {
            "newton": _ours(M, structure, tol, method="newton"),
            "highs": _ours(M, structure, tol, method=sot.solvers.LinearProgram(time_limit=300.0)),
        }

    rows = []
    for n, factor in [(40, 10)] if quick else [(100, 10), (300, 50)]:
        say(f"  n = {n}")
        times = race(make, n, repeats=3, budget=30.0)
        reference = times["highs"].answer
        note = "" if reference.converged else "HiGHS stopped at the time limit"
        case = f"n = {n}, PiecewiseLinear, gap {tol:g}"
        rows.append(
            compare(
                "linear_program",
                case,
                "HiGHS on the LP",
                times["newton"],
                times["highs"],
                1 / factor,
                f"≥ {factor}× faster",
                tol=tol,
                note=note,
            )
        )
    return rows


@task
def classes(quick: bool) -> list[Row]:
    """Groups on both sides, easy and hard α, against group lasso and plain exact transport.

    What α means depends on the scale of the costs. With distances a block costs some 57 000 in all,
    so that α = 5000, a tenth of it, is the hard regime of the goals. The same α with squared
    distances, where a block costs 400 000, are shown beside them.
    """
    rows = []
    for power in (1, 2):
        rows += _both_sides(quick, power)
    return rows


def _both_sides(quick: bool, power: int) -> list[Row]:
    n, tol = (200, 1e-4) if quick else (1000, 1e-4)
    alphas = (5.0, 400.0, 50_000.0, 5000.0)  # the last one is the hard regime
    costs = "distances" if power == 1 else "squared distances"
    say(f"  {costs}")

    def make(size: int) -> Contestants:
        data = _classes(size, 10)
        M = _costs(data, power)
        ours = {
            f"α = {alpha:g}": _ours(M, _groups(data, sot.concave.ThresholdSqrt(alpha)), tol)
            for alpha in alphas
        }
        return {**ours, "emd": _emd(M), "group lasso": _group_lasso(M, data.source_labels)}

    times = race(make, n, warm_size=60)
    rows = []
    for alpha in alphas:
        ours, hard = times[f"α = {alpha:g}"], alpha == 5000.0
        case = f"n = {n}, 10 classes, {costs}, α = {alpha:g}, gap {tol:g}"
        limit = 150 if hard else 30
        peers = [("POT emd", times["emd"], limit, f"≤ {limit}× its time")]
        if not hard:
            peers.insert(0, ("POT sinkhorn_lpl1_mm", times["group lasso"], 1.0, "no slower"))
        for against, theirs, most, goal in peers:
            most, goal = (most, goal) if power == 1 else (None, "shown")
            rows.append(compare("classes", case, against, ours, theirs, most, goal, tol=tol))
    return rows


@task
def own_targets(quick: bool) -> list[Row]:
    """Source classes only, every target its own group: the domain-adaptation case."""
    n, tol = (200, 1e-3) if quick else (1000, 1e-3)
    alphas = (0.01, 1.0)

    def make(size: int) -> Contestants:
        data = _classes(size, 10)
        M = data.cost / data.cost.max()
        ours = {}
        for alpha in alphas:
            structure = sot.Groups(
                data.source_labels, None, sot.concave.ThresholdSqrt(alpha), units="cost"
            )
            ours[f"α = {alpha:g}"] = _ours(M, structure, tol)
        return {**ours, "group lasso": _group_lasso(M, data.source_labels)}

    times = race(make, n, warm_size=60)
    return [
        compare(
            "own_targets",
            f"n = {n}, 10 source classes, own targets, α = {alpha:g}, gap {tol:g}",
            "POT sinkhorn_lpl1_mm",
            times[f"α = {alpha:g}"],
            times["group lasso"],
            5.0,
            "≤ 5× its time",
            tol=tol,
        )
        for alpha in alphas
    ]


@task
def fixed_charge(quick: bool) -> list[Row]:
    """Entropic transport with a price per route, against group lasso and plain Sinkhorn."""
    n, tol = (200, 1e-6) if quick else (1000, 1e-6)

    def make(size: int) -> Contestants:
        data = _classes(size, 10)
        M = data.cost
        reg = 0.05 * M.mean()
        structure = sot.Modular() + sot.Coverage(data.source_labels, weights=0.02, units="block")
        return {
            "ours": _ours(M, structure, tol, reg=reg),
            "group lasso": _group_lasso(M, data.source_labels),
            "sinkhorn 1e-9": _sinkhorn(M, reg, 1e-9),
            "sinkhorn 1e-6": _sinkhorn(M, reg, 1e-6),
        }

    times = race(make, n, warm_size=60)
    row = partial(
        compare,
        "fixed_charge",
        f"n = {n}, 10 source classes, fixed charge, reg = 0.05 mean(M), gap {tol:g}",
        ours=times["ours"],
        tol=tol,
    )
    lasso, strict, loose = (times[k] for k in ("group lasso", "sinkhorn 1e-9", "sinkhorn 1e-6"))
    return [
        row(against="POT sinkhorn_lpl1_mm", baseline=lasso, limit=1.0, goal="no slower"),
        row(
            against="POT sinkhorn_log",
            baseline=strict,
            limit=0.2,
            goal="≥ 5× faster",
            note="POT's default threshold, marginal error 1e-9",
        ),
        row(against="POT sinkhorn_log, stopThr 1e-6", baseline=loose, limit=None, goal="shown"),
    ]


def _solve_growing(size: int) -> Any:
    data = _classes(size, 10)
    return _ours(_costs(data, 1), _groups(data, sot.concave.ThresholdSqrt(400.0)), 1e-4)()


@task
def growth(quick: bool) -> list[Row]:
    """How time and memory grow with the problem."""
    sizes = (60, 125, 250) if quick else (250, 500, 1000, 2000)
    tol = 1e-4

    def make(size: int) -> Contestants:
        runs = {}
        for n in sizes if size == max(sizes) else (size,):
            data = _classes(n, 10)
            structure = _groups(data, sot.concave.ThresholdSqrt(400.0))
            runs[f"n = {n}"] = _ours(_costs(data, 1), structure, tol)
        return runs

    times = race(make, max(sizes), repeats=3, budget=90.0)
    used = [times[f"n = {n}"] for n in sizes]
    exponent = growth_exponent([n * n for n in sizes], [timing.median for timing in used])
    case = f"n = {sizes[0]} → {sizes[-1]}, distances, α = 400, gap {tol:g}"
    rows = [
        Row(
            "growth",
            case,
            f"own cost at n = {sizes[0]}",
            exponent,
            1.2,
            "time ≤ (nm)^1.2",
            kind="exponent",
            ours=used[-1].median,
            baseline=used[0].median,
            gap=max(float(timing.answer.gap) for timing in used),
            tol=tol,
            method=str(used[-1].answer.method),
        )
    ]
    for n in sizes[-2:]:
        say(f"    memory at n = {n}")
        arrays = peak_memory(_solve_growing, n) / (8.0 * n * n)
        goal, limit = ("≤ 10 arrays", 10.0) if n == sizes[-1] else ("shown", None)
        rows.append(
            Row("growth", f"n = {n}, peak memory", "n×m float64", arrays, limit, goal, "memory")
        )
    return rows


# --------------------------------------------------------------------------------------------------
# Shown beside them
# --------------------------------------------------------------------------------------------------


@task
def other_methods(quick: bool) -> list[Row]:
    """The other first-order methods and POT's conditional gradient: gap after a fixed time."""
    n, limit, tol = (50, 1.0, 1e-2) if quick else (100, 20.0, 1e-2)
    names = ("splitting", "mirror_descent", "saddle_mirror_descent")

    def make(size: int) -> Contestants:
        data = _classes(size, 3)
        M, g = data.cost, sot.concave.ThresholdSqrt(5.0)
        time_limit = limit if size == n else 0.2
        options = {"time_limit": time_limit, "max_iter": 1_000_000}
        peers = {name: _ours(M, _groups(data, g), tol, method=name, **options) for name in names}
        newton = _ours(M, _groups(data, g), tol, method="newton")
        return {"newton": newton, **peers, "ot.optim.cg": partial(_conditional_gradient, data, g)}

    times = race(make, n, repeats=3)
    bound = times["newton"].answer.lower_bound
    rows = []
    for name in (*names, "ot.optim.cg"):
        answer = times[name].answer
        gap = (answer - bound) / answer if name == "ot.optim.cg" else answer.gap
        note = f"reached gap {gap:.1e}" + ("" if gap <= tol else f", not {tol:g}")
        case = f"n = {n}, 3 classes, α = 5, gap {tol:g}"
        against = f"{name} ({note})"
        row = compare("other_methods", case, against, times["newton"], times[name], None, "shown")
        rows.append(row)
    return rows


def _conditional_gradient(data: ClusterProblem, g: Any) -> float:
    """f at the plan that POT's conditional gradient finds from f and Edmonds' subgradient."""
    M = data.cost
    a, b = (np.full(size, 1.0 / size) for size in M.shape)
    n_targets = data.target_labels.max() + 1
    block = (data.source_labels[:, None] * n_targets + data.target_labels[None, :]).ravel()

    def subgradient(P: Any) -> Any:
        order = np.lexsort((-P.ravel(), block))  # by block, then downwards in P
        w = M.ravel()[order]
        total = np.cumsum(w)
        starts = np.flatnonzero(np.diff(block[order], prepend=-1))
        total -= np.repeat((total - w)[starts], np.diff(starts, append=w.size))
        K = np.empty(w.size)
        K[order] = g(total) - g(np.maximum(total - w, 0.0))
        return K.reshape(M.shape)

    def extension(P: Any) -> float:
        return float((P * subgradient(P)).sum())

    # f has a kink at the usual start a bᵀ, where all entries tie, and the line search ends there at
    # once; from the plain plan it stalls higher. A generic start was the best of the three.
    noise = np.random.default_rng(0).random(M.shape)
    start = ot.sinkhorn(a, b, noise, 0.5)
    zero = np.zeros_like(M)
    plan = ot.optim.cg(a, b, zero, 1.0, extension, subgradient, G0=start, numItermax=1000)
    return extension(plan)
