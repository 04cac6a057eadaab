"""
Two ways to keep groups together
================================

A discount per block (``Groups``) and a price per block in use (the fixed charge,
``Modular() + Coverage``) both pull classes together; how they get there differs.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels
families = {
    "discount": [sot.Groups(*labels, sot.concave.Discount(d)) for d in np.linspace(0, 0.95, 12)],
    "fixed charge": [
        sot.Modular() + sot.Coverage(*labels, weights=w, units="block")
        for w in [0.0, *np.geomspace(0.005, 0.6, 11)]
    ],
}

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for name, structures in families.items():
    path = sot.solve_path(data.cost, structures=structures, tol=1e-3)
    table = path.table()
    left.plot(table["linear"], table["concentration"], "o-", markersize=4, label=name)
    right.plot(table["linear"], table["partners"], "o-", markersize=4, label=name)
left.set(xlabel="linear cost", ylabel="concentration")
right.set(xlabel="linear cost", ylabel="partners per point")
left.legend(frameon=False)

# %%
# Read each panel from left to right: for the same plain cost, the discount buys more concentration.
# Both pay with partners, up to the size of a class, 20 points.

# %%
# **To take home:** compare structures by what they buy for the same plain cost, not dial by dial.
