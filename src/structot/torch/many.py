"""`structot.solve_batch` for tensors: problems of any shapes, padded and solved many at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from structot import _checks
from structot._deadline import Deadline
from structot.outcome import ConvergenceWarning
from structot.result import Result
from structot.structures.base import Structure
from structot.torch import inputs
from structot.torch.batch import Batch, Limits, Problems, solve_problems
from structot.torch.engine import Code
from structot.torch.fixed_charge import FixedCharge
from structot.torch.front import ENTROPIC, make_result, memory_of, solve_by_arrays
from structot.torch.result import Results

# Pairs that are solved at a time, and the largest part of them that may be padding.
_PAIRS = {"cuda": 1 << 27, "cpu": 1 << 20}
_PADDING = 0.3


@dataclass(frozen=True, eq=False)
class _Task:
    """One problem as it was given, checked; ``part`` is a reason where arrays must do it."""

    index: int
    M: Tensor
    a: Any
    b: Any
    structure: Structure | None
    part: FixedCharge | str


def solve_batch(
    by_arrays: Callable[..., Sequence[Result]],
    Ms: Any,
    a: Any = None,
    b: Any = None,
    *,
    structures: Any = None,
    reg: Any = 0.0,
    method: Any = "auto",
    tol: float = 1e-4,
    atol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    init: Any = None,
    callback: Any = None,
    **others: Any,
) -> Results:
    """`structot.solve_batch` where the costs are tensors."""
    limits = Limits.of(tol, atol, max_iter)
    seconds = None if time_limit is None else _checks.positive("time_limit", time_limit)
    deadline = Deadline(seconds)
    stacked = _checks.nonnegative("reg", reg) > 0 and method in ("auto", ENTROPIC)
    relaxed = any(others.get(name) is not None for name in ("unbalanced", "mass"))
    plain = init is None and callback is None and not relaxed
    alone = None if stacked and plain else "one by one"
    tasks = list(_tasks(Ms, a, b, structures, alone))
    shared = {"tol": tol, "atol": atol, "max_iter": max_iter, "method": method, "reg": reg}
    shared |= {"callback": callback, "time_limit": time_limit, **others}
    makers: dict[int, Callable[[], Result]] = {}
    numbers: list[tuple[Tensor, ...]] = []
    for chunk in _chunks([task for task in tasks if not isinstance(task.part, str)]):
        begin = deadline.elapsed
        with memory_of(chunk[0].M):
            batch = _solve_chunk(chunk, float(reg), limits, deadline)
        mean = (deadline.elapsed - begin) / len(chunk)
        for k, task in enumerate(chunk):
            shown = task.M, task.structure, float(reg), mean
            makers[task.index] = partial(make_result, batch, k, *shown)
        index = torch.tensor([task.index for task in chunk], device=batch.value.device)
        numbers.append((index, batch.value, batch.gap, batch.code == Code.CONVERGED))
    for task in (task for task in tasks if isinstance(task.part, str)):
        options = {**shared, "structures": [task.structure]}
        options["init"] = None if init is None else [init[task.index]]
        result = solve_by_arrays(partial(_first, by_arrays), task.M, task.a, task.b, options)
        makers[task.index] = partial(_same, result)
        numbers.append(_numbers(task.index, result))
    return _collected(makers, numbers, limits.tol)


def _first(by_arrays: Callable, M: Any, a: Any, b: Any, **options: Any) -> Result:
    """The only problem of a batch."""
    with warnings.catch_warnings():  # whether a gap was missed is said once for all
        warnings.simplefilter("ignore", ConvergenceWarning)
        return by_arrays([M], [a], [b], **options)[0]


def _same(result: Result) -> Result:
    return result


def _numbers(index: int, result: Result) -> tuple[Tensor, ...]:
    """What the table of a batch holds of one result."""
    value: Any = result.value
    gap = torch.tensor([result.gap], dtype=torch.float64, device=value.device)
    converged = torch.tensor([result.converged], device=value.device)
    return torch.tensor([index], device=value.device), value[None], gap, converged


def _tasks(Ms: Any, a: Any, b: Any, structures: Any, alone: str | None) -> Iterator[_Task]:
    """Every problem, checked as far as that is cheap; an error says which one it is."""
    if isinstance(Ms, Tensor) and Ms.dim() != 3:
        raise ValueError(
            f"Ms must be a sequence of cost matrices or a tensor (problems, n, m); got a tensor of "
            f"shape {tuple(Ms.shape)}. For one problem use solve(M), or pass [M]."
        )
    device = inputs.device_of(*(Ms if not isinstance(Ms, Tensor) else (Ms,)))
    whole = isinstance(Ms, Tensor) and Ms.is_floating_point()
    # One look at all costs instead of one for each.
    fine = whole and Ms.numel() > 0 and bool(((Ms >= 0) & (Ms < torch.inf)).all())
    count = len(Ms)
    everywhere = structures is None or isinstance(structures, Structure)
    columns = [
        [None] * count if values is None else list(values)
        for values in (a, b, [structures] * count if everywhere else structures)
    ]
    for name, values in zip(("a", "b", "structures"), columns, strict=True):
        if len(values) != count:
            raise ValueError(
                f"{name} has {len(values)} entries for {count} problems; pass one per problem "
                "(None where there is nothing to say)."
            )
    known: dict[Any, FixedCharge | str] = {}
    for k, (M, x, y, structure) in enumerate(zip(Ms, *columns, strict=True)):
        try:
            M = M if fine else inputs.as_cost(M, device)
            key = id(structure), tuple(M.shape)
            if key not in known:
                known[key] = alone or FixedCharge.of(structure, (M.shape[0], M.shape[1]))
            part = known[key] if fine or bool(M.isfinite().all()) else "forbidden pairs"
        except ValueError as error:
            raise type(error)(f"problem {k}: {error}") from None
        yield _Task(k, M, x, y, structure, part)


def _chunks(tasks: list[_Task]) -> Iterator[list[_Task]]:
    """Problems that fit into one stack without much padding."""

    def kind(task: _Task) -> tuple:
        assert isinstance(task.part, FixedCharge)
        return task.part.weights is None, task.part.turned, tuple(task.M.shape)

    chunk: list[_Task] = []
    used = 0
    for task in sorted(tasks, key=kind):
        limit = _PAIRS.get(task.M.device.type, _PAIRS["cpu"])
        if chunk:
            n, m = (max(t.M.shape[k] for t in (chunk[-1], task)) for k in (0, 1))
            places = (len(chunk) + 1) * n * m
            apart = kind(chunk[0])[:2] != kind(task)[:2]
            if apart or places > limit or used + task.M.numel() < (1 - _PADDING) * places:
                yield chunk
                chunk, used = [], 0
        chunk.append(task)
        used += task.M.numel()
    if chunk:
        yield chunk


def _solve_chunk(chunk: list[_Task], reg: float, limits: Limits, deadline: Deadline) -> Batch:
    n, m = (max(task.M.shape[k] for task in chunk) for k in (0, 1))
    kind = torch.float64
    if all(task.M.dtype == chunk[0].M.dtype for task in chunk):
        kind = chunk[0].M.dtype
    M = torch.stack([_padded(task.M.to(kind), n, m) for task in chunk])
    given: list[Tensor] = []
    for side, size in (("a", n), ("b", m)):
        axis = "ab".index(side)
        given.append(
            torch.stack([_side(getattr(t, side), t.M.shape[axis], size, M.device) for t in chunk])
        )
    weights = _checked([(x.detach()) for x in given], chunk)
    parts = [task.part for task in chunk if isinstance(task.part, FixedCharge)]
    problems = Problems(parts, M, given[0], given[1], weights, reg)
    return solve_problems(problems, limits, deadline)


def _padded(M: Tensor, n: int, m: int) -> Tensor:
    rows, cols = M.shape
    return M if (rows, cols) == (n, m) else pad(M, (0, m - cols, 0, n - rows))


def _side(x: Any, points: int, size: int, device: torch.device) -> Tensor:
    """Weights of one problem with zeros beyond its points; uniform where none are given."""
    if x is None:
        x = torch.full((points,), 1.0 / points, dtype=torch.float64, device=device)
    x = torch.as_tensor(x).to(device=device, dtype=torch.float64)
    return x if x.shape == (size,) else pad(x, (0, size - x.shape[0]))


def _checked(sides: list[Tensor], chunk: list[_Task]) -> tuple[Tensor, Tensor]:
    """Weights with equal totals; a mistake is looked for problem by problem."""
    totals = [x.sum(1) for x in sides]
    good = all(bool((x >= 0).all()) for x in sides) and bool((totals[0] > 0).all())
    apart = (totals[0] - totals[1]).abs() > _checks.SAME_TOTAL * totals[0]
    if not good or bool(apart.any()) or not bool(torch.stack(totals).isfinite().all()):
        for task in chunk:
            n, m = task.M.shape
            try:
                inputs.as_weights(task.a, task.b, (n, m), task.M.device)
            except ValueError as error:
                raise type(error)(f"problem {task.index}: {error}") from None
    return sides[0], sides[1] * (totals[0] / totals[1])[:, None]


def _collected(
    makers: dict[int, Callable[[], Result]], numbers: list[tuple[Tensor, ...]], tol: float
) -> Results:
    """In the order of the problems, with one warning for all that missed their gap."""
    if not makers:
        empty = torch.zeros(0, dtype=torch.float64)
        return Results([], empty, empty, torch.zeros(0, dtype=torch.bool))
    index, values, gaps, converged = (
        torch.cat([row[k].to(numbers[0][k].device) for row in numbers]) for k in range(4)
    )
    order = torch.argsort(index)
    results = Results(
        [makers[k] for k in range(len(makers))], values[order], gaps[order], converged[order]
    )
    missed = (~results.converged).nonzero()[:, 0]
    if missed.numel():
        worst = int(missed[results.gaps[missed].argmax()])
        warnings.warn(
            f"{missed.numel()} of {len(makers)} problems missed the gap {tol:.1e}, the first of "
            f"them problem {int(missed[0])}; the largest gap is {float(results.gaps[worst]):.1e}, "
            f"of problem {worst}.",
            ConvergenceWarning,
            # _collected, solve_batch here, on_tensors, structot.solve_batch, and who called that
            stacklevel=5,
        )
    return results
