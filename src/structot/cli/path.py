"""``structot path``: one problem at many settings of one dial."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from structot._extras import optional
from structot._files import json_text, refuse_existing, whole_file, write_text
from structot._typing import Array
from structot.cli import _dials, _problem
from structot.cli._common import DONE, NO_GAP, Debug, Force, console, known_suffix
from structot.cli._dials import Dials, numbers
from structot.cli._problem import Files, said_warnings
from structot.cli._tables import Names

if TYPE_CHECKING:
    from structot.solvers.path import Path as SolvedPath

__all__ = ["path"]

_MANY = "A number, a list (0,0.5,0.9), or a range: start:stop:count, log:start:stop:count. "
_DEFAULT = "0:0.95:20"
_LABELS = {"routes": "charge of a route", "charge": "price of a block"}  # of a picture


def path(
    files: _problem.Input,
    source_groups: _problem.SourceGroups = None,
    target_groups: _problem.TargetGroups = None,
    discount: Annotated[
        str | None,
        typer.Option(help=_MANY + f"Without any list: {_DEFAULT}. {_dials.DISCOUNT_HELP}"),
    ] = None,
    routes: Annotated[str | None, typer.Option(help=_MANY + _dials.ROUTES_HELP)] = None,
    charge: Annotated[str | None, typer.Option(help=_MANY + _dials.CHARGE_HELP)] = None,
    reg: Annotated[
        str, typer.Option(help=_MANY + "Weight of an entropy term, in units of COST.")
    ] = "0",
    family: _dials.Family = None,
    alpha: Annotated[str | None, typer.Option(help=_MANY + _dials.ALPHA_HELP)] = None,
    scale: Annotated[str | None, typer.Option(help=_MANY + _dials.SCALE_HELP)] = None,
    exponent: Annotated[str | None, typer.Option(help=_MANY + _dials.EXPONENT_HELP)] = None,
    units: _dials.Units = None,
    source_weights: _problem.SourceWeights = None,
    target_weights: _problem.TargetWeights = None,
    metric: _problem.Metric = None,
    header: _problem.Header = None,
    index: _problem.Index = None,
    method: _problem.Method = "auto",
    tol: _problem.Tol = 1e-3,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for each setting.")] = None,
    max_iter: Annotated[int | None, typer.Option(help="Iterations for each setting.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table: .csv or .json.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the path: .png, .pdf or .svg.")] = None,
    as_json: _problem.AsJson = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Solve one problem along a dial and print how the plan changes: to choose by the elbow.

    One of the dials is a list or a range. Each line shows what the plan costs in plain terms
    (linear), how much of a source group goes to one target group (concentration), and to how many
    points each source point goes (partners). The exit code is 1 when a gap was not reached.

    Examples:

    - `structot path a.csv b.csv --source-groups ya.csv --target-groups yb.csv --plot path.png`

    - `structot path cost.npy --source-groups rows.csv --target-groups cols.csv --routes 0:0.4:9`

    - `structot path cost.npy --source-groups rows.csv --discount 0,0.5,0.75,0.9 --out path.csv`

    - `structot path cost.npy --reg log:0.01:10:8`
    """
    known_suffix("--out", out, (".csv", ".json"))
    known_suffix("--plot", plot, (".png", ".pdf", ".svg"))
    for target in (out, plot):
        refuse_existing(target, force)
    if plot is not None:
        optional("matplotlib", "--plot")  # before the work, not after it
    given = {"discount": discount, "routes": routes, "charge": charge, "alpha": alpha}
    given |= {"scale": scale, "exponent": exponent, "reg": reg}
    weights, groups = (source_weights, target_weights), (source_groups, target_groups)
    dial, values = _moving(given, groups != (None, None))
    read = Files.read(files, metric, weights, groups, Names(header, index))
    dials = Dials(concave=family, units=units)
    options: dict[str, Any] = {"method": method, "tol": tol, "max_iter": max_iter}
    options |= {"time_limit": time_limit, "progress": not as_json}
    found = _solve(read, dials, dial, values, options)
    table = {dial: values[dial], **{k: v for k, v in found.table().items() if k != "dial"}}
    _write(table, out)
    if plot is not None:
        _draw(found, dial, plot)
    if as_json:
        typer.echo(json_text({**table, "converged": found.converged}), nl=False)
    else:
        _show(table, [result.converged for result in found], [out, plot])
    raise typer.Exit(DONE if found.converged else NO_GAP)


def _draw(found: SolvedPath, dial: str, target: Path) -> None:
    import matplotlib.pyplot as plt

    found.plot(label=_LABELS.get(dial, dial))
    with whole_file(target) as aside:
        plt.savefig(aside, dpi=150)
    plt.close()


def _moving(given: dict[str, str | None], grouped: bool) -> tuple[str, dict[str, Array]]:
    """The one dial with several values, and the values of all that were given."""
    values = {name: _values(f"--{name}", text) for name, text in given.items() if text is not None}
    moving = [name for name in values if values[name].size > 1]
    if set(values) == {"reg"} and not moving:
        if not grouped:
            raise ValueError(
                "without groups there is no dial to move; pass --source-groups or --target-groups, "
                "or several values of --reg."
            )
        values["discount"], moving = _values("--discount", _DEFAULT), ["discount"]
    if len(moving) != 1:
        raise ValueError(
            f"one of the dials must be a list or a range, e.g. --discount {_DEFAULT}; got "
            + (", ".join(f"--{name}" for name in moving) or "none")
            + "."
        )
    return moving[0], values


def _solve(
    files: Files, dials: Dials, dial: str, values: dict[str, Array], options: dict[str, Any]
) -> SolvedPath:
    """The answers along the dial; all others stand where they were set."""
    import structot as sot  # only now: a wrong file name is told at once

    fixed: dict[str, Any] = {k: float(x[0]) for k, x in values.items() if k not in (dial, "reg")}
    with said_warnings():
        if dial == "reg":
            structure = replace(dials, **fixed).structure(files.rows, files.cols)
            options |= {"structure": structure, "reg": values["reg"]}
        else:
            settings: list[Any] = [{**fixed, dial: float(x)} for x in values[dial]]
            structures = [replace(dials, **x).structure(files.rows, files.cols) for x in settings]
            options |= {"structures": structures, "reg": float(values["reg"][0])}
        return sot.solve_path(files.M, files.a, files.b, **options)


def _values(option: str, text: str) -> Array:
    """A number, a list with commas, or a range: start:stop:count, log:start:stop:count."""
    if ":" not in text:
        return np.array(numbers(option, text))
    *kind, start, stop, count = ["", "", *text.split(":")][-4:]
    try:
        low, high, steps = float(start), float(stop), int(count)
    except ValueError:
        steps = 0
    if kind not in ([""], ["log"]) or steps < 2 or (kind == ["log"] and not 0 < low * high):
        raise ValueError(
            f"{option} takes a list (0,0.5,0.9) or a range start:stop:count, or "
            f"log:start:stop:count between positive numbers; got {text!r}."
        )
    return np.geomspace(low, high, steps) if kind == ["log"] else np.linspace(low, high, steps)


def _write(table: dict[str, Array], out: Path | None) -> None:
    if out is None:
        return
    if out.suffix == ".json":
        write_text(out, json_text(table))
        return
    with whole_file(out) as aside:
        columns = np.column_stack([*table.values()])
        np.savetxt(aside, columns, "%.10g", ",", header=",".join(table), comments="")


def _show(table: dict[str, Array], converged: list[bool], written: list[Path | None]) -> None:
    shown = Table(box=None, pad_edge=False)
    for name in table:
        shown.add_column(name, justify="right")
    for row, reached in zip(zip(*table.values(), strict=True), converged, strict=True):
        shown.add_row(
            *(("–" if np.isnan(x) else f"{x:.4g}") for x in row),
            style=None if reached else "red",
        )
    console().print(shown)
    for target in filter(None, written):
        console().print(f"wrote {target}", markup=False)
