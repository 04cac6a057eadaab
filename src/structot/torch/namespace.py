"""What the interior-point method for routes needs of an array library, by torch on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from structot.solvers.interior_point.lanes.namespace import NumPy
from structot.torch.replays import LARGE, Replays, numbers_of

# Rows of a Gram matrix made at a time: only its lower half is needed.
_ROWS = 2048


class Torch(NumPy):
    """Doubles on one device."""

    pieces = 1  # what a device does at once is its own business
    _known: ClassVar[set[torch.device]] = set()

    add: Any = staticmethod(torch.add)
    divide: Any = staticmethod(torch.divide)
    multiply: Any = staticmethod(torch.multiply)
    where: Any = staticmethod(torch.where)
    sqrt: Any = staticmethod(torch.sqrt)

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._replays: Replays | None = None

    @contextmanager
    def replays(self, pairs: int, kind: Any) -> Iterator[Replays | None]:
        """While it lasts stages are replayed, where that is possible."""
        # The first solve on a device loads the libraries, which no graph may do.
        if self.device not in self._known:
            yield None
            self._known.add(self.device)
            return
        with Replays.on(self.device, pairs, kind) as found:
            yield found

    def replay_with(self, graphs: Replays | None) -> None:
        """Run stages by these graphs from now on, or without."""
        self._replays = graphs

    @property
    def _recording(self) -> bool:
        return self._replays is not None and self._replays.recording

    def run(self, work: Callable[..., tuple[Any, ...]], *numbers: float) -> tuple[float, ...]:
        if self._replays is None:
            return tuple(numbers_of(work(*numbers)))
        return tuple(self._replays.run(work, numbers))

    def kept(self, x: Tensor) -> Tensor:
        return x if self._replays is None else x.clone()

    def at_once(self, pairs: int, work: Callable[[Any], Any], parts: Iterable[Any]) -> list:
        return [work(part) for part in parts]

    def subtract(self, x: Any, y: Tensor, out: Tensor) -> Tensor:
        if isinstance(x, Tensor):
            return torch.sub(x, y, out=out)
        return torch.neg(y, out=out).add_(x)

    def maximum(self, x: Tensor, y: Any) -> Tensor:
        return torch.maximum(x, y) if isinstance(y, Tensor) else x.clamp(min=y)

    def minimum(self, x: Tensor, y: Any, out: Tensor) -> Tensor:
        return torch.clamp(x, max=y, out=out)

    def smallest(self, *numbers: Any) -> Any:
        limit = min((x for x in numbers if not isinstance(x, Tensor)), default=np.inf)
        far = [x for x in numbers if isinstance(x, Tensor)]
        if not far:
            return limit
        return (torch.stack(far).amin() if len(far) > 1 else far[0]).clamp(max=limit)

    def array(self, x: Any) -> Tensor:
        return torch.tensor(x, device=self.device)

    def numpy(self, x: Tensor) -> np.ndarray:
        return x.cpu().numpy()

    def zeros(self, shape: tuple[int, ...]) -> Tensor:
        return torch.zeros(tuple(shape), dtype=torch.float64, device=self.device)

    def empty(self, shape: tuple[int, ...]) -> Tensor:
        return torch.empty(tuple(shape), dtype=torch.float64, device=self.device)

    def clip(self, x: Tensor, low: Any, high: Any) -> Tensor:
        return x.clamp(low, high)

    def least(self, x: Tensor) -> Tensor:
        return x.min()

    def largest(self, x: Tensor, axis: int) -> Tensor:
        return x.amax(axis)

    def dot(self, x: Tensor, y: Tensor) -> Tensor:
        if x.is_contiguous() and y.is_contiguous():
            return torch.dot(x.view(-1), y.view(-1))
        return (x * y).sum()

    def weighted(self, parts: list[tuple[Tensor, ...]], p: Tensor, d: Tensor) -> Tensor:
        sums = torch.stack([torch.stack(part) for part in parts]).sum(0)
        return sums[0] + p * (sums[1] + d * sums[3]) + d * sums[2]

    def diagonal(self, A: Tensor) -> Tensor:
        return A.diagonal(dim1=-2, dim2=-1)

    def cholesky(self, A: Tensor) -> Tensor:
        if self._replays is not None and self._recording:
            raised = self._replays.next_raised()
            self.diagonal(A).mul_(1.0 + raised)
            return self._noted(A)
        return self._factored(A)

    def _factored(self, A: Tensor) -> Tensor:
        L, failed = _lower(A)
        if bool(failed):
            raise np.linalg.LinAlgError("not positive definite")
        return L

    def _noted(self, A: Tensor) -> Tensor:
        """While a stage is recorded: whether it fails will be seen when that is replayed."""
        assert self._replays is not None
        L, failed = _lower(A)
        self._replays.failures.append(failed)
        return L

    def inverse_of_lower(self, L: Tensor) -> Tensor:
        identity = torch.eye(L.shape[-1], dtype=L.dtype, device=L.device)
        if self._recording and L.dim() > 2 and L.shape[-1] > LARGE:
            return torch.stack([self.inverse_of_lower(one) for one in L])
        return torch.linalg.solve_triangular(L, identity, upper=False)

    def subtract_gram(self, S: Tensor, T: Tensor) -> Tensor:
        for i in range(0, len(S), _ROWS):
            j = min(i + _ROWS, len(S))
            S[i:j, :j].addmm_(T[:, i:j].T, T[:, :j], alpha=-1.0)
        return S

    def factor(self, S: Tensor, part: float, size: Tensor) -> Tensor:
        A = S.clone()
        if self._replays is not None and self._recording:
            A.diagonal().add_(self._replays.next_raised() * size)
            return self._noted(A)
        A.diagonal().add_(part * size)
        return self._factored(A)

    def solve(self, L: Tensor, r: Tensor) -> Tensor:
        return torch.cholesky_solve(r[:, None], L)[:, 0]


def _lower(A: Tensor) -> tuple[Tensor, Tensor]:
    """Cholesky factors of a batch, and whether one of them failed."""
    L, info = torch.linalg.cholesky_ex(A)
    return L, info.any() | ~L.diagonal(dim1=-2, dim2=-1).sum().isfinite()
