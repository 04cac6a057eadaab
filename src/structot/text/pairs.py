"""Many sentence pairs at once: the compiled kernels spread over threads or machines.

Notation: a pair (s, t) is two numbers of sentences; `Answers` hold one entry per pair. What comes
out for a pair depends on its two sentences alone, not on how the pairs were divided.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structot._parallel import over_blocks
from structot._typing import Array
from structot.solvers.batch.proofs import Goal
from structot.solvers.batch.workers import Job, over_chunks
from structot.text import _kernels
from structot.text._kernels import Corpus, Model
from structot.text.sentence import restrict, starts

MAX_ITER = 20_000
_CHUNK = 1024  # pairs that go to another process at a time
_WORK = 40  # a structured pair costs about as much per edge as this many edges of a block


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

    def scaled(self, factor: float) -> Answers:
        """The same in another unit of costs."""
        return Answers(factor * self.value, factor * self.lower_bound, self.n_iter, self.code)


def solve_chunk(data: tuple[Corpus, Array, Array], model: Model, goal: Goal) -> Array:
    """One row (value, bound, iterations, code) per pair, in this thread alone.

    Corpus, vectors and pairs come as one tuple: joblib hands separate arrays to a dask cluster as
    data of their own, on one worker only, and a task whose data died with a worker is not repeated.
    """
    corpus, vectors, pairs = data
    answer = np.empty((len(pairs), 4))
    _kernels.solve_pairs(0, len(pairs), pairs, corpus, vectors, model, goal, answer)
    return answer


def solve_here(corpus: Corpus, vectors: Array, pairs: Array, model: Model, goal: Goal) -> Array:
    """The same by the threads of this process."""
    answer = np.empty((len(pairs), 4))

    def work(first: int, last: int) -> None:
        _kernels.solve_pairs(first, last, pairs, corpus, vectors, model, goal, answer)

    over_blocks(_work(corpus, pairs), work)
    return answer


def lower_bounds(query: Corpus, rows: Array, corpus: Corpus, vectors: Array, model: Model) -> Array:
    """Relaxed transport of one sentence to each of a corpus: at most the optimum, no iterations.

    The query is a corpus of one sentence with vectors ``rows`` of its own.
    """
    bound = np.empty(corpus.offset.size - 1)
    distances = _kernels.distances(rows, query.word, vectors)

    def work(first: int, last: int) -> None:
        _kernels.bound_sentences(first, last, query, distances, corpus, model, bound)

    over_blocks(_WORK * query.word.size * corpus.offset, work)
    return bound


def _work(corpus: Corpus, pairs: Array) -> Array:
    """Where the work of each pair starts, for an even division."""
    length = np.diff(corpus.offset)
    return starts(_WORK * length[pairs[:, 0]] * length[pairs[:, 1]])


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
        From `structot.text.sentence.pack`.
    pairs
        Numbers of sentences, shape (pairs, 2).
    model
        F of every block; LINEAR is plain transport.
    n_jobs, progress
        As in `solvers.batch.workers.over_chunks`; None is all threads of this process, 1 is one.
    """
    goal = Goal(tol, 0.0, MAX_ITER if max_iter is None else max_iter)

    def here(chunk: Array) -> Array:
        if n_jobs == 1:
            return solve_chunk((corpus, vectors, chunk), model, goal)
        return solve_here(corpus, vectors, chunk, model, goal)

    def job(chunk: Array) -> Job:
        return solve_chunk, (restrict(corpus, vectors, chunk), model, goal)

    pairs = np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)
    chunks = [pairs[k : k + _CHUNK] for k in range(0, len(pairs), _CHUNK)]
    noun = "sentence pairs"
    found = over_chunks(chunks, here, job, n_jobs=n_jobs, progress=progress, noun=noun)
    table = np.concatenate([np.empty((0, 4)), *found])
    return Answers(table[:, 0], table[:, 1], table[:, 2].astype(int), table[:, 3].astype(int))
