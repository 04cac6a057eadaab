"""Routes: the interior-point method against HiGHS on the whole program and against plain transport.

Two-dimensional Gaussian classes, ten groups per side, squared distances, certified gap 1e-6, prices
w = 0.02, 0.1 and 0.5 mean(M) per route. The seeds were not used to tune the method.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import ot

import structot as sot
from benchmarks.measure import Contestants, peak_memory, race, say
from benchmarks.rows import Row, compare, growth_exponent
from structot.datasets import clusters

PRICES = (0.02, 0.1, 0.5)
SEED = 2024
TOL = 1e-6


def _problem(n: int, price: float) -> tuple[Any, sot.Routes]:
    data = clusters(n, n_classes=10, seed=SEED)
    labels = data.source_labels, data.target_labels
    return data.cost, sot.Routes(*labels, price * data.cost.mean(), units="cost")


def _solve(n: int, price: float, **options: Any) -> Callable[[], Any]:
    M, structure = _problem(n, price)
    return lambda: sot.solve(M, structure=structure, tol=TOL, **options)


def _emd(n: int) -> Callable[[], Any]:
    M, _ = _problem(n, 0.1)
    weights = np.full(n, 1.0 / n)
    return lambda: ot.emd(weights, weights, M, numItermax=10_000_000)


def _run(price: float, n: int) -> None:
    _solve(n, price)()


def routes(quick: bool) -> list[Row]:
    """Routes between ten groups per side, by an interior-point method."""
    small, large, sizes = (60, 200, (60, 120)) if quick else (300, 1000, (300, 600, 1200, 2000))
    rows: list[Row] = []
    for price in PRICES:

        def against_highs(size: int, price: float = price) -> Contestants:
            return {
                "ours": _solve(size, price),
                "HiGHS": _solve(size, price, method="linear_program"),
            }

        times = race(against_highs, small, repeats=3)
        case = f"n = {small}, routes between 10 groups, w = {price:g} mean(M), gap {TOL:g}"
        goal = 1 / 5, "≥ 5× faster"
        rows.append(compare("routes", case, "HiGHS", times["ours"], times["HiGHS"], *goal, tol=TOL))
    for price in PRICES:

        def against_emd(size: int, price: float = price) -> Contestants:
            return {"ours": _solve(size, price), "emd": _emd(size)}

        times = race(against_emd, large, repeats=3)
        case = f"n = {large}, routes between 10 groups, w = {price:g} mean(M), gap {TOL:g}"
        goal_emd = 150.0, "≤ 150× its time"
        rows.append(
            compare("routes", case, "POT emd", times["ours"], times["emd"], *goal_emd, tol=TOL)
        )
    return [*rows, *_threads(large), _growth(sizes), _memory(large)]


def _threads(n: int) -> list[Row]:
    """Threads of our own, with BLAS on one, against one thread and against the threads of BLAS."""

    def make(size: int) -> Contestants:
        solve = _solve(size, 0.1)

        def on_one() -> Any:
            sot.set_num_threads(1)
            try:
                return solve()
            finally:
                sot.set_num_threads(None)

        def on_threads_of_blas() -> Any:
            limit = "structot.solvers.interior_point.solver.single_threaded_blas"
            with patch(limit, lambda order: nullcontext()):
                return on_one()

        return {"ours": solve, "one thread": on_one, "threads of BLAS": on_threads_of_blas}

    times = race(make, n, repeats=3)
    ours, case = times["ours"], f"n = {n}, routes, w = 0.1 mean(M), {sot.get_num_threads()} threads"
    goal = 1.1, "no slower"
    return [
        compare("routes", case, name, ours, times[name], *goal, tol=TOL)
        for name in ("one thread", "threads of BLAS")
    ]


def _growth(sizes: tuple[int, ...]) -> Row:
    seconds, last = [], None
    for n in sizes:
        timing = race(lambda size: {"ours": _solve(size, 0.1)}, n, repeats=3 if n < 1000 else 1)
        seconds.append(timing["ours"].median)
        last = timing["ours"].answer
    return Row(
        task="routes",
        case=f"n = {sizes[0]} → {sizes[-1]}, routes, w = 0.1 mean(M), gap {TOL:g}",
        against=f"own cost at n = {sizes[0]}",
        ratio=growth_exponent([n * n for n in sizes], seconds),
        limit=1.6,
        goal="time ≤ (nm)^1.6",
        kind="exponent",
        ours=seconds[-1],
        baseline=seconds[0],
        gap=float(last.gap) if last is not None else None,
        tol=TOL,
    )


def _memory(n: int) -> Row:
    say("    memory")
    return Row(
        task="routes",
        case=f"n = {n}, routes, peak memory",
        against="n×m float64",
        ratio=peak_memory(partial(_run, 0.1), n) / (8.0 * n * n),
        limit=25.0,
        goal="≤ 25 arrays",
        kind="memory",
    )
