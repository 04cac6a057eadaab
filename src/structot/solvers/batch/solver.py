"""The front verb for many problems: check, pack, solve in one compiled call, hand on what is left.

Notation: problem k is (M_k, a_k, b_k, structure_k), and so is its answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structot import _checks, certificate
from structot._compilation import Stopwatch
from structot._deadline import Deadline
from structot._extras import has_tensors
from structot._parallel import over_blocks
from structot.outcome import Status, Trace
from structot.problem import Problem
from structot.result import Result
from structot.solvers._tensors import on_tensors
from structot.solvers.base import Solver
from structot.solvers.batch import kernels
from structot.solvers.batch.layout import Packed, Part, pack, part_of
from structot.solvers.batch.proofs import CONVERGED, Goal, Outcome
from structot.solvers.batch.workers import Job, over_chunks
from structot.solvers.solve import ConvergenceWarning, State, solve
from structot.structures.base import Structure
from structot.submodular.base import inner

# Problems that are solved at a time, and where there is a time limit, which is looked at between.
_CHUNK, _SHORT_CHUNK = 256, 16
# Iterations of the compiled methods before `solve` has to do it, which for one layer of blocks has
# a faster method; and sweeps where there is entropy.
_PATIENCE = {"one layer": 1000, "several layers": 20_000, "entropy": 1000}
_WORK = 40  # a problem costs about as much per pair as this many edges of a block


@dataclass(frozen=True)
class _Task:
    """One problem as it was given, and checked."""

    index: int
    arguments: tuple[Any, Any, Any]
    structure: Structure | None
    init: Any
    problem: Problem
    part: Part | None


def solve_batch(
    Ms: Any,
    a: Any = None,
    b: Any = None,
    *,
    structures: Structure | Sequence[Structure | None] | None = None,
    reg: float = 0.0,
    unbalanced: Any = None,
    unbalanced_type: str = "KL",
    mass: float | None = None,
    method: str | Solver = "auto",
    tol: float = 1e-4,
    atol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    init: Sequence[Any] | None = None,
    callback: Callable[[State], bool | None] | None = None,
    progress: bool = False,
    n_jobs: int | None = None,
) -> list[Result]:
    """min_{P in U(a_k,b_k)} f_k(P) + reg · entropy(P) for many problems k, each with its proof.

    Small problems spend most of their time between the kernels. Here all of them go through one
    compiled loop in several threads; what it cannot take (cuts, rank, functions written in Python,
    forbidden pairs, ...) or bring to an end goes to `solve`, one by one.

    Parameters
    ----------
    Ms
        Ground costs, a sequence of matrices of any shapes or one array (problems, n, m).
    a, b
        Weights, one entry per problem; an entry of None, or no sequence at all, means uniform.
    structures
        One structure for all problems, or one (or None) per problem.
    reg, unbalanced, unbalanced_type, mass, method, tol, atol, max_iter
        As in `solve`, the same for all problems. Any other method than "auto" is that of `solve`,
        and so are relaxed marginals.
    time_limit
        Seconds for the whole call. What is not finished then has its best certified answer so far.
    init
        Where to start: a plan, potentials, a `Result` or None for every problem. Those with a start
        are left to `solve`, as are all of them if there is a ``callback``.
    progress
        Show a bar, if somebody watches a terminal.
    n_jobs
        As in joblib, whose ``parallel_config`` is honoured (``backend="dask"`` spreads the work
        over a cluster). None: the threads of this process; 1: one of them.

    Returns
    -------
    list of Result
        In the order of the problems. ``time`` is the mean over the problems solved at a time.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> rng = np.random.default_rng(0)
    >>> Ms = [rng.random((3, 4)), rng.random((2, 2))]
    >>> charges = [sot.Modular() + sot.Coverage([0, 0, 1], weights=0.1), None]
    >>> [result.converged for result in sot.solve_batch(Ms, structures=charges)]
    [True, True]
    """
    if has_tensors(Ms) or (isinstance(Ms, list | tuple) and has_tensors(*Ms[:1])):
        return on_tensors(solve_batch, locals())
    options: dict[str, Any] = {
        "tol": _checks.nonnegative("tol", tol),
        "atol": None if atol is None else _checks.nonnegative("atol", atol),
        "max_iter": None if max_iter is None else _checks.count("max_iter", max_iter),
        "reg": _checks.nonnegative("reg", reg),
        "unbalanced": unbalanced,
        "unbalanced_type": unbalanced_type,
        "mass": mass,
        "method": method,
        "callback": callback,
    }
    seconds = None if time_limit is None else _checks.positive("time_limit", time_limit)
    deadline = Deadline(seconds, Stopwatch().elapsed)
    common = {name: options[name] for name in ("reg", "unbalanced", "unbalanced_type", "mass")}
    tasks = _tasks(Ms, a, b, structures, init, common)
    batch = _Batch(options, deadline, seconds is not None, n_jobs, progress)
    native = [t for t in tasks if t.part and not callback and method == "auto" and t.init is None]
    results = batch.compiled(native)
    rest = [t for t in tasks if not batch.is_final(results.get(t.index))]
    results |= batch.by_solve(rest, results)
    _warn(results, tasks, options["tol"])
    return [results[k] for k in range(len(tasks))]


def _tasks(
    Ms: Any, a: Any, b: Any, structures: Any, init: Any, common: dict[str, Any]
) -> list[_Task]:
    """Every problem checked and bound; an error says which one it is."""
    if isinstance(Ms, np.ndarray) and Ms.ndim != 3:
        raise ValueError(
            f"Ms must be a sequence of cost matrices or an array (problems, n, m); got an array of "
            f"shape {Ms.shape}. For one problem use solve(M), or pass [M]."
        )
    costs = list(Ms)
    everywhere = structures is None or isinstance(structures, Structure)
    chosen = [structures] * len(costs) if everywhere else structures
    columns = [
        _entries(name, value, len(costs))
        for name, value in (("a", a), ("b", b), ("structures", chosen), ("init", init))
    ]
    tasks = []
    for k, (M, *weights, structure, start) in enumerate(zip(costs, *columns, strict=True)):
        try:
            problem = Problem.of(M, *weights, structure=structure, **common)
        except ValueError as error:
            raise type(error)(f"problem {k}: {error}") from None
        arguments = (M, weights[0], weights[1])
        part = part_of(problem) if problem.marginals.hard else None
        tasks.append(_Task(k, arguments, structure, start, problem, part))
    return tasks


def _entries(name: str, values: Any, count: int) -> list[Any]:
    """One entry per problem."""
    entries = [None] * count if values is None else list(values)
    if len(entries) != count:
        raise ValueError(
            f"{name} has {len(entries)} entries for {count} problems; pass one per problem "
            "(None where there is nothing to say)."
        )
    return entries


class _Batch:
    """The ways in which the problems of one call are solved."""

    def __init__(
        self,
        options: dict[str, Any],
        deadline: Deadline,
        timed: bool,
        n_jobs: int | None,
        progress: bool,
    ) -> None:
        self.options, self.deadline, self.timed = options, deadline, timed
        self.n_jobs = n_jobs
        self.spread: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress, "noun": "problems"}

    def compiled(self, tasks: list[_Task]) -> dict[int, Result]:
        """The answers of the compiled engine."""
        kinds: dict[int, list[_Task]] = {}
        for task in tasks:
            kinds.setdefault(self._patience(task), []).append(task)
        results: dict[int, Result] = {}
        for patience, similar in kinds.items():
            size = _SHORT_CHUNK if self.timed else _CHUNK
            chunks = [similar[k : k + size] for k in range(0, len(similar), size)]

            def job(chunk: list[_Task], patience: int = patience) -> Job:
                # Out of time there is still a first answer, which needs no iterations.
                iterations = patience if self.deadline.left > 0.0 else 0
                goal = Goal(self.options["tol"], self.options["atol"] or 0.0, iterations)
                packed = pack([task.part for task in chunk if task.part is not None])
                return _solve_chunk, ((packed, self.options["reg"], goal), self.n_jobs == 1)

            def here(chunk: list[_Task], job: Callable[..., Job] = job) -> Any:
                function, arguments = job(chunk)
                return function(*arguments)

            for chunk, found in zip(chunks, over_chunks(chunks, here, job, **self.spread)):
                results |= {task.index: self._result(task, *f) for task, f in zip(chunk, found)}
        return results

    def _patience(self, task: _Task) -> int:
        assert task.part is not None
        few = "one layer" if len(task.part.layers) < 2 else "several layers"
        own = _PATIENCE["entropy" if self.options["reg"] > 0 else few]
        limit = self.options["max_iter"]
        return own if limit is None else min(own, limit)

    def _result(
        self, task: _Task, P: Any, K: Any, u: Any, v: Any, outcome: Outcome, seconds: float
    ) -> Result:
        M, kind = task.problem.M, task.problem.dtype
        value, structured, bound, atol, n_iter, code = outcome
        status = Status.CONVERGED
        if code != CONVERGED:
            limited = int(n_iter) == self.options["max_iter"]
            out_of_time = self.timed and self.deadline.left <= 0.0
            status = Status.TIME_LIMIT if out_of_time else Status.STALLED
            status = Status.ITERATION_LIMIT if limited else status
        return Result(
            plan=P.astype(kind),
            value=value,
            value_structured=structured,
            value_linear=inner(P, M),
            lower_bound=bound,
            gap=certificate.relative_gap(value, bound),
            atol=atol,
            potentials=(u.astype(kind), v.astype(kind)),
            worst_cost=K.astype(kind),
            ground_cost=M.astype(kind, copy=False),
            structure=task.problem.structure,
            weights=(task.problem.a, task.problem.b),
            reg=task.problem.reg,
            status=status,
            method="batch",
            n_iter=int(n_iter),
            time=seconds,
            trace=Trace(*(np.array([x]) for x in (int(n_iter), seconds, value, bound))),
        )

    def is_final(self, result: Result | None) -> bool:
        """Whether there is an answer that `solve` need not improve."""
        return result is not None and result.status is not Status.STALLED

    def by_solve(self, tasks: list[_Task], known: dict[int, Result]) -> dict[int, Result]:
        """The answers of `solve`, from what is known on; the better ones of both."""

        def job(chunk: list[_Task]) -> Job:
            (task,) = chunk
            options = {**self.options, "structure": task.structure}
            options["init"] = known.get(task.index, task.init)
            if self.timed:
                options["time_limit"] = max(self.deadline.left, 1e-9)
            return _solve_quietly, ((task.arguments, options),)

        def here(chunk: list[_Task]) -> Result:
            function, arguments = job(chunk)
            return function(*arguments)

        found = over_chunks([[task] for task in tasks], here, job, **self.spread)
        return {t.index: _better(known.get(t.index), r) for t, r in zip(tasks, found, strict=True)}


def _solve_chunk(data: tuple[Packed, float, Goal], alone: bool) -> list[tuple]:
    """(P, K, u, v, outcome, seconds) of every problem, by all threads or by this one alone.

    The arrays come as one tuple: joblib hands separate arrays to a dask cluster as data of their
    own, on one worker only, and a task whose data died with a worker is not repeated.
    """
    packed, reg, goal = data
    watch, answers = Stopwatch(), kernels.make_answers(packed)

    def work(first: int, last: int) -> None:
        kernels.solve_packed(first, last, packed, reg, goal, answers)

    if alone:
        work(0, len(packed.shape))
    else:
        over_blocks(_WORK * packed.cell, work)
    seconds = watch.elapsed() / max(len(packed.shape), 1)
    found = []
    for k, shape in enumerate(packed.shape):
        cells = slice(packed.cell[k], packed.cell[k + 1])
        u = answers.u[packed.row[k] : packed.row[k + 1]]
        v = answers.v[packed.column[k] : packed.column[k + 1]]
        P, K = answers.P[cells].reshape(shape), answers.K[cells].reshape(shape)
        found.append((P, K, u, v, Outcome(*answers.outcome[k].tolist()), seconds))
    return found


def _solve_quietly(data: tuple[tuple, dict[str, Any]]) -> Result:
    """`solve`; whether a gap was missed is said once for all problems."""
    arguments, options = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return solve(*arguments, **options)


def _better(first: Result | None, second: Result) -> Result:
    """The answer with the smaller gap."""
    if first is None:
        return second
    if second.converged or second.gap <= first.gap:
        return replace(second, method=f"{first.method}, then {second.method}")
    return replace(first, status=second.status)


def _warn(results: dict[int, Result], tasks: list[_Task], tol: float) -> None:
    """One warning for the whole call, if some problems missed their gap."""
    missed = [k for k in range(len(tasks)) if not results[k].converged]
    if not missed:
        return
    worst = max(missed, key=lambda k: results[k].gap)
    advice = _checks.advice_on_costs(tasks[worst].problem.M)
    text = (
        f"{len(missed)} of {len(tasks)} problems missed the gap {tol:.1e}, the first of them "
        f"problem {missed[0]}; the largest gap is {results[worst].gap:.1e}, of problem {worst}. "
        f"{results[worst].status} {advice}"
    )
    warnings.warn(text.rstrip(), ConvergenceWarning, stacklevel=3)
