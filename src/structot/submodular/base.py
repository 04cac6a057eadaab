"""What a cost over the pairs of one problem can do: the protocol between structures and solvers.

A `Layer` is any convex cost of a plan, known by values and subgradients; a `Submodular` layer has a
base polytope too.

Notation. F: sets of edges -> R with F(empty) = 0, f its Lovász extension, B(F) the base polytope
{K : K(A) <= F(A) for all A, K(all) = F(all)}. Arrays over edges have the shape (n, m) of the plan.
Pairs outside ``allowed`` are no edges: X = 0 and K = +inf there. Edges outside ``support`` do not
matter to F: K = 0 there, and a prox leaves X as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from structot._checks import as_matrix, one_of, positive
from structot._deadline import check_time
from structot._typing import Array
from structot.submodular.min_norm_point import min_norm_point

# What solvers see in a layer: concave functions of sums over disjoint blocks; other set functions
# with a projection of their own; those that need the min-norm point; prices of routes over lanes,
# and convex functions of any kind, which have no base polytope. A sum is not a layer, but has all
# that one has.
Kind = Literal["blocks", "simple", "generic", "lanes", "convex", "sum"]
METRICS = ("euclidean", "cost", "entropy")
# How many times larger than its projection a point may be before digits are lost that matter.
FAR = 1e2


class Minimizer(NamedTuple):
    """A set that minimises F(S) + shift(S), and the minimum.

    Examples
    --------
    >>> import numpy as np
    >>> found = Oracle(lambda mask: float(mask.any()), (1, 2)).minimize(np.array([[-2.0, 1.0]]))
    >>> found.mask, found.value
    (array([[ True, False]]), -1.0)
    """

    mask: Array
    value: float


class Layer(ABC):
    """A convex cost f of plans: values, subgradients, and how it changes with the units.

    Examples
    --------
    >>> import structot as sot
    >>> layers = sot.Groups([0, 0]).bind([[1.0, 2.0], [3.0, 4.0]]).layers
    >>> [isinstance(layer, Layer) for layer in layers]
    [True]
    """

    kind: ClassVar[Kind]
    shape: tuple[int, int]
    allowed: Array | None = None
    # Whether f(P) is a sum of positive terms for every plan P, as it is for a monotone F.
    monotone: bool = False
    # Whether it calls functions written in Python for every edge.
    interpreted: bool = False

    @abstractmethod
    def extension(self, P: Array) -> float:
        """f(P); +inf for mass on no edge."""

    @abstractmethod
    def greedy(self, P: Array) -> Array:
        """A subgradient of f at P, +inf on forbidden pairs."""

    @abstractmethod
    def magnitude(self, P: Array) -> float:
        """The sum of the absolute terms that f(P) is made of: its rounding error is relative to it.

        Where nothing cancels, as for a monotone F, this is f(P) itself.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Layer:
        """factor · f for factor > 0."""

    def in_units(self, cost: float, mass: float) -> Layer:
        """f with its values in units of ``cost``, for plans in units of ``mass``.

        Solvers see problems in units in which costs and masses are near 1. A Lovász extension is
        homogeneous, so that the unit of mass does not matter to it.
        """
        return self.scaled(1.0 / cost)

    @property
    def modular_cost(self) -> Array | None:
        """C where f(P) = <C, P>; None where it is not linear, or not known to be."""
        return None

    @property
    def entropy_weights(self) -> Array | float:
        """The weights of the entropy that suits f, 1 on average."""
        return 1.0

    def _allowed(self) -> Array:
        return np.ones(self.shape, bool) if self.allowed is None else self.allowed

    def _blank_cost(self) -> Array:
        """0 on every edge, +inf on forbidden pairs."""
        return np.zeros(self.shape) if self.allowed is None else np.where(self.allowed, 0.0, np.inf)

    def __repr__(self) -> str:
        n, m = self.shape
        return f"<{type(self).__name__} over {n}×{m} pairs>"


class Submodular(Layer):
    """A submodular function F over the edges of one transport problem.

    Only ``value`` must be written. The other methods then work through it (Edmonds' greedy
    algorithm, the min-norm point) and are overridden where a function has a faster way.

    Examples
    --------
    >>> import numpy as np
    >>> touched = Oracle(lambda mask: float(mask.any()), (1, 2))
    >>> isinstance(touched, Submodular), touched.extension(np.array([[0.25, 0.75]]))
    (True, 0.75)
    """

    kind: ClassVar[Kind] = "generic"
    support: Array | None = None

    @abstractmethod
    def value(self, mask: Array) -> float:
        """F(S) for a set of edges given as a Boolean array (n, m); +inf with a forbidden pair."""

    @property
    def metric(self) -> Array:
        """Weights d > 0 of the function's own metric Σ d (X - V)², in which its prox is fast."""
        return np.ones(self.shape)

    def greedy(self, P: Array) -> Array:
        """argmax_{K in B(F)} <K, P>: the vertex of the order in which P falls (Edmonds)."""
        P = as_matrix("P", P, self.shape)
        edges = np.flatnonzero(self._edges())
        order = edges[np.argsort(-P.ravel()[edges], kind="stable")]
        K = self._blank_cost()
        mask = np.zeros(self.shape, bool)
        last = 0.0
        for e in order:
            check_time()  # a call may be a user's own function
            mask.ravel()[e] = True
            now = self.value(mask)
            K.ravel()[e] = now - last
            last = now
        return K

    def extension(self, P: Array) -> float:
        """f(P) = max_{K in B(F)} <K, P>, the Lovász extension; +inf for mass on no edge."""
        P = as_matrix("P", P, self.shape)
        if self.allowed is not None and np.any(P[~self.allowed] > 0):
            return np.inf
        return inner(P, self.greedy(P))

    def magnitude(self, P: Array) -> float:
        return inner(P, np.abs(self.greedy(P)))

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        """argmin_{K in B(F)} of the distance to Z.

        ``"euclidean"``: Σ (K - Z)²; ``"cost"``: Σ (K - Z)²/d with d = ``self.metric``;
        ``"entropy"``: Σ K log(K/Z) - K + Z for Z > 0, where the function offers it.
        """
        one_of("metric", metric, METRICS)
        if metric == "entropy":
            raise ValueError(
                f"metric='entropy': {type(self).__name__} has no entropic projection; "
                "use metric='euclidean' or 'cost'."
            )
        weights = None if metric == "euclidean" else 1.0 / self.metric
        Z, edges = as_matrix("Z", Z, self.shape), self._edges()
        K = min_norm_point(self, Z, weights=weights)
        if np.abs(Z[edges]).max(initial=0.0) > FAR * np.abs(K[edges]).max(initial=0.0):
            # The digits of a point so far away have drowned those of K: once more from near by.
            K = min_norm_point(self, np.where(edges, K, 0.0), weights=weights)
        return K

    def project_potentials(self, u: Array, v: Array) -> Array:
        """The projection of u ⊕ v in the metric "cost"."""
        return self.project(np.add.outer(u, v), "cost")

    def prox(self, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
        """argmin_X f(X) + rho/2 Σ d (X - V)², with X >= 0 if asked (then it is just cut at 0).

        Moreau's identity: X = V - K/(rho d) with K the projection of rho d V in the metric "cost".
        """
        rho = positive("rho", rho)
        V = as_matrix("V", V, self.shape)
        d = self.metric
        X = V - self.project(rho * d * V, "cost") / (rho * d)
        X = X if self.allowed is None else np.where(self.allowed, X, 0.0)
        return np.maximum(X, 0.0) if nonnegative else X

    def minimize(self, shift: Array | None = None) -> Minimizer:
        """argmin_S F(S) + shift(S): the negative entries of the min-norm point of F + shift."""
        shift = np.zeros(self.shape) if shift is None else as_matrix("shift", shift, self.shape)
        K = self.project(-shift, "euclidean") + shift
        # The minimiser is a level set of K. Rounding may blur which: one vertex values them all.
        edges = np.flatnonzero(self._allowed())
        order = edges[np.argsort(K.ravel()[edges], kind="stable")]
        vertex = self.greedy(np.where(self._allowed(), -K, 0.0))
        values = np.cumsum(vertex.ravel()[order] + shift.ravel()[order])
        # Inside a tie the vertex may have another order, and then tells nothing of F.
        values[:-1][np.diff(K.ravel()[order]) == 0] = np.inf
        mask = np.zeros(self.shape, bool)
        mask.ravel()[order[: int(np.argmin(values)) + 1]] = True
        value = self.value(mask) + float(shift[mask].sum())
        return Minimizer(mask, value) if value < 0 else Minimizer(np.zeros_like(mask), 0.0)

    def excess(self, K: Array) -> float:
        """How far K is outside B(F): the largest of K(A) - F(A) over A and |K(all) - F(all)|."""
        allowed = self._allowed()
        K = np.where(allowed, as_matrix("K", K, self.shape), 0.0)
        whole = abs(float(K.sum()) - self.value(allowed))
        return max(self.above(K), whole)

    def above(self, K: Array) -> float:
        """The largest of K(A) - F(A) over all A: where it is 0, <K, P> <= f(P) for every P >= 0."""
        K = np.where(self._allowed(), as_matrix("K", K, self.shape), 0.0)
        return max(-self.minimize(-K).value, 0.0)

    def scaled(self, factor: float) -> Submodular:
        """factor · F for factor > 0."""
        return self if factor == 1.0 else Scaled(self, factor)

    def _edges(self) -> Array:
        """The allowed pairs that matter to F."""
        return self._allowed() if self.support is None else self._allowed() & self.support


class Scaled(Submodular):
    """c · F for c > 0: everything by homogeneity. Written with ``scaled``, not by hand."""

    def __init__(self, function: Submodular, factor: float) -> None:
        self.function, self.factor = function, factor
        self.shape, self.allowed = function.shape, function.allowed
        self.support, self.monotone = function.support, function.monotone
        self.kind = function.kind  # type: ignore[misc]

    @property
    def metric(self) -> Array:
        return self.function.metric

    def value(self, mask: Array) -> float:
        return self.factor * self.function.value(mask)

    def greedy(self, P: Array) -> Array:
        return self.factor * self.function.greedy(P)

    def extension(self, P: Array) -> float:
        return self.factor * self.function.extension(P)

    def project(self, Z: Array, metric: str = "euclidean") -> Array:
        Z = as_matrix("Z", Z, self.shape)
        return self.factor * self.function.project(Z / self.factor, metric)

    def prox(self, V: Array, rho: float = 1.0, *, nonnegative: bool = False) -> Array:
        return self.function.prox(V, positive("rho", rho) / self.factor, nonnegative=nonnegative)

    def minimize(self, shift: Array | None = None) -> Minimizer:
        shift = np.zeros(self.shape) if shift is None else as_matrix("shift", shift, self.shape)
        mask, value = self.function.minimize(shift / self.factor)
        return Minimizer(mask, self.factor * value)

    def scaled(self, factor: float) -> Submodular:
        return self.function.scaled(factor * self.factor)


SetFunctionLike = Submodular | Callable[[Array], float]


class Oracle(Submodular):
    """F given by a Python function of the mask, normalised so that F(empty) = 0.

    Examples
    --------
    >>> import numpy as np
    >>> touched = Oracle(lambda mask: 5.0 + float(mask.any()), (2, 2))
    >>> touched.value(np.zeros((2, 2), bool)), touched.value(np.eye(2, dtype=bool))
    (0.0, 1.0)
    """

    def __init__(self, function: Callable[[Array], float], shape: tuple[int, int]) -> None:
        self.shape = shape
        self._function = function
        self._empty = float(function(np.zeros(shape, bool)))

    def value(self, mask: Array) -> float:
        return float(self._function(mask)) - self._empty


def as_function(F: SetFunctionLike, Z: Array | None) -> Submodular:
    """F itself if it is bound already, else the Python function on masks with the shape of Z.

    Examples
    --------
    >>> import numpy as np
    >>> as_function(lambda mask: float(mask.any()), np.zeros((1, 2))).value(np.ones((1, 2), bool))
    1.0
    """
    if isinstance(F, Submodular):
        return F
    if hasattr(F, "bind"):
        raise ValueError(f"{F!r} is not bound to a cost yet; pass F.bind(M).")
    if Z is None:
        raise ValueError("Z must be given with a Python function, to tell the shape of its mask.")
    return Oracle(F, np.shape(Z))


def inner(P: Array, K: Array) -> float:
    """<P, K>, where K may be +inf on pairs that carry nothing."""
    with np.errstate(invalid="ignore"):
        value = float(np.vdot(P, K))
    if not np.isnan(value):
        return value
    carried = P != 0  # leaves out 0 times inf
    return float(P[carried] @ K[carried])
