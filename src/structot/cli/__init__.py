"""The command ``structot``: exit code 0 done, 1 gap not reached, 2 bad input, 130 interrupted.

Answers go to the output stream, progress and errors to the error stream. Errors are one line;
``--debug`` shows the traceback.
"""

from __future__ import annotations

import os
import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command and leave with its exit code.

    Parameters
    ----------
    arguments
        The words after ``structot``; those of the process by default.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    # Figures go to files: no window system is needed. Whoever set a backend keeps it.
    os.environ.setdefault("MPLBACKEND", "Agg")
    try:
        from structot.cli._app import run
    except KeyboardInterrupt:  # while modules are loaded, before `run` can catch it
        sys.exit(130)
    except ImportError as error:
        sys.stderr.write(
            f"structot: the command line needs typer and rich ({error}): "
            "pip install 'structot[cli]'\n"
        )
        sys.exit(2)
    sys.exit(run(words))
