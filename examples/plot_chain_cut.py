"""
Time series: neighbours in time share partners
==============================================

``ChainCut`` charges the total variation of the plan along both time axes. Moments next to each
other then go to the same moments, and the plan gets a smooth band in place of single dots.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

rng = np.random.default_rng(0)
t = np.linspace(0.0, 1.0, 24)
one = np.sin(2 * np.pi * t) + 0.25 * rng.normal(size=t.size)
two = np.sin(2 * np.pi * t**1.5) + 0.25 * rng.normal(size=t.size)
M = np.abs(np.subtract.outer(one, two)) + 0.5 * np.abs(np.subtract.outer(t, t))

plain = sot.solve(M)
smooth = sot.solve(M, structure=sot.Modular() + sot.ChainCut(0.3 * M.mean()), tol=1e-2)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
axes[0].plot(t, one, "o-", markersize=3, label="one")
axes[0].plot(t, two, "o-", markersize=3, label="two")
axes[0].set(xlabel="time", title="two series")
axes[0].legend(frameon=False)
for ax, result, name in zip(axes[1:], (plain, smooth), ("plain", "with a chain cut"), strict=True):
    sot.plot.plan(result, ax=ax)
    ax.set_title(name)

# %%
# **To take home:** a cut knows nothing of the cost; add ``Modular()`` to it.
