"""Many small problems: one call of `solve_batch` against a loop over `solve`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

import structot as sot
from benchmarks.measure import Contestants, race
from benchmarks.rows import Row, compare

PROBLEMS, SIZES = 10_000, (5, 50)  # how many, and how many points they have on either side
SEED = 2417  # nothing was tuned on it
LOOPED = 25  # every how many-th problem the loop solves; its time is counted so many times
TOL = 1e-3


@dataclass(frozen=True)
class _Answers:
    """Many results as one: the largest gap, all steps."""

    results: Sequence[sot.Result]
    method: str

    @property
    def gap(self) -> float:
        return max(float(result.gap) for result in self.results)

    @property
    def n_iter(self) -> int:
        return sum(result.n_iter for result in self.results)


def _groups(rng: np.random.Generator, n: int, m: int) -> sot.Structure:
    return sot.Groups(rng.integers(0, 4, n), rng.integers(0, 4, m))


def _charges(rng: np.random.Generator, n: int, m: int) -> sot.Structure:
    return sot.Modular() + sot.Coverage(rng.integers(0, 4, n), weights=0.05, units="block")


def _phrases(rng: np.random.Generator, n: int, m: int) -> sot.Structure:
    windows = (sot.groups.ngrams(size, 2, padded=True) for size in (n, m))
    return sot.Modular() + sot.Coverage(*windows, weights=0.05)


KINDS: dict[str, tuple[Callable[..., sot.Structure], float]] = {
    "disjoint groups": (_groups, 0.0),
    "fixed charges": (_charges, 0.0),
    "overlapping phrases": (_phrases, 0.0),
    "fixed charges, reg = 0.1": (_charges, 0.1),
}


def many_problems(quick: bool) -> list[Row]:
    """10 000 problems of 5 to 50 points in one call, against a loop over `solve`."""
    rows = []
    for kind, (structure, reg) in KINDS.items():

        def make(count: int, structure: Callable = structure, reg: float = reg) -> Contestants:
            rng = np.random.default_rng(SEED)
            shapes = rng.integers(SIZES[0], SIZES[1] + 1, (count, 2)).tolist()
            Ms = [rng.random(shape) for shape in shapes]
            structures = [structure(rng, *shape) for shape in shapes]
            return {
                "batch": partial(_together, Ms, structures, reg),
                "loop": partial(_one_by_one, Ms[::LOOPED], structures[::LOOPED], reg),
            }

        count = 500 if quick else PROBLEMS
        times = race(make, count, warm_size=LOOPED, repeats=3, budget=30.0)
        ours, loop = times["batch"], times["loop"]
        whole = type(loop)(tuple(LOOPED * seconds for seconds in loop.seconds), loop.answer)
        case = f"{count} problems, 5 to 50 points, {kind}, gap {TOL:g}"
        against = f"a loop over solve (every {LOOPED}th)"
        row = compare("many_problems", case, against, ours, whole, 0.2, "≥ 5× faster", tol=TOL)
        rows.append(row)
    return rows


def _together(Ms: list, structures: list, reg: float) -> _Answers:
    results = sot.solve_batch(Ms, structures=structures, reg=reg, tol=TOL)
    return _Answers(results, "solve_batch")


def _one_by_one(Ms: list, structures: list, reg: float) -> _Answers:
    pairs = zip(Ms, structures, strict=True)
    results = [sot.solve(M, structure=structure, reg=reg, tol=TOL) for M, structure in pairs]
    return _Answers(results, "solve")
