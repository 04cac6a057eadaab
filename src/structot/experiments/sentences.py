"""Sentence relatedness and word order on SICK: the paper's experiment, and what it can carry.

Notation: families of distances are ``wmd`` (plain), ``charge`` (a fixed charge per pair of phrases)
and ``concave`` (the paper's form); choices within each are made by cross-validation on train.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from structot._typing import Array
from structot.experiments import _sentence_tasks as work
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._sentence_report import make_report, shown
from structot.experiments._sentence_tasks import Choice

__all__ = ["EXPERIMENT"]

FAMILIES = ("wmd", "charge", "concave")
CHARGES = ((2, "ngrams", 0.1), (2, "ngrams", 0.4), (3, "ngrams", 0.4), (2, "dependency", 0.4))
CONCAVE = ((2, "ngrams", 0.1), (2, "ngrams", 0.5), (3, "ngrams", 0.1))
ORDER = {
    "wmd": (0.0,),
    "ngrams": (0.1, 0.2, 0.4, 0.8, 2.0),
    "dependency": (0.1, 0.2, 0.4, 0.8, 2.0),
    "concave": (0.05, 0.2, 0.5),
    "position": (0.1, 0.2, 0.4, 0.8, 1.6),
}


def choices(quick: bool) -> list[Choice]:
    """All that is tried: what plain WMD may choose, times what structure adds."""
    base: list[dict[str, Any]] = [
        {"stop": stop, "weights": weights, "normalize": normalize}
        for stop, weights, normalize in itertools.product(
            (False, True),
            ("count",) if quick else ("count", "idf", "negation"),
            (False,) if quick else (False, True),
        )
    ]
    structures = [("charge", *c) for c in (CHARGES[1:2] if quick else CHARGES)]
    structures += [("concave", *c) for c in (CONCAVE[:1] if quick else CONCAVE)]
    found = [Choice(**options) for options in base]
    for family, ngram, groups, price in structures:
        found += [Choice(family, price, ngram, groups, **options) for options in base]
    return found


def tasks(settings: Settings, done: Records) -> list[Task]:
    """First the grid on train, the order test and the appendix, then what was chosen."""
    data = None if settings.data is None else str(settings.data)
    count = 60 if settings.quick else 2000
    limit = 40 if settings.quick else None
    first = [
        Task(f"grid_{count}_{c.name}", work.grid, {"choice": c, "data": data, "count": count})
        for c in choices(settings.quick)
    ]
    for method, prices in ORDER.items():
        for price, split in itertools.product(prices, ("train", "test")):
            arguments = {"method": method, "price": price, "ngram": 2, "split": split}
            key = f"order_{split}_{method}_{price:g}_{limit or 'all'}"
            first.append(Task(key, work.order, {**arguments, "data": data, "limit": limit}))
    first.append(Task("appendix", work.appendix, {"data": data}))
    if any(task.key not in done for task in first):
        return first
    return first + _second(settings, done, data, count, limit)


def _second(
    settings: Settings, done: Records, data: str | None, count: int, limit: int | None
) -> list[Task]:
    """The whole of SICK for the chosen ones and their controls, and the draws."""
    chosen = select(settings, done, count)
    tasks = {}
    for choice, _ in shown(chosen).values():
        arguments = {"choice": choice, "data": data, "limit": limit}
        key = f"whole_{limit or 'all'}_{choice.name}"
        tasks[key] = Task(key, work.whole, arguments)
    size = 20 if settings.quick else 100
    for seed in range(draws(settings)):
        own = select(settings, done, count, seed, size)
        key = f"draw_{size}_{count}_{seed}"
        sample = {"seed": seed, "choices": own, "data": data, "size": size}
        tasks[key] = Task(key, work.draw, sample)
    return list(tasks.values())


def report(settings: Settings, done: Records) -> Report:
    """Tables, verdict and pictures."""
    count, size = (60, 20) if settings.quick else (2000, 100)
    chosen = select(settings, done, count)
    limit = "40" if settings.quick else "all"
    seeds = range(draws(settings))
    parts = [_part(seed, count, size) for seed in seeds]
    keys = [f"draw_{size}_{count}_{seed}" for seed in seeds]
    return make_report(done, chosen, limit, parts, keys, count)


def draws(settings: Settings) -> int:
    """Repetitions of the paper's protocol."""
    return settings.seeds or (3 if settings.quick else 20)


def _part(seed: int, count: int, size: int) -> Array:
    """Which of the pairs of the grid are the training pairs of a draw."""
    return np.random.default_rng([seed, 0]).choice(count, min(size, count), replace=False)


def select(
    settings: Settings, done: Records, count: int, seed: int | None = None, size: int = 0
) -> dict[str, Choice]:
    """Per family the choice of least cross-validated error, on all grid pairs or on a draw's."""
    best: dict[str, tuple[float, Choice]] = {}
    for choice in choices(settings.quick):
        record: dict[str, Any] = done[f"grid_{count}_{choice.name}"]
        if seed is None:
            error = float(record["error"])
        else:
            part = _part(seed, len(record["y"]), size)
            error = work.best_width(record["d"][part], record["y"][part])[1]
        if choice.family not in best or error < best[choice.family][0]:
            best[choice.family] = error, choice
    return {family: best[family][1] for family in FAMILIES}


EXPERIMENT = Experiment(
    "sentences",
    "Word Mover's Distance with phrases: relatedness and word order on SICK",
    tasks,
    report,
)
