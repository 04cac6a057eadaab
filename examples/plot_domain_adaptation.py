"""
Domain adaptation with labels on one side
=========================================

Labels are known for the source only. ``StructuredTransport`` moves the source onto the target with
a price for splitting a class; a classifier trained on the moved points is used on the target.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import structot as sot

data = sot.datasets.clusters(90, n_classes=3, shift=4.0, rotation=0.3, spread=0.9, seed=3)
adapt = sot.StructuredTransport()
moved = adapt.fit(Xs=data.X, ys=data.source_labels, Xt=data.Y).transform(Xs=data.X)


def accuracy(points: np.ndarray) -> float:
    nearest = KNeighborsClassifier(1).fit(points, data.source_labels)
    return float(nearest.score(data.Y, data.target_labels))


# %%
# Coloured dots are source points, grey crosses the target, whose labels nobody has seen.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharex=True, sharey=True)
for ax, points, name in zip(axes, (data.X, moved), ("before", "after"), strict=True):
    ax.scatter(*data.Y.T, marker="x", c="0.7", s=18)
    ax.scatter(*points.T, c=np.take(sot.plot.COLORS, data.source_labels), s=18)
    ax.set(xticks=[], yticks=[], title=f"{name}: {accuracy(points):.0%} of the target right")

# %%
# **To take home:** the estimator has the manners of scikit-learn and the method names of POT's
# ``ot.da``, and ``adapt.result_`` is a certified result.
