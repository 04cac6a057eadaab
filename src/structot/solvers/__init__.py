"""Solvers, by name in `solve(method=...)` or as objects with options."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structot.solvers.base import Solver
    from structot.solvers.entropic.solver import Entropic
    from structot.solvers.exact import Exact
    from structot.solvers.interior_point.solver import InteriorPoint
    from structot.solvers.linear_program import LinearProgram
    from structot.solvers.newton.solver import Newton
    from structot.solvers.paper.mirror_descent import MirrorDescent
    from structot.solvers.paper.mirror_prox import MirrorProx, SaddleMirrorDescent
    from structot.solvers.solve import ConvergenceWarning
    from structot.solvers.splitting import Splitting

__all__ = [
    "ConvergenceWarning",
    "Entropic",
    "Exact",
    "InteriorPoint",
    "LinearProgram",
    "MirrorDescent",
    "MirrorProx",
    "Newton",
    "SaddleMirrorDescent",
    "Solver",
    "Splitting",
]

_HOME = {
    "ConvergenceWarning": "solve",
    "Entropic": "entropic.solver",
    "Exact": "exact",
    "InteriorPoint": "interior_point.solver",
    "LinearProgram": "linear_program",
    "MirrorDescent": "paper.mirror_descent",
    "MirrorProx": "paper.mirror_prox",
    "Newton": "newton.solver",
    "SaddleMirrorDescent": "paper.mirror_prox",
    "Solver": "base",
    "Splitting": "splitting",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
