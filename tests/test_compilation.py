"""Compilation: a clock without it, an announcement while it goes on, all of it ahead of time."""

from __future__ import annotations

import inspect
import logging
import os
import subprocess
import sys
import threading

import pytest

from structot import _compilation, _warmup
from structot._compilation import Stopwatch

numba = pytest.importorskip("numba")
compiles = not numba.config.DISABLE_JIT
needs_compilation = pytest.mark.skipif(not compiles, reason="compilation is switched off")


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(_compilation, "_now", clock)
    return clock


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch):
    """A meter of the test's own, that hears only of what the test makes up."""
    meter = _compilation._Meter()
    meter.listening = True
    monkeypatch.setattr(_compilation, "_meter", meter)
    yield meter
    if meter.timer is not None:
        meter.timer.cancel()


def kernel(module: str = "structot.made_up"):
    """A function that is not compiled yet and belongs to that module."""

    def add_up(x):
        total = 0.0
        for k in range(100):
            total += x**k
        return total

    add_up.__module__ = module
    return numba.njit(add_up)


# --------------------------------------------------------------------------------------------------
# The clock
# --------------------------------------------------------------------------------------------------


def test_compilation_does_not_count(clock, meter) -> None:
    watch = Stopwatch()
    clock.time += 1.0
    meter.start(1)
    clock.time += 10.0
    assert (watch.elapsed(), watch.compiling()) == (1.0, 10.0)  # while it goes on, too
    later = Stopwatch()
    clock.time += 5.0
    meter.end(1)
    clock.time += 2.0
    assert (watch.elapsed(), watch.compiling()) == (3.0, 15.0)
    assert (later.elapsed(), later.compiling()) == (2.0, 5.0)


def test_nested_compilation_counts_once(clock, meter) -> None:
    watch = Stopwatch()
    for _ in range(3):
        meter.start(1)
        clock.time += 1.0
    for _ in range(3):
        clock.time += 1.0
        meter.end(1)
    clock.time += 4.0
    assert (watch.elapsed(), watch.compiling()) == (4.0, 6.0)


def test_threads_that_compile_at_once_count_once(clock, meter) -> None:
    watch = Stopwatch()
    clock.time += 1.0
    for thread, change in ((1, "start"), (2, "start"), (1, "end"), (3, "start"), (2, "end")):
        getattr(meter, change)(thread)
        clock.time += 1.0
    meter.end(3)
    clock.time += 1.0
    assert (watch.elapsed(), watch.compiling()) == (2.0, 5.0)


def test_an_end_without_a_start_is_nothing(clock, meter) -> None:
    """Somebody was compiling already when we began to listen."""
    watch = Stopwatch()
    meter.end(1)
    clock.time += 1.0
    assert watch.elapsed() == 1.0


def test_a_lost_end_does_not_stop_the_clock_for_ever(clock, meter) -> None:
    """As after Ctrl-C at a bad moment. Whoever looks at the clock is not compiling."""
    watch = Stopwatch()
    here = threading.get_ident()
    meter.start(here)
    meter.start(here)
    clock.time += 3.0
    assert watch.elapsed() == 0.0
    clock.time += 2.0
    assert watch.elapsed() == 2.0
    assert not meter.depth


def test_a_forked_child_has_no_threads_that_compile(clock, meter) -> None:
    watch = Stopwatch()
    meter.start(1)
    clock.time += 1.0
    meter.end(1)
    meter.start(2)
    meter.forget_threads()  # what the child does after a fork
    clock.time += 4.0
    assert (watch.elapsed(), watch.compiling()) == (4.0, 1.0)


@needs_compilation
def test_real_compilation_is_left_out() -> None:
    watch = Stopwatch()
    before = watch.elapsed()
    ours, foreign = kernel(), kernel("elsewhere")
    foreign(0.5)
    assert watch.compiling() == 0.0  # what users compile is their own time
    assert watch.elapsed() > before
    ours(0.5)
    compiling = watch.compiling()
    assert compiling > 0
    ours(0.5)
    assert watch.compiling() == compiling


@needs_compilation
def test_compilation_in_other_threads_is_left_out() -> None:
    watch = Stopwatch()
    threads = [threading.Thread(target=kernel(), args=(0.5,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert watch.compiling() > 0
    assert not _compilation._meter.depth


@needs_compilation
def test_a_failed_compilation_ends() -> None:
    watch = Stopwatch()

    def wrong(x):
        return x.nothing

    wrong.__module__ = "structot.made_up"
    with pytest.raises(numba.TypingError):
        numba.njit(wrong)(0.5)
    assert watch.compiling() > 0
    assert not _compilation._meter.depth


# --------------------------------------------------------------------------------------------------
# The announcement
# --------------------------------------------------------------------------------------------------


class Heard(logging.Handler):
    """What was said, and an event that it was."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []
        self.event = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.event.set()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch):
    handler = Heard()
    _compilation.logger.addHandler(handler)
    monkeypatch.setattr(_compilation.logger, "propagate", False)
    yield handler
    _compilation.logger.removeHandler(handler)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_compilation, "PATIENCE", 0.0)


def compile_until_said(meter) -> None:
    """As far as it is said at all."""
    meter.start(1)
    if meter.timer is not None:
        meter.timer.join(timeout=60)
    meter.end(1)


def test_it_is_said_once_and_while_it_goes_on(meter, heard, impatient) -> None:
    meter.start(1)
    assert heard.event.wait(60)
    assert meter.depth
    meter.end(1)
    compile_until_said(meter)
    assert heard.messages == [_compilation.MESSAGE]
    assert "structot warmup" in _compilation.MESSAGE
    assert "\n" not in _compilation.MESSAGE


def test_on_a_terminal_it_is_a_line(meter, heard, impatient, monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    compile_until_said(meter)
    assert capsys.readouterr().err == f"{_compilation.MESSAGE}\n"
    assert heard.messages == []


@pytest.mark.parametrize("terminal", [False, True])
def test_who_uses_logging_can_silence_it(
    meter, heard, impatient, monkeypatch, capsys, terminal
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(_compilation.logger, "level", logging.ERROR)
    _compilation.logger.manager._clear_cache()
    compile_until_said(meter)
    _compilation.logger.manager._clear_cache()
    assert capsys.readouterr().err == ""
    assert heard.messages == []


def test_patience_is_for_all_that_one_call_compiles(clock, meter) -> None:
    def waits() -> float:
        meter.start(1)
        interval = meter.timer.interval
        clock.time += 0.75
        meter.end(1)
        assert meter.timer is None
        return interval

    _compilation.announce()
    assert [waits(), waits()] == [2.0, 1.25]
    _compilation.announce()  # another call
    assert waits() == 2.0


def test_what_compiles_quickly_is_not_worth_a_word(meter, heard) -> None:
    meter.start(1)
    timer = meter.timer
    meter.end(1)
    timer.join(timeout=60)
    assert not timer.is_alive()
    assert heard.messages == []


@needs_compilation
def test_it_is_said_while_numba_compiles(heard, impatient, monkeypatch) -> None:
    """The thread that says it gets its turn; nothing is said when compilation is over."""
    monkeypatch.setattr(_compilation._meter, "told", False)
    _compilation.announce()
    kernel()(0.5)
    assert heard.messages == [_compilation.MESSAGE]


# --------------------------------------------------------------------------------------------------
# Ahead of time
# --------------------------------------------------------------------------------------------------


def name_of(function) -> str:
    return f"{function.py_func.__module__}.{function.py_func.__name__}"


def called_by(function) -> set[str]:
    """The kernels that a kernel calls."""
    code, scope = function.py_func.__code__, function.py_func.__globals__
    found = [scope.get(name) for name in code.co_names]
    modules = [vars(m).get(name) for m in found for name in code.co_names if inspect.ismodule(m)]
    return {name_of(f) for f in (*found, *modules) if hasattr(f, "targetoptions")}


@needs_compilation
def test_warmup_leaves_no_kernel_out(heard) -> None:
    reports = []
    found = _warmup.warmup(lambda *report: reports.append(report))
    names, done, totals = zip(*reports, strict=True)
    assert done == tuple(range(len(reports)))
    assert set(totals) == {len(reports) - 1}
    assert all(names[:-1])
    assert names[-1] == ""
    assert 0 <= found.compiling <= found.seconds
    assert os.path.isdir(found.folder)
    assert heard.messages == []

    kernels = {name_of(f): f for f in _warmup.kernels()}
    ready = {name for name, f in kernels.items() if f.signatures}
    # A kernel that came from the disk holds the ones it calls, which are not loaded themselves.
    while more := set().union(*(called_by(kernels[name]) for name in ready)) - ready:
        ready |= more
    assert len(kernels) > 90
    assert set(kernels) == ready


SCRIPT = """
import sys
for name in ("joblib", "matplotlib", "rich", "sklearn", "skimage", "typer", "pandas"):
    sys.modules[name] = None
import structot
assert "numba" not in sys.modules
from structot import _compilation
assert "numba" not in sys.modules
from structot import _warmup
print(_warmup.warmup().compiling)
"""


@needs_compilation
def test_a_later_process_compiles_nothing_and_needs_no_extras() -> None:
    _warmup.warmup()
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.split() == ["0.0"]
