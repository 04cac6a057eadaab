"""What the experiments share: the certificate of a result as plain values, and tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from structot.result import Result

__all__ = ["certificate", "reached", "table"]


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
    | a | 1e-05 |
    """
    lines = [
        "| " + " | ".join(head) + " |",
        "| --- |" + " ---: |" * (len(head) - 1),
        *("| " + " | ".join(_text(cell) for cell in row) + " |" for row in rows),
    ]
    return "\n".join(lines)


def _text(cell: Any) -> str:
    return f"{cell:.3g}" if isinstance(cell, float) else str(cell)
