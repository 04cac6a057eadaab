"""
Together, each with its own partner
===================================

A discount per block keeps classes together by spreading every point over its class. ``Routes`` puts
a price on the routes between two classes, by the share of a point's mass that takes them: classes
travel together and points keep their partners.
"""

import matplotlib.pyplot as plt

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels
structures = {
    "plain": None,
    "groups, discount 0.9": sot.Groups(*labels, sot.concave.Discount(0.9)),
    "routes": sot.Routes(*labels),
}

figure, axes = plt.subplots(2, 3, figsize=(10.5, 6.8), layout="constrained")
for (top, bottom), (name, structure) in zip(axes.T, structures.items(), strict=True):
    result = sot.solve(data.cost, structure=structure, tol=1e-5)
    sot.plot.matching(data.X, data.Y, result, *labels, ax=top)
    sot.plot.plan(result, *labels, ax=bottom)
    top.set_title(name)
    cost, partners = result.value_linear, result.partners.mean()
    bottom.set_title(f"linear cost {cost:.3g}, partners {partners:.2g}", fontsize=10)

# %%
# How strong should the price be? Along the charge the plan passes once, and quickly, from plain
# transport to classes that travel as a whole; before and after that it stays as it is.

charges = [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
path = sot.solve_path(
    data.cost, structures=[sot.Routes(*labels, charge) for charge in charges], tol=1e-5
)
path.plot(label="charge").figure.set_size_inches(7, 4)

# %%
# **To take home:** where a plan is used point by point, take ``Routes``, which needs the groups of
# both sides; ``Groups`` also takes those of one side, overlapping ones, and entropy.
