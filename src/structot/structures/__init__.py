"""Structures: what makes pairs belong together. Each is written in one line and adds with ``+``."""

from structot.structures.base import Combination, Structure
from structot.structures.convex import ConvexCost
from structot.structures.coverage import Coverage
from structot.structures.cut import ChainCut, GraphCut
from structot.structures.groups import Groups
from structot.structures.hierarchy import Hierarchy
from structot.structures.modular import Modular
from structot.structures.rank import LogDet, Rank
from structot.structures.routes import Routes
from structot.structures.set_function import SetFunction

__all__ = [
    "ChainCut",
    "Combination",
    "ConvexCost",
    "Coverage",
    "GraphCut",
    "Groups",
    "Hierarchy",
    "LogDet",
    "Modular",
    "Rank",
    "Routes",
    "SetFunction",
    "Structure",
]
