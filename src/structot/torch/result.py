"""Answers made of tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import torch
from torch import Tensor

from structot._typing import Array
from structot.certificate import Verification
from structot.result import BlockMass, Result
from structot.structures.base import Structure

if TYPE_CHECKING:
    import os

    from scipy.sparse import csr_array


@dataclass(frozen=True, eq=False, repr=False)
class TensorResult(Result):
    """A `Result` whose plan, potentials and costs are tensors on the device of the ground cost.

    ``value`` is a tensor too: it can be differentiated with respect to M, a and b where they
    require gradients, and so can ``plan`` where reg > 0 and the problem was solved on its device.
    What is looked at rather than computed with (`verify`, `partners`, `block_mass`, `save`, ...) is
    that of `numpy()`.

    Examples
    --------
    >>> import torch, structot as sot
    >>> M = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64, requires_grad=True)
    >>> result = sot.solve(M, reg=0.1)
    >>> result.value.backward()
    >>> bool(torch.allclose(M.grad, result.plan, rtol=1e-3))
    True
    """

    @classmethod
    def of(cls, **fields: Any) -> TensorResult:
        """With tensors in fields that are arrays elsewhere."""
        return cls(**fields)

    def with_value(self, value: Tensor) -> TensorResult:
        """The same with another value, one that can be differentiated."""
        changed: dict[str, Any] = {"value": value}
        return replace(self, **changed)

    def numpy(self) -> Result:
        """The same as arrays, without gradients."""
        return Result(**{f.name: _array(getattr(self, f.name)) for f in fields(Result)})

    def barycentric_map(self, Y: object) -> Any:
        """Σ_j P_ij Y_j / Σ_j P_ij, a tensor (n, features); NaN for a point that sent nothing."""
        if not isinstance(Y, Tensor):
            return self.numpy().barycentric_map(Y)
        P: Any = self.plan
        return P @ Y.to(P) / P.sum(1, keepdim=True)

    def verify(self, structure: Structure | None = None) -> Verification:
        return self.numpy().verify(structure)

    def sparse_plan(self) -> csr_array:
        return self.numpy().sparse_plan()

    @property
    def partners(self) -> Array:
        return self.numpy().partners

    def block_mass(self) -> BlockMass:
        return self.numpy().block_mass()

    @property
    def concentration(self) -> float:
        return self.numpy().concentration

    @property
    def routes(self) -> Any:
        return self.numpy().routes

    def save(self, path: str | os.PathLike) -> None:
        self.numpy().save(path)

    def __repr__(self) -> str:
        return repr(self.numpy()).replace("Result(", f"TensorResult({self.plan.device}, ", 1)


def of_arrays(result: Result, M: Tensor, value: Tensor, note: str) -> TensorResult:
    """An answer found with arrays, as tensors like M."""
    kind = M.dtype if M.dtype.is_floating_point else torch.float64
    found: dict[str, Any] = {}
    for f in fields(Result):
        x = getattr(result, f.name)
        found[f.name] = _tensor(x, M.device, kind)
    found.update(ground_cost=M.detach(), value=value, method=f"{result.method} ({note})")
    return TensorResult(**found)


def _tensor(x: Any, device: torch.device, kind: torch.dtype) -> Any:
    if isinstance(x, np.ndarray):
        return torch.as_tensor(x, dtype=kind, device=device)
    if isinstance(x, tuple):
        return tuple(_tensor(part, device, kind) for part in x)
    return x


def _array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return x.detach().cpu().numpy() if x.dim() else float(x.detach())
    if isinstance(x, tuple):
        return tuple(_array(part) for part in x)
    return x


class Results(Sequence[Result]):
    """The answers to many problems; each `Result` is made when it is asked for.

    Attributes
    ----------
    values, gaps, converged
        Of all problems, tensors (problems,); ``values`` can be differentiated.

    Examples
    --------
    >>> import torch, structot as sot
    >>> Ms = torch.ones(3, 2, 2, dtype=torch.float64)
    >>> results = sot.solve_batch(Ms, reg=0.1)
    >>> len(results), results.values.tolist(), bool(results.converged.all())
    (3, [1.0, 1.0, 1.0], True)
    """

    def __init__(
        self,
        makers: Sequence[Callable[[], Result]],
        values: Tensor,
        gaps: Tensor,
        converged: Tensor,
    ) -> None:
        self._makers = makers
        self.values, self.gaps, self.converged = values, gaps, converged

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, k: int) -> Result: ...
    @overload
    def __getitem__(self, k: slice) -> list[Result]: ...
    def __getitem__(self, k: int | slice) -> Result | list[Result]:
        if isinstance(k, slice):
            return [make() for make in self._makers[k]]
        return self._makers[k]()

    def __iter__(self) -> Iterator[Result]:
        return (make() for make in self._makers)
