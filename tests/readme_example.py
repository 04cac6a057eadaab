"""The first Python block of a page, run as it stands by an interpreter with the installed package.

The description that the package brings along must lead to nothing that only a checkout has.

python tests/readme_example.py README.md
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from importlib.metadata import metadata
from pathlib import Path

if __name__ == "__main__":
    os.environ["MPLBACKEND"] = "Agg"
    page = Path(sys.argv[1]).resolve()
    block = re.search(r"^```python[^\n]*\n(.*?)^```\s*$", page.read_text("utf-8"), re.M | re.S)
    if block is None:
        sys.exit(f"{page.name} has no ```python block")
    sys.stdout.write(block.group(1) + "\n")
    os.chdir(tempfile.mkdtemp())
    exec(compile(block.group(1), str(page), "exec"), {"__name__": "__main__"})
    import structot

    if Path(structot.__file__).is_relative_to(page.parent / "src"):
        sys.exit(f"{structot.__file__} is the source, not the installed package")
    description = str(metadata("structot").get_payload())
    if dead := re.findall(r"\]\((?!https?:)[^)]*\)", description) or not description.strip():
        sys.exit(f"the description of the package is empty, or leads nowhere: {dead}")
