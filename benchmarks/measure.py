"""Timing and memory: every figure is a ratio between contestants of the same run."""

from __future__ import annotations

import contextlib
import multiprocessing
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Contestants = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Timing:
    """Seconds of each run of one contestant, and what the last run returned."""

    seconds: tuple[float, ...]
    answer: Any

    @property
    def median(self) -> float:
        """The figure that enters a ratio."""
        return statistics.median(self.seconds)


def say(text: str) -> None:
    """One line of progress, on the error stream: the table alone goes to the output stream."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def race(
    make: Callable[[int], Contestants],
    size: int,
    *,
    warm_size: int = 40,
    repeats: int = 5,
    budget: float = 60.0,
) -> dict[str, Timing]:
    """Time contestants in turns, so that a slow spell of the machine hits all of them.

    Parameters
    ----------
    make
        Builds the contestants for a problem of a given size; building is not timed.
    size, warm_size
        Size of the timed problem, and of the small one on which each contestant runs first, so
        that compilation and imports are over before the clock starts.
    repeats
        Rounds. Medians over the rounds enter the ratios.
    budget
        Seconds after which a contestant is not run again; each runs once at least.
    """
    for name, run in make(warm_size).items():
        say(f"    warm-up {name}")
        quietly(run)
    contestants = make(size)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers: dict[str, Any] = {}
    for _ in range(repeats):
        for name, run in contestants.items():
            if seconds[name] and sum(seconds[name]) + seconds[name][-1] > budget:
                continue
            start = time.perf_counter()
            answers[name] = quietly(run)
            seconds[name].append(time.perf_counter() - start)
            say(f"    {name}: {seconds[name][-1]:.3f} s")
    return {name: Timing(tuple(seconds[name]), answers[name]) for name in contestants}


def quietly(run: Callable[[], Any]) -> Any:
    """Run without warnings: whether a goal was reached is a column of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run()


def peak_memory(run: Callable[[int], None], size: int, *, warm_size: int = 40) -> int:
    """Bytes by which ``run(size)`` raises the peak of a fresh process that ran ``warm_size``."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(_rise, run, size, warm_size).result()


def _rise(run: Callable[[int], None], size: int, warm_size: int) -> int:
    quietly(lambda: run(warm_size))
    before = _reset_peak()
    quietly(lambda: run(size))
    return _peak() - before


def _reset_peak() -> int:
    """Forget the peak so far where the system allows it, and return what is left of it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    """Largest resident size of this process in bytes.

    The kernel's own mark is preferred: ``ru_maxrss`` survives ``exec`` and may be the parent's.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return used if sys.platform == "darwin" else 1024 * used
