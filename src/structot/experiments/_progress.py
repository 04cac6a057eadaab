"""A bar over tasks with the time left; on something that is no terminal, a line now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["task_bar"]

_EVERY = 15.0  # seconds between two lines where there is no terminal


class _Silent:
    """Nobody watches."""

    def expect(self, tasks: int, done: int) -> None:
        """More tasks are known, so many of which are finished already."""

    def begin(self, key: str) -> None:
        """A task starts."""

    def advance(self, key: str) -> None:
        """A task is finished."""


class _Lines(_Silent):
    """A line at the start, at most one every few seconds, and one at the end of a stage."""

    def __init__(self, name: str) -> None:
        self.name, self.total, self.done, self.fresh = name, 0, 0, 0
        self.start = self.last = time.monotonic()

    def expect(self, tasks: int, done: int) -> None:
        more = "more " if self.total else ""
        self.total, self.done = self.total + tasks, self.done + done
        kept = f", {done} kept from an earlier run" if done else ""
        self._say(f"{tasks} {more}tasks{kept}")

    def advance(self, key: str) -> None:
        self.done, self.fresh = self.done + 1, self.fresh + 1
        now = time.monotonic()
        if self.done == self.total or now - self.last > _EVERY:
            self.last = now
            left = (now - self.start) / self.fresh * (self.total - self.done)
            rest = f", about {left:.0f} s left" if left else f" in {now - self.start:.0f} s"
            self._say(f"{self.done} of {self.total} done{rest}")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{self.name}: {text}\n")
        sys.stderr.flush()


class _Bar(_Silent):
    """A line of rich's progress display."""

    def __init__(self, progress: Any, name: str) -> None:
        self.progress, self.total = progress, 0
        self.line = progress.add_task(name, total=0, key="")

    def expect(self, tasks: int, done: int) -> None:
        self.total += tasks
        self.progress.update(self.line, total=self.total, advance=done)

    def begin(self, key: str) -> None:
        self.progress.update(self.line, key=key)

    def advance(self, key: str) -> None:
        self.progress.update(self.line, advance=1, key=key)


@contextmanager
def task_bar(name: str, wanted: bool) -> Iterator[_Silent]:
    """Something to tell about tasks: a bar on a terminal, lines elsewhere, or nothing."""
    if not wanted:
        yield _Silent()
        return
    if not sys.stderr.isatty():
        yield _Lines(name)
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        raise ImportError("a progress bar needs rich: pip install 'structot[cli]'") from None
    console = Console(stderr=True)
    wide = console.width >= 100  # on a narrow terminal the count and the time left come first
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(40 if wide else 5),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        *((TimeElapsedColumn(), TextColumn("[dim]{task.fields[key]}")) if wide else ()),
    )
    # Tasks may take minutes: the speed is estimated over an hour, not over the last half minute.
    with Progress(*columns, console=console, speed_estimate_period=3600.0) as progress:
        yield _Bar(progress, name)
