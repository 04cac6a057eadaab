"""Structured optimal transport: plans whose cost depends on which pairs are used together.

    import structot as sot
    result = sot.solve(M, a, b, structure=sot.Groups(source_labels, target_labels))

Everything below is loaded when first used, so that the import itself stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structot import certificate as certificate
    from structot import concave as concave
    from structot import datasets as datasets
    from structot import groups as groups
    from structot import plot as plot
    from structot import polytope as polytope
    from structot import solvers as solvers
    from structot import structures as structures
    from structot import submodular as submodular
    from structot import transport as transport
    from structot.problem import Problem as Problem
    from structot.result import Result as Result
    from structot.result import Status as Status
    from structot.result import Trace as Trace
    from structot.solvers.solve import ConvergenceWarning as ConvergenceWarning
    from structot.solvers.solve import solve as solve
    from structot.solvers.solve import solve_sample as solve_sample
    from structot.structures import Coverage as Coverage
    from structot.structures import Groups as Groups
    from structot.structures import Hierarchy as Hierarchy
    from structot.structures import Modular as Modular

__version__ = "0.1.0"

_MODULES = (
    "certificate",
    "concave",
    "datasets",
    "groups",
    "plot",
    "polytope",
    "solvers",
    "structures",
    "submodular",
    "transport",
)
_HOME = {
    "ConvergenceWarning": "solvers.solve",
    "Coverage": "structures",
    "Groups": "structures",
    "Hierarchy": "structures",
    "Modular": "structures",
    "Problem": "problem",
    "Result": "result",
    "Status": "result",
    "Trace": "result",
    "solve": "solvers.solve",
    "solve_sample": "solvers.solve",
}

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
