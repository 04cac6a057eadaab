"""A page to play with: one problem along the dials of several structures, in one HTML file.

    html = page(Clouds(M, rows, cols, X, Y), title="My points")

The paths are computed and certified beforehand; the page only shows them, without a network.
"""

from structot.explorer.page import Clouds, page
from structot.explorer.paths import KINDS, Kind, available, solve_kind

__all__ = ["KINDS", "Clouds", "Kind", "available", "page", "solve_kind"]
