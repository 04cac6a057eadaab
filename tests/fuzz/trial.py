"""One problem by every method that takes it, each answer examined and compared with the others."""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import asdict, dataclass, field

import numpy as np
from fuzz.check import ENUMERATED, FALSE, INVALID, VERIFY, Judge
from fuzz.generate import Case
from subset_program import subset_optimum

import structot as sot
from structot.solvers.solve import METHODS

CRASH, OPEN, HUNG = "crash", "not converged", "hung"
# What must never happen, in the order of the report.
FATAL = (CRASH, HUNG, FALSE, VERIFY, INVALID)
# The algorithms of the paper converge slowly by nature: examined after a few steps, not counted.
PAPER = ("mirror_descent", "saddle_mirror_descent", "mirror_prox")
_PAPER_STEPS, _CONVEX_STEPS = 20, 300
_OTHER_SECONDS = 0.5
_REFUSAL = "does not fit this problem"


@dataclass
class Record:
    """What became of one problem. ``faults`` are (kind, method, text); all of it is plain data."""

    seed: int
    family: str
    wide: bool
    shape: tuple[int, int] = (0, 0)
    reg: float = 0.0
    method: str = ""  # that "auto" chose
    status: str = ""
    gap: float = 0.0
    seconds: float = 0.0
    tried: list[str] = field(default_factory=list)
    faults: list[tuple[str, str, str]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    line: str = ""  # of Python, where something went wrong

    def as_dict(self) -> dict:
        return asdict(self)

    @property
    def kinds(self) -> set[str]:
        return {kind for kind, _, _ in self.faults}


def trial(
    case: Case, *, time_limit: float = 20.0, others: bool = True, max_iter: int | None = None
) -> Record:
    """Solve, examine, compare.

    Parameters
    ----------
    time_limit
        Seconds for method "auto", the only one whose convergence is counted.
    others
        Whether to try the other methods too.
    max_iter
        A limit in iterations for every method, for runs that must not depend on clocks.
    """
    record = Record(case.seed, case.family, case.wide, case.M.shape, case.reg)
    results: dict[str, sot.Result] = {}
    judge = None
    for method in METHODS if others else ("auto",):
        steps = _PAPER_STEPS if method in PAPER else max_iter
        seconds = time_limit if method == "auto" else min(time_limit, _OTHER_SECONDS)
        if case.convex and steps is None:
            steps = _CONVEX_STEPS
        limits = {"time_limit": seconds, "max_iter": steps}
        try:
            result = _solve(case, method, limits, record)
            if result is None:
                continue
            judge = judge or Judge(case)
            faults = judge.faults(result)
        except Exception as error:
            record.faults.append((CRASH, method, _describe(error)))
            continue
        results[method] = result
        record.faults += [(fault.kind, method, fault.text) for fault in faults]
    if judge is not None:
        record.faults += _disagreements(judge, results)
    if record.faults:
        record.line = case.line(record.faults[0][1])
    return record


def _solve(case: Case, method: str, limits: dict, record: Record) -> sot.Result | None:
    """The answer of one method, or None if it refuses the problem."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = sot.solve(case.M, case.a, case.b, method=method, **case.options(), **limits)
        except ValueError as error:
            if _REFUSAL not in str(error):
                raise
            if method == "auto":
                record.status = "REFUSED"
            return None
        finally:
            # Overflow, deprecation and the like: what a user would see and not understand.
            strange = [w for w in caught if not issubclass(w.category, UserWarning)]
            record.warned += [f"{method}: {w.category.__name__}: {w.message}" for w in strange[:1]]
    record.tried.append(method)
    if method == "auto":
        record.method, record.status, record.gap = result.method, result.status.name, result.gap
        record.seconds = time.perf_counter() - start
        if not result.converged and result.method not in PAPER:
            text = f"{result.status.name} with a gap of {result.gap:.2e}, tol {case.tol:g}"
            record.faults.append((OPEN, method, text))
    return result


def _describe(error: BaseException) -> str:
    """The exception and the line of the library where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "structot" in frame.filename]
    place = (inside or frames)[-1]
    text = " ".join(str(error).split())[:200]
    where = "/".join(place.filename.split("/")[-2:])
    return f"{type(error).__name__}: {text} ({where}:{place.lineno})"


def _disagreements(judge: Judge, results: dict[str, sot.Result]) -> list[tuple[str, str, str]]:
    """Bounds above values: of two methods, or of one and the program over all sets of pairs."""
    said = []
    for lower, low in results.items():
        upper, high = min(results.items(), key=lambda item: item[1].value + item[1].atol)
        if lower != upper and low.lower_bound > high.value + low.atol + high.atol:
            text = f"the bound {low.lower_bound!r} is above the value {high.value!r} of {upper}"
            said.append((FALSE, lower, text))
    case = judge.case
    tiny = judge.allowed.sum() <= ENUMERATED and not (
        case.convex or case.routes or case.wide or case.reg
    )
    if not tiny or not results:
        return said
    structure = sot.Modular() if case.structure is None else case.structure
    # Masses near 1: the program is exact to about 1e-9 of its largest numbers only.
    total = judge.total
    try:
        best = total * subset_optimum(case.M, judge.a / total, judge.b / total, structure).value
    except AssertionError:  # HiGHS takes weights of 1e-12 for an infeasible program: no referee
        return said
    largest = 0.0 if judge.values is None else float(np.abs(judge.values).max())
    slack = 1e-8 * total * largest
    for method, result in results.items():
        if result.lower_bound > best + slack or result.value < best - slack:
            text = f"[{result.lower_bound!r}, {result.value!r}] misses the optimum {best!r}"
            said.append((FALSE, method, text))
    return said
