"""The one progress bar: silent, lines, or a live line."""

from __future__ import annotations

import io
import sys

import pytest

from structot._progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The error stream from now on; a fixture would be undone when the test begins."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    return screen


def use(**options) -> None:
    """What loops, solves and downloads do with a bar."""
    with progress_bar("work", **options) as bar:
        bar.expect(2, done=1)
        bar.show("a [detail]")
        bar.advance()
        bar.note("kept [here]")


def test_nobody_hears_of_it_without_a_terminal(capsys) -> None:
    use()
    use(wanted=False, lasting=True)
    assert capsys.readouterr() == ("", "")


def test_long_work_writes_lines_without_a_terminal(capsys) -> None:
    use(lasting=True)
    out, said = capsys.readouterr()
    assert out == ""
    assert said.splitlines()[0] == "work: 2 tasks, 1 kept from an earlier run"
    assert said.splitlines()[1].startswith("work: 2 of 2 done")
    assert said.splitlines()[2:] == ["work: kept [here]"]


@pytest.mark.parametrize("columns", ["70", "160"])
def test_on_a_terminal_there_is_a_live_line(monkeypatch, columns) -> None:
    pytest.importorskip("rich")
    screen = terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", columns)
    use(lasting=True)
    assert "2/2" in screen.getvalue()
    assert "work: kept [here]" in screen.getvalue()
    assert ("a [detail]" in screen.getvalue()) == (columns == "160")


def test_work_of_unknown_length_shows_life(monkeypatch) -> None:
    pytest.importorskip("rich")
    screen = terminal(monkeypatch)
    with progress_bar("fetching", counted=False) as bar:
        bar.show("from afar")
    assert "fetching" in screen.getvalue()
    assert "from afar" in screen.getvalue()


def test_without_rich_a_bar_is_refused_and_long_work_writes_lines(monkeypatch) -> None:
    screen = terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"pip install 'structot\[cli\]'"):
        use()
    use(lasting=True)
    assert "work: 2 of 2 done" in screen.getvalue()
