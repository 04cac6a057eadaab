"""The paper's experiments and one of our own, a module each, imported when first asked for.

    from structot import experiments
    report = experiments.run(experiments.get("clusters"), Path("out"), experiments.Settings())

A module holds an instance ``EXPERIMENT`` of the protocol `Experiment`.
"""

from __future__ import annotations

import importlib

from structot import _checks
from structot.experiments._runner import (
    Experiment,
    Records,
    Report,
    Settings,
    Task,
    run,
)

__all__ = [
    "NAMES",
    "Experiment",
    "Records",
    "Report",
    "Settings",
    "Task",
    "get",
    "run",
]

# In the order in which they are run and shown.
NAMES = (
    "clusters",
    "runtime",
    "moons",
    "colors",
    "small_digits",
    "digits",
    "transduction",
    "adaptation",
    "skada_shifts",
    "target_shift",
    "sentences",
)


def get(name: str) -> Experiment:
    """The experiment of this name.

    Examples
    --------
    >>> get("clusters").name
    'clusters'
    """
    name = _checks.one_of("experiment", name, NAMES)
    return importlib.import_module(f"{__name__}.{name}").EXPERIMENT
