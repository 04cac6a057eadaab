"""
Cells of two batches
====================

Two batches of cells were sorted into types, but the instrument has changed and so have the
proportions. The types of the second batch are groups without names: a plan must find out which is
which. ``Routes`` finds it, and says of every cell with which few cells it goes; a discount per
block finds it by spreading every cell over its type.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.cells(150, 200, seed=0)
labels = data.source_labels, data.target_labels
structures = {
    "plain transport": sot.Routes(*labels, charge=0.0),
    "Groups, discount 0.9": sot.Groups(*labels, sot.concave.Discount(0.9)),
    "Routes, charge 0.3": sot.Routes(*labels, charge=0.3),
}
results = {name: sot.solve(data.cost, structure=s) for name, s in structures.items()}

# %%
# How much of the mass stays in its type, and over how many cells each cell is spread. The
# proportions of the two batches do not allow all of it.

same = data.source_labels[:, None] == data.target_labels
shares = [np.bincount(y) / y.size for y in labels]
possible = np.minimum(*shares).sum()
print(f"possible: {possible:.0%}")
for name, result in results.items():
    kept = result.plan[same].sum()
    print(f"{name:22s} {kept:.0%} in its type, {result.partners.mean():.1f} partners")

# %%
# On two principal components of the second batch, its cells (crosses) and those of the first as
# the plan maps them (dots), by type; below, the mass between the types.

centre = data.Y.mean(axis=0)
plane = np.linalg.svd(data.Y - centre, full_matrices=False)[2][:2].T
colors = np.array(sot.plot.COLORS)
figure, axes = plt.subplots(2, 3, figsize=(9.6, 6.6), layout="constrained")
for (top, bottom), (name, result) in zip(axes.T, results.items(), strict=True):
    for points, types, marker, alpha in (
        (data.Y, data.target_labels, "x", 0.35),
        (result.barycentric_map(data.Y), data.source_labels, "o", 1.0),
    ):
        place = (points - centre) @ plane
        top.scatter(*place.T, c=colors[types], marker=marker, s=16, linewidths=0.8, alpha=alpha)
    top.set(xticks=[], yticks=[], title=name)
    sot.plot.block_mass(result, ax=bottom)
    bottom.set(
        ylabel="type in batch 1",
        xlabel="type in batch 2\n"
        f"to the same type {result.plan[same].sum():.0%} of {possible:.0%} possible\n"
        f"linear cost {result.value_linear:.1f}, partners {result.partners.mean():.1f}",
    )
plt.show()

# %%
# **To take home:** with groups on both sides, routes match the groups and keep the cells apart.
