"""The one progress bar: on a terminal a live line, elsewhere nothing, or a line now and then.

with progress_bar("sentence pairs", wanted, total=len(pairs)) as bar:
    for pair in pairs:
        ...
        bar.advance()
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from structot._extras import optional

__all__ = ["Progress", "live_progress", "progress_bar"]

_LINE_EVERY = 15.0  # seconds between two lines where there is no terminal
_WIDE = 100  # columns of a terminal; on a narrower one the count and the time left come first


class Progress:
    """What a loop may tell of itself; nobody listens to this one."""

    def expect(self, count: int, done: int = 0) -> None:
        """So many more tasks are known, some of which are finished already."""

    def advance(self, count: int = 1) -> None:
        """Tasks are finished."""

    def show(self, text: str, name: str | None = None, share: float | None = None) -> None:
        """What goes on now, perhaps under another name, and the share of it that is done."""

    def note(self, text: str) -> None:
        """A line that stays."""


class _Lines(Progress):
    """A line at the start, at most one every few seconds, and one at the end of a stage."""

    def __init__(self, name: str) -> None:
        self.name, self.total, self.done, self.fresh = name, 0, 0, 0
        self.start = self.last = time.monotonic()

    def expect(self, count: int, done: int = 0) -> None:
        more = "more " if self.total else ""
        self.total, self.done = self.total + count, self.done + done
        kept = f", {done} kept from an earlier run" if done else ""
        self.note(f"{count} {more}tasks{kept}")

    def advance(self, count: int = 1) -> None:
        self.done, self.fresh = self.done + count, self.fresh + count
        now = time.monotonic()
        if self.done == self.total or now - self.last > _LINE_EVERY:
            self.last = now
            left = (now - self.start) / self.fresh * (self.total - self.done)
            rest = f", about {left:.0f} s left" if left else f" in {now - self.start:.0f} s"
            self.note(f"{self.done} of {self.total} done{rest}")

    def note(self, text: str) -> None:
        sys.stderr.write(f"{self.name}: {text}\n")
        sys.stderr.flush()


class _Bar(Progress):
    """A line of rich's display."""

    def __init__(self, display: Any, name: str, total: int | None) -> None:
        self.display, self.name, self.total = display, name, total or 0
        self.line = display.add_task(name, total=total, text="")

    def expect(self, count: int, done: int = 0) -> None:
        self.total += count
        self.display.update(self.line, total=self.total, advance=done)

    def advance(self, count: int = 1) -> None:
        self.display.advance(self.line, count)

    def show(self, text: str, name: str | None = None, share: float | None = None) -> None:
        self.display.update(self.line, description=name, completed=share, text=text)

    def note(self, text: str) -> None:
        self.display.console.print(f"{self.name}: {text}", markup=False, highlight=False)


@contextmanager
def progress_bar(
    name: str,
    wanted: bool = True,
    total: int | None = None,
    *,
    counted: bool = True,
    lasting: bool = False,
) -> Iterator[Progress]:
    """A bar on the error stream, if it is wanted and somebody watches.

    Parameters
    ----------
    name
        What the line begins with.
    wanted
        Whether the user asked for it.
    total
        Number of tasks, as far as known; see `Progress.expect`. None: the bar only shows life.
    counted
        Whether to show how many tasks are done and the time left.
    lasting
        For work of minutes: the bar stays when it is done, and where there is no terminal lines
        take its place.
    """
    try:
        rich = (
            optional("rich.progress", "progress=True") if wanted and sys.stderr.isatty() else None
        )
    except ModuleNotFoundError:
        if not lasting:  # the user asked for a bar
            raise
        rich = None
    if rich is None:
        yield _Lines(name) if wanted and lasting else Progress()
        return
    console = optional("rich.console", "progress=True").Console(stderr=True)
    wide = console.width >= _WIDE
    columns: list[Any] = [rich.TextColumn("{task.description}"), rich.BarColumn(40 if wide else 5)]
    if counted:
        columns += [rich.MofNCompleteColumn(), rich.TimeRemainingColumn(), rich.TextColumn("left")]
        columns += [rich.TimeElapsedColumn()] if wide else []
    if wide or not counted:
        columns.append(rich.TextColumn("{task.fields[text]}", markup=False))
    # Tasks may take minutes: the speed is estimated over an hour, not over the last half minute.
    options: dict[str, Any] = {"console": console, "transient": not lasting}
    with rich.Progress(*columns, **options, speed_estimate_period=3600.0) as display:
        yield _Bar(display, name, total)


@contextmanager
def live_progress(wanted: bool, tol: float) -> Iterator[Callable[[str, Any], None]]:
    """A function that shows a method and the state of a solve: iteration, value, bound and gap."""
    with progress_bar("", wanted, 1, counted=False) as bar:

        def show(method: str, state: Any) -> None:
            text = (
                f"iteration {state.iteration}  {state.time:.1f} s  value {state.value:.6g}  "
                f"bound {state.lower_bound:.6g}  gap {state.gap:.1e} → {tol:.0e}"
            )
            bar.show(text, method, _orders_done(state.gap, tol))

        yield show


def _orders_done(gap: float, tol: float) -> float:
    """How far the gap has come from 1 to the tolerance, in orders of magnitude."""
    if not 0 < gap < 1 or tol >= 1:
        return float(gap <= tol)
    return min(1.0, math.log(gap) / math.log(max(tol, 1e-16)))
