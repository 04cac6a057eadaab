"""What a user writes: a structure, bound to a cost matrix when a problem is solved."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from structot._checks import as_cost, as_weights, nonnegative
from structot._typing import Array
from structot.structures._grouping import Grouping
from structot.submodular.base import Layer
from structot.submodular.bound import BoundCost


class Structure(ABC):
    """A rule that turns a ground cost M into a submodular function F over pairs.

    Structures add (``A + B``) and scale (``2.0 * A``).

    Examples
    --------
    >>> import structot as sot
    >>> both = sot.Modular() + 0.5 * sot.Groups([0, 0, 1])
    >>> isinstance(both, Structure)
    True
    """

    # Whether the ground cost M is part of F. Where it is not, add it: ``Modular() + structure``.
    uses_cost: bool = True

    def bind(self, M: object, a: object | None = None, b: object | None = None) -> BoundCost:
        """The cost over the pairs of this cost matrix; a structure may depend on the weights too.

        Examples
        --------
        >>> import structot as sot
        >>> F = sot.Coverage(["x", "x"], ["y"], weights=3.0).bind([[1.0], [2.0]])
        >>> F.extension([[0.5], [0.25]])
        1.5
        """
        cost = as_cost(M)
        n, m = cost.shape
        return self._bound(cost, as_weights("a", a, n), as_weights("b", b, m))

    @abstractmethod
    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        """`bind` for input that was checked."""

    def groupings(self, shape: tuple[int, int]) -> tuple[Grouping, Grouping] | None:
        """The groups of source and target points that it is made of, if it is made of groups."""
        return None

    @property
    def dial(self) -> float | None:
        """The one number that sets how strongly it pulls, if there is one: what a path shows."""
        return None

    def __add__(self, other: object) -> Structure:
        if not isinstance(other, Structure):
            return NotImplemented
        return Combination(((1.0, self), (1.0, other)))

    def __radd__(self, other: object) -> Structure:
        # What `sum` begins with.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: object) -> Structure:
        if isinstance(factor, Structure) or not np.isscalar(factor):
            return NotImplemented
        return Combination(((nonnegative("factor of a structure", factor), self),))

    __rmul__ = __mul__


class Grouped(Structure):
    """A structure made of groups of source points and groups of target points."""

    source: object | None
    target: object | None

    def groupings(self, shape: tuple[int, int]) -> tuple[Grouping, Grouping]:
        return (
            Grouping.of("source", self.source, shape[0]),
            Grouping.of("target", self.target, shape[1]),
        )


class Combination(Structure):
    """F = Σ_t factor_t · F_t. Written with ``+`` and ``*``, not by hand.

    Examples
    --------
    >>> import structot as sot
    >>> sot.Modular() + 0.5 * sot.Groups(["a", "b"], concave=sot.concave.Sqrt())
    Modular() + 0.5 * Groups(['a', 'b'], concave=Sqrt())
    """

    terms: tuple[tuple[float, Structure], ...]

    def __init__(self, terms: tuple[tuple[float, Structure], ...]) -> None:
        flat: list[tuple[float, Structure]] = []
        for factor, term in terms:
            inside = term.terms if isinstance(term, Combination) else ((1.0, term),)
            flat.extend((factor * f, t) for f, t in inside)
        self.terms = tuple(flat)
        self.uses_cost = any(term.uses_cost for _, term in self.terms)

    def _bound(self, M: Array, a: Array, b: Array) -> BoundCost:
        linear: Array | None = None
        layers: list[Layer] = []
        for factor, term in self.terms:
            bound = term._bound(M, a, b)
            if bound.linear is not None:
                # A forbidden pair stays forbidden under the factor 0.
                finite = np.isfinite(bound.linear)
                cost = np.where(finite, factor * np.where(finite, bound.linear, 0), np.inf)
                linear = cost if linear is None else linear + cost
            if factor > 0:
                layers.extend(layer.scaled(factor) for layer in bound.layers)
        if linear is not None and layers and (np.isinf(linear) & np.isfinite(M)).any():
            # What a linear term forbids is no edge for the layers either.
            return self._bound(np.where(np.isinf(linear), np.inf, M), a, b)
        if len(layers) > 1 and any(layer.kind == "lanes" for layer in layers):
            raise ValueError(
                f"Routes adds to Modular(cost) only, but this is {self!r}. Leave the other "
                "structures out, or use Modular() + Coverage(...) for a price per route that does."
            )
        if linear is None and not layers:
            linear = np.where(np.isfinite(M), 0.0, np.inf)
        return BoundCost.of(linear, layers)

    def groupings(self, shape: tuple[int, int]) -> tuple[Grouping, Grouping] | None:
        found = (term.groupings(shape) for _, term in self.terms)
        return next((groups for groups in found if groups is not None), None)

    @property
    def dial(self) -> float | None:
        dials = [factor * term.dial for factor, term in self.terms if term.dial is not None]
        return dials[0] if len(dials) == 1 else None

    def __repr__(self) -> str:
        return " + ".join(f"{t!r}" if f == 1.0 else f"{f:g} * {t!r}" for f, t in self.terms)
