"""The time a solve may take, known wherever it spends it.

One deadline is in force at a time (per thread of control); loops that may take long ask
`check_time()` once per round and are left by `OutOfTime` when it has passed, which the one loop in
`solvers/_loop.py` turns into a status. Foreign solvers are told how much time is left, or, where
they cannot be told, run in a thread of their own that is left behind.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

# How often a call of a foreign solver looks at the clock, in seconds; an interruption by the user
# is noticed as soon.
_LOOK_EVERY = 0.02
# How long the end of the process waits for calls that were left behind.
_WAIT_AT_EXIT = 1.0


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
        if self._seconds == float("inf"):  # asked by every step: the clock need not be read
            return self._seconds
        return max(self._seconds - self.elapsed, 0.0)

    def reserve(self, seconds: float) -> None:
        """Keep some time back for what follows the work under this deadline."""
        self._seconds -= seconds

    def postpone(self, seconds: float) -> None:
        """Leave out so many seconds that have passed."""
        self._begin += seconds

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


@contextmanager
def uncounted() -> Iterator[None]:
    """What happens inside does not count: imports, which are made once per process."""
    deadline = _current.get()
    before = 0.0 if deadline is None else deadline.elapsed
    try:
        yield
    finally:
        if deadline is not None:
            deadline.postpone(deadline.elapsed - before)


def call_foreign(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The same call in another thread, which is left behind at the deadline or an interruption.

    For compiled code that neither looks at the clock nor lets signals through, and releases the
    GIL. What it returns after it was left behind is dropped.
    """
    with _lock:
        worker = _idle.pop() if _idle else _Worker()
    call = worker.make(lambda: function(*args, **kwargs))
    while not call.done.wait(_LOOK_EVERY):
        check_time()
    if call.error is not None:
        raise call.error
    return call.answer


class _Call:
    """A call, and what became of it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.answer: Any = None
        self.error: BaseException | None = None
        self.done = threading.Event()


class _Worker:
    """A thread that makes calls one after the other: starting one for each would take longer."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True, name="foreign-solver").start()

    def make(self, function: Callable[[], Any]) -> _Call:
        call = _Call(function)
        _under_way.add(call)
        self._calls.put(call)
        return call

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            try:
                call.answer = call.function()
            except BaseException as error:
                call.error = error
            _under_way.discard(call)
            with _lock:  # also after a call that was left behind
                _idle.append(self)
            call.done.set()


_lock = threading.Lock()
_idle: list[_Worker] = []
_under_way: set[_Call] = set()


@atexit.register
def _wait_for_stragglers() -> None:
    # The threads of HiGHS must not be torn down with the process while they work.
    end = time.perf_counter() + _WAIT_AT_EXIT
    for call in list(_under_way):
        call.done.wait(max(end - time.perf_counter(), 0.0))


def _forget_workers() -> None:
    # Threads do not survive a fork.
    global _lock
    _lock = threading.Lock()
    _idle.clear()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
