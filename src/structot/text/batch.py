"""Many sentence pairs at once: packed for the compiled kernels, spread over threads or machines.

Notation: a pair (s, t) is two numbers of sentences; `Answers` hold one entry per pair. What comes
out for a pair depends on its two sentences alone, not on how the pairs were divided.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._parallel import over_blocks
from structot.text import _kernels
from structot.text._blocks import Model
from structot.text._kernels import Corpus

Array = np.ndarray
Job = tuple[Callable[..., Array], tuple]  # a function and its arguments, which travel to a worker

MAX_ITER = 20_000
_CHUNK = 1024  # pairs that go to another process at a time
_WORK = 40  # a structured pair costs about as much per edge as this many edges of a block


@dataclass(frozen=True, eq=False)
class Sentence:
    """Kept words, their rows among the vectors, weights of sum 1, and phrases (see `phrases`)."""

    words: tuple[str, ...]
    rows: Array
    weights: Array
    phrases: list[Array]

    @property
    def key(self) -> bytes:
        """Equal for sentences that mean the same problem."""
        parts = [self.rows, self.weights, *self.phrases]
        sizes = np.array([len(part) for part in parts])
        return b"".join(part.tobytes() for part in (sizes, *parts))


@dataclass(frozen=True, eq=False)
class Answers:
    """lower_bound <= optimum <= value for every pair; code 0 where the gap is certified."""

    value: Array
    lower_bound: Array
    n_iter: Array
    code: Array

    @property
    def gap(self) -> Array:
        """(value - lower_bound) / value, 0 where both are 0."""
        difference = self.value - self.lower_bound
        return difference / np.where(self.value > 0, self.value, 1.0)


def pack(sentences: Sequence[Sentence], vectors: Callable[[Array], Array]) -> tuple[Corpus, Array]:
    """The sentences as flat arrays, and the vectors of their words only."""
    rows = [sentence.rows for sentence in sentences]
    used, word = np.unique(np.concatenate([np.empty(0, np.int64), *rows]), return_inverse=True)
    members = [_joined(sentence.phrases) for sentence in sentences]
    begins = [_starts([len(p) for p in sentence.phrases]) for sentence in sentences]
    corpus = Corpus(
        word.astype(np.int64),
        np.concatenate([np.empty(0), *(sentence.weights for sentence in sentences)]),
        _starts([len(row) for row in rows]),
        _joined(members),
        _starts([len(m) for m in members]),
        _joined(begins),
        _starts([len(b) for b in begins]),
    )
    return corpus, vectors(used.astype(np.int64))


def _joined(parts: Sequence[Array]) -> Array:
    return np.concatenate([np.empty(0, np.int64), *parts]).astype(np.int64)


def _starts(sizes: Sequence[int]) -> Array:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def restrict(corpus: Corpus, vectors: Array, pairs: Array) -> tuple[Corpus, Array, Array]:
    """The part of a corpus that some pairs need, and the pairs in its numbers."""
    sentences, renumbered = np.unique(pairs, return_inverse=True)

    def cut(values: Array, offset: Array) -> list[Array]:
        return [values[offset[s] : offset[s + 1]] for s in sentences]

    words = cut(corpus.word, corpus.offset)
    members = cut(corpus.member, corpus.member_offset)
    begins = cut(corpus.begin, corpus.begin_offset)
    used, word = np.unique(_joined(words), return_inverse=True)
    part = Corpus(
        word.astype(np.int64),
        np.concatenate([np.empty(0), *cut(corpus.weight, corpus.offset)]),
        _starts([len(w) for w in words]),
        _joined(members),
        _starts([len(m) for m in members]),
        _joined(begins),
        _starts([len(b) for b in begins]),
    )
    return part, vectors[used], renumbered.reshape(pairs.shape).astype(np.int64)


def solve_chunk(
    data: tuple[Corpus, Array, Array], model: Model, tol: float, max_iter: int
) -> Array:
    """One row (value, bound, iterations, code) per pair, in this thread alone.

    Corpus, vectors and pairs come as one tuple: joblib hands separate arrays to a dask cluster as
    data of their own, on one worker only, and a task whose data died with a worker is not repeated.
    """
    corpus, vectors, pairs = data
    answer = np.empty((len(pairs), 4))
    _kernels.solve_pairs(0, len(pairs), pairs, corpus, vectors, model, tol, max_iter, answer)
    return answer


def solve_here(
    corpus: Corpus, vectors: Array, pairs: Array, model: Model, tol: float, max_iter: int
) -> Array:
    """The same by the threads of this process."""
    answer = np.empty((len(pairs), 4))

    def work(first: int, last: int) -> None:
        _kernels.solve_pairs(first, last, pairs, corpus, vectors, model, tol, max_iter, answer)

    over_blocks(_work(corpus, pairs), work)
    return answer


def lower_bounds(corpus: Corpus, vectors: Array, pairs: Array, model: Model) -> Array:
    """Relaxed transport for every pair: never more than the optimum, and no iterations."""
    bound = np.empty(len(pairs))

    def work(first: int, last: int) -> None:
        _kernels.bound_pairs(first, last, pairs, corpus, vectors, model, bound)

    over_blocks(_work(corpus, pairs), work)
    return bound


def _work(corpus: Corpus, pairs: Array) -> Array:
    """Where the work of each pair starts, for an even division."""
    length = np.diff(corpus.offset)
    return _starts(_WORK * length[pairs[:, 0]] * length[pairs[:, 1]])


def solve(
    corpus: Corpus,
    vectors: Array,
    pairs: Array,
    model: Model,
    *,
    tol: float,
    max_iter: int | None = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Answers:
    """Solve all pairs, each to the certified gap ``tol``.

    Parameters
    ----------
    corpus, vectors
        From `pack`.
    pairs
        Numbers of sentences, shape (pairs, 2).
    model
        F of every block; LINEAR is plain transport.
    n_jobs
        As in joblib: None is the threads of this process, unless `joblib.parallel_config` says
        otherwise (a dask cluster, say); 1 is one thread; more than 1 spreads chunks over that many
        workers.
    progress
        Show a bar, if somebody watches a terminal.
    """
    limit = MAX_ITER if max_iter is None else max_iter

    def here(chunk: Array) -> Array:
        if n_jobs == 1:
            return solve_chunk((corpus, vectors, chunk), model, tol, limit)
        return solve_here(corpus, vectors, chunk, model, tol, limit)

    def job(chunk: Array) -> Job:
        return solve_chunk, (restrict(corpus, vectors, chunk), model, tol, limit)

    return collect(pairs, here, job, n_jobs=n_jobs, progress=progress, size=_CHUNK)


def collect(
    pairs: Array,
    here: Callable[[Array], Array],
    job: Callable[[Array], Job],
    *,
    n_jobs: int | None,
    progress: bool,
    size: int,
) -> Answers:
    """The answers of all pairs from chunks of some size: ``here(chunk)``, or jobs for workers."""
    pairs = np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)
    chunks = [pairs[k : k + size] for k in range(0, len(pairs), size)]
    parallel = _workers(n_jobs, progress) if len(chunks) > 1 else None
    found = []
    with _bar(progress, len(pairs)) as advance:
        for rows in map(here, chunks) if parallel is None else _spread(parallel, job, chunks):
            found.append(rows)
            advance(len(rows))
    table = np.concatenate([np.empty((0, 4)), *found])
    return Answers(table[:, 0], table[:, 1], table[:, 2].astype(int), table[:, 3].astype(int))


def _spread(parallel: Any, job: Callable[[Array], Job], chunks: list[Array]) -> Any:
    """The answers of the chunks, in order, from workers."""
    from joblib import delayed

    def calls() -> Iterator[Any]:
        for chunk in chunks:
            function, arguments = job(chunk)
            yield delayed(function)(*arguments)

    return parallel(calls())


def _workers(n_jobs: int | None, progress: bool) -> Any:
    """A joblib pool, or None where the threads of this process do the work."""
    try:
        import joblib
    except ImportError:
        if n_jobs in (None, 1):
            return None
        raise ImportError(f'n_jobs={n_jobs} needs joblib: pip install "structot[text]".') from None
    if joblib.effective_n_jobs(n_jobs) == 1:
        return None
    # A bar needs the answers one by one.
    return joblib.Parallel(n_jobs=n_jobs, return_as="generator" if progress else "list")


@contextmanager
def _bar(wanted: bool, total: int) -> Iterator[Callable[[int], None]]:
    """A function that reports finished pairs; silent unless wanted and on a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda count: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        raise ImportError('progress=True needs rich: pip install "structot[cli]".') from None
    columns = ("sentence pairs", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
