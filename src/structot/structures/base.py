"""What a user writes: a structure, bound to a cost matrix when a problem is solved."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from structot._checks import as_cost, nonnegative
from structot.submodular.base import Submodular
from structot.submodular.sums import Linear, Sum

Array = np.ndarray


class Structure(ABC):
    """A rule that turns a ground cost M into a submodular function F over pairs.

    Structures add (``A + B``) and scale (``2.0 * A``).
    """

    def bind(self, M: Array) -> Submodular:
        """The submodular function over the edges of this cost matrix."""
        M = as_cost(M)
        linear, layers = self._parts(M)
        if not layers:
            assert linear is not None
            return Linear(linear)
        if linear is None and len(layers) == 1:
            return layers[0]
        return Sum(linear, tuple(layers))

    @abstractmethod
    def _parts(self, M: Array) -> tuple[Array | None, list[Submodular]]:
        """F as a linear cost (None for zero) plus layers, each with its own fast prox."""

    def __add__(self, other: object) -> Structure:
        if not isinstance(other, Structure):
            return NotImplemented
        return Combination(((1.0, self), (1.0, other)))

    def __mul__(self, factor: object) -> Structure:
        if isinstance(factor, Structure) or not np.isscalar(factor):
            return NotImplemented
        return Combination(((nonnegative("factor of a structure", factor), self),))

    __rmul__ = __mul__


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

    def _parts(self, M: Array) -> tuple[Array | None, list[Submodular]]:
        linear: Array | None = None
        layers: list[Submodular] = []
        for factor, term in self.terms:
            cost, inner = term._parts(M)
            if cost is not None:
                # A forbidden pair stays forbidden under the factor 0.
                cost = np.where(
                    np.isfinite(cost), factor * np.where(np.isfinite(cost), cost, 0), cost
                )
                linear = cost if linear is None else linear + cost
            if factor > 0:
                layers.extend(layer.scaled(factor) for layer in inner)
        if linear is not None and layers and (np.isinf(linear) & np.isfinite(M)).any():
            # What a linear term forbids is no edge for the layers either.
            return self._parts(np.where(np.isinf(linear), np.inf, M))
        if linear is None and not layers:
            linear = np.where(np.isfinite(M), 0.0, np.inf)
        return linear, layers

    def __repr__(self) -> str:
        return " + ".join(f"{t!r}" if f == 1.0 else f"{f:g} * {t!r}" for f, t in self.terms)
