"""A shared pool of threads for kernels that release the GIL, safe across threads and forks."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

_SERIAL_BELOW = 40_000  # edges; a hand-over to a thread costs about as much as this many

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None


def n_threads() -> int:
    """How many threads share the blocks: the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(n_threads(), thread_name_prefix="structot")
        return _pool


def _forget_pool() -> None:
    # The threads of a pool do not survive a fork: the child starts its own on first use.
    global _pool, _lock, _blas_users
    _pool, _lock, _blas_users = None, threading.Lock(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


_blas_users = 0
_blas_limit: Any = None


@functools.cache
def _blas_controller() -> Any:
    # Looking for the libraries takes as long as a step on a small problem: once is enough.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Keep BLAS on one thread inside, if threadpoolctl is installed.

    Its threads wait by spinning: on a machine with few or busy cores a Cholesky factor of order
    2000 takes fifteen times as long on two threads as on one. The limit belongs to the process, so
    that only the first of several users sets it and only the last one lifts it.
    """
    global _blas_users, _blas_limit
    try:
        blas = _blas_controller()
    except ImportError:
        yield
        return
    with _lock:
        _blas_users += 1
        if _blas_users == 1:
            _blas_limit = blas.limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _blas_users -= 1
            if _blas_users == 0:
                _blas_limit.restore_original_limits()


def over_blocks(start: np.ndarray, work: Callable[[int, int], object]) -> list:
    """Call ``work(first, last)`` on runs of blocks with about equally many edges each.

    Returns the results in block order, so that sums over them do not depend on timing.
    """
    blocks, edges = start.size - 1, int(start[-1])
    threads = n_threads()
    if threads == 1 or blocks == 1 or edges < _SERIAL_BELOW:
        return [work(0, blocks)]
    cuts = np.searchsorted(start, np.linspace(0, edges, threads + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], cuts, [blocks]]))
    runs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    return list(_executor().map(lambda run: work(*run), runs))


def in_turns(edges: int, work: Callable[[int, int], object]) -> None:
    """Call ``work(turn, turns)`` for every turn at the same time; once if there is little to do."""
    turns = 1 if edges < _SERIAL_BELOW else n_threads()
    if turns == 1:
        work(0, 1)
    else:
        list(_executor().map(lambda turn: work(turn, turns), range(turns)))
