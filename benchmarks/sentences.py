"""Thousands of sentence pairs: the batched kernel against POT's exact transport, pair by pair.

Rates are per second of processor time of one thread; wall times of a busy machine say little.
Pairs are those of the SICK test fold where the data folder holds it (STRUCTOT_DATA); else sentences
of the same lengths with random words, which a note says.
"""

from __future__ import annotations

import os
import statistics
import time
from typing import Any

import numpy as np
import ot

from benchmarks.measure import say
from benchmarks.rows import Row
from structot.solvers.batch.proofs import Goal
from structot.text import WordMover
from structot.text import pairs as many
from structot.text.sentence import pack

TOL = 1e-3
LIMIT = 30.0  # times ot.emd2
RATE = 1500.0  # pairs per second and core
FASTER = 20.0  # a search than all pairs


def sentences(quick: bool) -> list[Row]:
    """SICK pairs, bigrams on both sides, fixed charge, one core, against ot.emd2."""
    mover, pairs, note = _data(400 if quick else 4927)
    goal = Goal(TOL, 0.0, many.MAX_ITER)
    prepared = [mover.prepare(s) for pair in pairs for s in pair]
    numbers = np.arange(len(prepared)).reshape(-1, 2)
    corpus, vectors = pack([s for s in prepared if s is not None], mover.rows)
    costs = [
        (prepared[s].weights, prepared[t].weights, mover.cost(prepared[s], prepared[t]))  # type: ignore[union-attr, arg-type]
        for s, t in numbers
    ]

    def ours() -> Any:
        # In this thread alone, so that the figure is one of a single core.
        return many.solve_chunk((corpus, vectors, numbers), mover.model, goal)

    def emd() -> Any:
        return [ot.emd2(a, b, M) for a, b, M in costs]

    many.solve_chunk((corpus, vectors, numbers[:2]), mover.model, goal)
    emd_seconds, our_seconds = [], []
    for _ in range(3 if quick else 5):
        start = time.process_time()
        emd()
        middle = time.process_time()
        table = ours()
        emd_seconds.append(middle - start)
        our_seconds.append(time.process_time() - middle)
        say(f"    emd2 {emd_seconds[-1]:.3f} s, ours {our_seconds[-1]:.3f} s")
    seconds, baseline = statistics.median(our_seconds), statistics.median(emd_seconds)
    gap = float(((table[:, 0] - table[:, 1]) / table[:, 0]).max())
    common = {"ours": seconds, "gap": gap, "tol": TOL, "method": "batch", "note": note}
    case = f"{len(numbers)} {note}, bigrams, gap {TOL:g}"
    wanted = len(numbers) / RATE  # seconds that the wanted rate allows
    rate = f"≥ {RATE:g} pairs/s per core ({len(numbers) / seconds:.0f})"
    return [
        Row("sentences", case, "POT emd2", seconds / baseline, LIMIT, f"≤ {LIMIT:g}× its time",
            baseline=baseline, **common),
        Row("sentences", case, "the wanted rate", seconds / wanted, 1.0, rate, baseline=wanted,
            **common),
        *_nearest(quick),
    ]  # fmt: skip


def _nearest(quick: bool) -> list[Row]:
    """The ten nearest of 10 000 sentences by the index, against all pairs; the same neighbours."""
    from structot.experiments._sentence_speed import search

    size, queries = (1000, 2) if quick else (10_000, 10)
    try:
        found = search(0, size, os.environ.get("STRUCTOT_DATA"), queries)
    except FileNotFoundError as error:
        say(f"    no search: {error}")
        return []
    say(f"    {found['solved']:.0f} pairs solved per query, {found['same']} of {queries} the same")
    ratio = found["search_seconds"] / found["all_seconds"]
    if found["same"] < queries:
        ratio = float("inf")  # a wrong answer is no answer
    case = f"10 nearest of {found['sentences']} sentences, {queries} queries"
    return [
        Row("sentences", case, "all pairs", ratio, 1.0 / FASTER, f"≥ {FASTER:g} times faster",
            ours=found["search_seconds"], baseline=found["all_seconds"], tol=TOL, method="batch"),
    ]  # fmt: skip


def _data(count: int) -> tuple[WordMover, list[tuple[Any, Any]], str]:
    from structot.datasets.sick import glove, sick

    try:
        test = sick().part("test")
        mover = WordMover(glove("840b"), debias=False)
    except FileNotFoundError:
        return (*_random(count), "random pairs (no SICK in the data folder)")
    pairs = list(zip(test.source, test.target))[:count]
    return mover, pairs, "SICK test pairs"


def _random(count: int) -> tuple[WordMover, list[tuple[Any, Any]]]:
    """Sentences of 3 to 17 words, about as long as those of SICK; some words in common."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(2000)]
    mover = WordMover((words, rng.normal(size=(2000, 300))), debias=False)
    pairs = []
    for _ in range(count):
        source = [words[k] for k in rng.integers(0, 2000, rng.integers(4, 16))]
        target = [words[k] for k in rng.integers(0, 2000, rng.integers(4, 16))]
        shared = min(len(source), len(target)) // 2
        target[:shared] = source[:shared]
        pairs.append((source, target))
    return mover, pairs
