"""What `solve` and `path` share: the files of a problem, the options of a solver, and its run."""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from structot._typing import Array
from structot.cli._tables import (
    Column,
    Names,
    column_of,
    read_labels,
    read_matrix,
    read_weights,
)

__all__ = ["Files", "said_warnings", "stop_on_interrupt"]

INPUT = "[SOURCE TARGET | COST]"
Input = Annotated[
    list[Path],
    typer.Argument(
        metavar=INPUT,
        help="Points of both sides, one per row, or a cost matrix: .npy, .npz or .csv.",
    ),
]
Metric = Annotated[
    str | None,
    typer.Option(help="Cost of a pair of points, as in SciPy's cdist (sqeuclidean by default)."),
]
SourceGroups = Annotated[
    Path | None,
    typer.Option(
        metavar="<path or column>",
        help="One label per row: .npy, .npz or .csv (empty: no group), or the name of a column "
        "of SOURCE.",
    ),
]
TargetGroups = Annotated[
    Path | None,
    typer.Option(
        metavar="<path or column>", help="One label per column of the cost, or per row of TARGET."
    ),
]
SourceWeights = Annotated[
    Path | None, typer.Option(metavar="<path or column>", help="Weights of the rows.")
]
TargetWeights = Annotated[
    Path | None, typer.Option(metavar="<path or column>", help="Weights of the columns.")
]
Unbalanced = Annotated[
    str | None,
    typer.Option(
        metavar="TAU", help="Price of other marginals, in units of COST; SOURCE,TARGET for two."
    ),
]
UnbalancedType = Annotated[str, typer.Option(help="KL, or TV: mass made or lost costs TAU.")]
Mass = Annotated[float | None, typer.Option(help="Move only this much.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether .csv files begin with a row of names."),
]
Index = Annotated[
    bool | None,
    typer.Option("--index/--no-index", help="Whether .csv files begin with a column of names."),
]
Method = Annotated[str, typer.Option(help="auto, newton, splitting, ...")]
Tol = Annotated[float, typer.Option(help="Certified relative gap at which to stop.")]
TimeLimit = Annotated[float | None, typer.Option(help="Seconds.")]
MaxIter = Annotated[int | None, typer.Option(help="Iterations.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def prices(text: str | None) -> float | tuple[float | None, ...] | None:
    """What ``--unbalanced`` says: one price, or two with a comma between; "none" holds a side.

    Examples
    --------
    >>> prices("0.5"), prices("0.5,none")
    (0.5, (0.5, None))
    """
    if text is None:
        return None
    try:
        found = [None if part.strip() == "none" else float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(
            f"--unbalanced must be a number or two with a comma between, such as 0.5,none; "
            f"got {text!r}."
        ) from None
    return found[0] if len(found) == 1 else tuple(found)


@dataclass(frozen=True, eq=False)
class Files:
    """A problem as it was read: cost, weights and labels, and points where it was given by them."""

    M: Array
    a: Array | None
    b: Array | None
    rows: list[Any] | None
    cols: list[Any] | None
    X: Array | None = None
    Y: Array | None = None

    @classmethod
    def read(
        cls,
        given: list[Path],
        metric: str | None,
        weights: tuple[Path | None, Path | None],
        groups: tuple[Path | None, Path | None],
        names: Names,
        most: int | None = None,
    ) -> Files:
        """From a cost or points; ``weights`` and ``groups`` are those of the source and the target.

        More than ``most`` points on a side are refused.
        """
        names.refuse_without_csv(*given, *weights, *groups)
        points = given if len(given) == 2 else [None, None]
        w = [column_of(path, name, names) for path, name in zip(points, weights, strict=True)]
        g = [column_of(path, name, names) for path, name in zip(points, groups, strict=True)]
        taken = [[x.name for x in side if isinstance(x, Column)] for side in zip(w, g, strict=True)]
        M, X, Y = _costs(given, metric, names, taken)
        for name, size in zip(("source", "target"), M.shape, strict=True):
            if most is not None and size > most:
                raise ValueError(
                    f"{size} {name} points are too many to draw; pass a sample of at most {most}."
                )
        a, b = (read_weights(x, size, names) for x, size in zip(w, M.shape))
        rows, cols = (read_labels(x, size, names) for x, size in zip(g, M.shape))
        return cls(M, a, b, rows, cols, X, Y)


def _costs(
    given: list[Path], metric: str | None, names: Names, taken: list[list[str]]
) -> tuple[Array, Array | None, Array | None]:
    """The cost, and the points of both sides if it is that of points.

    ``taken``: the columns of either file that are no coordinates.
    """
    if len(given) == 1:
        if metric is not None:
            raise ValueError("--metric is about points, and a cost matrix was passed.")
        M = read_matrix(given[0], names)
        if (M < 0).any():
            raise ValueError(
                f"{given[0]}: one file is a cost matrix, and costs must not be negative; pass two "
                "files for points, source and target."
            )
        return M, None, None
    if len(given) != 2:
        raise ValueError(f"pass two files of points, or one cost matrix; got {len(given)} files.")
    X, Y = (
        read_matrix(path, names, "a file of points", without, f"--{side}-groups")
        for path, without, side in zip(given, taken, ("source", "target"), strict=True)
    )
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"points of both sides need the same coordinates; got {X.shape[1]} and {Y.shape[1]}."
        )
    if not (np.isfinite(X).all() and np.isfinite(Y).all()):
        raise ValueError("points must be finite; got NaN or infinity.")
    from scipy.spatial.distance import cdist  # only now: a wrong file name is told at once

    try:
        return cdist(X, Y, metric or "sqeuclidean"), X, Y
    except ValueError as error:
        raise ValueError(f"--metric {metric} does not work: {error}") from None


@contextmanager
def said_warnings() -> Iterator[None]:
    """Warnings as one line each on the error stream; a missed gap is said with the answer."""
    from structot.solvers.solve import ConvergenceWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(
        str(entry.message) for entry in caught if not issubclass(entry.category, ConvergenceWarning)
    ):
        sys.stderr.write(f"structot: {' '.join(text.split())}\n")


@contextmanager
def stop_on_interrupt() -> Iterator[Callable[..., bool]]:
    """A callback that stops a solve after Ctrl-C, so that its best answer so far is kept.

    A second Ctrl-C ends the command at once.
    """
    asked = []

    def note(number: int, frame: Any) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, before)
        sys.stderr.write("\nstructot: stopping after this step; Ctrl-C once more quits at once.\n")

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda state=None: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
