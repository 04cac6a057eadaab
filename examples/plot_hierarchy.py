"""
Classes inside superclasses
===========================

A discount for classes pairs them as wholes, and does not care which with which. With nested
groupings a plan is also paid for staying inside a superclass. Here classes 0 and 1 form one
superclass, classes 2 and 3 the other.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.clusters(40, n_classes=4, rotation=0.5, seed=2)
classes = data.source_labels, data.target_labels
above = classes[0] // 2, classes[1] // 2
levels = [classes[0], above[0]], [classes[1], above[1]]
strong = sot.concave.Discount(0.9)
structures = {
    "plain": sot.Modular(),
    "classes": sot.Groups(*classes, strong),
    "classes and superclasses": sot.Hierarchy(*levels, concave=strong),
}

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained")
for ax, (name, structure) in zip(axes, structures.items(), strict=True):
    result = sot.solve(data.cost, structure=structure, tol=1e-2)
    sot.plot.plan(result, *classes, ax=ax)
    inside = result.plan[np.equal.outer(*above)].sum()
    ax.set_title(f"{name}\n{inside:.0%} inside a superclass", fontsize=10)

# %%
# **To take home:** ``Hierarchy`` is a sum of ``Groups``, one per level; sums of structures are
# structures, and they are certified like any other.
