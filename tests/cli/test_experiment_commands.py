"""``structot reproduce`` and ``structot demo``: resumable, self-contained, honest."""

import json
import os
import re
import signal
import subprocess
import time
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pytest
from browser import chromium
from command import MODULE, environment, here, refused, structot

from structot import experiments
from structot.cli.demo import SHOWN
from structot.experiments import _records
from structot.experiments.page import markdown_to_html, write_html


class Page(HTMLParser):
    """Open tags, and every address the page refers to."""

    EMPTY = ("meta", "img", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.addresses, self.ids = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [values[name] for name in ("src", "href") if name in values]
        self.ids += [values["id"]] if "id" in values else []
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def started(*words, cwd):
    return subprocess.Popen(
        [*MODULE, *map(str, words)],
        cwd=cwd,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts background jobs with interrupts ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finished(tasks):
    """Whole records; one that is being written has a name that starts with a dot."""
    return [path for path in tasks.glob("*.npz") if not path.name.startswith(".")]


def test_interrupted_resumed_finished_and_kept(tmp_path):
    """The whole life of a folder of results."""
    words = ("reproduce", "clusters", "--quick", "--seeds", "1", "--out", "runs")
    tasks = tmp_path / "runs" / "clusters" / "tasks"
    process = started(*words, cwd=tmp_path)
    until = time.monotonic() + 120
    while not finished(tasks) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    assert "what is finished is kept" in told
    kept = {path.name: path.stat().st_mtime_ns for path in finished(tasks)}
    assert kept
    assert all(_records.load(tasks / name) is not None for name in kept)
    assert not list(tmp_path.rglob("*.part*"))
    assert not (tmp_path / "runs" / "clusters" / "results.json").exists()

    answer = structot(*words, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert f"{len(kept)} kept from an earlier run" in answer.stderr
    assert "\x1b" not in answer.stderr
    assert {name: (tasks / name).stat().st_mtime_ns for name in kept} == kept
    results = json.loads((tmp_path / "runs" / "clusters" / "results.json").read_text())
    assert results["concentration"][0] == pytest.approx(1.0, abs=1e-3)
    assert results["largest_gap"] <= 1e-4
    report = tmp_path / "runs" / "report.html"
    assert answer.stdout.strip() == f"wrote {report}"

    page = Page(report.read_text())
    assert page.open == []
    outside = [a for a in page.addresses if not a.startswith(("data:image/png;base64,", "#"))]
    assert outside == []
    assert {a[1:] for a in page.addresses if a.startswith("#")} <= set(page.ids)
    assert sum(a.startswith("data:") for a in page.addresses) == 2
    assert "Certificates" in report.read_text()


def test_unknown_names_and_wrong_numbers_are_refused(tmp_path):
    assert refused(structot("reproduce", "cluster", cwd=tmp_path), "Did you mean 'clusters'")
    assert refused(here("reproduce", "clusters", "--jobs", 0, cwd=tmp_path), "--jobs")
    assert refused(here("reproduce", cwd=tmp_path), "NAME")
    (tmp_path / "file").write_text("")
    answer = here("reproduce", "clusters", "--quick", "--out", "file", cwd=tmp_path)
    assert refused(answer, "file", "folder")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file"]


def test_smaller_settings_do_not_overwrite(tmp_path):
    folder = tmp_path / "runs" / "clusters"
    folder.mkdir(parents=True)
    made = {"settings": {"seeds": 20, "quick": False}, "first_tasks": ["emd-19"]}
    (folder / "run.json").write_text(json.dumps(made))
    answer = here("reproduce", "clusters", "--quick", "--out", "runs", cwd=tmp_path)
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "seeds=20" in answer.stderr
    assert "--force" in answer.stderr


def test_markdown_becomes_markup_and_nothing_else():
    text = (
        "# Title\n\nA *b* **c** `d<e`\n\n| x | y |\n| --- | ---: |\n| 1 | <2> |\n\n- one\n- two\n"
    )
    made = markdown_to_html(text)
    assert "<h3>Title</h3>" in made
    assert "<p>A <em>b</em> <strong>c</strong> <code>d&lt;e</code></p>" in made
    assert re.search(r'<td>1</td>\s*<td style="text-align:right">&lt;2&gt;</td>', made)
    assert re.search(r"<ul>\s*<li>one</li>\s*<li>two</li>\s*</ul>", made)
    assert "<pre><code>a\n\n*b*\n</code></pre>" in markdown_to_html("```\na\n\n*b*\n```")
    assert "snake_case_name" in markdown_to_html("snake_case_name")
    assert "<em>" not in markdown_to_html("3 * 4 * 5")
    assert "<script" not in markdown_to_html("<script>alert(1)</script>")
    assert "<img" not in markdown_to_html("![x](https://example.org/x.png)")


def test_records_of_another_kind_do_not_break_the_report(tmp_path):
    folder = tmp_path / "clusters"
    _records.dump(folder / "tasks" / "a.npz", {"text": "no certificate", "x": np.ones(2)})
    made = {"settings": {"quick": True}, "seconds": 1.0, "seconds_by_task": {"a": 1.0, "lost": 2.0}}
    made["figures"] = []
    (folder / "run.json").write_text(json.dumps(made))
    (folder / "report.md").write_text("Done.")
    (folder / "old.png").write_bytes(b"of an earlier run with more figures")
    page = write_html(tmp_path, ["clusters"]).read_text()
    assert "<p>Done.</p>" in page
    assert "Certificates" not in page
    assert "<img" not in page


def test_a_report_begins_with_what_to_see_and_figures_have_captions(tmp_path):
    folder = tmp_path / "clusters"
    made = {"settings": {"quick": True}, "seconds": 1.0, "seconds_by_task": {}}
    made["figures"] = {"clusters": "Dots & crosses."}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(made))
    (folder / "report.md").write_text("Done.")
    (folder / "clusters.png").write_bytes(b"a picture")
    page = write_html(tmp_path, ["clusters"]).read_text()
    look = experiments.get("clusters").look
    assert 0 < page.index(look) < page.index('<section id="clusters">')
    assert '<a href="#clusters">' in page
    assert "<figcaption>Dots &amp; crosses.</figcaption>" in page
    assert "prefers-color-scheme: dark" in page


@pytest.mark.parametrize("dark", [False, True])
def test_a_report_can_be_read_on_a_narrow_screen(tmp_path, dark):
    """Tables fit, a wide picture scrolls in its own box and says so, the page does not scroll."""
    folder = tmp_path / "clusters"
    made = {"settings": {"quick": True}, "seconds": 1.0, "seconds_by_task": {}}
    made["figures"] = {"clusters": "Five panels."}
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(made))
    rows = "".join(f"| structured, the model number {k} | 1.4e-06 | 2.0e-03 |\n" for k in range(3))
    head = "| method | largest certified gap | largest marginal error |\n|---|---:|---:|\n"
    (folder / "report.md").write_text(head + rows)
    plt.imsave(folder / "clusters.png", np.ones((300, 1400)))
    address = write_html(tmp_path, ["clusters"]).as_uri()
    for width in (400, 1200):
        with chromium(width, dark=dark) as browser:
            browser.get(address)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            for box in browser.find_elements("css selector", ".wide"):
                inside, room = (box.get_property(f"{name}Width") for name in ("scroll", "client"))
                scrolls = width == 400 and bool(box.find_elements("tag name", "img"))
                assert (inside > room) == scrolls
            hint = browser.find_element("css selector", "figcaption .narrow")
            assert hint.is_displayed() == (width == 400)


@pytest.mark.parametrize("name", SHOWN)
def test_the_demo_says_what_to_see(name):
    assert experiments.get(name).look.endswith(".")


def test_a_run_begun_anew_and_not_finished_does_not_break_the_report(tmp_path, monkeypatch):
    """By force, then Ctrl-C: the old results are there, the mark of a finished run is not."""
    (tmp_path / "runs" / "moons").mkdir(parents=True)
    (tmp_path / "runs" / "moons" / "results.json").write_text("{}")
    ran = []

    def run(experiment, out, settings, force):
        if ran:
            raise KeyboardInterrupt
        ran.append(experiment.name)
        folder = out / experiment.name
        folder.mkdir()
        made = {"settings": {"quick": True}, "seconds": 1.0, "seconds_by_task": {}, "figures": []}
        (folder / "run.json").write_text(json.dumps(made))
        (folder / "report.md").write_text("Done.")
        return experiments.Report({}, "", {})

    monkeypatch.setattr(experiments, "run", run)
    answer = here("reproduce", "clusters", "moons", "--force", "--out", "runs", cwd=tmp_path)
    assert answer.returncode == 130
    assert answer.stderr.strip() == "structot: interrupted; what is finished is kept."
    assert "<p>Done.</p>" in (tmp_path / "runs" / "report.html").read_text()
