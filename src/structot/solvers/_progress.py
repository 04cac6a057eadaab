"""A live bar with iteration, value, bound and gap; silent when nobody watches a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def live_progress(wanted: bool, tol: float) -> Iterator[Callable[[str, Any], None]]:
    """A function that shows a method and a state; it does so only if wanted, on a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda method, state: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
    except ImportError:
        raise ImportError("progress=True needs rich: pip install 'structot[cli]'") from None
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0, text="")

        def show(method: str, state: Any) -> None:
            text = (
                f"iteration {state.iteration}  {state.time:.1f} s  value {state.value:.6g}  "
                f"bound {state.lower_bound:.6g}  gap {state.gap:.1e} → {tol:.0e}"
            )
            bar.update(task, description=method, completed=_done(state.gap, tol), text=text)

        yield show


def _done(gap: float, tol: float) -> float:
    """How far the gap has come from 1 to the tolerance, in orders of magnitude."""
    if not 0 < gap < 1 or tol >= 1:
        return float(gap <= tol)
    return min(1.0, math.log(gap) / math.log(max(tol, 1e-16)))
