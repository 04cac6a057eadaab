"""What a GPU does for structured transport: `python -m benchmarks.gpu` on a machine that has one.

Every row is a certified solve on the device with its time, gap and peak memory, beside a goal and,
where there is one, a peer on the same device. The floors say what the hardware could do at best:
bytes moved and rates of factorisations, measured in the same run. Results are kept as data with the
name of the device. ``--device cpu --small`` is a test of the program itself.

Of every row a first run is not counted: it fills the allocator, compiles the kernel of the levels,
and for routes of at most `MOST_PAIRS` pairs it records the graphs that the counted runs replay,
which solve the same problem. Where labels change from run to run, as in the row with random groups,
every run records its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import structot as sot
from structot._deadline import Deadline
from structot.solvers.interior_point.lanes.path import CentralPath
from structot.solvers.interior_point.lanes.start import first_point
from structot.torch import proof
from structot.torch.dual import evaluate
from structot.torch.engine import Goal, solve_stack
from structot.torch.fixed_charge import FixedCharge, Layout
from structot.torch.hessian import factorize
from structot.torch.majorant import decreasing_regression
from structot.torch.prox import BlockProx
from structot.torch.routes import Certificate, RouteAnswer, RouteProblem, first_plan, improve

RESULTS = Path(__file__).parent / "gpu.json"
CHARGE, REG = 0.02, 0.05


@dataclass
class Row:
    """One line of the table."""

    task: str
    seconds: float | None = None
    gap: float | None = None
    arrays: float | None = None  # peak memory in arrays of the size of the plan
    goal: str = ""
    held: bool | None = None
    notes: dict[str, Any] = field(default_factory=dict)


class Device:
    """The device, its clock and its memory."""

    def __init__(self, name: str) -> None:
        self.device = torch.device(name)
        self.is_cuda = self.device.type == "cuda"

    @property
    def name(self) -> str:
        return torch.cuda.get_device_name(self.device) if self.is_cuda else "CPU"

    def wait(self) -> None:
        if self.is_cuda:
            torch.cuda.synchronize(self.device)

    def timed(self, run: Callable[[], Any], repeats: int = 3) -> tuple[float, Any, float]:
        """Median seconds, the last answer, and the peak memory in bytes."""
        seconds, answer = [], None
        if self.is_cuda:
            torch.cuda.empty_cache()
        for _ in range(1 + repeats):  # the first run fills the allocator, and is not counted
            answer = None
            if self.is_cuda:
                torch.cuda.reset_peak_memory_stats(self.device)
            self.wait()
            begin = time.perf_counter()
            answer = run()
            self.wait()
            seconds.append(time.perf_counter() - begin)
        peak = torch.cuda.max_memory_allocated(self.device) if self.is_cuda else 0
        return statistics.median(seconds[1:]), answer, float(peak)


def clouds(
    n: int, device: Device, dtype: torch.dtype, seed: int = 0
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    """Squared distances of the two samples of `sot.datasets.clusters`, ten classes; the labels."""
    data = sot.datasets.clusters(n, n_classes=10, seed=seed)
    order = np.random.default_rng(seed).permutation(n)  # labels do not come sorted
    X, Y = (torch.as_tensor(x, device=device.device) for x in (data.X[order], data.Y))
    M = torch.zeros(n, n, dtype=dtype, device=device.device)
    for x, y in zip(X.T, Y.T, strict=True):
        for i in range(0, n, 2000):  # the distances in double precision, a slice at a time
            M[i : i + 2000] += (x[i : i + 2000, None] - y).square().to(dtype)
    return M, np.asarray(data.source_labels)[order], np.asarray(data.target_labels)


def fixed_charge(n: int, device: Device, dtype: torch.dtype, tol: float) -> tuple[Any, Any]:
    M, labels, _ = clouds(n, device, dtype)
    structure = sot.Modular() + sot.Coverage(labels, weights=CHARGE, units="block")
    reg = REG * float(M.mean(dtype=torch.float64))
    return (lambda: sot.solve(M, structure=structure, reg=reg, tol=tol)), (M, structure, reg)


def row_of_solve(
    device: Device, n: int, dtype: torch.dtype, tol: float, goal: str, limits: tuple[float, float]
) -> Row:
    """One large problem with its time and memory."""
    run, (M, *_) = fixed_charge(n, device, dtype, tol)
    seconds, result, peak = device.timed(run)
    arrays = peak / (M.numel() * M.element_size())
    kind = str(dtype).removeprefix("torch.")
    held = result.converged and seconds <= limits[0] and arrays <= limits[1]
    notes = {"iterations": result.n_iter, "peak GB": peak / 1e9, "value": float(result.value)}
    task = f"entropic fixed charge, own targets, n = m = {n}, {kind}, gap {tol:g}"
    return Row(task, seconds, result.gap, arrays, goal, held, notes)


def row_against_group_lasso(device: Device, n: int, tol: float) -> Row:
    """The same beside POT's group lasso on the same device."""
    run, (M, structure, _) = fixed_charge(n, device, torch.float64, tol)
    seconds, result, peak = device.timed(run, 7)
    import ot  # loads every array library that it finds, which must not be part of our time

    weights = torch.full((n,), 1.0 / n, dtype=torch.float64, device=device.device)
    labels = torch.as_tensor(structure.terms[1][1].source, device=device.device)
    scaled = M / M.max()
    peer, _, _ = device.timed(
        lambda: ot.da.sinkhorn_lpl1_mm(weights, labels, weights, scaled, reg=0.05, eta=0.1)
    )
    notes = {"iterations": result.n_iter, "POT sinkhorn_lpl1_mm": peer, "ratio": peer / seconds}
    held = result.converged and seconds <= 0.15 and peer >= 10 * seconds
    task = f"the same, n = {n}, gap {tol:g}"
    goal = "≤ 0.15 s, ≥ 10× POT's sinkhorn_lpl1_mm"
    arrays = peak / (M.numel() * M.element_size())
    return Row(task, seconds, result.gap, arrays, goal, held, notes)


def row_of_batch(device: Device, count: int, n: int, tol: float) -> Row:
    """Many small problems, each with labels and prices of its own."""
    rng = np.random.default_rng(0)
    generator = torch.Generator(device=device.device).manual_seed(0)
    new = {"dtype": torch.float64, "device": device.device, "generator": generator}
    X, Y = torch.randn(count, n, 2, **new), torch.randn(count, n, 2, **new) + 1.0
    Ms = (X[:, :, None] - Y[:, None]).square().sum(-1)
    Ms /= Ms.mean((1, 2), keepdim=True)
    labels = rng.integers(0, 4, (count, n))
    structures = [sot.Modular() + sot.Coverage(y, weights=CHARGE, units="block") for y in labels]
    run = lambda: sot.solve_batch(Ms, structures=structures, reg=REG, tol=tol)  # noqa: E731
    seconds, results, peak = device.timed(run)
    held = bool(results.converged.all()) and seconds <= 3.0
    notes = {"converged": int(results.converged.sum()), "peak GB": peak / 1e9}
    task = f"{count} fixed-charge problems of {n}×{n}, gap {tol:g}"
    arrays = peak / (Ms.numel() * 8)
    return Row(task, seconds, float(results.gaps.max()), arrays, "≤ 3 s", held, notes)


def row_of_routes(device: Device, n: int, price: float, limits: tuple[float, float]) -> Row:
    """Routes between ten groups on each side, to 1e-6, and when 1e-4 was reached on the way."""
    M, source, target = clouds(n, device, torch.float64)
    charge = price * float(M.mean())
    structure = sot.Routes(source, target, charge=charge, units="cost")
    run = lambda: sot.solve(M, structure=structure, tol=1e-6)  # noqa: E731
    seconds, result, peak = device.timed(run, 1 if n > 5000 else 3)
    trace = result.trace
    reached = (trace.value - trace.lower_bound) <= 1e-4 * np.abs(trace.value)
    coarse = float(trace.time[reached][0]) if reached.any() else None
    notes = {"seconds to 1e-4": coarse, "iterations": result.n_iter, "peak GB": peak / 1e9}
    notes["value"] = float(result.value)
    held = bool(result.converged and coarse and coarse <= limits[0] and seconds <= limits[1])
    task = f"Routes, 10 × 10 groups, w = {price:g} mean, n = m = {n}, gap 1e-6"
    goal = f"1e-4 in ≤ {limits[0]:g} s, 1e-6 in ≤ {limits[1]:g} s"
    return Row(task, seconds, result.gap, peak / (M.numel() * 8), goal, held, notes)


def row_of_uneven_routes(device: Device, n: int) -> Row:
    """Groups of ten and nine random sizes, filled up to a few; other ones in every run."""
    M, *_ = clouds(n, device, torch.float64)
    rng = np.random.default_rng(0)
    charge = 0.1 * float(M.mean())
    drawn = [(rng.integers(0, 10, n), rng.integers(0, 9, n)) for _ in range(9)]
    labels = iter(drawn)

    def run() -> Any:
        return sot.solve(M, structure=sot.Routes(*next(labels), charge, units="cost"), tol=1e-6)

    seconds, result, peak = device.timed(run, 7)
    notes = {"iterations of the last": result.n_iter, "peak GB": peak / 1e9}
    task = f"Routes, 10 × 9 random groups, other ones in every run, n = m = {n}, gap 1e-6"
    return Row(task, seconds, result.gap, peak / (M.numel() * 8), notes=notes)


def row_of_routes_against_cpu(device: Device, n: int, price: float) -> Row:
    """The same method by NumPy on two cores of the same machine."""
    from threadpoolctl import threadpool_limits

    row = row_of_routes(device, n, price, (0.2, 0.2))
    M, source, target = clouds(n, device, torch.float64)
    structure = sot.Routes(source, target, charge=price * float(M.mean()), units="cost")
    array = M.cpu().numpy()
    sot.set_num_threads(2)
    with threadpool_limits(2):
        begin = time.perf_counter()
        sot.solve(array, structure=structure, tol=1e-6)
        cores = time.perf_counter() - begin
    assert row.seconds is not None
    row.notes |= {"two cores": cores, "ratio": cores / row.seconds}
    row.goal = "≤ 0.2 s, ≥ 30× two cores"
    row.held = row.seconds <= 0.2 and cores >= 30 * row.seconds
    return row


def row_of_prox(device: Device, n: int) -> Row:
    """The prox of Groups, 10 × 10 groups, beside the compiled one of the CPU.

    Both sort from scratch; the CPU once more from its last order, as its solvers do, for a point
    that has moved by a millionth.
    """
    M, source, target = clouds(n, device, torch.float64)
    (layer,) = sot.Groups(source, target).bind(M.cpu().numpy()).layers
    del M
    prox = BlockProx.of(layer, device.device)
    rng = np.random.default_rng(0)
    V = rng.random(layer.w.size)
    given = torch.as_tensor(V, device=device.device)
    seconds, X, peak = device.timed(lambda: prox(given, 1.0))
    notes: dict[str, Any] = {}
    sizes, weights = np.diff(layer.start), prox.w
    run = lambda: decreasing_regression(given, weights, sizes)  # noqa: E731
    notes["majorant alone, of noise"], *_ = device.timed(run)
    notes["sort alone"], *_ = device.timed(lambda: torch.argsort(given))
    own = layer.prox_edges(V, 1.0)
    notes["largest difference"] = float(np.abs(X.cpu().numpy() - own.X).max())
    notes["pools"] = int(own.n_pools.sum())
    for threads in (2, os.cpu_count()):
        sot.set_num_threads(threads)
        for name, last in (("from scratch", None), ("from the last order", own)):
            moved = V if last is None else V + 1e-6 * rng.random(V.size)
            begin = time.perf_counter()
            layer.prox_edges(moved, 1.0, last=last)
            notes[f"{threads} cores, {name}"] = time.perf_counter() - begin
    notes["peak GB"] = peak / 1e9
    task = f"prox of Groups, 10 × 10 groups, n = m = {n}"
    return Row(task, seconds, arrays=peak / (layer.w.size * 8), notes=notes)


def row_of_equality(device: Device, n: int) -> Row:
    """Values on the device beside those of NumPy."""
    run, (M, structure, reg) = fixed_charge(n, device, torch.float64, 1e-10)
    reference = sot.solve(M.cpu().numpy(), structure=structure, reg=reg, tol=1e-10).value
    double = abs(float(run().value) / reference - 1.0)
    run, _ = fixed_charge(n, device, torch.float32, 1e-5)
    single = abs(float(run().value) / reference - 1.0)
    notes = {"float64": double, "float32": single}
    held = double <= 1e-8 and single <= 1e-4
    return Row(f"value against NumPy, n = {n}", goal="1e-8, float32 1e-4", held=held, notes=notes)


def floors(device: Device, n: int) -> dict[str, float]:
    """What the hardware does at best with arrays of this size."""
    A = torch.rand(n, n, dtype=torch.float64, device=device.device)
    target = torch.empty_like(A)
    device.timed(lambda: target.copy_(A))
    copy, *_ = device.timed(lambda: target.copy_(A), 10)
    product, *_ = device.timed(lambda: torch.mm(A, A.T, out=target))
    target.diagonal().add_(float(n))
    factor, *_ = device.timed(lambda: torch.linalg.cholesky(target))
    return {
        "copy of a plan, TB/s": 2.0 * A.numel() * 8 / copy / 1e12,
        "product of plans, TFLOP/s": 2.0 * n**3 / product / 1e12,
        "product of plans, s": product,
        "Cholesky of order n, s": factor,
    }


def stages(device: Device, n: int, tol: float) -> dict[str, float]:
    """Seconds of the parts of an iteration, at the answer."""
    _, (M, structure, reg) = fixed_charge(n, device, torch.float64, tol)
    part = FixedCharge.of(structure, (n, n))
    assert isinstance(part, FixedCharge)
    weights = torch.full((1, n), 1.0 / n, dtype=torch.float64, device=device.device)
    regs = torch.tensor([reg], dtype=torch.float64, device=device.device)
    layout = Layout.of([part], M[None], weights, weights, regs)
    stack = layout.stack
    point = solve_stack(stack, Goal(tol), Deadline()).proof
    damping = torch.full_like(stack.reg, 1e-12)
    parts = {
        "evaluation of the dual": lambda: evaluate(stack, point.p, point.q, stack.reg, point.level),
        "Hessian and Cholesky": lambda: factorize(stack, point, stack.reg, damping),
        "rounding and value": lambda: proof.evaluate_plan(
            stack, proof.round_plan(stack, point, stack.reg), stack.reg
        ),
        "bound": lambda: proof.prove(stack, point),
    }
    return {name: device.timed(run)[0] for name, run in parts.items()}


def stages_of_routes(device: Device, n: int) -> dict[str, float]:
    """Seconds of the parts of an interior-point iteration, at its start."""
    M, source, target = clouds(n, device, torch.float64)
    weights = torch.full((n,), 1.0 / n, dtype=torch.float64, device=device.device)
    structure = sot.Routes(source, target, charge=0.1 * float(M.mean()), units="cost")
    problem = RouteProblem.of(structure, M, (weights, weights))
    assert isinstance(problem, RouteProblem)
    path = CentralPath(problem.program, first_point(problem.program, problem.C))
    steps, known = path.steps(), RouteAnswer()
    first_plan(problem, known)
    next(steps)
    parts = {
        "factorisation": lambda: path.newton.factor(path.point),
        "a whole iteration": lambda: next(steps),
        "plan and proof": lambda: improve(Certificate(problem, path), known, 1e-6, None),
    }
    return {name: device.timed(run, 2)[0] for name, run in parts.items()}


def measure(device: Device, small: bool) -> dict[str, Any]:
    """All rows."""
    large, middle, huge, many = (600, 200, 800, 50) if small else (10_000, 1000, 20_000, 10_000)
    double, single = torch.float64, torch.float32
    fixed_charge(100, device, double, 1e-5)[0]()  # libraries loaded before the clock starts
    tasks: list[Callable[[], Row]] = [
        lambda: row_of_equality(device, 60 if small else 300),
        lambda: row_of_solve(device, large, double, 1e-5, "≤ 4 s, ≤ 14 arrays", (4.0, 14.0)),
        lambda: row_of_batch(device, many, 64, 1e-3),
        lambda: row_of_solve(device, huge, single, 1e-3, "≤ 30 s, ≤ 100 GB", (30.0, 62.0)),
    ]
    for price in (0.02, 0.1, 0.5):
        tasks.append(partial(row_of_routes_against_cpu, device, middle, price))
        tasks.append(partial(row_of_routes, device, large, price, (6.0, 10.0)))
    tasks.append(partial(row_of_uneven_routes, device, middle))
    for n in (middle, large):
        tasks.append(partial(row_of_prox, device, n))
    tasks.append(partial(row_against_group_lasso, device, middle, 1e-5))
    rows = []
    for task in tasks:
        try:
            row = task()
        except (RuntimeError, ValueError) as error:  # the other rows are worth having
            row = Row(getattr(task, "__name__", str(task)), notes={"error": str(error)})
        print(json.dumps(asdict(row), ensure_ascii=False), flush=True)
        rows.append(asdict(row))
    return {
        "device": device.name,
        "torch": torch.__version__,
        "rows": rows,
        "floors": floors(device, large),
        "stages": {f"n = {n}": stages(device, n, 1e-5) for n in (middle, large)},
        "stages of routes": {f"n = {n}": stages_of_routes(device, n) for n in (middle, large)},
    }


def sentences(found: dict[str, Any]) -> list[str]:
    """Three lines for the README, from the results that are kept."""

    def row(start: str) -> dict[str, Any]:
        return next(row for row in found["rows"] if row["task"].startswith(start))

    rows = [row for row in found["rows"] if row["task"].startswith("Routes, 10 × 10")]
    large, less = ([row for row in rows if f"m = {n}," in row["task"]] for n in (10_000, 1000))
    seconds, few = ([row["seconds"] for row in some] for some in (large, less))
    ratios = [row["notes"]["ratio"] for row in less]
    single = row("entropic fixed charge, own targets, n = m = 10000")
    small, many = row("the same, n = 1000"), row("10000 fixed-charge problems")
    name = found["device"]
    return [
        f"- on one {name}, fixed charge with entropy, own targets, 10⁸ pairs, gap 1e-5: "
        f"{single['seconds']:.2g} s in {single['arrays']:.2g} arrays of the size of the plan; "
        f"n = 1000 in {small['seconds']:.2g} s, {small['notes']['ratio']:.2g}× faster than POT's "
        "group lasso there",
        f"- on one {name}, routes between ten groups on each side, 10⁸ pairs, gap 1e-6: "
        f"{min(seconds):.2g} to {max(seconds):.2g} s; n = 1000 in {min(few):.2g} to {max(few):.2g} "
        f"s, {min(ratios):.2g} to {max(ratios):.2g}× faster than NumPy on two cores there",
        f"- on one {name}, 10 000 fixed charges of 64×64 with entropy, gap 1e-3, each certified: "
        f"{many['seconds']:.2g} s",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU: a test of itself")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = measure(Device(arguments.device), arguments.small)
    arguments.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    print(
        json.dumps(
            {k: found[k] for k in ("device", "floors", "stages", "stages of routes")},
            ensure_ascii=False,
        )
    )


if __name__ == "__main__":
    main()
