"""
Colours, region by region
=========================

Colour transfer moves the colours of one photograph onto those of another. Plain transport treats
every pixel alone and makes noise; with the regions of the image as groups, a region keeps together.
"""

import matplotlib.pyplot as plt
from skimage import data

import structot as sot

photo, palette = data.coffee()[::4, ::4], data.rocket()[::4, ::4]
plain = sot.image.transfer_colors(photo, palette, method="emd", n_samples=300, random_state=0)
moved = sot.image.transfer_colors(
    photo, palette, alpha=0.3, n_samples=300, tol=2e-2, random_state=0
)

figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
names = ("photograph", "palette", "plain", "region by region")
for ax, image, name in zip(axes, (photo, palette, plain, moved), names, strict=True):
    ax.imshow(image)
    ax.set(xticks=[], yticks=[], title=name)

# %%
# **To take home:** on the command line this is
# ``structot colors photo.png palette.png recoloured.png --compare``.
