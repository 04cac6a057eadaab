"""Relaxed marginals against the balanced problem: time and memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import structot as sot
from benchmarks.measure import Contestants, peak_memory, race, say
from benchmarks.rows import Row, compare
from structot.datasets import clusters

SIZE, QUICK = 1000, 200
SEED = 2418  # nothing was tuned on it
TOL = 1e-4
LIMIT = 120.0  # seconds after which a solve gives up
# What is relaxed, in units of the mean cost and of the total.
KINDS: dict[str, dict[str, Any]] = {
    "KL, τ = 0.3": {"unbalanced": 0.3},
    "KL source, τ = 0.1": {"unbalanced": (0.1, None)},
    "TV, τ = 0.5": {"unbalanced": 0.5, "unbalanced_type": "TV"},
    "partial, mass 0.7": {"mass": 0.7},
}
MODELS = (
    "fixed charge, reg = 0.05",
    "Discount(0.75), reg = 0",
    "Discount(0.75), reg = 0.05",
)


def _solve(model: str, size: int, **options: Any) -> sot.Result:
    data = clusters(size, n_classes=10, seed=SEED)
    M = data.cost / data.cost.mean()
    common = {"tol": TOL, "time_limit": LIMIT, **options}
    if model == MODELS[0]:
        charge = sot.Coverage(data.source_labels, weights=0.02, units="block")
        return sot.solve(M, structure=sot.Modular() + charge, reg=0.05, **common)
    structure = sot.Groups(data.source_labels, data.target_labels)
    return sot.solve(M, structure=structure, reg=0.05 if model == MODELS[2] else 0.0, **common)


def _memory(model: str, options: dict[str, Any], size: int) -> None:
    _solve(model, size, **options)


def relaxed_marginals(quick: bool) -> list[Row]:
    """Ten classes, own or grouped targets: each relaxation against hard marginals, in turns."""
    size, rows = QUICK if quick else SIZE, []
    for model in MODELS:

        def make(n: int, model: str = model) -> Contestants:
            ways: dict[str, dict[str, Any]] = {"balanced": {}, **KINDS}
            return {name: partial(_solve, model, n, **options) for name, options in ways.items()}

        times = race(make, size, repeats=1 if quick else 3, budget=20.0)
        for name in KINDS:
            case, against = f"n = {size}, {model}, {name}", "the same, balanced"
            ours, base = times[name], times["balanced"]
            rows.append(
                compare("relaxed_marginals", case, against, ours, base, 3.0, "≤ 3×", tol=TOL)
            )
        peaks = {}
        for name, options in {"balanced": {}, **KINDS}.items():
            say(f"    memory of {model}, {name}")
            peaks[name] = peak_memory(partial(_memory, model, options), size) / (8.0 * size**2)
        for name in KINDS:
            case = f"n = {size}, {model}, {name}, peak memory"
            limit = float(np.ceil(10.0 * peaks["balanced"]) / 10.0)
            rows.append(
                Row(
                    "relaxed_marginals",
                    case,
                    f"balanced: {peaks['balanced']:.1f} arrays",
                    peaks[name],
                    limit,
                    "no more",
                    "memory",
                )
            )
    return rows
