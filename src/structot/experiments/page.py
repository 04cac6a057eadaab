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
from structot.experiments._tables import table

__all__ = ["markdown_to_html", "write_html"]

_MOST_CERTIFICATES = 60  # rows shown of one experiment; all of them are in its folder

# Markup inside the text is shown, not obeyed, and no image is fetched from elsewhere.
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.55 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } h2 { margin-top: 3rem; font-size: 1.25rem; }
h2, nav { border-top: 1px solid #ddd; padding-top: .8rem; }
.took { color: #666; font-size: .9rem; }
img { max-width: 100%; height: auto; } figure { margin: 1.2rem 0; }
figcaption { color: #666; font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e5e5e5; }
th { text-align: left; font-weight: 600; }
code { background: #f3f3f3; padding: 0 .2rem; } summary { cursor: pointer; color: #0072B2; }
"""


def write_html(out: Path, names: list[str]) -> Path:
    """Write ``out / "report.html"`` from the folders of these experiments; its path.

    Everything is inside the one file, figures as data URIs: it can be sent and opened anywhere.
    """
    sections = [_section(out / name, name) for name in names]
    links = " · ".join(f'<a href="#{name}">{name}</a>' for name in names)
    page = (
        "<!doctype html>\n"
        '<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>structot: report</title><style>{_STYLE}</style></head><body>\n"
        "<h1>Structured optimal transport</h1>\n"
        f'<p class="took">structot {html.escape(structot.__version__)}. Every value comes with a '
        "lower bound: gap = (value − bound) / value is how far, at most, the value lies above the "
        "optimum.</p>\n"
        f"<nav>{links}</nav>\n" + "\n".join(sections) + "\n</body></html>\n"
    )
    path = out / "report.html"
    write_text(path, page)
    return path


def _section(folder: Path, name: str) -> str:
    made = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    title = experiments.get(name).title
    count = len(made["seconds_by_task"])
    small = ", small version" if made["settings"]["quick"] else ""
    took = f"{count} tasks{small}, {made['seconds']:.1f} s of computing"
    text = (folder / "report.md").read_text(encoding="utf-8")
    # Only those of this run: a smaller one made by force may have left others in the folder.
    figures = made.get("figures", sorted(path.stem for path in folder.glob("*.png")))
    return (
        f'<section id="{name}"><h2>{html.escape(title)}</h2><p class="took">{took}</p>\n'
        + "".join(_figure(folder / f"{stem}.png") for stem in figures)
        + markdown_to_html(text)
        + _certificates(folder, made["seconds_by_task"])
        + "</section>"
    )


def _figure(path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode("ascii")
    name = html.escape(path.stem.replace("_", " "))
    return (
        f'<figure><img alt="{name}" src="data:image/png;base64,{data}">'
        f"<figcaption>{name}</figcaption></figure>\n"
    )


def _certificates(folder: Path, seconds: dict[str, float]) -> str:
    """A table of value, bound and gap of every task that has them, folded away."""
    rows: list[list[str]] = []
    for key, took in seconds.items():
        if len(rows) == _MOST_CERTIFICATES:
            break
        record = _records.load(folder / "tasks" / f"{key}.npz") or {}
        if isinstance(record.get("gap"), float):
            numbers = [record.get("value"), record.get("lower_bound")]
            cells = [f"{x:.6g}" if isinstance(x, float) else "" for x in numbers]
            rows.append([key, *cells, f"{record['gap']:.1e}", f"{took:.2f}"])
    if not rows:
        return ""
    more = f", the first {len(rows)}" if len(rows) == _MOST_CERTIFICATES < len(seconds) else ""
    made = markdown_to_html(table(["task", "value", "lower bound", "gap", "seconds"], rows))
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
