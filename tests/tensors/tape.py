"""Recordings without a GPU: operations on tensors of the CPU, undone and done once more.

As a CUDA graph would, a tape knows only tensors: what it records has not happened, its results are
garbage until it is replayed, and to look at a number while it runs is an error.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_LOOKS = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default)


class Pool:
    """What `structot.torch.replays.Replays` records on."""

    def __init__(self) -> None:
        self.device, self.last, self.broken = torch.device("cpu"), None, False
        self.replays = 0

    def record(self, work) -> Tape:
        tape = Tape(self)
        try:
            with tape:
                work()
        finally:
            tape.undo()
        return tape


class Tape(TorchDispatchMode):
    def __init__(self, pool: Pool) -> None:
        super().__init__()
        self.pool = pool
        self.operations: list = []
        self.before: dict = {}  # contents of memory that was there, by its place
        self.fresh: dict = {}  # results by the place of their memory

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function in _LOOKS:
            raise RuntimeError("a number was looked at while a stage was recorded")
        kwargs = kwargs or {}
        written = [x for x in function._schema.arguments if x.alias_info and x.alias_info.is_write]
        for k, known in enumerate(function._schema.arguments):
            if known in written:
                x = kwargs.get(known.name, args[k] if k < len(args) else None)
                self._keep(x)
        found = function(*args, **kwargs)
        alone = all(x.alias_info is None for x in function._schema.returns)
        # By another name: an operation may change the shape of a result in place.
        results = [x.detach() for x in tree_leaves(found)] if alone else []
        self.operations.append((function, args, kwargs, results))
        self.fresh |= {x.untyped_storage().data_ptr(): x for x in results}
        return found

    def _keep(self, x) -> None:
        place = x.untyped_storage().data_ptr()
        if place not in self.before and place not in self.fresh:
            whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())
            self.before[place] = whole, whole.clone()

    def undo(self) -> None:
        for whole, content in self.before.values():
            whole.copy_(content)
        for x in self.fresh.values():
            if x.is_floating_point():
                x.fill_(torch.nan)

    def replay(self) -> None:
        self.pool.replays += 1
        for function, args, kwargs, results in self.operations:
            again = function(*args, **kwargs)
            if results:
                for x, y in zip(results, tree_leaves(again), strict=True):
                    x.copy_(y)
