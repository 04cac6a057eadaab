"""What the experiments share: the certificate of a result as plain values, and tables of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from structot.result import Result

__all__ = ["certificate", "number", "reached", "table"]


def certificate(result: Result, tol: float) -> dict[str, Any]:
    """Value, bound, gap and effort of a result, as JSON values.

    Examples
    --------
    >>> import structot as sot
    >>> certificate(sot.solve([[1.0]]), 1e-4)["converged"]
    True
    """
    return {
        "value": float(result.value),
        "lower_bound": float(result.lower_bound),
        "gap": float(result.gap),
        "tol": tol,
        "converged": result.converged,
        "method": result.method,
        "n_iter": int(result.n_iter),
        "seconds": float(result.time),
    }


def reached(records: Iterable[Mapping[str, Any]]) -> bool:
    """Whether every record that carries a certificate reached its gap."""
    return all(record.get("converged", True) for record in records)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table in Markdown; the first column left, the others right.

    Examples
    --------
    >>> print(table(["name", "gap"], [["a", 1e-5]]))
    | name | gap |
    | --- | ---: |
    | a | 1.0e-05 |
    """
    lines = [
        "| " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * (len(head) - 1),
        *("| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def number(x: float) -> str:
    """Three significant digits, two for what is written with a power of ten.

    Examples
    --------
    >>> number(0.5), number(16.2345), number(12345.0), number(2.34e-5), number(0.0)
    ('0.500', '16.2', '12345', '2.3e-05', '0')
    """
    if x == 0.0 or not math.isfinite(x):
        return "0" if x == 0.0 else "–"
    power = math.floor(math.log10(abs(x)))
    return f"{x:.{max(0, 2 - power)}f}" if -3 <= power < 6 else f"{x:.1e}"


def _text(cell: Any) -> str:
    return number(cell) if isinstance(cell, float) else str(cell)
