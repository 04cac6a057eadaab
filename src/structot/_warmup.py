"""Every kernel compiled ahead of time, by solving tiny problems of all kinds."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structot import concave, submodular, transport
from structot._compilation import Stopwatch, unannounced
from structot._typing import Array
from structot.datasets import clusters
from structot.solvers.batch.solver import solve_batch
from structot.solvers.solve import solve
from structot.structures import (
    ChainCut,
    Coverage,
    GraphCut,
    Groups,
    Hierarchy,
    LogDet,
    Modular,
    Rank,
)
from structot.text import WordMover

__all__ = ["Warmup", "kernels", "warmup"]


@dataclass(frozen=True)
class Warmup:
    """What `warmup` did: its seconds, how many of them compiling, and where the kernels are kept.

    ``folder`` is None where nothing is compiled (NUMBA_DISABLE_JIT).
    """

    seconds: float
    compiling: float
    folder: str | None


def warmup(report: Callable[[str, int, int], None] | None = None) -> Warmup:
    """Compile every kernel for every kind of argument.

    Later processes load them from the disk. What is there already is not compiled again.

    Parameters
    ----------
    report
        Called with the name of a task, how many tasks are done, and how many there are: before
        each of them, and with an empty name at the end.
    """
    told = report or (lambda name, done, total: None)
    watch, begin = Stopwatch(), time.perf_counter()
    with unannounced(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whether a toy problem converges does not matter
        for done, (name, task) in enumerate(_TASKS.items()):
            told(name, done, len(_TASKS))
            task()
    told("", len(_TASKS), len(_TASKS))
    return Warmup(time.perf_counter() - begin, watch.compiling(), _folder())


def _folder() -> str | None:
    """The folder of the kernels on disk."""
    paths = [kernel.stats.cache_path for kernel in kernels() if hasattr(kernel, "stats")]
    return os.path.commonpath(paths) if paths else None


def kernels() -> list[Any]:
    """All kernels of the modules that are loaded."""
    modules = [m for name, m in sorted(sys.modules.items()) if name.startswith("structot.")]
    found = {id(f): f for m in modules for f in vars(m).values() if hasattr(f, "targetoptions")}
    return [f for f in found.values() if f.py_func.__module__.startswith("structot.")]


def _cost(n: int = 7, m: int = 6) -> Array:
    return np.random.default_rng(0).uniform(0.5, 1.5, (n, m))


_M, _ROWS, _COLS = _cost(), np.arange(7) % 3, np.arange(6) % 2


def _solve(structure: Any = None, M: Array = _M, **options: Any) -> None:
    # Long enough to visit every kernel, also where a tiny problem does not converge.
    solve(M, structure=structure, **{"tol": 1e-9, "max_iter": 40, **options})


def _groups() -> None:
    for g in (concave.ThresholdSqrt(0.5), concave.Sqrt()):
        _solve(Groups(_ROWS, _COLS, g, units="cost"))
        _solve(0.3 * Modular() + Groups(_ROWS, _COLS, g, units="cost"))
    _solve(Groups(_ROWS, _COLS, lambda x: np.sqrt(x), units="cost"))
    _solve(Groups(_ROWS, _COLS), np.where(_M == _M[0, 0], np.inf, _M))


def _many_points() -> None:
    """Enough of them for clusters, and for a factor in single precision."""
    for n in (260, 520):
        data = clusters(n, n_classes=4)
        labels = data.source_labels, data.target_labels
        _solve(Groups(*labels), data.cost, tol=1e-3)
        _solve(Modular() + Coverage(*labels, weights=0.1), data.cost, tol=1e-3)
        _solve(Groups(*labels), data.cost, tol=1e-3, unbalanced=1.0)


def _layouts() -> None:
    """Compiled anew for matrices by columns, for views, and for arrays that may not be written."""
    by_columns = np.asfortranarray(_M)
    read_only = _M.copy(), by_columns.copy(order="F")
    for array in read_only:
        array.setflags(write=False)
    for array in (by_columns, np.repeat(_M, 2, axis=1)[:, ::2], *read_only):
        F = Groups(_ROWS, _COLS).bind(array)
        F.extension(array)
        F.prox(array)
        _solve(Groups(_ROWS, _COLS), array, max_iter=5)


def _entropic() -> None:
    charge = Coverage(_ROWS, _COLS, weights=0.1)
    for structure in (None, Groups(_ROWS, _COLS), Modular() + charge, charge):
        _solve(structure, reg=0.1)
    _solve(None, _cost(640, 2), reg=0.1)  # more unknowns than are worth a Cholesky factor


def _splitting() -> None:
    _solve(Groups([[0, 1, 2, 3], [3, 4, 5, 6]], None))
    _solve(Modular() + Coverage.of_sets([_M > 1.0, _M < 1.1], 0.1))
    _solve(Hierarchy([_ROWS, _ROWS // 2], [_COLS, _COLS // 2]), method="splitting")
    _solve(Groups(_ROWS, _COLS), method="splitting")


def _cuts() -> None:
    _solve(Modular() + ChainCut(0.1))
    _solve(Modular() + GraphCut([(0, 1), (1, 2)], [(0, 1)]))


def _features() -> None:
    for kind in (Rank, LogDet):
        _solve(Modular() + kind(_cost(3, 2), _cost(4, 2)), _cost(3, 4), max_iter=3)


def _other_methods() -> None:
    for method in ("mirror_descent", "saddle_mirror_descent", "mirror_prox"):
        _solve(Groups(_ROWS, _COLS), method=method, max_iter=5)
    pieces = concave.PiecewiseLinear([1.0], [1.0, 0.5])
    _solve(Groups(_ROWS, _COLS, pieces, units="cost"), method="linear_program")
    _solve(None, method="exact")


def _building_blocks() -> None:
    a, b = np.full(7, 1 / 7), np.full(6, 1 / 6)
    for reg in (1.0, 1e-3):
        transport.sinkhorn(-_M / reg, a, b)
    transport.round_plan(np.zeros(_M.shape), a, b, allowed=_M < 1.3)
    transport.round_plan(_M / _M.sum(), a, b)
    transport.MarginalProjection(_M).project(_M, a, b)
    transport.c_transform(_M, a, b)
    F = Groups(_ROWS, _COLS, concave.Sqrt(), units="cost").bind(_M)
    for metric in ("euclidean", "cost", "entropy"):
        submodular.project(F, _M, metric)
    submodular.prox(F, _M)
    submodular.minimize(F, -_M)
    submodular.greedy(F, _M)


def _many() -> None:
    charge = Modular() + Coverage(_ROWS, _COLS, weights=0.1)
    for structure, reg in ((None, 0.0), (Groups(_ROWS, _COLS), 0.0), (None, 0.1), (charge, 0.1)):
        solve_batch([_M, _M], structures=structure, reg=reg)


def _sentences() -> None:
    words = ["dogs", "cats", "chase", "see"]
    sentences = ["dogs chase cats", "cats see dogs chase", "dogs see"]
    for g in (None, concave.Sqrt()):
        mover = WordMover((words, _cost(4, 3)), concave=g)
        mover.pairwise(sentences, n_jobs=1)
    mover.nearest(sentences[0], sentences, k=1)
    WordMover(mover.vectors, groups=None).distance(sentences[0], sentences[1])


_TASKS: dict[str, Callable[[], None]] = {
    "groups": _groups,
    "many points": _many_points,
    "many problems": _many,
    "sentences": _sentences,
    "kinds of arrays": _layouts,
    "entropy": _entropic,
    "overlapping groups": _splitting,
    "cuts": _cuts,
    "rank and volume": _features,
    "other methods": _other_methods,
    "building blocks": _building_blocks,
}
