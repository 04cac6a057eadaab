"""A loss for training: structured transport between two minibatches of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from structot import _checks
from structot.solvers.solve import solve
from structot.structures.base import Structure
from structot.structures.coverage import Coverage
from structot.structures.groups import Groups
from structot.structures.modular import Modular
from structot.torch.inputs import pairwise

_NAMES = ("charge", "groups", "plain")


class StructuredLoss(nn.Module):
    """min_{P in U(a,b)} f(P) + reg · entropy(P) between features X (n, d) and Y (m, d).

    The optimal value, differentiable in X, Y and the weights; f is built for every minibatch from
    the labels of its source points and, where there are any, groups of its target points.

    Parameters
    ----------
    structure
        "charge" (the plain cost plus a price for every route that is opened between two groups),
        "groups" (`Groups` with its default discount), "plain", or a function
        (source labels, target groups or None) -> structure, called for every minibatch.
    reg
        Weight of the entropy, as a part of the mean cost of the minibatch; 0 for none.
    charge
        The price of a route in units of the total cost of its block, for "charge".
    metric
        As in `solve_sample` for tensors.
    tol
        The certified gap of every solve.
    normalized
        Divide the costs by their mean first: a loss that does not depend on the size of the
        features, and so cannot be lowered by shrinking them.

    Examples
    --------
    >>> import torch, structot as sot
    >>> X = torch.tensor([[0.0], [1.0], [5.0]], dtype=torch.float64, requires_grad=True)
    >>> Y = torch.tensor([[1.0], [6.0]], dtype=torch.float64)
    >>> loss = sot.torch.StructuredLoss("plain", reg=0.0)(X, Y)
    >>> loss.backward()
    >>> round(float(loss.detach()), 12), X.grad.T.round(decimals=6).tolist()
    (4.833333333333, [[-0.666667, -1.666667, -0.666667]])
    """

    def __init__(
        self,
        structure: str | Callable[[Any, Any], Structure | None] = "charge",
        reg: float = 0.05,
        *,
        charge: float = 0.02,
        metric: Any = "sqeuclidean",
        tol: float = 1e-3,
        normalized: bool = False,
    ) -> None:
        super().__init__()
        self.structure = structure if callable(structure) else _named(structure)
        self.reg = _checks.nonnegative("reg", reg)
        self.charge = _checks.nonnegative("charge", charge)
        self.metric, self.tol, self.normalized = metric, _checks.nonnegative("tol", tol), normalized

    def forward(
        self,
        X: Tensor,
        Y: Tensor,
        labels: Any = None,
        target_groups: Any = None,
        a: Tensor | None = None,
        b: Tensor | None = None,
    ) -> Tensor:
        """The loss of a minibatch.

        Parameters
        ----------
        X, Y
            Features of the source and target points.
        labels, target_groups
            Groups of both, tensors or arrays; None: every point its own group.
        a, b
            Weights; uniform by default.
        """
        found = self._structure(_groups(labels), _groups(target_groups))
        M = pairwise(X, Y, self.metric)
        if self.normalized:
            M = M / M.mean().clamp(min=torch.finfo(M.dtype).tiny)
        mean = float(M.detach().mean(dtype=torch.float64))
        result = solve(M, a, b, structure=found, reg=self.reg * mean, tol=self.tol)
        value: Any = result.value
        return value.to(X.dtype)

    def _structure(self, labels: Any, groups: Any) -> Structure | None:
        if callable(self.structure):
            return self.structure(labels, groups)
        if self.structure == "plain" or (labels is None and groups is None):
            return None
        if self.structure == "groups":
            return Groups(labels, groups)
        return Modular() + Coverage(labels, groups, weights=self.charge, units="block")

    def extra_repr(self) -> str:
        return f"structure={self.structure!r}, reg={self.reg:g}, charge={self.charge:g}"


def _named(structure: str) -> str:
    return _checks.one_of("structure", structure, _NAMES)


def _groups(labels: Any) -> np.ndarray | list | None:
    """Labels where structures can read them."""
    return labels.detach().cpu().numpy() if isinstance(labels, Tensor) else labels
