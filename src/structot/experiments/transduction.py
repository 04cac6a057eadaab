"""Labels for 600 unlabelled digits from 100 labelled ones of another kind, MNIST ↔ USPS.

Every method labels the target sample itself, in two ways where it has both: by the mass that the
plan sends to a point, and by 1-NN among the carried source points. Parameters of each way are
chosen on tuning seeds, alike for all.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from structot.experiments import digits
from structot.experiments._adaptation import Method, Parameters, grid_of, nearest_label, sample
from structot.experiments._adaptation_report import interval, signed
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._tables import table

TITLE = "Labels for 600 digits from 100, MNIST ↔ USPS"
SOURCE, TARGET = 100, 600
SEEDS = 20
TUNING_SEEDS = (100, 101, 102, 103, 104)
WAYS = ("plan", "nearest")
WORDS = {"plan": "by the plan", "nearest": "1-NN"}


def _ours(**parameters: Any) -> Any:
    from structot.adaptation import StructuredTransport

    return StructuredTransport(**parameters)


def _pot(kind: str) -> Any:
    def make(**parameters: Any) -> Any:
        import ot

        return getattr(ot.da, kind)(metric="euclidean", norm="max", **parameters)

    return make


ROUTES = "routes"
METHODS = (
    Method(
        "entropic",
        "entropic (POT)",
        _pot("SinkhornTransport"),
        grid_of(reg_e=(0.02, 0.03, 0.05, 0.1)),
    ),
    Method(
        "lasso",
        "group lasso ℓp-ℓ1 (POT)",
        _pot("SinkhornLpl1Transport"),
        grid_of(reg_e=(0.03, 0.06, 0.12), reg_cl=(0.035, 0.1)),
    ),
    Method(
        "charge", "structured, fixed charge", _ours, grid_of(charge=(0.1, 0.2, 0.4), reg=(0.2, 0.4))
    ),
    Method(
        ROUTES,
        "structured, routes",
        _ours,
        grid_of(structure=(ROUTES,), target_groups=(10, 15, 20, 30), charge=(0.1, 0.3)),
    ),
)
BY_KEY = {method.key: method for method in METHODS}


def evaluate(
    way: tuple[str, str], method: str, grid: list[Parameters], seed: int, data: str | None
) -> dict[str, Any]:
    """Accuracy of the labels of the target sample, in percent, for each setting and way."""
    domains = digits.load(data=data, blur=0.0)
    source, target = domains[way[0]], domains[way[1]]
    rng = np.random.default_rng(seed)
    i, j = sample(source, "balanced", rng, SOURCE), sample(target, "balanced", rng, TARGET)
    Xs, ys, Xt = source.x_train[i], source.y_train[i].astype(np.int64), target.x_train[j]
    truth = target.y_train[j]
    record: dict[str, Any] = {name: [] for name in WAYS} | {"gap": []}
    for parameters in grid:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = BY_KEY[method].make(**parameters).fit(Xs=Xs, ys=ys, Xt=Xt)
        mass = np.stack([fitted.coupling_[ys == c].sum(axis=0) for c in range(10)], axis=1)
        guesses = {
            "plan": mass.argmax(axis=1),
            "nearest": nearest_label(fitted.transform(Xs=Xs), ys, Xt),
        }
        for name, guess in guesses.items():
            record[name].append(100.0 * float(np.mean(guess == truth)))
        result = getattr(fitted, "result_", None)
        record["gap"].append(None if result is None else float(result.gap))
    return record


def tasks(settings: Settings, done: Records) -> list[Task]:
    """Tuning, then the reported runs with what it chose."""
    first = [
        _task("tune", way, method.key, list(method.grid), seed, settings)
        for way in digits.DIRECTIONS
        for seed in _tuning_seeds(settings)
        for method in METHODS
    ]
    if any(task.key not in done for task in first):
        return first
    return first + [
        _task("report", way, method.key, _chosen(settings, done, way, method.key), seed, settings)
        for way in digits.DIRECTIONS
        for seed in range(_seeds(settings))
        for method in METHODS
    ]


def _seeds(settings: Settings) -> int:
    return settings.seeds or (2 if settings.quick else SEEDS)


def _tuning_seeds(settings: Settings) -> tuple[int, ...]:
    return TUNING_SEEDS[:1] if settings.quick else TUNING_SEEDS


def _task(
    stage: str,
    way: tuple[str, str],
    method: str,
    grid: list[Parameters],
    seed: int,
    settings: Settings,
) -> Task:
    digest = hashlib.sha256(json.dumps(grid, sort_keys=True).encode()).hexdigest()[:10]
    data = None if settings.data is None else str(Path(settings.data))
    arguments = {"way": way, "method": method, "grid": grid, "seed": seed, "data": data}
    return Task(f"{stage}-{'-'.join(way)}-{method}-{seed}-{digest}", evaluate, arguments)


def _chosen(
    settings: Settings, done: Records, way: tuple[str, str], method: str
) -> list[Parameters]:
    """The best setting for each way of labelling, from the tuning seeds alone."""
    grid = list(BY_KEY[method].grid)
    runs = [
        done[_task("tune", way, method, grid, seed, settings).key]
        for seed in _tuning_seeds(settings)
    ]
    return [grid[int(np.mean([run[name] for run in runs], axis=0).argmax())] for name in WAYS]


def results(settings: Settings, done: Records) -> dict[str, Any]:
    """Accuracies by method, way and direction, and the differences from routes by the plan."""
    data: dict[str, Any] = {"seeds": _seeds(settings), "rows": {}}
    for method in METHODS:
        for k, name in enumerate(WAYS):
            found, settings_chosen, gaps = [], [], []
            for way in digits.DIRECTIONS:
                grid = _chosen(settings, done, way, method.key)
                runs = [
                    done[_task("report", way, method.key, grid, seed, settings).key]
                    for seed in range(_seeds(settings))
                ]
                found.append([run[name][k] for run in runs])
                settings_chosen.append(grid[k])
                gaps += [run["gap"][k] for run in runs if run["gap"][k] is not None]
            data["rows"][f"{method.key}-{name}"] = {
                "accuracy": found,
                "settings": settings_chosen,
                "largest_gap": max(gaps) if gaps else None,
            }
    ours = np.array(data["rows"][f"{ROUTES}-plan"]["accuracy"])
    for row in data["rows"].values():
        row["routes_minus_this"] = interval((ours - row["accuracy"]).mean(axis=0))
    return data


def report(settings: Settings, done: Records) -> Report:
    """The table with paired intervals and a plain verdict."""
    data = results(settings, done)
    rows, words = [], []
    for method in METHODS:
        for name in WAYS:
            row = data["rows"][f"{method.key}-{name}"]
            title = f"{method.title}, {WORDS[name]}"
            itself = (method.key, name) == (ROUTES, "plan")
            difference = "–" if itself else signed(*row["routes_minus_this"])
            means = [f"{np.mean(x):.1f} ± {np.std(x, ddof=1):.1f}" for x in row["accuracy"]]
            chosen = "; ".join(_words(point) for point in row["settings"])
            rows.append([title, *means, difference, chosen])
            if not itself:
                mean, width = row["routes_minus_this"]
                word = "above" if mean > width else "below" if mean < -width else "not told from"
                words.append(f"- routes by the plan are {word} {title}: {signed(mean, width)}.")
    tuning = _tuning_seeds(settings)
    text = "\n\n".join(
        [
            f"# {TITLE}",
            "    structot reproduce transduction --data FOLDER",
            f"{SOURCE} labelled source digits and {TARGET} unlabelled target digits, both with "
            "equally many per class, 16×16 pixels of norm 1; accuracy of the labels of the "
            f"{TARGET} in percent. Seeds 0–{data['seeds'] - 1}; parameters chosen by direction on "
            f"seeds {tuning[0]}–{tuning[-1]}, for each way of labelling. Differences average both "
            "directions seed by seed, with 95 % intervals. Routes take Ward clusters of the "
            "targets as groups, and their number is a parameter.",
            table(
                [
                    "method",
                    "MNIST → USPS",
                    "USPS → MNIST",
                    "routes by the plan, minus it",
                    "parameters, by direction",
                ],
                rows,
            ),
            "\n".join(words),
            "When to use it: for the labels of the target sample itself, where the target falls "
            "into groups that a clustering finds and that hold one class each. "
            "With 100 target points and 1-NN they are the wrong choice: "
            "[Families of data](adaptation.md#variants).",
        ]
    )
    return Report(data, text, {})


def _words(point: Parameters) -> str:
    return ", ".join(f"{k} {v}" for k, v in point.items() if k != "structure")


EXPERIMENT = Experiment("transduction", TITLE, tasks, report)
