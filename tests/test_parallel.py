"""The shared pool of threads: same answers, several callers at once, after a fork."""

from __future__ import annotations

import multiprocessing
import os
import threading

import numpy as np
import pytest

from structot import _parallel
from structot.blocks import kernels
from structot.concave import Sqrt
from structot.structures import Groups

Array = np.ndarray

compiled = hasattr(kernels.prox_blocks, "targetoptions")
needs_compilation = pytest.mark.skipif(not compiled, reason="large problems need compiled kernels")


@pytest.fixture
def four_threads(monkeypatch: pytest.MonkeyPatch):
    """As if the machine had four cores, with a pool of its own."""
    monkeypatch.setattr(_parallel, "get_num_threads", lambda: 4)
    monkeypatch.setattr(_parallel, "_pool", None)
    yield
    if _parallel._pool is not None:
        _parallel._pool.shutdown()


def large_problem(seed: int = 0, n: int = 250, m: int = 240):
    """More edges than one thread takes alone."""
    rng = np.random.default_rng(seed)
    F = Groups(np.arange(n) % 5, np.arange(m) % 4, Sqrt()).bind(rng.uniform(0, 1, (n, m))).layers[0]
    assert F.w.size > _parallel._SERIAL_BELOW
    return F, rng.normal(size=F.w.size)


@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 17, 1000])
def test_runs_cover_every_block_once_in_order(four_threads, blocks: int) -> None:
    rng = np.random.default_rng(blocks)
    start = np.concatenate([[0], np.cumsum(rng.integers(1, 10**5, blocks))])
    runs = _parallel.over_blocks(start, lambda first, last: (first, last))
    assert [i for first, last in runs for i in range(first, last)] == list(range(blocks))
    assert len(runs) <= 4
    assert all(first < last for first, last in runs)


def test_runs_share_the_edges_about_equally(four_threads) -> None:
    start = np.arange(0, 10**6 + 1, 1000)
    runs = _parallel.over_blocks(start, lambda first, last: int(start[last] - start[first]))
    assert len(runs) == 4
    assert max(runs) - min(runs) <= 2000


def test_results_come_in_block_order(four_threads) -> None:
    done = [threading.Event() for _ in range(5)]
    done[4].set()

    def work(first: int, last: int) -> int:
        assert done[first + 1].wait(60)  # the first run ends last
        done[first].set()
        return first

    runs = _parallel.over_blocks(np.arange(5) * 10**5, work)
    assert runs == [0, 1, 2, 3]


def test_small_problems_stay_in_the_calling_thread(four_threads) -> None:
    names = _parallel.over_blocks(
        np.array([0, 10, 20]), lambda first, last: threading.current_thread()
    )
    assert names == [threading.current_thread()]
    assert _parallel._pool is None


def test_turns_are_taken_once_each(four_threads) -> None:
    seen = []
    _parallel.in_turns(1_000_000, lambda turn, turns: seen.append((turn, turns)))
    assert sorted(seen) == [(turn, 4) for turn in range(4)]
    seen.clear()
    _parallel.in_turns(10, lambda turn, turns: seen.append((turn, turns)))
    assert seen == [(0, 1)]


def test_errors_of_workers_reach_the_caller(four_threads) -> None:
    def fail(first: int, last: int) -> None:
        raise RuntimeError(f"block {first}")

    with pytest.raises(RuntimeError, match="block 0"):
        _parallel.over_blocks(np.arange(5) * 10**5, fail)


def test_one_pool_for_all_callers(four_threads) -> None:
    pools = []
    barrier = threading.Barrier(6)

    def ask() -> None:
        barrier.wait()
        _parallel.in_turns(1_000_000, lambda turn, turns: None)
        pools.append(_parallel._pool)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(pool) for pool in pools}) == 1


def test_number_of_threads() -> None:
    assert 1 <= _parallel.get_num_threads() <= (os.cpu_count() or 1)


# ---------------------------------------------------------------------------------- real kernels


@needs_compilation
def test_threads_do_not_change_a_bit(monkeypatch: pytest.MonkeyPatch, four_threads) -> None:
    F, v = large_problem()
    shared = F.prox_edges(v, 30.0, 0.0).X
    vertex = F.greedy_edges(v)
    monkeypatch.setattr(_parallel, "get_num_threads", lambda: 1)
    assert np.array_equal(F.prox_edges(v, 30.0, 0.0).X, shared)
    assert (F.greedy_edges(v) == vertex).all()
    assert shared.any()


@needs_compilation
def test_python_threads_at_once_give_what_one_gives(four_threads) -> None:
    """Three callers share the pool, each with Pools of its own."""
    F, _ = large_problem()
    inputs = [np.random.default_rng(seed).normal(size=(3, F.w.size)) for seed in range(3)]

    def work(vs: Array) -> list[Array]:
        out, last = [], None
        for v in vs:
            last = F.prox_edges(v, 30.0, 0.0, last)
            out.append(last.X.copy())
        return out

    alone = [work(vs) for vs in inputs]
    together: dict[int, list[Array]] = {}
    barrier = threading.Barrier(3)

    def run(k: int) -> None:
        barrier.wait()
        together[k] = work(inputs[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(3):
        assert all((x == y).all() for x, y in zip(together[k], alone[k], strict=True))


@needs_compilation
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_child_starts_a_pool_of_its_own(four_threads) -> None:
    F, v = large_problem()
    expected = F.prox_edges(v, 30.0, 0.0).X
    assert _parallel._pool is not None
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with _parallel._lock:  # a fork at the worst moment: the child must not inherit a held lock
        child = context.Process(target=_forked, args=(queue, F, v, expected))
        child.start()
    child.join(timeout=30)
    if child.is_alive():
        child.kill()
        pytest.fail("the child of a fork hangs")
    assert child.exitcode == 0
    assert queue.get() == (True, True, True)
    assert np.array_equal(F.prox_edges(v, 30.0, 0.0).X, expected)


def _forked(queue, F, v: Array, expected: Array) -> None:
    fresh = _parallel._pool is None
    same = np.array_equal(F.prox_edges(v, 30.0, 0.0).X, expected)
    queue.put((fresh, same, _parallel._pool is not None))
