"""Many problems that differ by one dial, each started from the answer to its neighbour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from structot import _checks
from structot._progress import progress_bar
from structot._typing import Array
from structot.result import Result
from structot.solvers.solve import solve
from structot.structures.base import Structure

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("dial", "value", "linear", "concentration", "partners", "gap", "seconds")


@dataclass(frozen=True, eq=False, repr=False)
class Path(Sequence[Result]):
    """The answers along a dial, in the order in which the dials were given.

    ``path[k]`` is the `Result` at ``path.dials[k]``; printing it shows the table to choose from:
    the more a plan is pulled together (concentration), the more it costs (linear) and, with
    `Groups`, the more it spreads (partners). The elbow of that curve is a good dial.

    Attributes
    ----------
    dials
        The numbers that were varied; the place in the sequence for structures without a dial.
    name
        What they are: "reg", "unbalanced", "mass", or "dial" for structures.
    results
        The answers.

    Examples
    --------
    >>> import structot as sot
    >>> M = [[1.0, 2.0], [3.0, 1.0]]
    >>> path = sot.solve_path(M, reg=[0.1, 1.0])
    >>> path.name, len(path), path[0].value_linear < path[1].value_linear
    ('reg', 2, True)
    >>> list(path.table())
    ['dial', 'value', 'linear', 'concentration', 'partners', 'gap', 'seconds']
    """

    name: str
    dials: Array
    results: tuple[Result, ...]

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Path: ...
    def __getitem__(self, index: int | slice) -> Result | Path:
        if isinstance(index, slice):
            return Path(self.name, self.dials[index], self.results[index])
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    @property
    def converged(self) -> bool:
        """Whether every answer has its certified gap."""
        return all(result.converged for result in self.results)

    def table(self) -> dict[str, Array]:
        """One array per column: the dial, value, linear cost, concentration, mean number of
        partners, gap and seconds of every answer."""
        rows = [
            (
                *(dial, result.value, result.value_linear, result.concentration),
                *(_mean_partners(result), result.gap, result.time),
            )
            for dial, result in zip(self.dials, self.results, strict=True)
        ]
        return dict(zip(COLUMNS, np.array(rows, float).T, strict=True))

    def to_frame(self) -> pd.DataFrame:
        """`table` as a pandas data frame."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Cost, concentration and partners along the dial; see `structot.plot.path`."""
        from structot import plot

        return plot.path(self, ax, **options)

    def __repr__(self) -> str:
        table = self.table()
        lines = [f"Path of {len(self)} answers", "  ".join(f"{name:>13}" for name in COLUMNS)]
        for row in zip(*table.values(), strict=True):
            lines.append("  ".join(f"{x:13.6g}" for x in row))
        return "\n".join(lines)


def solve_path(
    M: Any,
    a: Any = None,
    b: Any = None,
    *,
    structures: Sequence[Structure] | None = None,
    structure: Structure | None = None,
    reg: Any = 0.0,
    unbalanced: Any = None,
    mass: Any = None,
    progress: bool = False,
    **options: Any,
) -> Path:
    """`solve` for every structure, reg, price or mass of a sequence, each from its neighbour on.

    Exactly one of ``structures``, ``reg``, ``unbalanced`` and ``mass`` is a sequence. The problems
    are solved from the end where a start helps most: from the strongest dial, the largest reg, the
    highest price and the largest mass down.

    Parameters
    ----------
    M, a, b
        As in `solve`.
    structures
        The structures to compare, e.g. ``[Groups(ys, yt, Discount(d)) for d in dials]``.
    structure
        The structure of all problems when another argument is the sequence.
    reg
        One weight of the entropy, or a sequence of them.
    unbalanced
        As in `solve`, where a tuple is (source, target), or a list of prices, each a number or a
        tuple. The dial of a tuple is its smaller price.
    mass
        One mass to be moved, or a sequence of them.
    progress
        Show a bar, on a terminal only.
    **options
        As in `solve`; ``time_limit`` and ``max_iter`` are for each problem.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> M = np.abs(np.arange(4.0)[:, None] - np.arange(4.0) - 1.0)
    >>> ys = ["a", "b", "a", "b"]
    >>> discounts = [sot.Groups(ys, ys, sot.concave.Discount(d)) for d in (0.0, 0.5, 0.9)]
    >>> path = solve_path(M, structures=discounts)
    >>> path.dials, path.converged
    (array([0. , 0.5, 0.9]), True)
    """
    if "init" in options:
        raise ValueError("solve_path starts every problem from its neighbour; leave init out.")
    name, dials, problems = _problems(structures, structure, reg, unbalanced, mass)
    if not problems:
        raise ValueError("the sequence is empty; pass at least one structure, reg, price or mass.")
    results: dict[int, Result] = {}
    last = None
    with progress_bar("problems", progress, len(problems)) as bar:
        for k in np.argsort(-dials, kind="stable").tolist():
            last = results[k] = solve(M, a, b, init=last, **problems[k], **options)
            bar.advance(1)
    return Path(name, dials, tuple(results[k] for k in range(len(problems))))


def _mean_partners(result: Result) -> float:
    sent = result.marginals[0]
    return float(np.average(result.partners, weights=sent)) if sent.any() else float("nan")


def _problems(
    structures: Any, structure: Any, reg: Any, unbalanced: Any, mass: Any
) -> tuple[str, Array, list[dict[str, Any]]]:
    """What is varied, its numbers, and the arguments of every problem."""
    many = {
        "structures": structures is not None,
        "reg": np.ndim(reg) > 0,
        "unbalanced": isinstance(unbalanced, list | np.ndarray),
        "mass": np.ndim(mass) > 0,
    }
    if sum(many.values()) != 1:
        raise ValueError(
            "pass exactly one sequence: structures=[...], or reg=[...], unbalanced=[...] or "
            "mass=[...] with one structure."
        )
    if structures is not None and structure is not None:
        raise ValueError("pass structures=[...] or structure=..., not both.")
    same = {"structure": structure, "reg": reg, "unbalanced": unbalanced, "mass": mass}
    name = next(key for key, value in many.items() if value)
    if name == "structures":
        found = [getattr(x, "dial", None) for x in structures]
        known = None not in found
        dials = np.array(found if known else range(len(found)), float)
        return "dial", dials, [{**same, "structure": x} for x in structures]
    values = list(same[name])
    if name == "unbalanced":
        pairs = [_checks.as_relaxation(x, mass) for x in values]
        numbers = [min((x for x in pair if x is not None), default=np.inf) for pair in pairs]
    else:
        values = numbers = [_checks.nonnegative(name, x) for x in values]
    return name, np.array(numbers, float), [{**same, name: x} for x in values]
