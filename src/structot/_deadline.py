"""The time a solve may take, known wherever it spends it.

One deadline is in force at a time (per thread of control); loops that may take long ask
`check_time()` once per round and are left by `OutOfTime` when it has passed, which the one loop in
`solvers/_loop.py` turns into a status. Foreign solvers are told how much time is left, or, where
they cannot be told, run in a thread of their own that is left behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

# How often a call of a foreign solver looks at the clock, in seconds; an interruption by the user
# is noticed as soon.
_GLANCE = 0.02


class OutOfTime(Exception):
    """The deadline in force has passed."""


class Deadline:
    """A moment after which work must end, measured by a clock that the caller may stop.

    Parameters
    ----------
    seconds
        From now on; None for no limit.
    clock
        Seconds since some moment.
    """

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._clock = clock
        self._begin = clock()
        self._seconds = float("inf") if seconds is None else seconds

    @property
    def elapsed(self) -> float:
        return self._clock() - self._begin

    @property
    def left(self) -> float:
        """Seconds left, inf without a limit, never negative."""
        return max(self._seconds - self.elapsed, 0.0)

    def reserve(self, seconds: float) -> None:
        """Keep some time back for what follows the work under this deadline."""
        self._seconds -= seconds

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Make this the deadline that `check_time` asks."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)


_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def time_left() -> float:
    """Seconds until the deadline in force, inf if there is none."""
    deadline = _current.get()
    return float("inf") if deadline is None else deadline.left


def check_time() -> None:
    """Raise `OutOfTime` when the deadline in force has passed."""
    if time_left() <= 0.0:
        raise OutOfTime


def call_foreign(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same call in a thread that is left behind at the deadline or at an interruption.

    For compiled code that neither looks at the clock nor lets signals through, and releases the
    GIL. What it returns after it was left behind is dropped.
    """
    answer: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            answer.append(function(*args, **kwargs))
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True, name="structot-foreign").start()
    while not done.wait(_GLANCE):
        check_time()
    if failure:
        raise failure[0]
    return answer[0]
