"""
Entropy beside a structure
==========================

``reg`` adds entropy to groups, cuts and sums of them; the dual becomes smooth and the plan blurs.
Here a fixed charge per pair of classes at three weights, as shares of the mean cost.
"""

import matplotlib.pyplot as plt

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels
charge = sot.Modular() + sot.Coverage(*labels, weights=0.3, units="block")
shares = (0.01, 0.05, 0.3)
path = sot.solve_path(data.cost, structure=charge, reg=[x * data.cost.mean() for x in shares])

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.7), layout="constrained")
for ax, share, result in zip(axes, shares, path, strict=True):
    sot.plot.plan(result, *labels, ax=ax)
    ax.set_title(f"reg {share:g} of the mean cost\npartners {result.partners.mean():.3g}")

# %%
# **To take home:** choose ``reg`` as a share of ``M.mean()``: it is a cost, whatever the structure.
