"""A live line with iteration, value, bound and gap; silent when nobody watches a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def live_progress(wanted: bool, method: str, tol: float) -> Iterator[Callable[[Any], None]]:
    """A function that shows a state. It does nothing unless wanted and on a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda state: None
        return
    try:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text
    except ImportError:
        raise ImportError(
            "progress=True needs the package rich: pip install 'structot[cli]'"
        ) from None
    with Live(console=Console(stderr=True), refresh_per_second=8, transient=True) as live:

        def show(state: Any) -> None:
            live.update(
                Text(
                    f"{method}  iteration {state.iteration}  {state.time:.1f} s  "
                    f"value {state.value:.6g}  bound {state.lower_bound:.6g}  "
                    f"gap {state.gap:.1e} (goal {tol:.0e})"
                )
            )

        yield show
