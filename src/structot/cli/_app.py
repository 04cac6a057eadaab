"""The commands put together, and the one place where exceptions become exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

import structot
from structot.cli import _common
from structot.cli.colors import colors
from structot.cli.demo import demo
from structot.cli.explore import explore
from structot.cli.path import path
from structot.cli.reproduce import reproduce
from structot.cli.solve import solve
from structot.cli.warmup import warmup

__all__ = ["app", "run"]

# Typer carries its own copy of click since 0.26; the base of its usage errors is in either.
_USAGE: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = typer.Typer(
    name="structot",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 the certified gap was not reached, 2 bad input.",
)
app.command()(demo)
app.command()(reproduce)
app.command()(solve)
app.command()(path)
app.command()(explore)
app.command()(colors)
app.command()(warmup)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(structot.__version__)
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Structured optimal transport: plans whose cost depends on which pairs are used together.

    Examples:

    - `structot demo`

    - `structot solve cost.npy --source-groups classes.csv --discount 0.75`

    - `structot path cost.npy --source-groups classes.csv --plot path.png`

    - `structot explore points.csv others.csv --source-groups classes.csv --out explore.html`

    - `structot colors photo.png palette.png recoloured.png --compare`
    """


def run(words: list[str]) -> int:
    """Run the command; its exit code."""
    debug = "--debug" in words
    try:
        code = app(words or ["--help"], standalone_mode=False)
        if code == _common.INTERRUPTED:  # how some versions of typer end after Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        return code if isinstance(code, int) else _common.DONE
    except _USAGE as error:
        text = " ".join(error.format_message().split()).rstrip(".")
        text += "" if text.endswith("?") else "."
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "structot"
        sys.stderr.write(f"{command}: {text} See '{command} --help'.\n")
        return _common.BAD_INPUT
    except _common.Interrupted as kept:
        sys.stderr.write(f"\nstructot: interrupted; {kept}\n")
        return _common.INTERRUPTED
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("\nstructot: interrupted; nothing was kept.\n")
        return _common.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; nothing more may be written at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _common.DONE
    except Exception as error:
        return _common.report_error(error, debug)
