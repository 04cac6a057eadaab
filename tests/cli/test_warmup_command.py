"""``structot warmup``: a bar or a few lines, then one line that says where the kernels are."""

import re
from pathlib import Path

import pytest
from command import here

from structot import _warmup


@pytest.fixture
def two_tasks(monkeypatch):
    """Instead of everything, which its own test compiles."""
    done = []
    tasks = {"first": lambda: done.append(1), "second": lambda: done.append(2)}
    monkeypatch.setattr(_warmup, "_TASKS", tasks)
    return done


def test_it_ends_with_one_line(two_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(_warmup, "_folder", lambda: str(tmp_path))
    answer = here("warmup", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert two_tasks == [1, 2]
    (line,) = answer.stdout.splitlines()
    assert re.match(r"ready after \d+ s, \d+ s of them compiling; the kernels are kept in ", line)
    assert Path(line.split("kept in ")[1]) == tmp_path
    assert "2 of 2 done" in answer.stderr


def test_it_says_when_warmup_is_switched_off(two_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(_warmup, "kernels", lambda: [])
    answer = here("warmup", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "NUMBA_DISABLE_JIT" in answer.stdout


def test_help_shows_it(tmp_path):
    assert "warmup" in here("--help", cwd=tmp_path).stdout
