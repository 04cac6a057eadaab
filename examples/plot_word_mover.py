"""
Who did what to whom
====================

Word Mover's Distance forgets word order: a sentence and its shuffled words are at distance 0. With
neighbouring words as phrases, and a charge for every pair of phrases that exchanges words, leaving
one's neighbours costs something, and so does changing places with them.
"""

import matplotlib.pyplot as plt
import numpy as np

import structot as sot

# Word vectors would come from gensim or from a file; four words in space will do here.
words = ["dogs", "cats", "chase", "see"]
vectors = np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1]])
mover = sot.text.WordMover((words, vectors))

sentences = ["dogs chase cats", "cats chase dogs", "dogs see cats", "cats see dogs"]
distances = mover.pairwise(sentences)
plain = sot.text.WordMover((words, vectors), like="gensim").pairwise(sentences)

# %%
# Plain distances on the left: who chases whom cannot be told.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, values, name in zip(axes, (plain, distances), ("words alone", "with phrases"), strict=True):
    ax.imshow(values, cmap="Blues", vmin=0)
    for i, j in np.ndindex(values.shape):
        dark = values[i, j] > 0.6 * values.max()
        ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", color="w" if dark else "k")
    ax.set_xticks(range(4), sentences, rotation=25, ha="right")
    ax.set_yticks(range(4), sentences if ax is axes[0] else [""] * 4)
    ax.set_title(name)

# %%
# **To take home:** ``WordMover`` stands in the place of gensim's ``wmdistance``; many pairs go
# through one compiled call, each with its bound.
