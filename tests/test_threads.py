"""The number of threads: who sets it, and what happens to work that is under way."""

from __future__ import annotations

import multiprocessing
import os
import threading

import numpy as np
import pytest
import threadpoolctl

import structot as sot
from structot import _parallel
from structot._parallel import get_num_threads, over_blocks, set_num_threads

START = np.arange(0, 9) * 10**5  # eight blocks, enough edges to be shared


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(_parallel.VARIABLE, raising=False)
    _parallel._asked_by_environment.cache_clear()
    yield
    monkeypatch.undo()
    _parallel._asked_by_environment.cache_clear()
    set_num_threads(None)


def pool_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name.startswith("structot")]


def settle(threads: list[threading.Thread]) -> None:
    """Wait until these have ended."""
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()


def test_the_number_can_be_set_and_taken_back() -> None:
    default = get_num_threads()
    assert 1 <= default <= (os.cpu_count() or 1)
    for n in (1, 3, np.int64(2)):
        set_num_threads(n)
        assert get_num_threads() == n
        runs = over_blocks(START, lambda first, last: (first, last))
        assert len(runs) == n
    set_num_threads(None)
    assert get_num_threads() == default


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True, float("nan")])
def test_other_numbers_are_refused(n) -> None:
    before = get_num_threads()
    with pytest.raises(ValueError, match="n must be a whole number, 1 or more"):
        set_num_threads(n)
    assert get_num_threads() == before


@pytest.mark.parametrize(("text", "number"), [("3", 3), (" 1 ", 1)])
def test_the_environment_sets_it(monkeypatch, text: str, number: int) -> None:
    monkeypatch.setenv(_parallel.VARIABLE, text)
    assert get_num_threads() == number
    monkeypatch.setenv(_parallel.VARIABLE, "7")  # it is read once
    assert get_num_threads() == number
    set_num_threads(5)
    assert get_num_threads() == 5
    set_num_threads(None)
    assert get_num_threads() == number


def test_an_empty_variable_is_none(monkeypatch) -> None:
    default = get_num_threads()
    _parallel._asked_by_environment.cache_clear()
    monkeypatch.setenv(_parallel.VARIABLE, "")
    assert get_num_threads() == default


@pytest.mark.parametrize("text", ["0", "-2", "two", "1.5", "1,2"])
def test_a_wrong_variable_is_told_by_name(monkeypatch, text: str) -> None:
    monkeypatch.setenv(_parallel.VARIABLE, text)
    with pytest.raises(ValueError, match=f"STRUCTOT_NUM_THREADS .*{text!r}.*unset"):
        over_blocks(START, lambda first, last: None)
    set_num_threads(2)  # says what the variable cannot
    assert get_num_threads() == 2


def test_work_under_way_is_finished_by_the_old_threads() -> None:
    set_num_threads(2)
    begun, go = threading.Barrier(3), threading.Event()
    answers: list[list] = []

    def work(first: int, last: int) -> str:
        begun.wait(60)
        go.wait(60)
        return threading.current_thread().name

    caller = threading.Thread(target=lambda: answers.append(over_blocks(START, work)))
    caller.start()
    begun.wait(60)  # both old threads are at work
    old = pool_threads()
    set_num_threads(3)  # does not wait for them
    assert len(over_blocks(START, lambda first, last: (first, last))) == 3
    assert all(thread.is_alive() for thread in old)
    go.set()
    caller.join(60)
    assert len(answers[0]) == 2
    assert set(answers[0]) <= {thread.name for thread in old}
    settle(old)


def test_the_pool_is_not_closed_while_work_is_handed_to_it() -> None:
    set_num_threads(2)
    change = threading.Thread(target=set_num_threads, args=(3,))

    def parts():
        yield 1
        change.start()
        change.join(0.2)  # time enough to close the pool, for one who may
        yield 2

    assert _parallel._in_pool(lambda part: part, parts()) == [1, 2]
    settle([change])
    assert get_num_threads() == 3


def test_changes_while_others_compute_break_nothing() -> None:
    stop, wrong = threading.Event(), []

    def compute() -> None:
        while not stop.is_set():
            try:
                runs = over_blocks(START, lambda first, last: list(range(first, last)))
                if [i for run in runs for i in run] != list(range(8)):
                    wrong.append(runs)
            except BaseException as error:
                wrong.append(error)
                return

    callers = [threading.Thread(target=compute) for _ in range(3)]
    for caller in callers:
        caller.start()
    for k in range(200):
        set_num_threads(2 + k % 3)
    stop.set()
    settle(callers)
    assert wrong == []
    old = pool_threads()
    set_num_threads(1)
    settle(old)
    assert pool_threads() == []


def test_a_number_of_threads_has_one_answer() -> None:
    """More edges than one thread takes alone; the same bits every time."""
    M = np.random.default_rng(0).uniform(0.5, 1.5, (210, 200))
    groups = sot.Groups(np.arange(210) % 4, np.arange(200) % 4)
    set_num_threads(3)
    plans = [sot.solve(M, structure=groups, reg=0.05, tol=1e-3).plan.tobytes() for _ in range(3)]
    assert len(set(plans)) == 1


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_keeps_the_number() -> None:
    set_num_threads(3)
    over_blocks(START, lambda first, last: None)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_count_runs, args=(queue,))
    child.start()
    child.join(timeout=60)
    if child.is_alive():
        child.kill()
        pytest.fail("the child of a fork hangs")
    assert queue.get() == 3


def _count_runs(queue) -> None:
    queue.put(len(over_blocks(START, lambda first, last: None)))


def test_blas_keeps_to_one_thread_inside() -> None:
    def numbers() -> list[int]:
        return [
            x["num_threads"] for x in threadpoolctl.threadpool_info() if x["user_api"] == "blas"
        ]

    before = numbers()
    with _parallel.single_threaded_blas(999), _parallel.single_threaded_blas(999):
        assert set(numbers()) <= {1}
    assert numbers() == before
