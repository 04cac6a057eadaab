"""One self-contained HTML page of finished experiments: figures, numbers, certificates, times."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path

from markdown_it import MarkdownIt

import structot
from structot import experiments
from structot._files import write_text
from structot.experiments import _records
from structot.experiments._tables import number, table

__all__ = ["markdown_to_html", "write_html"]

_MOST_PIXELS = 1000  # of the width of a picture that may shrink to a narrow screen
_MOST_CERTIFICATES = 60  # rows shown of one experiment; all of them are in its folder

# Markup inside the text is shown, not obeyed, and no image is fetched from elsewhere.
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

_STYLE = """
:root { color-scheme: light; --ground: #fff; --ink: #1b1f24; --soft: #57606a; --rule: #d5d9de;
        --tint: #f3f4f6; --link: #0060a0; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ground: #14171a; --ink: #e8eaed; --soft: #a3abb5; --rule: #3a4047;
          --tint: #22272c; --link: #6cb8ee; }
}
body { font: 16px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--ground);
       max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin-bottom: .3rem; }
h2 { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); font-size: 1.3rem; }
h3, h4 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
p, li { max-width: 46rem; } nav li { margin: .4rem 0; }
a, summary { color: var(--link); }
.took, figcaption { color: var(--soft); font-size: .9rem; } figcaption { max-width: 46rem; }
figure { margin: 1.4rem 0; }
img { max-width: 100%; height: auto; box-sizing: border-box; padding: .5rem; background: #fff;
      border-radius: 6px; }
.wide { overflow-x: auto; } .narrow { display: none; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--rule);
         white-space: nowrap; }
th { text-align: left; font-weight: 600; }
@media (max-width: 40rem) {
  figure .wide img { max-width: none; width: 44rem; } .narrow { display: inline; }
  table { font-size: .8rem; } th, td { padding-right: .5rem; }
  th, td:first-child, td:last-child { white-space: normal; }
  details td:first-child { overflow-wrap: anywhere; }
}
details { margin: .6rem 0; }
code { background: var(--tint); padding: 0 .2rem; } summary { cursor: pointer; }
"""
_LEAD = (
    "<p>Optimal transport moves one distribution onto another at least cost, every pair of points "
    "for itself. Here the cost depends on which pairs are used together, so that points of one "
    "class, neighbours or regions travel together.</p>"
    "<p>Every value comes with a lower bound: the gap, (value − bound) / value, is how far, at "
    "most, the value lies above the optimum.</p>"
)


def write_html(out: Path, names: list[str]) -> Path:
    """Write ``out / "report.html"`` from the folders of these experiments; its path.

    Everything is inside the one file, figures as data URIs: it can be sent and opened anywhere.
    """
    sections = [_section(out / name, name) for name in names]
    page = (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>structot: report</title><style>{_STYLE}</style></head><body>\n"
        f"<header><h1>Structured optimal transport</h1>{_LEAD}</header>\n"
        f"{_contents(names)}\n<main>" + "\n".join(sections) + "</main>\n"
        f'<footer><p class="took">structot {html.escape(structot.__version__)}</p></footer>'
        "</body></html>\n"
    )
    path = out / "report.html"
    write_text(path, page)
    return path


def _contents(names: list[str]) -> str:
    """What to see, and where."""
    found = [(name, experiments.get(name)) for name in names]
    items = "".join(
        f'<li><a href="#{name}">{html.escape(one.title)}</a><br>{html.escape(one.look)}</li>'
        for name, one in found
    )
    return f'<nav aria-label="Contents"><h3>What to see</h3><ol>{items}</ol></nav>'


def _section(folder: Path, name: str) -> str:
    made = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    title = experiments.get(name).title
    count = len(made["seconds_by_task"])
    small = ", small version" if made["settings"]["quick"] else ""
    took = f"{count} tasks{small}, {number(made['seconds'])} s of computing"
    text = (folder / "report.md").read_text(encoding="utf-8").removeprefix(f"# {title}\n")
    # Only those of this run: a smaller one made by force may have left others in the folder.
    figures = dict(made["figures"]).items()
    return (
        f'<section id="{name}"><h2>{html.escape(title)}</h2><p class="took">{took}</p>\n'
        + "".join(_figure(folder / f"{stem}.png", caption) for stem, caption in figures)
        + markdown_to_html(text)
        + _certificates(folder, made["seconds_by_task"])
        + "</section>"
    )


def _figure(path: Path, caption: str) -> str:
    picture = path.read_bytes()
    data = base64.b64encode(picture).decode("ascii")
    said = html.escape(caption or path.stem.replace("_", " "))
    image = f'<img alt="{said}" src="data:image/png;base64,{data}">'
    # Many panels side by side cannot be read on a narrow screen: there they scroll in a box.
    hint = ""
    if int.from_bytes(picture[16:20], "big") > _MOST_PIXELS:  # where a PNG holds its width
        image = f'<div class="wide" tabindex="0">{image}</div>'
        hint = '<span class="narrow">Wider than this screen: scroll it sideways. </span>'
    return f"<figure>{image}<figcaption>{hint}{said}</figcaption></figure>\n"


def _certificates(folder: Path, seconds: dict[str, float]) -> str:
    """A table of value and gap of every task that has them, folded away."""
    rows: list[list[str]] = []
    for key, took in seconds.items():
        if len(rows) == _MOST_CERTIFICATES:
            break
        record = _records.load(folder / "tasks" / f"{key}.npz") or {}
        if isinstance(record.get("gap"), float):
            value = record.get("value")
            shown = number(value) if isinstance(value, float) else ""
            rows.append([key, shown, number(record["gap"]), number(took)])
    if not rows:
        return ""
    more = f", the first {len(rows)}" if len(rows) == _MOST_CERTIFICATES < len(seconds) else ""
    made = markdown_to_html(table(["task", "value", "gap", "seconds"], rows))
    return f"<details><summary>Certificates{more}</summary>{made}</details>\n"


def markdown_to_html(text: str) -> str:
    """Markdown with tables as HTML, headings below the page's own; nothing is fetched or run.

    Examples
    --------
    >>> markdown_to_html("**a** < `b`")
    '<p><strong>a</strong> &lt; <code>b</code></p>\\n'
    """
    tokens = _markdown.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"
    page = _markdown.renderer.render(tokens, _markdown.options, {})
    return page.replace("<table>", '<div class="wide"><table>').replace(
        "</table>", "</table></div>"
    )
