"""``structot warmup``: compile every kernel ahead of time."""

from __future__ import annotations

import typer

from structot._progress import progress_bar
from structot.cli._common import DONE, Debug, Interrupted, console

__all__ = ["warmup"]


def warmup(debug: Debug = False) -> None:
    """Compile everything once, so that no later call has to wait for it.

    Without it every kernel is compiled when it is first used. Compiled kernels are kept on disk
    for all later processes, until structot or numba is updated; NUMBA_CACHE_DIR says where.

    Examples:

    - `structot warmup`
    """
    from structot import _warmup  # loads everything: other commands need not wait for it

    with progress_bar("warmup", lasting=True) as bar:

        def report(name: str, done: int, total: int) -> None:
            bar.advance() if done else bar.expect(total)
            bar.show(name)

        try:
            found = _warmup.warmup(report)
        except KeyboardInterrupt:
            raise Interrupted("the kernels compiled so far are kept.") from None
    if found.folder is None:
        text = "nothing to compile: NUMBA_DISABLE_JIT is set"
    else:
        text = (
            f"ready after {found.seconds:.0f} s, {found.compiling:.0f} s of them compiling; "
            f"the kernels are kept in {found.folder}"
        )
    console().print(text, markup=False)
    raise typer.Exit(DONE)
