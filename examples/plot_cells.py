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
    "plain": sot.Routes(*labels, charge=0.0),
    "groups, discount 0.9": sot.Groups(*labels, sot.concave.Discount(0.9)),
    "routes": sot.Routes(*labels),
}
results = {name: sot.solve(data.cost, structure=s, tol=1e-3) for name, s in structures.items()}

# %%
# How much of the mass stays in its type, and over how many cells each cell is spread. The
# proportions of the two batches do not allow all of it.

same = data.source_labels[:, None] == data.target_labels
shares = [np.bincount(y) / y.size for y in labels]
print(f"possible: {np.minimum(*shares).sum():.0%}")
for name, result in results.items():
    kept = result.plan[same].sum()
    print(f"{name:22s} {kept:.0%} in its type, {result.partners.mean():.1f} partners")

# %%
# The mass between the types of the two batches.

figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, (name, result) in zip(axes, results.items()):
    sot.plot.block_mass(result, ax=ax)
    ax.set_title(f"{name}\n{result.partners.mean():.1f} partners", fontsize=10)
plt.show()

# %%
# **To take home:** with groups on both sides, routes match the groups and keep the cells apart.
