"""``structot solve``: one problem from files."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from structot import _checks, concave
from structot._files import json_text, refuse_existing
from structot.cli._common import DONE, NO_GAP, Debug, Force, console
from structot.cli._tables import read_labels, read_matrix, read_weights
from structot.result import Result

__all__ = ["solve"]

CONCAVE: dict[str, Callable[[float], Any]] = {
    "threshold-sqrt": concave.ThresholdSqrt,
    "truncation": concave.Truncation,
    "log": concave.Log,
    "power": concave.Power,
    "sqrt": lambda alpha: concave.Sqrt(),
    "linear": lambda alpha: concave.Linear(),
}


def solve(
    cost: Annotated[Path, typer.Argument(metavar="COST", help="Cost matrix: .npy, .npz or .csv.")],
    source_groups: Annotated[
        Path | None, typer.Option(help="One label per row: .npy, .npz or .csv (empty: no group).")
    ] = None,
    target_groups: Annotated[Path | None, typer.Option(help="One label per column.")] = None,
    alpha: Annotated[
        float,
        typer.Option(help="Threshold of the concave function (scale of log, exponent of power)."),
    ] = 1.0,
    concave_name: Annotated[
        str, typer.Option("--concave", help="One of " + ", ".join(CONCAVE) + ".")
    ] = "threshold-sqrt",
    units: Annotated[
        str, typer.Option(help="cost, or block: α as a share of each block's total cost.")
    ] = "cost",
    source_weights: Annotated[Path | None, typer.Option(help="Weights of the rows.")] = None,
    target_weights: Annotated[Path | None, typer.Option(help="Weights of the columns.")] = None,
    reg: Annotated[float, typer.Option(help="Weight of an entropy term.")] = 0.0,
    method: Annotated[str, typer.Option(help="auto, newton, splitting, ...")] = "auto",
    tol: Annotated[float, typer.Option(help="Certified relative gap at which to stop.")] = 1e-4,
    time_limit: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    max_iter: Annotated[int | None, typer.Option(help="Iterations.")] = None,
    out: Annotated[Path | None, typer.Option(help="Save plan and certificate here (.npz).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")] = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Solve one problem and print the certified result.

    Without groups this is plain optimal transport. The exit code is 1 when the gap was not reached
    within the limits; the best certified answer is printed and saved all the same.

    Examples:

    - `structot solve cost.npy`

    - `structot solve cost.csv --source-groups rows.csv --target-groups columns.csv --alpha 10`

    - `structot solve cost.npz --source-groups rows.npy --units block --alpha 0.1 --out plan.npz`

    - `structot solve cost.npy --source-groups rows.csv --json | jq .gap`
    """
    # Checked without groups too, where neither plays a part.
    g = CONCAVE[_checks.one_of("--concave", concave_name, CONCAVE)](alpha)
    _checks.one_of("--units", units, ("cost", "block"))
    if out is not None and out.suffix != ".npz":
        out = out.with_name(out.name + ".npz")
    refuse_existing(out, force)
    M = read_matrix(cost)
    a, b = (
        read_weights(path, size) for path, size in zip((source_weights, target_weights), M.shape)
    )
    rows, cols = (
        read_labels(path, size) for path, size in zip((source_groups, target_groups), M.shape)
    )
    # Loaded only now: a wrong file name is told at once.
    import structot as sot

    grouped = rows is not None or cols is not None
    structure = sot.Groups(rows, cols, g, units=units) if grouped else None
    options: dict[str, Any] = {"reg": reg, "method": method, "tol": tol, "max_iter": max_iter}
    options |= {"time_limit": time_limit, "progress": not as_json}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sot.ConvergenceWarning)  # said below
        result = sot.solve(M, a, b, structure=structure, **options)
    if out is not None:
        result.save(out)
    _show(result, tol, out, as_json)
    raise typer.Exit(DONE if result.converged else NO_GAP)


def _show(result: Result, tol: float, out: Path | None, as_json: bool) -> None:
    fields: dict[str, Any] = {
        "value": result.value,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "tol": tol,
        "converged": result.converged,
        "status": str(result.status),
        "linear_cost": result.value_linear,
        "method": result.method,
        "iterations": result.n_iter,
        "seconds": result.time,
        "shape": list(result.plan.shape),
        "out": None if out is None else str(out),
    }
    if as_json:
        typer.echo(json_text(fields), nl=False)
        return
    grid = Table.grid(padding=(0, 2))
    n, m = result.plan.shape
    reached = "green" if result.converged else "red"
    for name, text in (
        ("plan", f"{n} × {m}, by {result.method}"),
        ("value", f"{result.value:.8g}"),
        ("lower bound", f"{result.lower_bound:.8g}"),
        ("gap", f"[{reached}]{result.gap:.1e}[/] (asked for {tol:.1e})"),
        ("status", str(result.status)),
        ("plain cost", f"{result.value_linear:.8g}"),
        ("effort", f"{result.n_iter} iterations, {result.time:.3g} s"),
        *([] if out is None else [("saved", str(out))]),
    ):
        grid.add_row(f"[bold]{name}[/]", text)
    console().print(grid)
