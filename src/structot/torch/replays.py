"""Stages of an iteration recorded once as CUDA graphs, and replayed.

Small problems are bound by launches: an iteration of the interior-point method is a thousand
kernels of a few microseconds, and a launch takes longer than that. A graph launches all kernels of
a stage at once. It is recorded in the first iteration of a solve, and given up with the solve.

What graphs allocate comes from one pool for each device, whose memory the next solve uses again.
It is held between solves, some arrays of the size of the plan of the largest of them, which has at
most `MOST_PAIRS` pairs; `release` gives it back. Graphs that share a pool must not run at the same
time: a solve that finds the pool in use goes without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from structot._deadline import OutOfTime

# Of larger problems the kernels take longer than their launches.
MOST_PAIRS = 1 << 22


class _Stage(NamedTuple):
    """A graph, what it reads, and what it returns."""

    graph: torch.cuda.CUDAGraph
    numbers: tuple[Tensor, ...]
    found: Tensor | None  # numbers, then 1 if a factorisation failed


class _Pool:
    """Memory for the graphs of one device, and the stream on which they are recorded."""

    def __init__(self, device: torch.device) -> None:
        self.lock = threading.Lock()
        self.stream = torch.cuda.Stream(device)
        # A pool lives as long as a graph that uses it: this one, of nothing.
        self._keeper = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            self._keeper.capture_begin(capture_error_mode="thread_local")
            torch.zeros(1, device=device)
            self._keeper.capture_end()
        self.id = self._keeper.pool()


class Replays:
    """The graphs of one solve."""

    # Pools by the number of their device; None for a device whose libraries are not loaded yet,
    # which no graph may do.
    _pools: ClassVar[dict[int, _Pool | None]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, pool: _Pool) -> None:
        self._pool = pool
        self._stages: dict[str, _Stage] = {}
        self.failures: list[Tensor] = []
        self.recording = self.given_up = False

    @classmethod
    @contextmanager
    def on(cls, device: torch.device, pairs: int) -> Iterator[Replays | None]:
        """Graphs for one solve, or None where there are none to be had."""
        if device.type != "cuda" or pairs > MOST_PAIRS or not _can_record():
            yield None
            return
        number = torch.cuda.current_device() if device.index is None else device.index
        if number not in cls._pools:
            yield None
            cls._pools.setdefault(number, None)
            return
        with cls._guard, torch.cuda.device(number):
            pool = cls._pools[number] = cls._pools[number] or _Pool(device)
        if not pool.lock.acquire(blocking=False):
            yield None
            return
        try:
            yield cls(pool)
        finally:
            pool.lock.release()

    @classmethod
    def release(cls) -> None:
        """Forget all pools that are not in use; emptying the cache then gives their memory back."""
        with cls._guard:
            for number, pool in cls._pools.items():
                if pool is not None and not pool.lock.locked():
                    cls._pools[number] = None

    def run(self, work: Callable[..., tuple[Any, ...]], numbers: tuple[float, ...]) -> list[float]:
        """What a stage returns; it is recorded when it is met for the first time."""
        stage = self._stages.get(work.__name__)
        if stage is None and not self.given_up:
            stage = self._record(work, numbers)
        if stage is None or self.given_up:
            return numbers_of(work(*numbers))
        for place, x in zip(stage.numbers, numbers, strict=True):
            place.fill_(x)
        stage.graph.replay()
        if stage.found is None:
            return []
        *found, failed = stage.found.tolist()
        if failed:
            # What to do about a factorisation that failed is decided on the host, step by step;
            # more will fail, so that this is the way to the end.
            self.given_up = True
            return numbers_of(work(*numbers))
        return found

    def _record(
        self, work: Callable[..., tuple[Any, ...]], numbers: tuple[float, ...]
    ) -> _Stage | None:
        stream, graph = self._pool.stream, torch.cuda.CUDAGraph()
        zero = torch.zeros((), dtype=torch.float64, device=stream.device)
        places = tuple(zero + x for x in numbers)
        stream.wait_stream(torch.cuda.current_stream(stream.device))
        self.recording, self.failures = True, []
        try:
            with torch.cuda.stream(stream):
                graph.capture_begin(pool=self._pool.id, capture_error_mode="thread_local")
                try:
                    found = [*work(*places)]
                    failed = torch.stack(self.failures).any() if self.failures else zero
                    shown = torch.stack([*found, failed.to(torch.float64)]) if found else None
                finally:
                    graph.capture_end()
        except OutOfTime:
            raise
        except RuntimeError:  # an operation that cannot be recorded, or no memory for it
            self.given_up = True
            return None
        finally:
            self.recording = False
        stage = self._stages[work.__name__] = _Stage(graph, places, shown)
        return stage


def numbers_of(found: tuple[Any, ...]) -> list[float]:
    """The numbers of a stage as floats, with one look at the device."""
    return torch.stack(found).tolist() if found else []


def _can_record() -> bool:
    """Whether linear algebra is that of a library which can be recorded."""
    with suppress(AttributeError):
        return "Magma" not in str(torch.backends.cuda.preferred_linalg_library())
    return False
