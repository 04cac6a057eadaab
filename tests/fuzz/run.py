"""Many random problems in worker processes: ``PYTHONPATH=tests python -m fuzz.run --n 1000``.

Exit status 1 when something that must hold does not, 130 after Ctrl-C (the report is written).
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from pathlib import Path

from fuzz.generate import case
from fuzz.report import Report
from fuzz.trial import CRASH, HUNG, Record, trial

from structot._progress import progress_bar


def main(arguments: list[str] | None = None) -> int:
    options = _parse(arguments)
    if options.seed is not None:
        return _one(options)
    # Workers share the cores: one thread each for linear algebra, set before they import it.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    # A run in the background inherits ignored interrupts; one must write its report all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    report = Report(options.out, options.time_limit, options.decades)
    seeds = iter(range(options.start, options.start + options.n))
    start, interrupted = time.perf_counter(), False
    crew = Crew(options, seeds)
    try:
        with progress_bar("problems", total=options.n) as bar:
            for record in crew.records():
                report.add(record)
                bar.show("; ".join(report.violations()))
                bar.advance()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        crew.stop()
        seconds = time.perf_counter() - start
        path = report.write(
            start=options.start,
            n=options.n,
            workers=options.workers,
            time_limit=options.time_limit,
            seconds=seconds,
            interrupted=interrupted,
        )
    return _conclude(report, path, seconds, interrupted)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz.run", description=__doc__)
    parser.add_argument("--n", type=int, default=1000, help="how many problems")
    parser.add_argument("--start", type=int, default=0, help="the number of the first problem")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for 'auto'")
    parser.add_argument("--decades", type=float, help="3: ordinary costs only, 12: wide ones only")
    parser.add_argument("--only-auto", action="store_true", help="skip the other methods")
    parser.add_argument("--patience", type=float, default=150.0, help="seconds until it is hung")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"), help="folder of the report")
    parser.add_argument("--seed", type=int, help="this one problem, here, with all that was found")
    return parser.parse_args(arguments)


def _one(options: argparse.Namespace) -> int:
    problem = case(options.seed, options.decades)
    print(problem.line())
    record = trial(problem, time_limit=options.time_limit, others=not options.only_auto)
    print(
        f"\n{record.family}, {problem.M.shape[0]}×{problem.M.shape[1]}, by {record.method}: "
        f"{record.status}, gap {record.gap:.2e}, {record.seconds:.2f} s; "
        f"tried {', '.join(record.tried)}"
    )
    for kind, method, text in record.faults:
        print(f"{kind} | {method} | {text}")
    for text in record.warned:
        print(f"warned | {text}")
    return 1 if record.faults else 0


def _conclude(report: Report, path: Path, seconds: float, interrupted: bool) -> int:
    print(report.table())
    done = report.total["problems"]
    print(f"\n{done} problems in {seconds:.0f} s ({60 * done / max(seconds, 1e-9):.0f} a minute)")
    print(f"summary: {path}\nfailures: {report.failures}")
    violations = report.violations()
    for text in violations:
        print(f"FAILED  {text}")
    if interrupted:
        print("interrupted")
        return 130
    return 1 if violations else 0


# ---------------------------------------------------------------- processes


class Crew:
    """Worker processes, each on one problem at a time; one that hangs or dies is replaced."""

    def __init__(self, options: argparse.Namespace, seeds: Iterator[int]) -> None:
        self.options, self.seeds = options, seeds
        self.context = multiprocessing.get_context("spawn")
        self.workers: list[Worker] = []

    def records(self) -> Iterator[Record]:
        """One record per seed, in the order in which they end."""
        for _ in range(self.options.workers):
            self._hire()
        while self.workers:
            wait([worker.pipe for worker in self.workers], timeout=1.0)
            for worker in list(self.workers):
                record = worker.look(self.options.patience)
                if record is None:
                    continue
                yield record
                if worker.gone:
                    self.workers.remove(worker)
                    self._hire()
                else:
                    self._assign(worker)

    def _hire(self) -> None:
        seed = next(self.seeds, None)
        if seed is not None:
            worker = Worker(self.context, self.options)
            self.workers.append(worker)
            worker.give(seed)

    def _assign(self, worker: Worker) -> None:
        seed = next(self.seeds, None)
        if seed is None:
            worker.dismiss()
            self.workers.remove(worker)
        else:
            worker.give(seed)

    def stop(self) -> None:
        for worker in self.workers:
            worker.kill()


class Worker:
    """One process and the problem it is at."""

    def __init__(self, context: multiprocessing.context.SpawnContext, options: object) -> None:
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, options), daemon=True)
        self.process.start()
        theirs.close()
        self.gone = False
        self.options = options

    def give(self, seed: int) -> None:
        self.seed, self.since = seed, time.perf_counter()
        self.pipe.send(seed)

    def look(self, patience: float) -> Record | None:
        """The record if it is there, or one that says the process hung or died; else None."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            return self._lost(CRASH, f"the process died with exit code {self.process.exitcode}")
        if time.perf_counter() - self.since > patience:
            return self._lost(HUNG, f"no answer after {patience:g} s")
        return None

    def _lost(self, kind: str, text: str) -> Record:
        self.kill()
        problem = case(self.seed, self.options.decades)
        record = Record(
            problem.seed, problem.family, problem.wide, problem.M.shape, problem.reg, status=kind
        )
        record.faults.append((kind, "auto", text))
        record.line = problem.line()
        return record

    def dismiss(self) -> None:
        self.pipe.send(None)
        self.process.join(5.0)
        self.kill()

    def kill(self) -> None:
        self.gone = True
        self.process.kill()
        self.process.join()


def _work(pipe: Connection, options: argparse.Namespace) -> None:
    # Ctrl-C is the business of the parent, which writes the report and then ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError):
        while (seed := pipe.recv()) is not None:
            problem = case(seed, options.decades)
            limit, others = options.time_limit, not options.only_auto
            pipe.send(trial(problem, time_limit=limit, others=others))


if __name__ == "__main__":
    sys.exit(main())
