"""Structured optimal transport: plans whose cost depends on which pairs are used together.

    import structot as sot
    result = sot.solve(M, a, b, structure=sot.Groups(source_labels, target_labels))

Everything below is loaded when first used, so that the import itself stays light.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structot import adaptation as adaptation
    from structot import certificate as certificate
    from structot import concave as concave
    from structot import datasets as datasets
    from structot import experiments as experiments
    from structot import groups as groups
    from structot import image as image
    from structot import plot as plot
    from structot import solvers as solvers
    from structot import structures as structures
    from structot import submodular as submodular
    from structot import text as text
    from structot import torch as torch
    from structot import transport as transport
    from structot._parallel import get_num_threads as get_num_threads
    from structot._parallel import set_num_threads as set_num_threads
    from structot.adaptation import AdaptTo as AdaptTo
    from structot.adaptation import StructuredTransport as StructuredTransport
    from structot.outcome import Status as Status
    from structot.outcome import Trace as Trace
    from structot.problem import Problem as Problem
    from structot.result import Result as Result
    from structot.solvers.batch.solver import solve_batch as solve_batch
    from structot.solvers.path import Path as Path
    from structot.solvers.path import solve_path as solve_path
    from structot.solvers.solve import ConvergenceWarning as ConvergenceWarning
    from structot.solvers.solve import solve as solve
    from structot.solvers.solve import solve_sample as solve_sample
    from structot.structures import ChainCut as ChainCut
    from structot.structures import ConvexCost as ConvexCost
    from structot.structures import Coverage as Coverage
    from structot.structures import GraphCut as GraphCut
    from structot.structures import Groups as Groups
    from structot.structures import Hierarchy as Hierarchy
    from structot.structures import LogDet as LogDet
    from structot.structures import Modular as Modular
    from structot.structures import Rank as Rank
    from structot.structures import Routes as Routes
    from structot.structures import SetFunction as SetFunction

__version__ = "0.2.0.dev0"

_MODULES = (
    "adaptation",
    "certificate",
    "concave",
    "datasets",
    "experiments",
    "groups",
    "image",
    "plot",
    "solvers",
    "structures",
    "submodular",
    "text",
    "torch",
    "transport",
)
_HOME = {
    "AdaptTo": "adaptation",
    "ChainCut": "structures",
    "ConvergenceWarning": "solvers.solve",
    "ConvexCost": "structures",
    "Coverage": "structures",
    "GraphCut": "structures",
    "Groups": "structures",
    "Hierarchy": "structures",
    "LogDet": "structures",
    "Modular": "structures",
    "Path": "solvers.path",
    "Problem": "problem",
    "Rank": "structures",
    "Result": "result",
    "Routes": "structures",
    "SetFunction": "structures",
    "Status": "outcome",
    "StructuredTransport": "adaptation",
    "Trace": "outcome",
    "get_num_threads": "_parallel",
    "set_num_threads": "_parallel",
    "solve": "solvers.solve",
    "solve_batch": "solvers.batch.solver",
    "solve_path": "solvers.path",
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
