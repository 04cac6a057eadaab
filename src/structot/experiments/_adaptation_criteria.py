"""Criteria without target labels, judged on the suite: do they find the better settings?"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from structot._typing import Array
from structot.experiments._adaptation import grid_of
from structot.experiments._adaptation_methods import accuracy, nearest
from structot.experiments._adaptation_report import interval, signed
from structot.experiments._adaptation_suite import CASES, Case
from structot.experiments._runner import Records, Settings, Task
from structot.experiments._tables import table

CANDIDATES = grid_of(charge=(0.0, 0.1, 0.2, 0.5), reg=(0.1, 0.4, 1.0))
SEEDS = range(1)


def tasks(cases: tuple[Case, ...], settings: Settings, data: str | None) -> list[Task]:
    """All criteria of all candidates on a draw of a case."""
    seeds = SEEDS[:1] if settings.quick else SEEDS
    return [
        Task(
            f"criteria-{case.key}-{seed}",
            judge,
            {"case": case.key, "seed": seed, "data": data},
        )
        for case in cases
        for seed in seeds
    ]


def judge(case: str, seed: int, data: str | None) -> dict[str, Any]:
    """Accuracy and every criterion of every candidate; the accuracy of the defaults."""
    from structot.adaptation import StructuredTransport
    from structot.adaptation.criteria import CRITERIA, Adapted
    from structot.experiments._adaptation_rejected import REJECTED

    every = {**CRITERIA, **REJECTED}
    draw = next(c for c in CASES if c.key == case).draw(seed, data)

    def train(X: Array, y: Array) -> Any:
        return nearest(draw).fit(X, y)

    scores: dict[str, list[float]] = {name: [] for name in every}
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for candidate in [{}, *CANDIDATES]:
            adapted = Adapted.of(StructuredTransport(**candidate), draw.Xs, draw.ys, draw.Xt, train)
            found.append(accuracy(draw, adapted.moved))
            if candidate:
                for name, criterion in every.items():
                    scores[name].append(criterion(adapted))
    return {"default": found[0], "accuracy": found[1:], "scores": scores}


def results(cases: tuple[Case, ...], settings: Settings, done: Records) -> dict[str, Any]:
    """By criterion: rank correlation, and what choosing by it gains over two other ways."""
    runs = [(task.arguments["seed"], done[task.key]) for task in tasks(cases, settings, None)]
    data: dict[str, Any] = {}
    for name in runs[0][1]["scores"]:
        correlation, chosen, random, default = [], [], [], []
        for _, run in runs:
            score, right = np.array(run["scores"][name]), np.array(run["accuracy"])
            if np.ptp(right) > 0 and np.ptp(score) > 0:
                correlation.append(float(spearmanr(score, right).statistic))
            best = right[score == np.nanmax(score)].mean()  # ties are drawn by lot
            chosen.append(best)
            random.append(best - right.mean())
            default.append(best - run["default"])
        # Cases count, not draws of a case: what a new data set may bring.
        by_case = len(runs) // len(cases)
        data[name] = {
            "correlation": _by_case(correlation, 1),
            "accuracy": float(np.mean(chosen)),
            "minus_random": _by_case(random, by_case),
            "minus_default": _by_case(default, by_case),
        }
    oracle = [float(np.max(run["accuracy"]) - run["default"]) for _, run in runs]
    data["oracle"] = {"minus_default": _by_case(oracle, len(runs) // len(cases))}
    return data


def _by_case(values: list[float], each: int) -> tuple[float, float]:
    return interval(np.reshape(values, (-1, each)).mean(axis=1))


def text(data: dict[str, Any]) -> list[str]:
    """The table and what it says."""
    rows = [
        [
            name,
            f"{cell['correlation'][0]:+.2f} ± {cell['correlation'][1]:.2f}",
            signed(*cell["minus_random"]),
            signed(*cell["minus_default"]),
        ]
        for name, cell in sorted(
            ((k, v) for k, v in data.items() if k != "oracle"),
            key=lambda item: -item[1]["minus_random"][0],
        )
    ]
    head = ["criterion", "rank correlation", "minus a random pick", "minus the defaults"]
    names = [name for name in data if name != "oracle"]
    better = [n for n in names if data[n]["minus_random"][0] > data[n]["minus_random"][1]]
    worse = [n for n in names if data[n]["minus_random"][0] < -data[n]["minus_random"][1]]
    beats = [n for n in better if data[n]["minus_default"][0] > data[n]["minus_default"][1]]
    words = [
        f"{len(CANDIDATES)} settings of `StructuredTransport` (charge and reg), one chosen by each "
        "criterion from the samples alone; points of accuracy, means over cases with 95 % "
        "intervals.",
        table(head, rows),
        f"Better than a random pick: {', '.join(sorted(better)) or 'none'}. Worse: "
        f"{', '.join(sorted(worse)) or 'none'}. Better than leaving the defaults alone: "
        f"{', '.join(sorted(beats)) or 'none'}. The best setting of each draw, known only "
        f"afterwards, would be {signed(*data['oracle']['minus_default'])} above the defaults.",
    ]
    return words
