"""Problems on which nothing was tuned: seeds drawn after the tuning, from one that is written down.

The options of `solvers.Newton` were chosen on the seeds 100 to 105 at n = 300 to 1000. The
seeds of the benchmark and of the ablation are the first words of `SeedSequence(UNSEEN)`.
"""

from __future__ import annotations

import numpy as np

import structot as sot
from structot.datasets import ClusterProblem, clusters

TUNED = (100, 101, 102, 103, 104, 105)
UNSEEN = 20261119
# The concave function of the main table, by κ = 1, 3, 10.
DISCOUNTS = (0.5, 0.75, 10 / 11)


def unseen(count: int) -> list[int]:
    """So many seeds that no tuning has seen."""
    return [int(x) for x in np.random.SeedSequence(UNSEEN).generate_state(count)]


def cloud(n: int, seed: int) -> ClusterProblem:
    """Ten classes on either side, squared distances."""
    return clusters(n, n_classes=10, seed=seed)


def groups(data: ClusterProblem, discount: float, own: bool) -> sot.Groups:
    """Groups in block units; ``own``: every target point is a group of its own."""
    targets = None if own else data.target_labels
    return sot.Groups(data.source_labels, targets, sot.concave.Discount(discount))


def charge(data: ClusterProblem, own: bool) -> object:
    """The exact fixed charge: a route between two groups costs a tenth of the mean cost."""
    targets = None if own else data.target_labels
    price = 0.1 * float(data.cost.mean())
    return sot.Modular() + sot.Coverage(data.source_labels, targets, weights=price)
