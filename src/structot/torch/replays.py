"""What is done again and again in a solve, recorded once as CUDA graphs and replayed.

Small problems are bound by launches: an iteration of the interior-point method is a thousand
kernels of a few microseconds, and a launch takes longer than that. A graph launches all kernels of
a stage at once. It is recorded in the first iterations of a solve, and given up with the solve; but
for those of the last solve of a kind, which the next one uses if it differs in numbers only.

What graphs allocate comes from one pool for each device, whose memory the next solve uses again.
It is held between solves, some thirty arrays of the size of the plan of the largest of them, which
has at most `MOST_PAIRS` pairs; `release` gives it back. Graphs that share a pool must not run at
the same time: a solve that finds the pool in use goes without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from structot._deadline import OutOfTime
from structot.solvers.interior_point.lanes.namespace import RAISED

# Of larger problems the kernels take longer than their launches.
MOST_PAIRS = 1 << 22
# Factorisations in a stage, at most.
_FACTORISATIONS = 1024
# Triangular systems of a larger order are left to a library that cannot be recorded if they come as
# a batch.
LARGE = 512


class _Recorded(NamedTuple):
    """What was recorded, where it reads its arguments, and what it returns."""

    graph: Any  # with a method `replay`
    places: tuple[Tensor | None, ...]
    found: tuple[Any, ...]
    failed: tuple[Tensor, ...]  # whether a factorisation failed, for each of them
    raised: Tensor  # by what part the diagonal of each of them is raised


class Pool:
    """Memory for the graphs of one device, and the stream on which they are recorded."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.lock = device, threading.Lock()
        self.stream = torch.cuda.Stream(device)
        # A pool lives as long as a graph that uses it: this one, of nothing.
        self._keeper = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self.stream):
            self._keeper.capture_begin(capture_error_mode="thread_local")
            torch.zeros(1, device=device)
            self._keeper.capture_end()
        self.id = self._keeper.pool()
        self.last: tuple[Any, Replays] | None = None  # graphs that fit another solve, and which
        self.broken = False  # a recording has failed: the pool takes no other

    def record(self, work: Callable[[], None]) -> Any:
        """A graph of what it does, which is not done yet."""
        graph = torch.cuda.CUDAGraph()
        self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
        with torch.cuda.stream(self.stream):
            graph.capture_begin(pool=self.id, capture_error_mode="thread_local")
            try:
                work()
            finally:
                graph.capture_end()
        return graph


class Replays:
    """The graphs of one solve."""

    _pools: ClassVar[dict[int, Pool | None]] = {}  # by the number of the device
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._graphs: dict[Any, _Recorded] = {}
        self._met: set[Any] = set()
        self.failures: list[Tensor] = []
        self._raised = torch.zeros(0)
        self.recording = self.given_up = False
        self.work: Any = None  # whatever holds the arrays that the graphs work on

    @classmethod
    @contextmanager
    def on(cls, device: torch.device, pairs: int, kind: Any = None) -> Iterator[Replays | None]:
        """Graphs for one solve with so many pairs, or None where there are none to be had.

        The graphs of the last solve of a ``kind`` are kept for the next one, which must be the same
        but for the numbers in its arrays.
        """
        if device.type != "cuda" or pairs > MOST_PAIRS or not _can_record():
            yield None
            return
        number = torch.cuda.current_device() if device.index is None else device.index
        pool = cls._pool_of(number)
        if pool is None or pool.broken or not pool.lock.acquire(blocking=False):
            yield None
            return
        try:
            with cls.lent(pool, kind) as found:
                yield found
        finally:
            pool.lock.release()

    @classmethod
    @contextmanager
    def lent(cls, pool: Pool, kind: Any) -> Iterator[Replays]:
        """New graphs, or the last ones if they are of this kind."""
        if kind is None:
            yield cls(pool)
            return
        known, pool.last = pool.last, None
        found = known[1] if known is not None and known[0] == kind else cls(pool)
        del known
        yield found
        if not found.given_up:
            pool.last = kind, found

    @classmethod
    def _pool_of(cls, number: int) -> Pool | None:
        """That of a device; None where nothing can be recorded."""
        with cls._guard, torch.cuda.device(number), suppress(RuntimeError):
            pool = cls._pools.get(number) or Pool(torch.device("cuda", number))
            cls._pools[number] = pool
            return pool
        return None

    @classmethod
    def release(cls) -> None:
        """Forget all pools that are not in use; emptying the cache then gives their memory back."""
        with cls._guard:
            for number, pool in cls._pools.items():
                if pool is not None and not pool.lock.locked():
                    pool.last = cls._pools[number] = None

    def run(self, work: Callable[..., tuple[Any, ...]], numbers: tuple[float, ...]) -> list[float]:
        """The numbers that a stage of `NumPy.run` returns; it is recorded when it is first met."""
        graph = self._graphs.get(work.__name__)
        if graph is None:
            zero = torch.zeros((), dtype=torch.float64, device=self._pool.device)
            graph = self._record(work.__name__, work, tuple(zero + x for x in numbers))
        if graph is None or self.given_up:
            return numbers_of(work(*numbers))
        for place, x in zip(graph.places, numbers, strict=True):
            assert place is not None
            place.fill_(x)
        parts = [0] * len(graph.failed)  # places in `RAISED`
        while True:
            graph.graph.replay()
            found = numbers_of((*graph.found, *graph.failed))
            failed = np.flatnonzero(found[len(graph.found) :])
            if failed.size == 0:
                break
            for k in failed:
                parts[k] += 1
            if max(parts) == len(RAISED):
                self.given_up = True
                return numbers_of(work(*numbers))
            now = torch.tensor([RAISED[part] for part in parts], dtype=torch.float64)
            graph.raised[: len(parts)] = now
        if any(parts):
            graph.raised.zero_()
        return found[: len(graph.found)]

    def next_raised(self) -> Tensor:
        """By what part the diagonal of the next factorisation of a recorded stage is raised."""
        return self._raised[len(self.failures)]

    def call(
        self, work: Callable[..., tuple[Any, ...]], *given: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """What a function of tensors of fixed shapes returns; recorded when it is used again.

        What else the function depends on must never change.
        """
        name = work.__qualname__, tuple(x is None for x in given)
        graph = self._graphs.get(name)
        if graph is None and name in self._met:
            places = tuple(None if x is None else x.clone() for x in given)
            graph = self._record(name, work, places)
        self._met.add(name)
        if graph is None:
            return work(*given)
        for place, x in zip(graph.places, given, strict=True):
            if place is not None and x is not None:
                place.copy_(x)
        graph.graph.replay()
        if graph.failed and bool(torch.stack(graph.failed).any()):
            return work(*given)
        return tuple(None if x is None else x.clone() for x in graph.found)

    def _record(
        self, name: Any, work: Callable[..., tuple[Any, ...]], places: tuple[Tensor | None, ...]
    ) -> _Recorded | None:
        if self.given_up:
            return None
        self.recording, self.failures = True, []
        new: dict[str, Any] = {"dtype": torch.float64, "device": self._pool.device}
        self._raised = torch.zeros(_FACTORISATIONS, **new)
        made: list[tuple[Any, ...]] = []

        def do() -> None:
            made.append(tuple(work(*places)))
            made.append(tuple(x.to(torch.float64) for x in self.failures))

        try:
            graph = self._pool.record(do)
        except OutOfTime:
            raise
        except (RuntimeError, IndexError):
            # An operation that cannot be recorded, no memory for it, too many factorisations.
            self.given_up = self._pool.broken = True
            return None
        finally:
            self.recording = False
        found, failed = made
        recorded = _Recorded(graph, places, found, failed, self._raised)
        self._graphs[name] = recorded
        return recorded


def numbers_of(found: tuple[Any, ...]) -> list[float]:
    """The numbers of a stage as floats, with one look at the device."""
    return torch.stack(found).tolist() if found else []


def _can_record() -> bool:
    """Whether linear algebra is that of a library which can be recorded."""
    with suppress(AttributeError):
        return "Magma" not in str(torch.backends.cuda.preferred_linalg_library())
    return False
