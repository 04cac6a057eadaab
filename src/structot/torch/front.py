"""The verbs for tensors: tensors in, tensors out, on their device.

Each takes the verb for arrays as its first argument and hands on to it what has no way of its own
here; the answer says so in its ``method``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from structot import _checks
from structot._deadline import Deadline
from structot._extras import as_array
from structot._progress import live_progress
from structot.outcome import ConvergenceWarning, Trace
from structot.result import Result
from structot.solvers.base import State
from structot.torch import inputs
from structot.torch.batch import Batch, Limits, Problems, Watcher, solve_problems
from structot.torch.engine import STATUS
from structot.torch.envelope import differentiable_value
from structot.torch.fixed_charge import FixedCharge
from structot.torch.replays import Replays
from structot.torch.result import TensorResult, of_arrays
from structot.torch.routes import RouteProblem, in_order, solve_routes

Weights = tuple[Tensor, Tensor]

ENTROPIC, INTERIOR_POINT = "entropic", "interior_point"
TOL = 1e-4
COMMON = ("tol", "atol", "max_iter", "time_limit", "callback", "progress")
SILENT = ("unbalanced_type",)  # says nothing without ``unbalanced``
_NOTE = "by NumPy, on the CPU"


def solve(
    by_arrays: Callable[..., Result],
    M: Any,
    a: Any = None,
    b: Any = None,
    *,
    structure: Any = None,
    reg: Any = 0.0,
    method: Any = "auto",
    init: Any = None,
    **options: Any,
) -> Result:
    """`structot.solve` where M, a or b is a tensor."""
    M = inputs.as_cost(M, inputs.device_of(M, a, b))
    common = {name: options[name] for name in COMMON if name in options}
    # Options that a method on tensors does not know, where they ask for something.
    others = {name for name, x in options.items() if name not in (*COMMON, *SILENT)}
    others = {name for name in others if options[name] is not None}
    reason = _refusal(M, reg, method, init, others)
    if reason is None:
        with memory_of(M):
            weights = inputs.as_weights(a, b, tuple(M.shape), M.device)
            solved = _by_newton if reg > 0 else _by_interior_point
            found = solved(M, a, b, weights, structure, reg, common)
        if found is not None:
            _warn(found, common.get("tol", TOL))
            return found
    options |= {"structure": structure, "reg": reg, "method": method}
    return solve_by_arrays(by_arrays, M, a, b, {**options, "init": _as_arrays(init)})


def _refusal(M: Tensor, reg: Any, method: Any, init: Any, others: set[str]) -> str | None:
    """Why a problem is left to arrays, whatever its structure is."""
    own = ENTROPIC if _checks.nonnegative("reg", reg) > 0 else INTERIOR_POINT
    if method not in ("auto", own):
        return f"method={method!r}"
    if init is not None or others:
        return "a start, relaxed marginals, or an unknown option"
    return "forbidden pairs" if bool(M.isinf().any()) else None


def _by_newton(
    M: Tensor, a: Any, b: Any, weights: Weights, structure: Any, reg: float, common: dict
) -> TensorResult | None:
    """Fixed charges with entropy, by Newton's method on the smooth dual."""
    part = FixedCharge.of(structure, (M.shape[0], M.shape[1]))
    if isinstance(part, str):
        return None
    given = [x[None] if isinstance(x, Tensor) else None for x in (a, b)]
    both = weights[0][None], weights[1][None]
    problems = Problems([part], M[None], given[0], given[1], both, float(reg))
    with _watched(ENTROPIC, **common) as watch:
        batch = solve_problems(problems, watch.limits, watch.deadline, watch.report)
    return make_result(batch, 0, M, structure, float(reg), watch.deadline.elapsed, watch.rows)


def _by_interior_point(
    M: Tensor, a: Any, b: Any, weights: Weights, structure: Any, reg: float, common: dict
) -> TensorResult | None:
    """Routes, by the interior-point method over lanes."""
    with _watched(INTERIOR_POINT, **common) as watch:
        problem = RouteProblem.of(structure, M.detach(), weights)
        if isinstance(problem, str):
            return None
        answer = solve_routes(problem, watch.limits, watch.deadline, watch.report)
    unit = problem.cost * problem.mass
    result = TensorResult.of(
        **in_order(problem, answer, M.detach(), weights),
        value=torch.tensor(answer.value * unit, dtype=torch.float64, device=M.device),
        value_structured=answer.value * unit,
        lower_bound=answer.bound * unit,
        gap=answer.gap,
        atol=answer.atol * unit,
        ground_cost=M.detach(),
        structure=structure,
        weights=weights,
        reg=0.0,
        status=answer.status,
        method=INTERIOR_POINT,
        n_iter=answer.n_iter,
        time=watch.deadline.elapsed,
        trace=_trace(watch.rows),
    )
    return result.with_value(differentiable_value(result, M, a, b))


def _warn(result: Result, tol: float) -> None:
    if not result.converged:
        warnings.warn(
            f"{result.status} Gap {result.gap:.1e}, asked for {tol:.1e} "
            f"(method {result.method!r}, {result.n_iter} iterations).",
            ConvergenceWarning,
            stacklevel=5,  # _warn, solve here, on_tensors, structot.solve, and who called that
        )


@dataclass(eq=False)
class _Watch:
    """Limits, a clock, and somebody who looks on; the rows of the trace."""

    limits: Limits
    deadline: Deadline
    report: Watcher
    rows: list[tuple[float, ...]]


@contextmanager
def _watched(
    name: str,
    tol: Any = TOL,
    atol: Any = None,
    max_iter: Any = None,
    time_limit: Any = None,
    callback: Callable[[State], bool | None] | None = None,
    progress: bool = False,
) -> Iterator[_Watch]:
    """One problem under the eyes of a callback and a live line."""
    limits = Limits.of(tol, atol, max_iter)
    seconds = None if time_limit is None else _checks.positive("time_limit", time_limit)
    deadline = Deadline(seconds)
    rows: list[tuple[float, ...]] = []
    with live_progress(progress, limits.tol) as show:

        def report(iteration: int, value: float, bound: float, gap: float) -> bool:
            seen = State(iteration, deadline.elapsed, value, bound, gap)
            rows.append((iteration, seen.time, value, bound))
            show(name, seen)
            return callback is not None and bool(callback(seen))

        yield _Watch(limits, deadline, report, rows)


def _trace(rows: list[tuple[float, ...]]) -> Trace:
    columns = torch.tensor(rows, dtype=torch.float64).reshape(-1, 4).T.numpy()
    return Trace(columns[0].astype(int), *columns[1:])


def solve_sample(
    by_arrays: Callable[..., Result],
    X: Any,
    Y: Any,
    a: Any = None,
    b: Any = None,
    *,
    metric: Any = "sqeuclidean",
    solver: Callable[..., Result],
    **options: Any,
) -> Result:
    """`structot.solve_sample` where a sample is a tensor."""
    return solver(inputs.pairwise(X, Y, metric), a, b, **options)


def solve_by_arrays(
    by_arrays: Callable[..., Result], M: Tensor, a: Any, b: Any, options: dict
) -> TensorResult:
    """The answer of NumPy, its value differentiable."""
    arrays = (as_array(x) for x in (M, a, b))
    result = by_arrays(*arrays, **options)
    value = differentiable_value(result, M, a, b)
    return of_arrays(result, M, value, _NOTE)


def make_result(
    batch: Batch,
    k: int,
    M: Tensor,
    structure: Any,
    reg: float,
    seconds: float,
    rows: list[tuple[float, ...]] | None = None,
) -> TensorResult:
    """The answer to problem k, of the shape of M."""
    n, m = M.shape
    number = {name: float(getattr(batch, name)[k]) for name in ("structured", "linear", "bound")}
    n_iter = int(batch.n_iter[k])
    rows = rows or [(n_iter, seconds, float(batch.value[k].detach()), number["bound"])]
    return TensorResult.of(
        plan=batch.plan[k, :n, :m],
        value=batch.value[k],
        value_structured=number["structured"],
        value_linear=number["linear"],
        lower_bound=number["bound"],
        gap=float(batch.gap[k]),
        atol=float(batch.atol[k]),
        potentials=(batch.potentials[0][k, :n], batch.potentials[1][k, :m]),
        worst_cost=batch.worst_cost[k, :n, :m],
        ground_cost=M.detach(),
        structure=structure,
        weights=(batch.weights[0][k, :n], batch.weights[1][k, :m]),
        reg=reg,
        status=STATUS[int(batch.code[k])],
        method=ENTROPIC,
        n_iter=n_iter,
        time=seconds,
        trace=_trace(rows),
    )


@contextmanager
def memory_of(M: Tensor) -> Iterator[None]:
    """Where the memory of the device does not suffice, an error that tells the way out."""
    try:
        yield
    except torch.cuda.OutOfMemoryError:
        Replays.release()
        torch.cuda.empty_cache()
        free, total = torch.cuda.mem_get_info(M.device)
        raise torch.cuda.OutOfMemoryError(
            f"{M.device} has {free / 2**30:.1f} of {total / 2**30:.1f} GiB free, too little for "
            f"problems of shape {tuple(M.shape)}, which take about ten times the memory of the "
            "cost. Pass the cost in float32, fewer problems at a time, or M.cpu()."
        ) from None


def _as_arrays(init: Any) -> Any:
    if isinstance(init, TensorResult):
        return init.numpy()
    if isinstance(init, tuple):
        return tuple(as_array(x) for x in init)
    return as_array(init)
