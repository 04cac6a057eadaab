"""Submodular functions over edges: extension, greedy vertices, minimisation, min-norm point.

Each function takes F in one of two forms: a structure bound to a cost, ``Groups(...).bind(M)``,
or any Python function of a Boolean mask.
"""

from __future__ import annotations

import numpy as np

from structot.submodular.base import (
    Minimizer,
    Oracle,
    SetFunctionLike,
    Submodular,
    as_function,
)
from structot.submodular.checking import Violation, check_submodular
from structot.submodular.decomposition import divide_and_conquer
from structot.submodular.min_norm_point import min_norm_point
from structot.submodular.sums import Linear, Sum

__all__ = [
    "Linear",
    "Minimizer",
    "Oracle",
    "Submodular",
    "Sum",
    "Violation",
    "as_function",
    "check_submodular",
    "divide_and_conquer",
    "extension",
    "greedy",
    "min_norm_point",
    "minimize",
]

Array = np.ndarray


def extension(F: SetFunctionLike, P: Array) -> float:
    """f(P) = max_{K in B(F)} <K, P>, the Lovász extension.

    Examples
    --------
    >>> extension(lambda S: min(S.sum(), 1), np.array([[0.2, 0.5]]))
    0.5
    """
    P = np.asarray(P, float)
    return as_function(F, P).extension(P)


def greedy(F: SetFunctionLike, P: Array) -> Array:
    """argmax_{K in B(F)} <K, P> by Edmonds' greedy algorithm: a vertex of the base polytope.

    Examples
    --------
    >>> greedy(lambda S: min(S.sum(), 1), np.array([[0.2, 0.5]]))
    array([[0., 1.]])
    """
    P = np.asarray(P, float)
    return as_function(F, P).greedy(P)


def minimize(F: SetFunctionLike, shift: Array) -> Minimizer:
    """argmin_S F(S) + shift(S): submodular minimisation.

    Examples
    --------
    >>> minimize(lambda S: min(S.sum(), 1), np.array([[-0.8, -0.5, 0.1]]))
    Minimizer(mask=array([[ True,  True, False]]), value=-0.30000000000000004)
    """
    shift = np.asarray(shift, float)
    return as_function(F, shift).minimize(shift)
