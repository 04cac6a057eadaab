"""
Many small problems in one call
===============================

Sentences, molecules, patches: problems of ten points spend most of their time between the kernels.
``solve_batch`` sends all of them through one compiled loop, and each comes back with its proof.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

rng = np.random.default_rng(0)
pairs = sot.groups.ngrams(8, 2)
charge = sot.Modular() + sot.Coverage(pairs, pairs, weights=0.05)
Ms = rng.random((400, 8, 8))
results = sot.solve_batch(Ms, structures=charge, tol=1e-3)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.hist([result.value for result in results], bins=30, color=sot.plot.COLORS[0])
left.set(xlabel="value", ylabel="problems")
right.hist(np.log10([max(result.gap, 1e-12) for result in results]), bins=30, color="0.5")
right.axvline(-3, color=sot.plot.COLORS[5], linestyle="--")
right.set(xlabel="log10 of the certified gap (asked for: dashed)")

# %%
# **To take home:** ``solve_batch`` returns a list of results in the order of the problems; what the
# compiled loop cannot take goes to ``solve`` by itself.
