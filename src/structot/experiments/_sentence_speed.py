"""How fast: sentence pairs per second of one core, and nearest sentences against all pairs.

Times are those of the processor, in one thread, so that they mean the same on a busy machine.
"""

from __future__ import annotations

import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np

from structot._parallel import get_num_threads, set_num_threads
from structot.datasets.sick import Sick
from structot.experiments._sentence_tasks import load
from structot.solvers.batch.proofs import Goal
from structot.text import Parsed, WordMover
from structot.text import pairs as many
from structot.text.sentence import pack

TOL = 1e-3
QUERIES = 10  # of one task
COMPARED = 2  # of the ten tasks: all pairs as well


def rate(order: bool, data: str | None, limit: int | None = None) -> dict[str, Any]:
    """Pairs per second of SICK test by the preset, phrases ordered or as sets."""
    corpus, vectors = load(data)
    test = corpus.part("test")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*no vector")
        mover = WordMover(vectors, order=order, debias=False)
        every = [x for pair in zip(test.source, test.target) for x in pair]
        prepared = [mover.prepare(sentence) for sentence in every[: 2 * limit if limit else None]]
    known, rows = pack([s for s in prepared if s is not None], mover.rows)
    numbers = np.arange(len(prepared)).reshape(-1, 2)
    goal = Goal(TOL, 0.0, many.MAX_ITER)
    many.solve_chunk((known, rows, numbers[:2]), mover.model, goal)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        table = many.solve_chunk((known, rows, numbers), mover.model, goal)
        seconds.append(time.process_time() - start)
    gap = (table[:, 0] - table[:, 1]) / table[:, 0]
    return {"pairs": len(numbers), "seconds": float(np.median(seconds)), "gap": float(gap.max())}


_FIRST_DISTANCE = """
import time
from structot.text import WordMover
mover = WordMover({"dogs": [1.0, 0.0], "cats": [0.0, 1.0], "chase": [1.0, 1.0]})
mover.distance("dogs chase cats", "cats chase dogs")
print(time.process_time())
"""


def cold() -> dict[str, Any]:
    """Seconds of a process that loads the library and takes one distance, kernels compiled before.

    The kernels come from the disk; the first process fills it.
    """
    command = [sys.executable, "-c", _FIRST_DISTANCE]
    seconds = [float(subprocess.check_output(command, text=True)) for _ in range(4)]
    return {"first": seconds[0], "later": float(np.median(seconds[1:]))}


def crowd(corpus: Sick, count: int) -> list[list[str]]:
    """Different sentences of SICK, then new ones: the subject of one and the rest of another."""
    every = list(dict.fromkeys((*corpus.source, *corpus.target)))
    rng = np.random.default_rng(0)
    found = dict.fromkeys(tuple(every[k].tokens) for k in rng.permutation(len(every)))
    halves = [half for sentence in every if (half := _halves(sentence)) is not None]
    for _ in range(20 * count):
        if len(found) >= count or not halves:
            break
        i, j = rng.integers(0, len(halves), 2)
        found[halves[i][0] + halves[j][1]] = None
    return [list(words) for words in found][:count]


def _halves(sentence: Parsed) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The words before the first helping verb, and the others."""
    tokens = tuple(sentence.tokens)
    for k, word in enumerate(tokens):
        if k and word.lower() in ("is", "are"):
            return tokens[:k], tokens[k:]
    return None


def search(
    part: int, size: int, data: str | None, queries: int = QUERIES, check: bool = True
) -> dict[str, Any]:
    """The ten nearest of ``size`` sentences for some queries, by the index and by all pairs.

    Without ``check`` by the index alone: all pairs take long.
    """
    corpus, vectors = load(data)
    sentences = crowd(corpus, size + 1000)
    asked = sentences[part * queries : (part + 1) * queries]
    rest = sentences[1000:] if len(sentences) > 1000 else sentences[queries:]
    threads = get_num_threads()
    set_num_threads(1)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*no vector")
            mover = WordMover(vectors, on_empty="nan")
            start = time.process_time()
            index = mover.index(rest)
            prepared = time.process_time() - start
            index.nearest(asked[0])
            start = time.process_time()
            found = index.nearest_many(asked, k=10, tol=TOL)
            pruned = time.process_time() - start
            compared = asked if check else []
            start = time.process_time()
            D = mover.pairwise(compared, rest, tol=TOL, n_jobs=1)
            everything = time.process_time() - start
    finally:
        set_num_threads(threads)
    best = np.argsort(np.where(np.isnan(D), np.inf, D), axis=1, kind="stable")[:, :10]
    same = [(row == near.indices).all() for row, near in zip(best, found)]
    return {
        "sentences": len(rest),
        "same": int(np.sum(same)),
        "queries": len(asked),
        "compared": len(compared),
        "solved": float(np.mean([near.n_solved for near in found])),
        "index_seconds": prepared,
        "search_seconds": pruned,
        "all_seconds": everything,
    }
