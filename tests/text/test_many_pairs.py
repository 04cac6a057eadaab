"""Many pairs: threads, processes and a cluster that loses a worker give the same bits."""

import io
import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest

from structot.solvers.batch import workers
from structot.text import WordMover, pairs

WORDS = [f"w{k}" for k in range(50)]


def corpus(count, seed=0):
    rng = np.random.default_rng(seed)
    return [[WORDS[k] for k in rng.integers(0, 50, rng.integers(3, 9))] for _ in range(count)]


@pytest.fixture
def mover():
    return WordMover((WORDS, np.random.default_rng(1).normal(size=(50, 10))))


def test_joblib_gives_the_bits_of_one_process(mover, monkeypatch):
    joblib = pytest.importorskip("joblib")
    X = corpus(18)
    alone = mover.pairwise(X, X[:9])
    monkeypatch.setattr(pairs, "_CHUNK", 40)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (mover.pairwise(X, X[:9]) == alone).all()
    with joblib.parallel_config(backend="threading"):
        assert (mover.pairwise(X, X[:9], n_jobs=2) == alone).all()


def test_a_python_function_goes_to_workers_too(mover):
    joblib = pytest.importorskip("joblib")
    slow = WordMover(mover.vectors, concave=lambda x: np.log1p(x))
    X = ["w1 w2", "w3", "w4 w1", "w5"]
    alone = slow.pairwise(X)
    with joblib.parallel_config(backend="threading"):
        assert (slow.pairwise(X, n_jobs=2) == alone).all()


def test_one_job_is_one_thread(mover, monkeypatch):
    X = corpus(30)
    every = mover.pairwise(X)
    mover._self_terms.clear()
    threads = set()
    real = pairs._kernels.solve_pairs

    def seen(*arguments):
        threads.add(threading.get_ident())
        return real(*arguments)

    monkeypatch.setattr(pairs._kernels, "solve_pairs", seen)
    assert (mover.pairwise(X, n_jobs=1) == every).all()
    assert threads == {threading.get_ident()}


def test_progress_is_silent_without_a_terminal(mover, capfd):
    mover.pairwise(corpus(5), progress=True)
    assert capfd.readouterr() == ("", "")


def test_progress_on_a_terminal_counts_the_pairs(mover, monkeypatch):
    pytest.importorskip("rich")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    mover.pairwise(corpus(5), progress=True)
    assert "sentence pairs" in screen.getvalue()


def test_workers_report_one_chunk_after_the_other(mover, monkeypatch):
    joblib = pytest.importorskip("joblib")
    monkeypatch.setattr(pairs, "_CHUNK", 20)
    X, steps = corpus(12), []

    @contextmanager
    def counting(wanted, total, noun):
        yield steps.append

    alone = mover.pairwise(X)
    monkeypatch.setattr(workers, "_bar", counting)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert (mover.pairwise(X, progress=True) == alone).all()
    assert sum(steps) == 78
    assert max(steps) <= 20


def test_workers_need_joblib(mover, monkeypatch):
    import builtins

    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "joblib":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(pairs, "_CHUNK", 4)
    X = corpus(4)
    assert mover.pairwise(X, n_jobs=1).shape == (4, 4)
    with pytest.raises(ImportError, match=r"structot\[text\]"):
        mover.pairwise(X, n_jobs=2)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_a_worker_completes_the_matrix(mover, tmp_path):
    """The first worker that evaluates g dies in the middle of its chunk; another one repeats it."""
    joblib = pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    here, died = os.getpid(), tmp_path / "died"

    def g(x):
        if os.getpid() != here:
            try:
                died.touch(exist_ok=False)
            except FileExistsError:
                pass  # one is enough
            else:
                os.kill(os.getpid(), 9)
        return np.log1p(x)

    slow, X = WordMover(mover.vectors, concave=g), ["w1 w2", "w3", "w4 w1"]
    alone = slow.pairwise(X)
    slow._self_terms.clear()
    assert not died.exists()
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        with joblib.parallel_config(backend="dask"):
            spread = slow.pairwise(X)
    assert died.exists()
    assert (spread == alone).all()
