"""
Start here: five minutes
========================

From two clouds of points to a certified plan that keeps classes together, one picture per step. You
need ``pip install '.[all]'`` in a checkout, and points with labels: here they are made up; put your
own arrays in the place of ``X``, ``Y``, ``ys`` and ``yt``.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
X, Y = data.X, data.Y  # points, shapes (60, 2) and (60, 2)
ys, yt = data.source_labels, data.target_labels  # one label per point

figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
for points, labels, marker in ((X, ys, "o"), (Y, yt, "X")):
    ax.scatter(*points.T, c=np.take(sot.plot.COLORS, labels), marker=marker, s=24)
ax.set(xticks=[], yticks=[], aspect="equal", title="source: dots, target: crosses")

# %%
# 1. Plain transport
# ------------------
# Every pair for itself: the cheapest way to move the dots onto the crosses. Look at how classes are
# torn apart.

plain = sot.solve_sample(X, Y)
ax = sot.plot.matching(X, Y, plain, ys, yt)
ax.set_title("plain transport")

# %%
# 2. A structure
# --------------
# ``Groups`` gives a discount to pairs of the same two classes: the more of a block is used, the
# cheaper its rest becomes.

result = sot.solve_sample(X, Y, structure=sot.Groups(ys, yt, sot.concave.Discount(0.85)))
ax = sot.plot.matching(X, Y, result, ys, yt)
ax.set_title("groups, discount 0.85")

# %%
# 3. Read the answer
# ------------------
# The plan is at most ``gap`` above the best possible, and that is proved. *Together* is how much of
# a class goes to one class, *partners* over how many targets a point is spread.

print(result)

# %%
# The mass between classes, in numbers:

ax = sot.plot.block_mass(result)

# %%
# 4. Turn the dial
# ----------------
# How strong should the discount be? Solve along the dial, and look for the elbow.

structures = [sot.Groups(ys, yt, sot.concave.Discount(d)) for d in np.linspace(0.0, 0.95, 12)]
path = sot.solve_path(data.cost, structures=structures, tol=1e-3)
path.plot(label="discount").figure.set_size_inches(6.5, 4)

# %%
# 5. Use the plan
# ---------------
# Where does each source point go, on average?

moved = result.barycentric_map(Y)
figure, ax = plt.subplots(figsize=(5, 4.2), layout="constrained")
ax.scatter(*Y.T, c="0.8", marker="X", s=24)
ax.scatter(*moved.T, c=np.take(sot.plot.COLORS, ys), s=24)
ax.set(xticks=[], yticks=[], aspect="equal", title="source points where the plan sends them")

# %%
# All points of a class land close together: that is what ``partners`` told. A weaker discount keeps
# them apart; the other structures are on the page about choosing.
#
# **Next:** :doc:`/choosing`, or play with your own points on one page:
# ``structot explore a.csv b.csv --source-groups type --target-groups type``, where ``type`` is the
# column of labels in both tables.
