"""How a solve went: its status as a sentence, its history, and the warning where it fell short."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from structot._typing import Array


class Status(Enum):
    """How a solve ended, as a sentence.

    Examples
    --------
    >>> import structot as sot
    >>> print(sot.solve([[1.0, 2.0]], b=[0.5, 0.5]).status)
    The certified gap is at most the tolerance.
    """

    CONVERGED = "The certified gap is at most the tolerance."
    ITERATION_LIMIT = "The iteration limit was reached before the gap."
    TIME_LIMIT = "The time limit was reached before the gap."
    STOPPED = "The callback asked to stop before the gap was reached."
    STALLED = "The method can get no further in floating point; the gap was not reached."
    NOT_FINITE = "The iterates overflowed or became NaN; the best answer before is returned."

    def __str__(self) -> str:
        return self.value


class ConvergenceWarning(UserWarning):
    """The certified gap is larger than the tolerance; the answer is returned with its true gap.

    Examples
    --------
    >>> import warnings, structot as sot
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ConvergenceWarning)  # a missed gap is an error here
    ...     sot.solve([[1.0, 2.0], [3.0, 1.0]]).converged
    True
    """


@dataclass(frozen=True, eq=False)
class Trace:
    """The history of a solve, one entry per certificate: the best value and bound so far.

    Examples
    --------
    >>> import structot as sot
    >>> trace = sot.solve([[1.0, 2.0], [3.0, 1.0]], structure=sot.Groups([0, 0])).trace
    >>> bool((trace.lower_bound <= trace.value).all())
    True
    """

    iteration: Array
    time: Array
    value: Array
    lower_bound: Array

    def __len__(self) -> int:
        return len(self.iteration)
