"""``structot solve``: one problem from files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from structot._files import json_text, refuse_existing, whole_file
from structot.cli import _dials, _problem
from structot.cli._common import DONE, INTERRUPTED, NO_GAP, Debug, Force, console, known_suffix
from structot.cli._dials import Dials
from structot.cli._problem import Files, prices, said_warnings, stop_on_interrupt
from structot.cli._tables import Names
from structot.result import Result

__all__ = ["solve"]


def solve(
    files: _problem.Input,
    source_groups: _problem.SourceGroups = None,
    target_groups: _problem.TargetGroups = None,
    discount: Annotated[float | None, typer.Option(help=_dials.DISCOUNT_HELP)] = None,
    routes: Annotated[float | None, typer.Option(help=_dials.ROUTES_HELP)] = None,
    charge: Annotated[float | None, typer.Option(help=_dials.CHARGE_HELP)] = None,
    family: _dials.Family = None,
    alpha: Annotated[float | None, typer.Option(help=_dials.ALPHA_HELP)] = None,
    scale: Annotated[float | None, typer.Option(help=_dials.SCALE_HELP)] = None,
    exponent: Annotated[float | None, typer.Option(help=_dials.EXPONENT_HELP)] = None,
    breaks: _dials.Breaks = None,
    slopes: _dials.Slopes = None,
    units: _dials.Units = None,
    source_weights: _problem.SourceWeights = None,
    target_weights: _problem.TargetWeights = None,
    metric: _problem.Metric = None,
    reg: Annotated[float, typer.Option(help="Weight of an entropy term, in units of COST.")] = 0.0,
    unbalanced: _problem.Unbalanced = None,
    unbalanced_type: _problem.UnbalancedType = "KL",
    mass: _problem.Mass = None,
    header: _problem.Header = None,
    index: _problem.Index = None,
    method: _problem.Method = "auto",
    tol: _problem.Tol = 1e-4,
    time_limit: _problem.TimeLimit = None,
    max_iter: _problem.MaxIter = None,
    out: Annotated[
        Path | None, typer.Option(help="Save plan and certificate (.npz) or the plan (.csv).")
    ] = None,
    as_json: _problem.AsJson = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Solve one problem and print the certified result.

    Without groups this is plain optimal transport. The exit code is 1 when the gap was not reached
    within the limits; the best certified answer is printed and saved all the same, also after
    Ctrl-C (exit code 130).

    Examples:

    - `structot solve a.csv b.csv --source-groups ya.csv --target-groups yb.csv --routes 0.3`

    - `structot solve cost.csv --source-groups rows.csv --target-groups columns.csv --discount 0.5`

    - `structot solve cost.npz --source-groups rows.npy --charge 0.02 --out plan.npz`

    - `structot solve cost.npy --source-weights a.csv --unbalanced 0.5,none`

    - `structot solve cost.npy --source-groups rows.csv --json | jq .gap`
    """
    known_suffix("--out", out, (".npz", ".csv"))
    refuse_existing(out, force)
    weights, groups = (source_weights, target_weights), (source_groups, target_groups)
    read = Files.read(files, metric, weights, groups, Names(header, index))
    dials = Dials(discount, charge, routes, alpha, scale, exponent, breaks, slopes, family, units)
    # Loaded only now: a wrong file name is told at once.
    import structot as sot

    options: dict[str, Any] = {"reg": reg, "method": method, "tol": tol, "max_iter": max_iter}
    options |= {"time_limit": time_limit, "progress": not as_json, "mass": mass}
    options |= {"unbalanced": prices(unbalanced), "unbalanced_type": unbalanced_type}
    with said_warnings(), stop_on_interrupt() as stopped:
        structure = dials.structure(read.rows, read.cols)
        result = sot.solve(read.M, read.a, read.b, structure=structure, callback=stopped, **options)
    interrupted = stopped() and not result.converged
    _save(result, out)
    _show(result, tol, out, as_json, interrupted)
    if interrupted:
        sys.stderr.write("structot: interrupted; this is the best answer so far.\n")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(DONE if result.converged else NO_GAP)


def _save(result: Result, out: Path | None) -> None:
    if out is None:
        return
    if out.suffix == ".npz":
        result.save(out)
    else:
        with whole_file(out) as aside:
            np.savetxt(aside, result.plan, fmt="%.17g", delimiter=",")


def _show(result: Result, tol: float, out: Path | None, as_json: bool, interrupted: bool) -> None:
    status = "Interrupted before the gap was reached." if interrupted else str(result.status)
    grouped = not np.isnan(result.concentration)
    sent, moved = result.marginals[0], float(result.plan.sum())
    partners = float(np.average(result.partners, weights=sent)) if sent.any() else float("nan")
    relaxed = result.unbalanced is not None or result.mass is not None
    left = [float(np.maximum(rest, 0.0).sum()) for rest in result.left]
    fields: dict[str, Any] = {
        "value": result.value,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "tol": tol,
        "converged": result.converged,
        "status": status,
        "linear_cost": result.value_linear,
        "concentration": result.concentration,
        "partners": partners,
        "mass_moved": moved,
        "mass_left": left if relaxed else [0.0, 0.0],
        "method": result.method,
        "iterations": result.n_iter,
        "seconds": result.time,
        "shape": list(result.plan.shape),
        "out": None if out is None else str(out),
    }
    if as_json:
        typer.echo(json_text(fields), nl=False)
        return
    n, m = result.plan.shape
    reached = "green" if result.converged else "red"
    one = "point" if grouped and set(result.block_mass().target) == {None} else "group"
    together = f"{result.concentration:.0%} of the mass of a group goes to one {one}"
    grid = Table.grid(padding=(0, 2))
    for name, text in (
        ("plan", f"{n} × {m}, by {result.method}"),
        ("value", f"{result.value:.8g}"),
        ("lower bound", f"{result.lower_bound:.8g}"),
        ("gap", f"[{reached}]{result.gap:.1e}[/] (asked for {tol:.1e})"),
        ("status", status),
        ("linear cost", f"{result.value_linear:.8g}"),
        *([("mass moved", f"{moved:.6g}")] if relaxed else []),
        *([("left", f"{left[0]:.3g} at the source, {left[1]:.3g} at the target")] * relaxed),
        *([("together", together)] if grouped else []),
        ("partners", f"{partners:.3g} of {m} per source point, effectively"),
        ("effort", f"{result.n_iter} iterations, {result.time:.3g} s"),
        *([] if out is None else [("saved", str(out))]),
    ):
        grid.add_row(f"[bold]{name}[/]", text)
    console().print(grid)
