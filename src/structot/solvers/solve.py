"""The front verb: check, choose, run, warn at most once."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from structot import _checks
from structot._compilation import Stopwatch
from structot._deadline import Deadline
from structot._extras import has_tensors
from structot.outcome import ConvergenceWarning
from structot.problem import Problem
from structot.result import Result
from structot.solvers._loop import Limits, State, run
from structot.solvers._tensors import on_tensors
from structot.solvers.base import Solver
from structot.solvers.start import Start
from structot.structures.base import Structure

# Method name -> (module, class). A module is imported when its method is first used.
_SOLVERS = {
    "newton": ("newton.solver", "Newton"),
    "entropic": ("entropic.solver", "Entropic"),
    "interior_point": ("interior_point.solver", "InteriorPoint"),
    "splitting": ("splitting", "Splitting"),
    "mirror_descent": ("paper.mirror_descent", "MirrorDescent"),
    "saddle_mirror_descent": ("paper.mirror_prox", "SaddleMirrorDescent"),
    "mirror_prox": ("paper.mirror_prox", "MirrorProx"),
    "linear_program": ("linear_program", "LinearProgram"),
    "exact": ("exact", "Exact"),
}
METHODS = ("auto", *_SOLVERS)
_OPTIONS = (
    *("structure", "reg", "unbalanced", "unbalanced_type", "mass", "method", "tol", "atol"),
    *("max_iter", "time_limit", "init", "callback", "progress"),
)
# What users of POT may type for them.
_POT_NAMES = {
    **{"numItermax": "max_iter", "stopThr": "tol", "G0": "init", "verbose": "progress"},
    **{"reg_m": "unbalanced", "m": "mass"},
}


# What F is made of, and whether there is entropy -> the methods of "auto", as far as they take the
# problem (newton takes a linear F for KL only, which is no linear program). The first is the
# fastest. Where it can get no further each of the others goes on from what is known: first those
# that need no metric, which costs of very different sizes spoil. A method that stands twice comes
# back after them; with a small problem its first try was short (`_PATIENCE`).
_TABLE = {
    ("linear", False): ("exact", "linear_program", "interior_point", "newton", "splitting"),
    ("linear", True): ("entropic", "interior_point"),
    ("blocks", False): ("newton", "interior_point", "linear_program", "newton", "splitting"),
    ("blocks", True): ("entropic", "interior_point"),
    ("layers", False): ("splitting", "interior_point", "linear_program", "splitting"),
    ("layers", True): ("interior_point",),
    ("lanes", False): ("interior_point", "linear_program"),
    ("lanes", True): ("interior_point",),  # only to say why not
    ("convex", False): ("mirror_descent",),
    ("convex", True): ("mirror_descent",),  # only to say why not
}
# A problem of at most so many pairs is small.
_SMALL = 2500
# Methods that are too slow for other problems, unless they come first.
_FOR_SMALL = ("interior_point", "linear_program")
# Iterations after which the first method gives up a small problem: of newton those without
# progress, of splitting all.
_PATIENCE = {"newton": 100, "splitting": 1500}
# Programs over vertices after which linear_program gives up.
_ROUNDS = 150
# What evaluating and completing the answer takes, in units of the first look at all prices.
_FINISH = 6.0
# At most this part of the time is kept back for it.
_LARGEST_RESERVE = 0.2


def solve(
    M: Any,
    a: Any = None,
    b: Any = None,
    *,
    structure: Structure | None = None,
    reg: float = 0.0,
    unbalanced: Any = None,
    unbalanced_type: str = "KL",
    mass: float | None = None,
    method: str | Solver = "auto",
    tol: float = 1e-4,
    atol: float | None = None,
    max_iter: int | None = None,
    time_limit: float | None = None,
    init: Any = None,
    callback: Callable[[State], bool | None] | None = None,
    progress: bool = False,
    **unknown: Any,
) -> Result:
    """min_{P in U(a,b)} f(P) + reg · entropy(P), with a proof of how good the answer is.

    With ``unbalanced`` or ``mass`` the marginals of P need not be a and b.

    Parameters
    ----------
    M
        Ground cost, shape (n, m), entries in [0, +inf]; +inf forbids a pair.
    a, b
        Weights of the source and target points, equal totals (but see ``unbalanced``); uniform by
        default.
    structure
        What makes pairs belong together, e.g. ``sot.Groups(ys, yt)``; None is plain transport.
    reg
        Weight of the entropy term; with ``structure=None`` this is Sinkhorn's problem.
    unbalanced, unbalanced_type
        The price τ of other marginals than a and b, one number or (source, target); None or inf
        keeps a side as it is. "KL" adds τ Σ x log(x/a) - x + a for the marginal x of a side, "TV"
        τ Σ |x - a|: a unit of mass created or destroyed costs τ. The totals of a and b may differ
        then, unless both sides are kept.
    mass
        Move only this much: P1 <= a, Pᵀ1 <= b and ΣP = mass, in the place of ``unbalanced``.
    method
        "auto", "newton", "entropic" (reg > 0), "interior_point", "splitting", "mirror_descent",
        "saddle_mirror_descent", "mirror_prox", "linear_program", "exact", or a solver with
        options, e.g. ``solvers.MirrorProx(step=3)``.
    tol, atol
        Stop when value - lower_bound <= tol · |value| + atol, the only stopping rule. ``atol`` is
        an absolute error that counts as nothing, at least the rounding error of the value (within
        a tenth of what ``tol`` allows). A ``tol`` below 1e-13 or so is beyond double precision.
    max_iter, time_limit
        Limits in iterations and seconds; the best certified answer so far is returned.
        Compilation of the kernels, once per installation, does not count.
    init
        A plan, potentials (u, v) or an earlier `Result` to start from.
    callback
        Called with the state after each iteration; a true return value stops.
    progress
        Show a live line with iteration, value, bound and gap (on a terminal only).

    Returns
    -------
    Result
        The plan, its value, the lower bound, the gap, and how it went.

    Examples
    --------
    >>> import numpy as np, structot as sot
    >>> X, Y = np.array([[0.0], [1.0], [5.0]]), np.array([[0.5], [4.0], [6.0]])
    >>> groups = sot.Groups(["low", "low", "high"], ["low", "high", "high"])
    >>> sot.solve(abs(X - Y.T), structure=groups).converged
    True
    """
    if has_tensors(M, a, b):
        return on_tensors(solve, locals())
    for name in unknown:
        _checks.one_of("option", _POT_NAMES.get(name, name), _OPTIONS, arrived=name)
    limits = Limits(
        tol=_checks.nonnegative("tol", tol),
        atol=None if atol is None else _checks.nonnegative("atol", atol),
        max_iter=None if max_iter is None else _checks.count("max_iter", max_iter),
    )
    seconds = None if time_limit is None else _checks.positive("time_limit", time_limit)
    watch = Stopwatch()
    deadline = Deadline(seconds, watch.elapsed)
    with deadline.in_force():  # a check of the user's own function may take long
        relaxed: dict[str, Any] = {"unbalanced": unbalanced, "unbalanced_type": unbalanced_type}
        problem = Problem.of(M, a, b, structure=structure, reg=reg, mass=mass, **relaxed)
    with watch.paused():  # imports, once per process
        # Of mass 0 the answer is known without a solver.
        solvers = _choose(method, problem) if problem.marginals.mass != 0.0 else []
    before = deadline.elapsed
    problem = problem.normalized()
    # The answer is evaluated and its proof completed after the last iteration.
    needed = _FINISH * (deadline.elapsed - before)
    deadline.reserve(needed if seconds is None else min(needed, _LARGEST_RESERVE * seconds))
    start = Start.of(init, problem)
    result = run(problem, solvers, start, limits, deadline, callback, progress)
    _warn(result, limits, _advice(problem))
    return result


def _advice(problem: Problem) -> str:
    """What the user may have meant otherwise."""
    M, advice = problem.M, [_checks.advice_on_costs(problem.M)]
    if not problem.structure.uses_cost and np.ptp(M[np.isfinite(M)]) > 0:
        advice.append(
            f"{type(problem.structure).__name__} does not look at M; pass sot.Modular() + it "
            "for the ground cost plus the structure."
        )
    return " ".join(filter(None, advice))


def _warn(result: Result, limits: Limits, advice: str) -> None:
    """At most one warning per call: that the gap was not reached, and advice if there is some."""
    if not result.converged:
        text = (
            f"{result.status} Gap {result.gap:.1e}, asked for {limits.tol:.1e} "
            f"(method {result.method!r}, {result.n_iter} iterations). {advice}"
        )
        warnings.warn(text.rstrip(), ConvergenceWarning, stacklevel=3)
    elif advice:
        warnings.warn(advice, UserWarning, stacklevel=3)


def solve_sample(
    X: Any, Y: Any, a: Any = None, b: Any = None, *, metric: Any = "sqeuclidean", **options: Any
) -> Result:
    """`solve` with the cost M_ij = metric(X_i, Y_j) between two samples.

    Parameters
    ----------
    X, Y
        Points, shapes (n, d) and (m, d).
    a, b
        Their weights; uniform by default.
    metric
        Any metric of `scipy.spatial.distance.cdist`, by name or as a function.
    **options
        As in `solve`.

    Examples
    --------
    >>> import structot as sot
    >>> sot.solve_sample([[0.0], [1.0]], [[1.0], [3.0]]).value
    2.5
    """
    if has_tensors(X, Y):
        return on_tensors(solve_sample, {**locals(), "solver": solve})
    from scipy.spatial.distance import cdist

    kind = _checks.float_type(X, Y)
    X, Y = _checks.as_points("X", X), _checks.as_points("Y", Y)
    if X.shape[1] != Y.shape[1]:
        raise ValueError(
            f"X and Y must have equally many features; got {X.shape[1]} and {Y.shape[1]}."
        )
    try:
        M = cdist(X, Y, metric)
    except ValueError as error:
        raise ValueError(f"metric={metric!r} does not work: {error}") from None
    return solve(M.astype(kind, copy=False), a, b, **options)


def _choose(method: str | Solver, problem: Problem) -> list[Solver]:
    """The solvers to try one after the other; more than one only for "auto"."""
    if method == "auto":
        solvers = _automatic(problem)
        willing = [solver for solver in solvers if solver.refusal(problem) is None]
        if willing:
            return willing
        refusal = solvers[0].refusal(problem)
        raise ValueError(f"The structure does not fit this problem: {refusal}.")
    if isinstance(method, Solver):
        solver = method
    else:
        solver = make_solver(_checks.one_of("method", method, METHODS))
    objection = solver.refusal(problem)
    if objection:
        raise ValueError(f"method={solver.name!r} does not fit this problem: {objection}.")
    return [solver]


def _automatic(problem: Problem) -> list[Solver]:
    """The fastest method that is sure to work, then those that go on where it gives up."""
    small = problem.M.size <= _SMALL
    solvers: list[Solver] = []
    for name in _TABLE[problem.form, problem.reg > 0]:
        solver = make_solver(name)
        if small and not solvers and name in _PATIENCE:
            solver = replace(solver, patience=_PATIENCE[name])  # type: ignore[type-var]
        if name == "linear_program":
            solver = replace(solver, rounds=_ROUNDS)  # type: ignore[type-var]
        if small or not solvers or name not in _FOR_SMALL:
            solvers.append(solver)
    return solvers


def make_solver(name: str) -> Solver:
    """The solver of this name with its default options."""
    module, cls = _SOLVERS[name]
    return getattr(importlib.import_module(f"structot.solvers.{module}"), cls)()
