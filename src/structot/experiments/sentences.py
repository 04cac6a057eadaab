"""Sentence relatedness and word order on SICK: the paper's experiment, and what it can carry.

Notation: families of distances are ``wmd`` (plain), ``charge`` (phrases that keep their order) and
``concave`` (the paper's form); choices within each are made by cross-validation on train.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from structot._typing import Array
from structot.experiments import _sentence_order as moved
from structot.experiments import _sentence_speed as speed
from structot.experiments import _sentence_tasks as work
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._sentence_numbers import shown
from structot.experiments._sentence_report import make_report
from structot.experiments._sentence_tasks import Choice

__all__ = ["EXPERIMENT"]

FAMILIES = ("wmd", "charge", "concave")
CHARGES = (
    (2, "ngrams", 0.1),
    (2, "ngrams", 0.4),
    (2, "ngrams", 0.8),
    (3, "ngrams", 0.4),
    (2, "dependency", 0.4),
)
CONCAVE = ((2, "ngrams", 0.1), (2, "ngrams", 0.5), (3, "ngrams", 0.1))
ORDER = {
    "wmd": (0.0,),
    "sets": (0.8,),
    "written": (0.8,),
    "ngrams": (0.2, 0.4, 0.8, 1.6),
    "dependency": (0.2, 0.4, 0.8, 1.6),
    "position": (0.1, 0.2, 0.4, 0.8, 1.6),
}
SMOOTHINGS = (5e-4, 1e-3, 2e-3, 3e-3, 1e-2)
PRESET_CHARGES = (0.0, 0.2, 0.4, 0.8, 1.6)


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
    if not quick:  # light stop words are not dropped
        base += [{"weights": "sif", "normalize": normalize} for normalize in (False, True)]
    structures = [("charge", *c) for c in (CHARGES[1:2] if quick else CHARGES)]
    structures += [("concave", *c) for c in (CONCAVE[:1] if quick else CONCAVE)]
    found = [Choice(**options) for options in base]
    for family, ngram, groups, price in structures:
        found += [Choice(family, price, ngram, groups, **options) for options in base]
    return found


def candidates(quick: bool) -> list[Choice]:
    """What the preset was chosen from: how heavy stop words are, lengths of vectors, charges."""
    weights: list[dict[str, Any]] = [{"weights": "count"}, {"weights": "count", "stop": True}]
    weights += [{"weights": "sif", "smooth": a} for a in (SMOOTHINGS[1:2] if quick else SMOOTHINGS)]
    return [
        Choice("charge", price, normalize=normalize, **options)
        for options, normalize, price in itertools.product(
            weights,
            (True,) if quick else (False, True),
            PRESET_CHARGES[::3] if quick else PRESET_CHARGES,
        )
    ]


def tasks(settings: Settings, done: Records) -> list[Task]:
    """First the grids on train, the tests of order and speed, then what was chosen."""
    data = None if settings.data is None else str(settings.data)
    count = 60 if settings.quick else 2000
    limit = 40 if settings.quick else None
    common = {"data": data, "limit": limit}
    first = [
        Task(f"grid_{count}_{c.name}", work.grid, {"choice": c, "data": data, "count": count})
        for c in choices(settings.quick)
    ]
    for method, prices in ORDER.items():
        for price, split in itertools.product(prices, ("train", "test")):
            arguments = {"method": method, "price": price, "split": split}
            key = f"order_{split}_{method}_{price:g}_{limit or 'all'}"
            first.append(Task(key, moved.order, {**arguments, **common}))
    for choice in candidates(settings.quick):
        key = f"candidate_{limit or 'all'}_{choice.name}"
        first.append(Task(key, moved.candidate, {"choice": choice, **common}))
    for name, choice in listeners().items():
        key = f"heard_{name}_{limit or 'all'}"
        first.append(Task(key, moved.heard, {"choice": choice, **common}))
    first.append(Task("appendix", work.appendix, {"data": data}))
    first += _speed(settings, data, limit)
    if any(task.key not in done for task in first):
        return first
    return first + _second(settings, done, data, count, limit)


def listeners() -> dict[str, Choice]:
    """The distances that must hear a change of order."""
    preset = work.preset()
    return {"preset": preset, "dropped": replace(preset, stop=True)}


def _speed(settings: Settings, data: str | None, limit: int | None) -> list[Task]:
    found = [
        Task(
            f"rate_{'ordered' if order else 'sets'}_{limit or 'all'}",
            speed.rate,
            {"order": order, "data": data, "limit": limit},
        )
        for order in (True, False)
    ]
    size, queries = (60, 2) if settings.quick else (10_000, speed.QUERIES)
    for part in range(1 if settings.quick else 10):
        arguments: dict[str, Any] = {"part": part, "size": size, "data": data}
        arguments |= {"queries": queries, "check": part < speed.COMPARED}
        found.append(Task(f"search_{size}_{part}", speed.search, arguments))
    return [*found, Task("cold", speed.cold, {})]


def _second(
    settings: Settings, done: Records, data: str | None, count: int, limit: int | None
) -> list[Task]:
    """The whole of SICK for the chosen ones and their controls, and the draws."""
    chosen = select(settings, done, count)
    tasks = {}
    for choice, _ in shown(chosen, work.preset()).values():
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
    names = {choice.name: choice for choice in candidates(settings.quick)}
    return make_report(done, chosen, limit, parts, keys, count, names)


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
