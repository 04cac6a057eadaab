"""
A set function of your own
==========================

Any submodular function of the set of pairs will do, by its values alone. Here each
source class pays for the square root of the number of target points that it reaches.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.clusters(8, n_classes=2, seed=1)
ys = data.source_labels


def reached(mask: np.ndarray) -> float:
    """Σ over source classes of √(number of target points that the class reaches)."""
    return sum(float(np.sqrt(mask[ys == k].any(axis=0).sum())) for k in (0, 1))


structure = sot.Modular() + 12.0 * sot.SetFunction(reached)
result = sot.solve(data.cost, structure=structure, tol=1e-2)
print(result)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for ax, found, name in zip(axes, (sot.solve(data.cost), result), ("plain", "own"), strict=True):
    sot.plot.matching(data.X, data.Y, found, ys, data.target_labels, ax=ax)
    ax.set_title(name)

# %%
# Reaching one target more costs the less the more of them a class reaches already: its mass spreads
# over targets that it has paid for.

# %%
# A function that is not submodular is found out, with two sets that show it:

squares = sot.SetFunction(lambda mask: float(mask.sum()) ** 2)
try:
    sot.solve(data.cost, structure=squares)
except ValueError as error:
    print(error)

# %%
# **To take home:** start from ``SetFunction`` to try an idea on a few hundred pairs; if it can be
# written as concave functions of sums over blocks, ``Groups`` solves it by sorting them, without
# calling a function for every set.
