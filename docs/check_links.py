"""Every internal link of the built site leads to a file of the site and to an anchor in it.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Where a page leads, and the anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def dead_links(folder: Path) -> list[str]:
    """PAGE: LINK of every link that leads nowhere; other sites are not asked."""
    # Templates of the theme lie in _static; they are no pages.
    paths = [p for p in sorted(folder.rglob("*.html")) if "_static" not in p.parts]
    pages = {path.resolve(): Page(path) for path in paths}
    dead = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            missing = not target.exists() or not target.is_relative_to(folder.resolve())
            if not missing and anchor and target in pages:
                missing = anchor not in pages[target].anchors
            if missing:
                dead.append(f"{path.relative_to(folder.resolve())}: {link}")
    return dead


if __name__ == "__main__":
    found = dead_links(Path(sys.argv[1]))
    sys.stdout.write("".join(f"dead link in {line}\n" for line in found))
    sys.exit(1 if found else 0)
