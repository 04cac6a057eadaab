"""
When one side has too much of a class
=====================================

Marginals that are kept exactly force the surplus of a class into another one. With
``unbalanced`` mass may be created and destroyed at a price, with ``mass`` only a part of it is
moved; groups stay together and the surplus stays at home.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.clusters(60, n_classes=3, rotation=0.15)
kept = np.flatnonzero((data.target_labels != 2) | (np.arange(60) % 4 == 0))  # few of class 2
Y, yt = data.Y[kept], data.target_labels[kept]
structure = sot.Groups(data.source_labels, yt, sot.concave.Discount(0.85))
M = data.cost[:, kept]

results = {
    "balanced": sot.solve(M, structure=structure, tol=1e-3),
    "relaxed (KL)": sot.solve(M, structure=structure, unbalanced=0.3 * M.mean(), tol=1e-3),
    "three quarters of the mass": sot.solve(M, structure=structure, mass=0.75, tol=1e-3),
}

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    sot.plot.matching(data.X, Y, result, data.source_labels, yt, ax=ax)
    ax.set_title(f"{name}\n{result.plan.sum():.0%} moved, concentration {result.concentration:.0%}")

# %%
# What each class sent, as a share of what it had:

for name, result in results.items():
    sent = [result.marginals[0][data.source_labels == k].sum() * 3 for k in range(3)]
    print(f"{name:28s}", " ".join(f"{share:.0%}" for share in sent))

# %%
# **To take home:** where the two sides hold the classes in different proportions, relax the
# marginals; the answer is certified like any other.
