"""The installed command, run as a user would, or in this process where only the answer counts."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from structot.cli import main

MODULE = [sys.executable, "-m", "structot"]
SCRIPT = Path(sys.executable).with_name("structot")


def environment(**extra):
    """That of this process, without what would change how the command looks."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", **extra}


def structot(*words, cwd=None, **extra):
    """Run it to its end, without a terminal."""
    return subprocess.run(
        [*MODULE, *map(str, words)],
        cwd=cwd,
        env=environment(**extra),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
        check=False,
    )


def here(*words, cwd, **extra):
    """The same in this process, which need not start Python and load everything first."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, environment(**extra), clear=True),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as left,
    ):
        main([str(word) for word in words])
    return subprocess.CompletedProcess(words, left.value.code, out.getvalue(), err.getvalue())


def refused(answer, *words):
    """Exit code 2, one line on the error stream that holds these words, nothing on the other."""
    assert answer.returncode == 2, answer.stderr
    assert answer.stdout == ""
    lines = answer.stderr.strip().splitlines()
    assert len(lines) == 1, answer.stderr
    assert "Traceback" not in answer.stderr
    for word in words:
        assert word in lines[0]
    return True
