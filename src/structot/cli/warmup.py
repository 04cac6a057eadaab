"""``structot warmup``: compile every kernel ahead of time."""

from __future__ import annotations

import typer

from structot import _compilation
from structot.cli._common import DONE, Debug, console
from structot.experiments._progress import task_bar

__all__ = ["warmup"]


def warmup(debug: Debug = False) -> None:
    """Compile everything once, so that no later call has to wait for it.

    Without it every kernel is compiled when it is first used. Compiled kernels are kept on disk
    for all later processes, until structot or numba is updated; NUMBA_CACHE_DIR says where.

    Examples:

    - `structot warmup`
    """
    with task_bar("warmup", wanted=True) as bar:
        current = ""

        def report(name: str, done: int, total: int) -> None:
            nonlocal current
            if done:
                bar.advance(current)
            else:
                bar.expect(total, 0)
            current = name
            bar.begin(name)

        found = _compilation.warmup(report)
    if found.folder is None:
        text = "nothing to compile: NUMBA_DISABLE_JIT is set"
    else:
        text = (
            f"ready after {found.seconds:.0f} s, {found.compiling:.0f} s of them compiling; "
            f"the kernels are kept in {found.folder}"
        )
    console().print(text, markup=False)
    raise typer.Exit(DONE)
