"""
A page to play with
===================

``structot explore`` writes one HTML file: the plan as lines and as a matrix, a slider over the
dial, and the figures of the certified path below. Point at a point to see its partners.
"""

import html
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt

import structot as sot

target = Path(tempfile.mkdtemp()) / "explore.html"
command = [sys.executable, "-m", "structot", "explore", "--out", str(target), "--steps", "12"]
subprocess.run(command, check=True)


class Page:
    """Shows the file inside this page."""

    def _repr_html_(self) -> str:
        inside = html.escape(target.read_text(encoding="utf-8"))
        fit = "this.style.height = this.contentDocument.body.scrollHeight + 48 + 'px'"
        look = f'style="width: 100%; height: 1300px; border: 0" onload="{fit}"'
        return f'<iframe title="structot explore" {look} srcdoc="{inside}"></iframe>'


Page()

# %%
# One stop of it, drawn by the library:

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels
result = sot.solve(data.cost, structure=sot.Groups(*labels, sot.concave.Discount(0.85)), tol=1e-3)
figure, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
sot.plot.matching(data.X, data.Y, result, *labels, ax=ax)

# %%
# **To take home:** for your own points,
# ``structot explore a.csv b.csv --source-groups type --target-groups type``, where ``type`` is the
# column of labels in both tables.
