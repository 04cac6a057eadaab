"""``structot explore``: a page to play with, the plan under a slider."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from structot._files import refuse_existing, write_text
from structot._typing import Array
from structot.cli import _problem
from structot.cli._common import DONE, NO_GAP, Debug, Force, console, known_suffix
from structot.cli._problem import said_warnings
from structot.cli._tables import Names, read_labels, read_matrix, read_weights

if TYPE_CHECKING:
    from structot.explorer import Clouds

__all__ = ["explore"]

_MOST_POINTS = 400  # on a side: every point is drawn, at every stop
_BUILT_IN = 60  # points on either side, where no files are passed


def explore(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SOURCE TARGET | COST]",
            help="Points of both sides, one per row, or a cost matrix; without any: two clouds.",
        ),
    ] = None,
    source_groups: _problem.SourceGroups = None,
    target_groups: _problem.TargetGroups = None,
    source_weights: _problem.SourceWeights = None,
    target_weights: _problem.TargetWeights = None,
    metric: Annotated[
        str, typer.Option(help="Cost of a pair of points, as in SciPy's cdist.")
    ] = "sqeuclidean",
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

    - `structot explore cost.npy --source-groups rows.csv --target-groups columns.csv`
    """
    known_suffix("--out", out, (".html", ".htm"))
    refuse_existing(out, force)
    names, groups = Names(header, index), (source_groups, target_groups)
    weights = source_weights, target_weights
    given = list(files or [])
    if given:
        names.refuse_without_csv(*given, *groups, *weights)
    clouds = _read(given, groups, metric, names) if given else _built_in((*groups, *weights))
    a, b = (read_weights(path, size, names) for path, size in zip(weights, clouds.M.shape))
    from structot import explorer  # only now: a wrong file name is told at once

    paths = {}
    with said_warnings():
        for name in explorer.available(clouds.rows, clouds.cols):
            options: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "progress": True}
            paths[name] = explorer.solve_kind(
                explorer.KINDS[name],
                *(clouds.M, clouds.rows, clouds.cols),
                **{"steps": steps, "a": a, "b": b, **options},
            )
    shown = title or (" and ".join(path.stem for path in given) or "Two clouds of three classes")
    write_text(out, explorer.page(clouds, paths, title=shown, lead=_lead(clouds)))
    console().print(f"wrote {out}: open it in a browser", markup=False)
    raise typer.Exit(DONE if all(path.converged for path in paths.values()) else NO_GAP)


def _read(
    files: list[Path], groups: tuple[Path | None, Path | None], metric: str, names: Names
) -> Clouds:
    from structot.explorer import Clouds

    if groups == (None, None):
        raise ValueError(
            "without groups there is no structure to explore; pass --source-groups or "
            "--target-groups, one label per point."
        )
    X: Array | None = None
    Y: Array | None = None
    if len(files) == 1:
        M = read_matrix(files[0], names)
    elif len(files) == 2:
        X, Y = (read_matrix(path, names, "a file of points") for path in files)
        M = _cost(X, Y, metric)
    else:
        raise ValueError(f"pass two files of points, or one cost matrix; got {len(files)} files.")
    for name, size in zip(("source", "target"), M.shape, strict=True):
        if size > _MOST_POINTS:
            raise ValueError(
                f"{size} {name} points are too many to draw; pass a sample of at most "
                f"{_MOST_POINTS}."
            )
    rows, cols = (read_labels(path, size, names) for path, size in zip(groups, M.shape))
    return Clouds(M, rows, cols, X, Y)


def _cost(X: Array, Y: Array, metric: str) -> Array:
    from scipy.spatial.distance import cdist

    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"points of both sides need the same coordinates; got {X.shape[1]} and {Y.shape[1]}."
        )
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        raise ValueError("points must be finite; got NaN or infinity.")
    return cdist(X, Y, metric)


def _built_in(paths: tuple[Path | None, ...]) -> Clouds:
    from structot.datasets.synthetic import clusters
    from structot.explorer import Clouds

    if any(path is not None for path in paths):
        raise ValueError("groups and weights belong to points or a cost matrix; pass these too.")
    data = clusters(_BUILT_IN, n_classes=3)
    return Clouds(data.cost, data.source_labels, data.target_labels, data.X, data.Y)


def _lead(clouds: Clouds) -> str:
    n, m = clouds.M.shape
    drawn = ""
    if clouds.X is not None and clouds.X.shape[1] > 2:
        drawn = f" Drawn in the plane of largest variance of {clouds.X.shape[1]} coordinates."
    return (
        f"{n} source points (dots) go to {m} target points (crosses). Move the dial: groups are "
        f"pulled together, and the figures below say what that costs.{drawn}"
    )
