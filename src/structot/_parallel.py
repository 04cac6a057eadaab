"""A shared pool of threads for kernels that release the GIL, safe across threads and forks.

How many threads there are is, in this order: what `set_num_threads` said, the environment variable
STRUCTOT_NUM_THREADS, the number of cores this process may use. At one number of threads the answer
of a call does not depend on timing: the parts of the work are a function of the number, and what
they return is put together in the order of the parts.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from structot import _checks

VARIABLE = "STRUCTOT_NUM_THREADS"

_SERIAL_BELOW = 40_000  # edges; a hand-over to a thread costs about as much as this many

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_chosen: int | None = None  # what `set_num_threads` said


def set_num_threads(n: int | None) -> None:
    """Share the work of one call among ``n`` threads from now on.

    May be called at any time and from any thread. What other threads have handed to the pool is
    finished by the threads that are there, which then end; a `solve` that is under way goes on with
    the new number from its next step. Processes that are forked later inherit the number.

    Parameters
    ----------
    n
        1 or more; more than there are cores is allowed. None goes back to the environment variable
        STRUCTOT_NUM_THREADS, or to one thread per core if it is not set.

    Examples
    --------
    >>> import structot as sot
    >>> sot.set_num_threads(1)
    >>> sot.get_num_threads()
    1
    >>> sot.set_num_threads(None)
    """
    global _pool, _chosen
    number = None if n is None else _checks.count("n", n)
    with _lock:
        _chosen = number
        old, _pool = _pool, None
        if old is not None:
            # Under the lock nobody is between asking for the pool and handing work to it. Work
            # that was handed over is done; the threads end when nothing is left.
            old.shutdown(wait=False)


def get_num_threads() -> int:
    """How many threads share the work of one call; see `set_num_threads`.

    Examples
    --------
    >>> import structot as sot
    >>> sot.get_num_threads() >= 1
    True
    """
    if _chosen is not None:
        return _chosen
    asked = _asked_by_environment()
    if asked is not None:
        return asked
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def _asked_by_environment() -> int | None:
    """The number in STRUCTOT_NUM_THREADS, read once; None where it is not set or empty."""
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(
            f"the environment variable {VARIABLE} must be a whole number, 1 or more; got {text!r}. "
            f"Set it to a number of threads, e.g. {VARIABLE}=2, or unset it to use every core."
        )
    return number


def _in_pool(work: Callable[[Any], object], parts: Iterable[Any]) -> list:
    """What ``work`` returns for all parts, in their order; makes the pool if there is none."""
    global _pool
    # `map` hands over every part before it returns. Done under the lock, so that the pool is not
    # closed by `set_num_threads` in between.
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(get_num_threads(), thread_name_prefix="structot")
        answers = _pool.map(work, parts)
    return list(answers)


def _forget_pool() -> None:
    # The threads of a pool do not survive a fork: the child starts its own on first use.
    global _pool, _lock, _blas_users, _blas_thread
    _pool, _lock, _blas_users, _blas_thread = None, threading.Lock(), 0, None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


_BLAS_SHARES = 100  # the least order of a matrix, or root of a length, that BLAS threads share
_blas_users = 0
_blas_limit: Any = None
_blas_thread: ThreadPoolExecutor | None = None


@functools.cache
def _blas_controller() -> ThreadpoolController:
    # Looking for the libraries takes as long as a step on a small problem: once is enough.
    return ThreadpoolController()


def _limit_blas() -> None:
    global _blas_limit
    _blas_limit = _blas_controller().limit(limits=1, user_api="blas")
    _blas_limit.__enter__()


def _release_blas() -> None:
    _blas_limit.__exit__(None, None, None)


@contextmanager
def single_threaded_blas(order: int) -> Iterator[None]:
    """Keep BLAS on one thread inside, for work with matrices of this order.

    Its threads wait by spinning: on a machine with few or busy cores a Cholesky factor of order
    2000 takes fifteen times as long on two threads as on one. The limit belongs to the process, so
    that only the first of several users sets it and only the last one lifts it. threadpoolctl
    listens to one thread at a time, the one that set a limit last and has not lifted it: a thread
    of our own does both, whoever comes first and goes last.
    """
    global _blas_users, _blas_thread
    if order < _BLAS_SHARES:
        yield
        return
    with _lock:
        if _blas_thread is None:
            _blas_thread = ThreadPoolExecutor(1, thread_name_prefix="blas-limit")
        if _blas_users == 0:
            _blas_thread.submit(_limit_blas).result()
        _blas_users += 1
    try:
        yield
    finally:
        with _lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_thread.submit(_release_blas).result()


def over_blocks(start: np.ndarray, work: Callable[[int, int], object]) -> list:
    """Call ``work(first, last)`` on runs of blocks with about equally many edges each.

    Returns the results in block order, so that sums over them do not depend on timing.
    """
    blocks, edges = start.size - 1, int(start[-1])
    threads = 1 if blocks == 1 or edges < _SERIAL_BELOW else get_num_threads()
    if threads == 1:
        return [work(0, blocks)]
    cuts = np.searchsorted(start, np.linspace(0, edges, threads + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [blocks]]))
    runs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return _in_pool(lambda run: work(*run), runs)


def at_once(edges: int, work: Callable[[Any], Any], parts: Iterable[Any]) -> list:
    """What ``work`` returns for all parts, in their order; done at the same time if it is much."""
    parts = list(parts)
    if edges < _SERIAL_BELOW or len(parts) == 1 or get_num_threads() == 1:
        return [work(part) for part in parts]
    return _in_pool(work, parts)


def in_turns(edges: int, work: Callable[[int, int], object]) -> None:
    """Call ``work(turn, turns)`` for every turn at the same time; once if there is little to do."""
    turns = 1 if edges < _SERIAL_BELOW else get_num_threads()
    if turns == 1:
        work(0, 1)
    else:
        _in_pool(lambda turn: work(turn, turns), range(turns))
