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

import typer

from structot._typing import Array
from structot.cli._tables import Names, read_labels, read_matrix, read_weights

__all__ = ["Files", "said_warnings", "stop_on_interrupt"]

Cost = Annotated[Path, typer.Argument(metavar="COST", help="Cost matrix: .npy, .npz or .csv.")]
SourceGroups = Annotated[
    Path | None, typer.Option(help="One label per row: .npy, .npz or .csv (empty: no group).")
]
TargetGroups = Annotated[Path | None, typer.Option(help="One label per column.")]
SourceWeights = Annotated[Path | None, typer.Option(help="Weights of the rows.")]
TargetWeights = Annotated[Path | None, typer.Option(help="Weights of the columns.")]
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
    """A problem as it was read: cost, weights and labels."""

    M: Array
    a: Array | None
    b: Array | None
    rows: list[Any] | None
    cols: list[Any] | None

    @classmethod
    def read(
        cls,
        cost: Path,
        weights: tuple[Path | None, Path | None],
        groups: tuple[Path | None, Path | None],
        names: Names,
    ) -> Files:
        """From files; ``weights`` and ``groups`` are those of the rows and of the columns."""
        names.refuse_without_csv(cost, *weights, *groups)
        M = read_matrix(cost, names)
        a, b = (read_weights(path, size, names) for path, size in zip(weights, M.shape))
        rows, cols = (read_labels(path, size, names) for path, size in zip(groups, M.shape))
        return cls(M, a, b, rows, cols)


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
