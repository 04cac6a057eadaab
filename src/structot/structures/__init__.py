"""Structures: what makes pairs belong together. Each is written in one line and adds with ``+``."""

from structot.structures.base import Combination, Structure
from structot.structures.coverage import Coverage
from structot.structures.groups import Groups
from structot.structures.hierarchy import Hierarchy
from structot.structures.modular import Modular

__all__ = ["Combination", "Coverage", "Groups", "Hierarchy", "Modular", "Structure"]
