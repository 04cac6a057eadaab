"""
Choosing the dial by the elbow
==============================

How strong should the discount be? Solve for all of them: each answer starts from its neighbour's,
so that a path costs little more than a few solves, and every point of it is certified.
"""

import numpy as np

import structot as sot

data = sot.datasets.clusters(80, n_classes=3)
labels = data.source_labels, data.target_labels
dials = np.linspace(0.0, 0.95, 14)
structures = [sot.Groups(*labels, sot.concave.Discount(d)) for d in dials]
path = sot.solve_path(data.cost, structures=structures, tol=1e-3)
path.plot(label="discount").figure.set_size_inches(7, 4)

# %%
# Concentration is what you buy: the share of a class that goes to one class. Linear cost and
# partners are what you pay: the plain price of the plan, and over how many targets a point spreads.

print(path)

# %%
# **To take home:** left of the elbow the structure does next to nothing, right of the plateau it
# only spreads; choose between them, and look at ``partners`` before you use a plan point by point.
