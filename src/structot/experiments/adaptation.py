"""Adaptation over families of data: are the defaults of `StructuredTransport` fit to travel?

Tuning seeds choose one fixed setting of every method, for each family from the results on all the
others; other seeds report. `StructuredTransport()` takes no setting and sees no tuning seed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from structot._typing import Array
from structot.experiments import _adaptation_constants as constants
from structot.experiments import _adaptation_criteria as criteria
from structot.experiments._adaptation import Parameters
from structot.experiments._adaptation_methods import BY_KEY, DEFAULT, METHODS, accuracies
from structot.experiments._adaptation_report import interval, signed
from structot.experiments._adaptation_suite import CASES, FAMILIES, TABLES, Case
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._tables import table

TITLE = "Domain adaptation over families of data"
SEEDS = 5
TUNING_SEEDS = (100, 101)
KEYS = tuple(method.key for method in METHODS)
VARIANTS = ("first", "affine", "estimate", "unbalanced", "routes")
TUNED = tuple(method.key for method in METHODS if len(method.grid) > 1)


def tasks(settings: Settings, done: Records) -> list[Task]:
    """Tuning first, then the reported runs with what it chose, and the criteria."""
    first = [
        _task("tune", case, method, list(BY_KEY[method].grid), seed, settings)
        for case in cases(settings)
        for seed in TUNING_SEEDS[: 1 if settings.quick else None]
        for method in TUNED
    ]
    if any(task.key not in done for task in first):
        return first
    reported = {
        (family, method): _reported(settings, done, family, method)
        for family in _families(settings)
        for method in KEYS
    }
    second = [
        _task("report", case, method, reported[case.family, method], seed, settings)
        for case in cases(settings)
        for seed in range(_seeds(settings))
        for method in KEYS
    ]
    every = tuple(seed for some in _stages(settings).values() for seed in some)
    return [
        *first,
        *second,
        *criteria.tasks(cases(settings), settings, _data(settings)),
        *constants.tasks(cases(settings), every, settings, _data(settings)),
    ]


def cases(settings: Settings) -> tuple[Case, ...]:
    """All cases; in the small version those without files, one per family."""
    if not settings.quick:
        return CASES
    small = {case.family: case for case in CASES if not case.needs_data}
    return tuple(small.values())


def _families(settings: Settings) -> list[str]:
    found = {case.family for case in cases(settings)}
    return [family for family in FAMILIES if family in found]


def evaluate(
    case: str, method: str, grid: list[Parameters], seed: int, data: str | None
) -> dict[str, Any]:
    """The accuracies of some settings of a method on one draw of a case."""
    draw = next(c for c in CASES if c.key == case).draw(seed, data)
    return {"accuracy": accuracies(method, grid, draw)}


def _task(
    stage: str,
    case: Case,
    method: str,
    grid: list[Parameters],
    seed: int,
    settings: Settings,
) -> Task:
    digest = hashlib.sha256(json.dumps(grid, sort_keys=True).encode()).hexdigest()[:10]
    arguments = {
        "case": case.key,
        "method": method,
        "grid": grid,
        "seed": seed,
        "data": _data(settings),
    }
    return Task(f"{stage}-{case.key}-{method}-{seed}-{digest}", evaluate, arguments)


def _data(settings: Settings) -> str | None:
    return None if settings.data is None else str(Path(settings.data))


def _stages(settings: Settings) -> dict[str, tuple[int, ...]]:
    return {
        "tuning": TUNING_SEEDS[: 1 if settings.quick else None],
        "reported": tuple(range(_seeds(settings))),
    }


def _seeds(settings: Settings) -> int:
    return settings.seeds or (2 if settings.quick else SEEDS)


def tuning(settings: Settings, done: Records, method: str) -> dict[str, Array]:
    """Mean accuracy by family of every setting of a method, on the tuning seeds."""
    grid = list(BY_KEY[method].grid)
    found: dict[str, list[list[float]]] = {}
    for case in cases(settings):
        for seed in TUNING_SEEDS[: 1 if settings.quick else None]:
            record = done[_task("tune", case, method, grid, seed, settings).key]
            found.setdefault(case.family, []).append(record["accuracy"])
    return {family: np.mean(runs, axis=0) for family, runs in found.items()}


def _reported(settings: Settings, done: Records, family: str, method: str) -> list[Parameters]:
    """The setting chosen without this family, and the one chosen with all."""
    grid = list(BY_KEY[method].grid)
    if method not in TUNED:
        return grid
    means = tuning(settings, done, method)
    without = np.mean([x for name, x in means.items() if name != family], axis=0)
    with_all = np.mean(list(means.values()), axis=0)
    chosen = [int(without.argmax()), int(with_all.argmax())]
    return [grid[k] for k in dict.fromkeys(chosen)]  # one, where they agree


def accuracy(settings: Settings, done: Records, method: str, which: int) -> Array:
    """Accuracies (families, seeds), cases averaged; ``which`` 0: left out, 1: the best of all."""
    rows = []
    for family in _families(settings):
        runs = []
        for case in cases(settings):
            if case.family == family:
                grid = _reported(settings, done, family, method)
                records = [
                    done[_task("report", case, method, grid, seed, settings).key]["accuracy"]
                    for seed in range(_seeds(settings))
                ]
                runs.append([x[min(which, len(x) - 1)] for x in records])
        rows.append(np.mean(runs, axis=0))
    return np.array(rows)


def results(settings: Settings, done: Records) -> dict[str, Any]:
    """Everything that the tables show, as JSON values."""
    families = _families(settings)
    left_out = {m: accuracy(settings, done, m, 0) for m in KEYS}
    best = {m: accuracy(settings, done, m, 1) for m in KEYS}
    ceiling = np.max([x.mean(axis=1) for x in [*left_out.values(), *best.values()]], axis=0)
    alike = [k for k, family in enumerate(families) if family not in TABLES]
    data: dict[str, Any] = {"families": families, "seeds": _seeds(settings), "methods": {}}
    for m in KEYS:
        ours = left_out[DEFAULT]
        data["methods"][m] = {
            "left_out": left_out[m].tolist(),
            "best": best[m].tolist(),
            "regret": float((ceiling - left_out[m].mean(axis=1)).mean()),
            "regret_interval": interval((ceiling[:, None] - left_out[m]).mean(axis=0))[1],
            "default_minus_left_out": interval((ours - left_out[m]).mean(axis=0)),
            "default_minus_best": interval((ours - best[m]).mean(axis=0)),
            "alike": interval((ours - best[m])[alike].mean(axis=0)),
            "over_families": interval((ours - best[m]).mean(axis=1)),
            "settings": [_reported(settings, done, family, m)[0] for family in families],
            "setting": _reported(settings, done, families[0], m)[-1],
        }
    return data


def report(settings: Settings, done: Records) -> Report:
    """Accuracy by family, regret, differences with intervals, and the criteria."""
    data = results(settings, done)
    judged = criteria.results(cases(settings), settings, done)
    changes = constants.results(cases(settings), _stages(settings), settings, done)
    text = "\n\n".join(
        [
            f"# {TITLE}",
            "    structot reproduce adaptation --data FOLDER",
            _introduction(settings),
            "## Accuracy by family, setting chosen on the other families",
            _accuracy_table(data),
            "## Regret, and the difference from the defaults",
            _difference_table(data),
            _words(data),
            "## Variants",
            _variants(data),
            "## Criteria without target labels",
            *criteria.text(judged),
            "## Constants",
            *constants.text(changes),
        ]
    )
    return Report({"suite": data, "criteria": judged, "constants": changes}, text, {})


def _introduction(settings: Settings) -> str:
    return (
        f"{len(cases(settings))} cases in {len(_families(settings))} families, samples of at most "
        "100 points per domain; 1-NN is trained on the carried source points and scored on other "
        "target points where there are any (500), else on the target sample. Of every method one "
        "fixed setting is used per family: the one of its grid with the best mean accuracy over "
        "the *other* families, on the tuning seeds "
        f"{', '.join(map(str, TUNING_SEEDS))}. POT's methods may choose among three metrics "
        "(Euclidean, squared, Euclidean of scaled features; costs divided by their maximum). "
        f"Reported on seeds 0–{_seeds(settings) - 1}; `StructuredTransport()` is as shipped. The "
        f"features of {', '.join(TABLES)} are in unlike units, as these tables are, and there the "
        "classifier standardises them."
    )


def _accuracy_table(data: dict[str, Any]) -> str:
    rows = []
    for method, cell in data["methods"].items():
        means = np.mean(cell["left_out"], axis=1)
        rows.append([BY_KEY[method].title, *(f"{x:.1f}" for x in means), f"{means.mean():.1f}"])
    return table(["method", *data["families"], "mean"], rows)


def _difference_table(data: dict[str, Any]) -> str:
    head = [
        "method",
        "regret",
        "defaults minus it, left out",
        "… minus its best fixed setting",
        "… over features in like units",
        "best fixed setting",
    ]
    rows = []
    for method, cell in data["methods"].items():
        words = ", ".join(f"{k} {v}" for k, v in cell["setting"].items()) or "–"
        differences = [
            signed(*cell[key]) if method != DEFAULT else "–"
            for key in ("default_minus_left_out", "default_minus_best", "alike")
        ]
        regret = f"{cell['regret']:.1f} ± {cell['regret_interval']:.1f}"
        rows.append([BY_KEY[method].title, regret, *differences, words])
    return table(head, rows)


def _words(data: dict[str, Any]) -> str:
    lines = [
        "Regret: points below the best of all rows, family by family, on average. Differences are "
        "means over families seed by seed, with 95 % intervals over the seeds (± in brackets: "
        "over the families, which is how sure one can be of a new one). POT's metric of scaled "
        "features has no answer where a feature is constant, as some pixels are; a map that is not "
        "finite scores 0, which spoils settings that were chosen without such a family: the "
        "column of best fixed settings is the fair one. Where features are in like units the "
        "scale of the features plays no part, and the last difference is over those families."
    ]
    for method in ("entropic", "lasso", "lasso_l2"):
        cell = data["methods"][method]
        mean, width = cell["default_minus_best"]
        lines.append(
            f"- `StructuredTransport()` is {_told(mean, width)} {BY_KEY[method].title} at its best "
            f"fixed setting: {signed(mean, width)} (± {cell['over_families'][1]:.1f})."
        )
    return "\n".join(lines)


def _told(mean: float, width: float) -> str:
    return "not told apart from" if abs(mean) <= width else "above" if mean > 0 else "below"


def _variants(data: dict[str, Any]) -> str:
    """What the options and the old defaults do, beside the defaults."""
    ours, rows, words = np.array(data["methods"][DEFAULT]["left_out"]), [], []
    for method in VARIANTS:
        each = np.array(data["methods"][method]["left_out"]) - ours  # (families, seeds)
        by_family = each.mean(axis=1)
        best, worst = int(by_family.argmax()), int(by_family.argmin())
        difference = interval(each.mean(axis=0))
        words.append(f"- `{BY_KEY[method].title}` is {_told(*difference)} the defaults.")
        rows.append(
            [
                BY_KEY[method].title,
                signed(*difference),
                f"{by_family[best]:+.1f} ({data['families'][best]})",
                f"{by_family[worst]:+.1f} ({data['families'][worst]})",
            ]
        )
    head = ["variant", "minus the defaults", "best family", "worst family"]
    return table(head, rows) + "\n\n" + "\n".join(words)


EXPERIMENT = Experiment("adaptation", TITLE, tasks, report)
