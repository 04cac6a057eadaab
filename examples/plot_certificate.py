"""
The proof in the answer
=======================

Every result holds a feasible plan, whose value is an upper bound, and potentials, which prove a
lower bound. The solver stops when they are close enough, and for no other reason.
"""

import matplotlib.pyplot as plt

import structot as sot

data = sot.datasets.clusters(80, n_classes=3)
structure = sot.Groups(data.source_labels, data.target_labels)
result = sot.solve(data.cost, structure=structure, tol=1e-7)

figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
sot.plot.convergence(result, ax=ax)

# %%
# Anyone can check the proof, without the solver: is the plan feasible, is its value what it says,
# is the worst cost K a base of the set function, do the potentials stay below it?

checked = result.verify()
print(checked)
print("holds:", checked.holds())

# %%
# **To take home:** ``result.gap`` is a proved statement about this plan, not a guess from how much
# the last step moved.
