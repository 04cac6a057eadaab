"""
Plain and structured: the same points
=====================================

Two clouds of three classes. Plain transport looks at every pair alone and splits each class between
two others; with a discount for pairs of the same two classes they travel together.
"""

import matplotlib.pyplot as plt

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels

plain = sot.solve(data.cost)
together = sot.solve(data.cost, structure=sot.Groups(*labels, sot.concave.Discount(0.9)))

# %%
# The first row shows both plans as lines between the points, the second as matrices whose rows and
# columns are sorted by class.

figure, axes = plt.subplots(2, 2, figsize=(8, 7.4), layout="constrained")
for (top, bottom), result, name in zip(axes.T, (plain, together), ("plain", "groups"), strict=True):
    sot.plot.matching(data.X, data.Y, result, *labels, ax=top)
    sot.plot.plan(result, *labels, ax=bottom)
    top.set_title(f"{name}: linear cost {result.value_linear:.3g}")
    bottom.set_title("")

# %%
# Both answers are certified: the value is at most ``gap`` above the optimum, in relative terms.

print(together)

# %%
# **To take home:** a structure changes which plan is best, not which plans are allowed; both are
# transport plans with the same marginals.
