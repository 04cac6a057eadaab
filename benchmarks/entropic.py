"""Entropic groups in block units, on seeds that no tuning has seen, against group lasso.

CPU seconds of one thread each, in turns: on a busy machine they disturb each other least.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import ot
from threadpoolctl import threadpool_limits

import structot as sot
from benchmarks.measure import quietly, say
from benchmarks.rows import Row
from structot.datasets import clusters

# Drawn after the last change of the method: none of its constants knows them.
SEEDS = np.random.SeedSequence(20261120).generate_state(5).tolist()
TOL = 1e-4
LIMIT = 120.0  # seconds after which our solver gives up
# (n, reg / mean cost, the most that our time may be in units of the peer's)
CASES = ((300, 0.05, 3.0), (300, 0.001, 10.0), (1000, 0.05, 3.0), (1000, 0.001, 10.0))


def entropic_groups(quick: bool) -> list[Row]:
    """Entropic groups, d = .75, both sides labelled and own targets: median and worst seed."""
    rows = []
    for n, fraction, limit in ((100, 0.05, 3.0),) if quick else CASES:
        rows += measure(n, fraction, limit, SEEDS[:2] if quick else SEEDS)
    return rows


def measure(n: int, fraction: float, limit: float, seeds: list[int]) -> list[Row]:
    """One row for labels on both sides and one for own targets."""
    names = {"both sides": False, "own targets": True}
    seconds: dict[str, list[float]] = {name: [] for name in ("peer", *names)}
    gaps: dict[str, list[float]] = {name: [] for name in names}
    threads = sot.get_num_threads()
    sot.set_num_threads(1)
    with threadpool_limits(1):
        for seed in (0, *seeds):  # the first one, small, is there for the compiler
            data = clusters(40 if seed == 0 else n, n_classes=10, seed=seed)
            M, labels = data.cost, data.source_labels
            a = np.full(M.shape[0], 1.0 / M.shape[0])
            times = {}
            for name in seconds:
                if name == "peer":
                    times[name], _ = _timed(
                        lambda a=a, y=labels, M=M: ot.da.sinkhorn_lpl1_mm(
                            a, y, a, M / M.max(), reg=0.05, eta=0.1
                        )
                    )
                    continue
                structure = sot.Groups(labels, None if names[name] else data.target_labels)
                times[name], result = _timed(
                    lambda M=M, s=structure: sot.solve(
                        M, structure=s, reg=fraction * M.mean(), tol=TOL, time_limit=LIMIT
                    )
                )
                if seed:
                    gaps[name].append(float(result.gap))
            if seed:
                left = [found[-1] for found in gaps.values()]
                say(f"    n = {n}, reg {fraction:g}: {times} s, gaps {left}")
                for name, value in times.items():
                    seconds[name].append(value)
    sot.set_num_threads(threads)
    return [_row(n, fraction, limit, name, seconds, gaps[name]) for name in names]


def _row(
    n: int, fraction: float, limit: float, name: str, seconds: dict[str, list[float]], gaps: Any
) -> Row:
    ratios = [x / y for x, y in zip(seconds[name], seconds["peer"], strict=True)]
    return Row(
        task="entropic_groups",
        case=f"n = {n}, 10 classes, {name}, d = .75, reg = {fraction:g} mean(M), gap {TOL:g}",
        against="POT sinkhorn_lpl1_mm",
        ratio=statistics.median(ratios),
        limit=limit,
        goal=f"≤ {limit:g}× its time",
        ours=statistics.median(seconds[name]),
        baseline=statistics.median(seconds["peer"]),
        gap=max(gaps),
        tol=TOL,
        method="entropic",
        note=f"{len(ratios)} unseen seeds, the worst {max(ratios):.2g}×",
    )


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    answer = quietly(run)
    return time.process_time() - start, answer
