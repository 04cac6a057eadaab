"""
Neighbourhoods without borders
==============================

Groups may overlap. One moon is carried onto the other; every point with its nearest neighbours is a
group, so that neighbours are paid for travelling together although no class says so.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.two_moons(36, n_segments=6, seed=1)
near = (sot.groups.neighborhoods(Z, 4) for Z in (data.X, data.Y))
structure = sot.Modular() + sot.Groups(*near, sot.concave.Discount(0.5), equal_coverage=True)

plain = sot.solve(data.cost)
result = sot.solve(data.cost, structure=structure, tol=1e-3)

figure, axes = plt.subplots(1, 2, figsize=(9, 2.9), layout="constrained")
for ax, found, name in zip(axes, (plain, result), ("plain", "neighbourhoods"), strict=True):
    moved = found.barycentric_map(data.Y)
    ax.scatter(*data.Y.T, c="0.8", s=20, label="target")
    ax.plot(*moved.T, "-", color="0.6", linewidth=0.8)
    ax.scatter(*moved.T, c=np.arange(36), cmap="viridis", s=18, label="moved source, in order")
    jump = np.linalg.norm(np.diff(moved, axis=0), axis=1).max()
    ax.set(xticks=[], yticks=[], aspect="equal", title=f"{name}: longest jump {jump:.2f}")
axes[0].legend(frameon=False, fontsize=8, loc="lower left")

# %%
# The line joins the moved points in their order along the first moon: under plain transport
# neighbours may land on opposite sides.

print(result)

# %%
# **To take home:** where there are no classes, ``sot.groups`` makes groups from the data:
# neighbourhoods, clusters, superpixels, n-grams.
