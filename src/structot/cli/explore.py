"""``structot explore``: a page to play with, the plan under a slider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structot._files import refuse_existing, write_text
from structot.cli import _problem
from structot.cli._common import DONE, NO_GAP, Debug, Force, console, known_suffix
from structot.cli._problem import Files, said_warnings
from structot.cli._tables import Names

if TYPE_CHECKING:
    from structot.explorer import Clouds

__all__ = ["explore"]

_MOST_POINTS = 400  # on a side: every point is drawn, at every stop
_BUILT_IN = 60  # points on either side, where no files are passed


def explore(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar=_problem.INPUT,
            help="Points of both sides, one per row, or a cost matrix; without any: two clouds.",
        ),
    ] = None,
    source_groups: _problem.SourceGroups = None,
    target_groups: _problem.TargetGroups = None,
    source_weights: _problem.SourceWeights = None,
    target_weights: _problem.TargetWeights = None,
    metric: _problem.Metric = None,
    steps: Annotated[int, typer.Option(min=2, max=100, help="Stops of the slider.")] = 20,
    title: Annotated[str | None, typer.Option(help="Above the picture.")] = None,
    header: _problem.Header = None,
    index: _problem.Index = None,
    tol: _problem.Tol = 1e-3,
    time_limit: Annotated[float | None, typer.Option(help="Seconds for each stop.")] = None,
    out: Annotated[Path, typer.Option(help="The page: .html.")] = Path("explore.html"),
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Write one HTML file to play with: the plan as lines and as a matrix, under a slider.

    The slider moves the dial of a structure over a certified path that is computed beforehand;
    buttons change the structure. The file needs no network and no server: open it in a browser.
    The exit code is 1 when a gap was not reached (it is marked in the page).

    Examples:

    - `structot explore`

    - `structot explore a.csv b.csv --source-groups ya.csv --target-groups yb.csv --out mine.html`

    - `structot explore a.csv b.csv --source-groups type --target-groups type` (a column of each)

    - `structot explore cost.npy --source-groups rows.csv --target-groups columns.csv`
    """
    known_suffix("--out", out, (".html", ".htm"))
    refuse_existing(out, force)
    names, groups = Names(header, index), (source_groups, target_groups)
    weights, given = (source_weights, target_weights), list(files or [])
    if not given:
        read = _built_in(any(option is not None for option in (*groups, *weights, metric)))
    elif groups == (None, None):
        raise ValueError(
            "without groups there is no structure to explore; pass --source-groups or "
            "--target-groups, one label per point."
        )
    else:
        read = Files.read(given, metric, weights, groups, names, _MOST_POINTS)
    from structot import explorer  # only now: a wrong file name is told at once

    clouds = explorer.Clouds(read.M, read.rows, read.cols, read.X, read.Y)
    options: dict[str, Any] = {"steps": steps, "a": read.a, "b": read.b, "tol": tol}
    options |= {"time_limit": time_limit, "progress": True}
    paths = {}
    with said_warnings():
        for name in explorer.available(read.rows, read.cols):
            kind = explorer.KINDS[name]
            paths[name] = explorer.solve_kind(kind, read.M, read.rows, read.cols, **options)
    shown = title or (" and ".join(path.stem for path in given) or "Two clouds of three classes")
    write_text(out, explorer.page(clouds, paths, title=shown, lead=_lead(clouds)))
    console().print(f"wrote {out}: open it in a browser", markup=False)
    raise typer.Exit(DONE if all(path.converged for path in paths.values()) else NO_GAP)


def _built_in(options: bool) -> Files:
    from structot.datasets.synthetic import clusters

    if options:
        raise ValueError(
            "groups, weights and a metric belong to points or a cost matrix; pass these too."
        )
    data = clusters(_BUILT_IN, n_classes=3)
    labels = data.source_labels.tolist(), data.target_labels.tolist()
    return Files(data.cost, None, None, *labels, data.X, data.Y)


def _lead(clouds: Clouds) -> str:
    n, m = clouds.M.shape
    drawn = ""
    if clouds.X is not None and clouds.X.shape[1] > 2:
        drawn = f" Drawn in the plane of largest variance of {clouds.X.shape[1]} coordinates."
    return (
        f"{n} source points (dots) go to {m} target points (crosses). Move the dial: groups are "
        f"pulled together, and the figures below say what that costs.{drawn}"
    )
