"""
What the adversary plays
========================

A structured cost is a game: you choose a plan, an adversary chooses a cost matrix from the base
polytope of the set function. The one that proves the bound is part of the result.
"""

import structot as sot

data = sot.datasets.clusters(60, n_classes=3)
labels = data.source_labels, data.target_labels
result = sot.solve(data.cost, structure=sot.Groups(*labels, sot.concave.Discount(0.9)))

sot.plot.costs(result, *labels).figure.set_size_inches(9, 3.6)

# %%
# Pairs of blocks in use have become cheap, by the discount; the others keep their full price. Plain
# transport with this matrix costs as much as the structured plan, up to the gap:

bound = sot.solve(result.worst_cost).value
print(f"{bound:.6f} <= {result.value:.6f}")

# %%
# **To take home:** ``result.worst_cost`` is a cost under which the plan is optimal in the plain
# sense: it explains the plan pair by pair.
