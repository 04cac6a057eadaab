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
EACH = 2  # every how many-th case is judged, for its price


def tasks(cases: tuple[Case, ...], settings: Settings, data: str | None) -> list[Task]:
    """All criteria of all candidates on a draw of a case."""
    return [
        Task(f"criteria-{case.key}", judge, {"case": case.key, "seed": 0, "data": data})
        for case in cases[::EACH]
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
    runs = [done[task.key] for task in tasks(cases, settings, None)]
    data: dict[str, Any] = {}
    for name in runs[0]["scores"]:
        correlation, random, default = [], [], []
        for run in runs:
            score, right = np.array(run["scores"][name]), np.array(run["accuracy"])
            if np.ptp(right) > 0 and np.ptp(score) > 0:
                correlation.append(float(spearmanr(score, right).statistic))
            best = right[score == np.nanmax(score)].mean()  # ties are drawn by lot
            random.append(best - right.mean())
            default.append(best - run["default"])
        data[name] = {
            "correlation": interval(np.array(correlation)),
            "minus_random": interval(np.array(random)),
            "minus_default": interval(np.array(default)),
        }
    oracle = [float(np.max(run["accuracy"]) - run["default"]) for run in runs]
    data["oracle"] = {"minus_default": interval(np.array(oracle)), "cases": len(runs)}
    return data


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
        f"criterion from the samples alone; points of accuracy, means over "
        f"{data['oracle']['cases']} cases, one draw each, with 95 % intervals.",
        table(head, rows),
        f"Better than a random pick: {', '.join(sorted(better)) or 'none'}. Worse: "
        f"{', '.join(sorted(worse)) or 'none'}. Better than leaving the defaults alone: "
        f"{', '.join(sorted(beats)) or 'none'}. The best setting of each draw, known only "
        f"afterwards, would be {signed(*data['oracle']['minus_default'])} above the defaults.",
    ]
    return words
