"""
The paper's algorithms and ours
===============================

The paper solves the problem by mirror descent and mirror prox; they are here, certified like the
rest. Newton's method uses what the cost is made of.
"""

import matplotlib.pyplot as plt

import structot as sot

data = sot.datasets.clusters(40, n_classes=3)
structure = sot.Groups(data.source_labels, data.target_labels)
sot.solve(data.cost, structure=structure)  # pays for compilation

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for method, limit in (("newton", 5.0), ("splitting", 5.0), ("mirror_prox", 3.0)):
    options = {"tol": 1e-6, "time_limit": limit, "callback": lambda state: False}
    result = sot.solve(data.cost, structure=structure, method=method, **options)
    trace = result.trace
    gap = (trace.value - trace.lower_bound) / abs(trace.value)
    ax.plot(trace.time, gap.clip(1e-9), "o-", markersize=3, label=method)
ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="certified gap")
ax.legend(frameon=False)

# %%
# **To take home:** leave ``method="auto"``; it picks by what the structure is made of and says what
# it took in ``result.method``.
