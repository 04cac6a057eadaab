"""Is a set function submodular? Looks for a counterexample and shows it.

Notation. F is submodular when F(S + e) + F(S + e') >= F(S + e + e') + F(S) for all S and all edges
e, e' outside it: the second edge of a set never costs more for the first one being there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structot._checks import count, positive
from structot._deadline import time_left
from structot._typing import Array
from structot.submodular.base import Oracle, Submodular

# The part of a time limit that samples may take.
_SHARE_OF_TIME = 0.2

# Up to so many edges all of the 2^E sets are looked at.
ENUMERATED = 12


@dataclass(frozen=True, eq=False)
class Violation:
    """Sets A = S + e and B = S + e' with F(A) + F(B) < F(A ∪ B) + F(A ∩ B).

    ``inside`` is S as a Boolean array (n, m), ``first`` and ``second`` are e and e';
    ``values`` holds F(A), F(B), F(A ∪ B), F(A ∩ B).

    Examples
    --------
    >>> found = check_submodular(lambda mask: float(mask.sum()) ** 2, (2, 2))
    >>> isinstance(found, Violation)
    True
    """

    inside: Array
    first: tuple[int, int]
    second: tuple[int, int]
    values: tuple[float, float, float, float]

    @property
    def A(self) -> Array:
        """S with the first edge."""
        return self._with(self.first)

    @property
    def B(self) -> Array:
        """S with the second edge."""
        return self._with(self.second)

    @property
    def amount(self) -> float:
        """By how much the inequality fails."""
        return self.values[2] + self.values[3] - self.values[0] - self.values[1]

    def _with(self, edge: tuple[int, int]) -> Array:
        mask = self.inside.copy()
        mask[edge] = True
        return mask

    def __str__(self) -> str:
        a, b, union, meet = self.values
        return (
            f"F is not submodular: F(A) + F(B) = {a + b:.10g} is below F(A ∪ B) + F(A ∩ B) = "
            f"{union + meet:.10g}, for\n"
            f"  A ∩ B = {_listed(self.inside)}, F = {meet:.10g}\n"
            f"  A     = A ∩ B and {self.first}, F = {a:.10g}\n"
            f"  B     = A ∩ B and {self.second}, F = {b:.10g}\n"
            f"  A ∪ B = A ∩ B and both, F = {union:.10g}"
        )


def check_submodular(
    F: Submodular | Callable[[Array], float],
    shape: tuple[int, int] | None = None,
    *,
    samples: int = 2000,
    tol: float = 1e-9,
    seed: int = 0,
) -> Violation | None:
    """A violation of F(A) + F(B) >= F(A ∪ B) + F(A ∩ B), or None if none was found.

    With up to 12 edges every set is looked at, and None is a proof; with more, ``samples`` random
    sets and pairs of edges are, and None says only that violations are not common.

    Parameters
    ----------
    F
        A function over edges (``structure.bind(M)``), or any Python function of a mask.
    shape
        (n, m), needed for a Python function only.
    samples
        How many sets with two edges to try, four values of F each.
    tol
        What counts as rounding, relative to the largest |F| seen.
    seed
        Of the samples.

    Returns
    -------
    Violation or None
        Printing it shows both sets and their values.

    Examples
    --------
    >>> print(check_submodular(lambda S: float(S.sum()) ** 2, (1, 2)))
    F is not submodular: F(A) + F(B) = 2 is below F(A ∪ B) + F(A ∩ B) = 4, for
      A ∩ B = {}, F = 0
      A     = A ∩ B and (0, 0), F = 1
      B     = A ∩ B and (0, 1), F = 1
      A ∪ B = A ∩ B and both, F = 4
    >>> check_submodular(lambda S: float(S.sum()) ** 0.5, (3, 3)) is None
    True
    """
    samples, tol = count("samples", samples), positive("tol", tol)
    if not isinstance(F, Submodular):
        if shape is None:
            raise ValueError("shape must be given with a Python function: the (n, m) of its mask.")
        F = Oracle(F, shape)
    edges = np.flatnonzero(F._edges())
    if edges.size < 2:
        return None
    if edges.size <= ENUMERATED:
        return violation_in_table(tabulate(F, edges), edges, F.shape, tol)
    return _sampled(F, edges, samples, tol, np.random.default_rng(seed))


def tabulate(F: Submodular, edges: Array) -> Array:
    """F of all sets of these edges; set number s holds edge k if bit k of s is set."""
    values = np.zeros(2**edges.size)
    mask = np.zeros(F.shape, bool)
    for s in range(1, values.size):
        mask.ravel()[edges] = (s >> np.arange(edges.size)) & 1 == 1
        values[s] = F.value(mask)
    return values


def violation_in_table(
    values: Array, edges: Array, shape: tuple[int, int], tol: float
) -> Violation | None:
    """The worst violation among all sets of a table."""
    sets = np.arange(values.size)
    worst, found = tol * float(np.abs(values).max()), None
    for k in range(edges.size):
        for t in range(k):
            e, d = 1 << k, 1 << t
            S = sets[sets & (e | d) == 0]
            excess = values[S | e | d] + values[S] - values[S | e] - values[S | d]
            at = int(np.argmax(excess))
            if excess[at] > worst:
                worst, found = float(excess[at]), (int(S[at]), d, e, t, k)
    if found is None:
        return None
    S, d, e, t, k = found
    inside = np.zeros(shape, bool)
    inside.ravel()[edges] = (S >> np.arange(edges.size)) & 1 == 1
    four = tuple(float(values[s]) for s in (S | d, S | e, S | d | e, S))
    return Violation(inside, _pair(edges[t], shape), _pair(edges[k], shape), four)  # type: ignore[arg-type]


def _sampled(
    F: Submodular, edges: Array, samples: int, tol: float, rng: np.random.Generator
) -> Violation | None:
    worst: Violation | None = None
    largest = 0.0
    before = time_left()
    for _ in range(samples):
        if before - time_left() > _SHARE_OF_TIME * before:
            break  # a sample is as good as its size; the solve needs the time too
        d, e = rng.choice(edges, 2, replace=False)
        S = np.zeros(F.shape, bool)
        # Sets of all sizes, not only of about half of the edges.
        S.ravel()[edges] = rng.random(edges.size) < rng.random()
        S.ravel()[[d, e]] = False
        values = []
        for extra in ([d], [e], [d, e], []):
            S.ravel()[[d, e]] = False
            S.ravel()[extra] = True
            values.append(F.value(S))
        largest = max(largest, *np.abs(values))
        four = (values[0], values[1], values[2], values[3])
        found = Violation(S.copy(), _pair(d, F.shape), _pair(e, F.shape), four)
        if found.amount > max(tol * largest, 0.0 if worst is None else worst.amount):
            worst = found
    return worst


def _pair(flat: int, shape: tuple[int, int]) -> tuple[int, int]:
    i, j = divmod(int(flat), shape[1])
    return i, j


def _listed(mask: Array) -> str:
    pairs = [(int(i), int(j)) for i, j in np.argwhere(mask)]
    more = ", ..." if len(pairs) > 12 else ""
    return "{" + ", ".join(map(str, pairs[:12])) + more + "}"
