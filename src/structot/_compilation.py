"""Time spent compiling: a clock that leaves it out, a word to whoever waits, and all of it at once.

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
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

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
def _unannounced() -> Iterator[None]:
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


# --------------------------------------------------------------------------------------------------
# Everything at once
# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Warmup:
    """What `warmup` did: its seconds, how many of them compiling, and where the kernels are kept.

    ``folder`` is None where nothing is compiled (NUMBA_DISABLE_JIT).
    """

    seconds: float
    compiling: float
    folder: str | None


def warmup(report: Callable[[str, int, int], None] | None = None) -> Warmup:
    """Compile every kernel for every kind of argument, by solving tiny problems.

    Later processes load them from the disk. What is there already is not compiled again.

    Parameters
    ----------
    report
        Called with the name of a task, how many tasks are done, and how many there are: before
        each of them, and with an empty name at the end.
    """
    told = report or (lambda name, done, total: None)
    watch, begin = Stopwatch(), _now()
    with _unannounced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether a toy problem converges does not matter
        for done, (name, task) in enumerate(_TASKS.items()):
            told(name, done, len(_TASKS))
            task()
    told("", len(_TASKS), len(_TASKS))
    return Warmup(_now() - begin, watch.compiling(), _folder())


def _folder() -> str | None:
    """The folder of the kernels on disk."""
    paths = [kernel.stats.cache_path for kernel in kernels() if hasattr(kernel, "stats")]
    return os.path.commonpath(paths) if paths else None


def kernels() -> list[Any]:
    """All kernels of the modules that are loaded."""
    modules = [m for name, m in sorted(sys.modules.items()) if name.startswith("structot.")]
    found = {id(f): f for m in modules for f in vars(m).values() if hasattr(f, "targetoptions")}
    return [f for f in found.values() if f.py_func.__module__.startswith("structot.")]


def _solve(structure: Any = None, M: Any = None, **options: Any) -> None:
    from structot.solvers.solve import solve

    # Long enough to visit every kernel, also where a tiny problem does not converge.
    options = {"tol": 1e-9, "max_iter": 40, **options}
    solve(_cost() if M is None else M, structure=structure, **options)


def _cost(n: int = 7, m: int = 6) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.5, 1.5, (n, m))


_ROWS, _COLS = np.arange(7) % 3, np.arange(6) % 2


def _groups() -> None:
    from structot import concave
    from structot.structures import Groups, Modular

    for g in (concave.ThresholdSqrt(0.5), concave.Sqrt()):
        _solve(Groups(_ROWS, _COLS, g))
        _solve(0.3 * Modular() + Groups(_ROWS, _COLS, g))
    _solve(Groups(_ROWS, _COLS, lambda x: np.sqrt(x)))
    forbidden = _cost()
    forbidden[0, 0] = np.inf
    _solve(Groups(_ROWS, _COLS), forbidden)


def _layouts() -> None:
    """Compiled anew for matrices by columns, for views, and for arrays that may not be written."""
    from structot.structures import Groups

    M = _cost()
    by_columns = np.asfortranarray(M)
    read_only = M.copy(), by_columns.copy(order="F")
    for array in read_only:
        array.setflags(write=False)
    for array in (by_columns, np.repeat(M, 2, axis=1)[:, ::2], *read_only):
        F = Groups(_ROWS, _COLS).bind(array)
        F.extension(array)
        F.prox(array)
        _solve(Groups(_ROWS, _COLS), array, max_iter=5)


def _entropic() -> None:
    from structot.structures import Coverage, Groups, Modular

    charge = Coverage(_ROWS, _COLS, weights=0.1)
    for structure in (None, Groups(_ROWS, _COLS), Modular() + charge, charge):
        _solve(structure, reg=0.1)
    _solve(None, _cost(640, 2), reg=0.1)  # more unknowns than are worth a Cholesky factor


def _splitting() -> None:
    from structot.structures import Coverage, Groups, Hierarchy, Modular

    overlapping = [[0, 1, 2, 3], [3, 4, 5, 6]]
    _solve(Groups(overlapping, None))
    _solve(Modular() + Coverage.of_sets([_cost() > 1.0, _cost() < 1.1], 0.1))
    _solve(Hierarchy([_ROWS, _ROWS // 2], [_COLS, _COLS // 2]), method="splitting")
    _solve(Groups(_ROWS, _COLS), method="splitting")


def _cuts() -> None:
    from structot.structures import ChainCut, GraphCut, Modular

    _solve(Modular() + ChainCut(0.1))
    _solve(Modular() + GraphCut([(0, 1), (1, 2)], [(0, 1)]))


def _features() -> None:
    from structot.structures import LogDet, Modular, Rank

    X, Y = _cost(3, 2), _cost(4, 2)
    for structure in (Rank(X, Y), LogDet(X, Y)):
        _solve(Modular() + structure, _cost(3, 4), max_iter=3)


def _other_methods() -> None:
    from structot import concave
    from structot.structures import Groups

    for method in ("mirror_descent", "saddle_mirror_descent", "mirror_prox"):
        _solve(Groups(_ROWS, _COLS), method=method, max_iter=5)
    pieces = concave.PiecewiseLinear([1.0], [1.0, 0.5])
    _solve(Groups(_ROWS, _COLS, pieces), method="linear_program")
    _solve(None, method="exact")


def _building_blocks() -> None:
    from structot import concave, submodular, transport
    from structot.structures import Groups

    M = _cost()
    a, b = np.full(7, 1 / 7), np.full(6, 1 / 6)
    for reg in (1.0, 1e-3):
        transport.sinkhorn(-M / reg, a, b)
    allowed = M < 1.3
    transport.round_plan(np.zeros(M.shape), a, b, allowed=allowed)
    transport.round_plan(M / M.sum(), a, b)
    transport.MarginalProjection(M).project(M, a, b)
    transport.c_transform(M, a, b)
    F = Groups(_ROWS, _COLS, concave.Sqrt()).bind(M)
    for metric in ("euclidean", "cost", "entropy"):
        submodular.project(F, M, metric)
    submodular.prox(F, M)
    submodular.minimize(F, -M)
    submodular.greedy(F, M)


def _sentences() -> None:
    from structot import concave
    from structot.text import WordMover

    words = ["dogs", "cats", "chase", "see"]
    sentences = ["dogs chase cats", "cats see dogs chase", "dogs see"]
    for g in (None, concave.Sqrt()):
        mover = WordMover((words, _cost(4, 3)), concave=g)
        mover.pairwise(sentences, n_jobs=1)
    mover.nearest(sentences[0], sentences, k=1)
    WordMover(mover.vectors, groups=None).distance(sentences[0], sentences[1])


_TASKS: dict[str, Callable[[], None]] = {
    "groups": _groups,
    "sentences": _sentences,
    "kinds of arrays": _layouts,
    "entropy": _entropic,
    "overlapping groups": _splitting,
    "cuts": _cuts,
    "rank and volume": _features,
    "other methods": _other_methods,
    "building blocks": _building_blocks,
}
