"""Sums keep the fast path, and overlapping neighbourhoods stay affordable.

Notation: M cost, X and Y points, α the threshold of the concave function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structot as sot
from benchmarks.measure import Contestants, race
from benchmarks.rows import Row, compare
from structot.concave import ThresholdSqrt
from structot.datasets import clusters, two_moons

ALPHAS = (5.0, 400.0, 5000.0, 50000.0)
SEEDS = (3, 4, 5, 6, 7)  # newton was tuned on 0, 1 and 2
SECONDS = 60.0  # what a problem with neighbourhood groups may take


@dataclass(frozen=True)
class _Answers:
    """Several results as one: all steps, the largest gap."""

    results: list[sot.Result]

    @property
    def n_iter(self) -> int:
        return sum(result.n_iter for result in self.results)

    @property
    def gap(self) -> float:
        return max(float(result.gap) for result in self.results)

    @property
    def method(self) -> str:
        (name,) = {result.method for result in self.results}
        return name


def modular_part(quick: bool) -> list[Row]:
    """`Modular() * 0.3 + Groups(...)` against `Groups(...)` alone, both by newton.

    They are two problems: a step costs the same, but either may need more of them, and how many
    differs between seeds; so each contestant solves several problems.
    """
    n = 100 if quick else 300

    def make(size: int) -> Contestants:
        problems = [clusters(size, n_classes=3, seed=seed) for seed in SEEDS]

        def solve(alpha: float, part: float) -> _Answers:
            answers = []
            for data in problems:
                structure = sot.Groups(
                    data.source_labels, data.target_labels, ThresholdSqrt(alpha), units="cost"
                )
                if part:
                    structure = sot.Modular() * part + structure
                answers.append(sot.solve(data.cost, structure=structure))
            return _Answers(answers)

        return {
            f"{name} {alpha:g}": partial(solve, alpha, part)
            for alpha in ALPHAS
            for name, part in (("alone", 0.0), ("with", 0.3))
        }

    times = race(make, n, repeats=3)
    case = f"n = {n}, 3 classes, {len(SEEDS)} seeds, 0.3 Modular + Groups, gap 0.0001"
    rows = []
    for alpha in ALPHAS:
        alone, joined = times[f"alone {alpha:g}"], times[f"with {alpha:g}"]
        steps = f"Groups alone ({alone.answer.n_iter} steps, here {joined.answer.n_iter})"
        label = f"{case}, α = {alpha:g}"
        goal = "≤ 1.5× its time"
        rows.append(compare("modular_part", label, steps, joined, alone, 1.5, goal, tol=1e-4))
    return rows


def neighborhoods(quick: bool) -> list[Row]:
    """Two moons with overlapping groups of nearest neighbours on both sides, by splitting."""
    n = 30 if quick else 100
    rows = []
    for k in (5, 10):

        def make(size: int, k: int = k) -> Contestants:
            moons = two_moons(size, seed=0)
            near = [sot.groups.neighborhoods(points, k) for points in (moons.X, moons.Y)]
            structure = sot.Groups(*near, ThresholdSqrt(1.0), units="cost")
            return {"ours": lambda: sot.solve(moons.cost, structure=structure, tol=1e-3)}

        timing = race(make, n, warm_size=12, repeats=1)["ours"]
        rows.append(
            Row(
                task="neighborhoods",
                case=f"n = {n}, neighbourhoods of {k} on both sides, gap 0.001",
                against="a minute",
                ratio=timing.median / SECONDS,
                limit=1.0,
                goal=f"at most {SECONDS:g} s",
                ours=timing.median,
                baseline=SECONDS,
                gap=float(timing.answer.gap),
                tol=1e-3,
                method=timing.answer.method,
                n_iter=timing.answer.n_iter,
            )
        )
    return rows
