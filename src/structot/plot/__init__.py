"""Pictures of answers: functions of a result and an axis, which they return.

Colours are from the colour-blind-safe palette of Okabe and Ito; heat maps run from white to dark in
one hue, so that they survive a black-and-white printer. Further keyword arguments go to matplotlib.

Notation: P plan, M ground cost, K the adversary's worst cost, all of shape (n, m).
"""

from structot.plot._parts import COLORS
from structot.plot.curves import convergence, path
from structot.plot.maps import block_mass, costs, plan
from structot.plot.points import matching

__all__ = ["COLORS", "block_mass", "convergence", "costs", "matching", "path", "plan"]
