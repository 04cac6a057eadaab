"""Chunks of work in this process, or spread over the workers of joblib; with a bar.

What comes out does not depend on how the work was divided: chunks are answered in their order.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

Job = tuple[Callable[..., Any], tuple]  # a function and its arguments, which travel to a worker


def over_chunks(
    chunks: Sequence[Any],
    here: Callable[[Any], Any],
    job: Callable[[Any], Job],
    *,
    n_jobs: int | None,
    progress: bool,
    noun: str,
) -> list[Any]:
    """The answers of all chunks in order: ``here(chunk)``, or those of ``job(chunk)`` by workers.

    Parameters
    ----------
    n_jobs
        As in joblib: None is this process, unless `joblib.parallel_config` says otherwise (a dask
        cluster, say); 1 is this process; more than 1 spreads the chunks over that many workers.
    progress, noun
        Show a bar that counts the items of the chunks under this name, if somebody watches a
        terminal.
    """
    parallel = _pool(n_jobs, progress) if len(chunks) > 1 else None
    answers: list[Any] = []
    with _bar(progress, sum(map(len, chunks)), noun) as advance:
        found = map(here, chunks) if parallel is None else _spread(parallel, job, chunks)
        for chunk, answer in zip(chunks, found, strict=True):
            answers.append(answer)
            advance(len(chunk))
    return answers


def _spread(parallel: Any, job: Callable[[Any], Job], chunks: Sequence[Any]) -> Any:
    """The answers of the chunks, in order, from workers."""
    from joblib import delayed

    def calls() -> Iterator[Any]:
        for chunk in chunks:
            function, arguments = job(chunk)
            yield delayed(function)(*arguments)

    return parallel(calls())


def _pool(n_jobs: int | None, progress: bool) -> Any:
    """A joblib pool, or None where this process does the work."""
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
def _bar(wanted: bool, total: int, noun: str) -> Iterator[Callable[[int], None]]:
    """A function that reports finished items; silent unless wanted and on a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda count: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        raise ImportError('progress=True needs rich: pip install "structot[cli]".') from None
    columns = (noun, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda count: bar.advance(task, count)
