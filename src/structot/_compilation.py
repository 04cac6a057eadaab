"""Time spent compiling: a clock that leaves it out, and a word to whoever waits.

The kernels are functions of numba, compiled when first called with arguments of some types and
stored on disk for all later processes. numba tells listeners when it begins and ends to compile a
function: from whatever thread calls it, nested where one kernel calls another, and not at all when
the function is loaded from disk (half a second for the first solve of a process). Nothing here
loads numba before it is needed.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_now = time.perf_counter
PATIENCE = 2.0  # seconds of compiling in one call, after which it is said
MESSAGE = (
    "structot is compiling its kernels, once per installation (a minute or two for all of them); "
    "`structot warmup` does it ahead of time."
)

logger = logging.getLogger("structot")


class Stopwatch:
    """Seconds since it was made, less those in which some thread compiled kernels of ours.

    Time limits and reported times are taken from it: they are those of a process in which the
    kernels were compiled before. Making one also marks the beginning of a call, whose compilation
    is announced when it takes long (see `announce`).

    Examples
    --------
    >>> watch = Stopwatch()
    >>> 0 <= watch.elapsed() <= watch.elapsed()
    True
    """

    def __init__(self) -> None:
        announce()
        self._begin = _now()
        self._before = _meter.seconds(self._begin)

    def elapsed(self) -> float:
        """Seconds, compilation not counted. Takes about a microsecond."""
        now = _now()
        return max(0.0, (now - self._begin) - self.compiling(now))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """What happens inside does not count."""
        before = self.elapsed()
        try:
            yield
        finally:
            self._begin += self.elapsed() - before

    def compiling(self, now: float | None = None) -> float:
        """Seconds spent compiling since the start."""
        now = _now() if now is None else now
        return max(0.0, _meter.seconds(now) - self._before)


def announce() -> None:
    """Mark the beginning of a call whose compilation is announced once it took two seconds.

    It is said at most once in a process, and while it goes on: as a line on the error stream if
    that is a terminal, else as a warning of the logger "structot". Who raises the level of that
    logger above WARNING hears nothing of it, on a terminal either.
    """
    _meter.listen()
    _meter.begin_call()


@contextmanager
def unannounced() -> Iterator[None]:
    """Nothing is said inside."""
    with _meter.lock:
        _meter.silent += 1
    try:
        yield
    finally:
        with _meter.lock:
            _meter.silent -= 1


class _Meter:
    """How long kernels of ours have been compiled in this process: the union over all threads."""

    def __init__(self) -> None:
        self.listening = False
        self.told = False
        self.silent = 0  # how many callers want nothing to be said
        self.call = 0.0  # the seconds when the last call began
        # Seconds of finished intervals, and where the one begins that goes on. One object, so that
        # it can be read without the lock.
        self.state: tuple[float, float | None] = (0.0, None)
        self.forget_threads()

    def forget_threads(self) -> None:
        """No thread is compiling: at the start, and in the child of a fork, which has no others."""
        self.lock = threading.RLock()
        self.depth: dict[int, int] = {}  # of the nested compilations of every thread that compiles
        self.state = self.state[0], None
        self.timer: threading.Timer | None = None

    def seconds(self, now: float) -> float:
        """Seconds of compilation up to now."""
        total, since = self.state
        if since is None:
            return total
        thread = threading.get_ident()
        if thread in self.depth:
            # Whoever asks is not compiling: its end was lost, as may happen upon Ctrl-C.
            self.depth[thread] = 1
            self.end(thread)
        return total + max(0.0, now - since)

    def listen(self) -> None:
        """Be told by numba from now on."""
        if self.listening:
            return
        from numba.core import event

        meter = self

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                if _is_ours(event):
                    meter.start(threading.get_ident())

            def on_end(self, event: Any) -> None:
                if _is_ours(event):
                    meter.end(threading.get_ident())

        with self.lock:
            if not self.listening:
                event.register("numba:compile", Listener())
                self.listening = True

    def begin_call(self) -> None:
        """What was compiled before does not count towards the announcement."""
        with self.lock:
            if not self.depth:
                self.call = self.state[0]

    def start(self, thread: int) -> None:
        """This thread begins to compile a kernel, perhaps within another one."""
        with self.lock:
            if not self.depth:
                total, now = self.state[0], _now()
                self.state = total, now
                if not (self.told or self.silent):
                    self.timer = threading.Timer(PATIENCE - (total - self.call), self.tell)
                    self.timer.daemon = True
                    self.timer.start()
            self.depth[thread] = self.depth.get(thread, 0) + 1

    def end(self, thread: int) -> None:
        """This thread has compiled the innermost kernel that it had begun."""
        with self.lock:
            if thread not in self.depth:  # it began before anybody listened
                return
            self.depth[thread] -= 1
            if self.depth[thread] == 0:
                del self.depth[thread]
            total, since = self.state
            if not self.depth and since is not None:
                self.state = total + _now() - since, None
                if self.timer is not None:
                    self.timer.cancel()
                    self.timer = None

    def tell(self) -> None:
        """Announce the compilation that goes on."""
        with self.lock:
            if self.told or not self.depth:
                return
            self.told = True
        if not logger.isEnabledFor(logging.WARNING):
            return
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(f"{MESSAGE}\n")
            sys.stderr.flush()
        else:
            # A warning rather than an information: without a configuration of the user's, as in
            # a notebook, Python shows only those.
            logger.warning(MESSAGE)


def _is_ours(event: Any) -> bool:
    module = getattr(getattr(event.data["dispatcher"], "py_func", None), "__module__", None)
    return str(module).split(".")[0] == __name__.split(".")[0]


_meter = _Meter()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_meter.forget_threads)
