"""What `clusters` and `moons` share: EMD, entropic transport, and structured for a sweep of α."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from structot.experiments._runner import Task

KINDS = ("emd", "entropic")


def names(alphas: Sequence[float]) -> list[str]:
    """The plans of one draw, plain ones first."""
    return [*KINDS, *(f"alpha-{alpha:g}" for alpha in alphas)]


def words(name: str, reg: float) -> str:
    """What a reader calls the plan; ``reg`` is that of entropic transport, in mean costs."""
    fixed = {"emd": "EMD", "entropic": f"entropic, reg {reg:g} mean(M)"}
    return fixed.get(name) or f"structured, α = {name.removeprefix('alpha-')}"


def sweep(compute: Callable[..., dict], seeds: int, alphas: Sequence[float]) -> list[Task]:
    """One task per plan and draw, ``compute(kind, seed, alpha)``; the key is NAME-SEED."""
    tasks = []
    for seed in range(seeds):
        for kind in KINDS:
            tasks.append(Task(f"{kind}-{seed}", compute, {"kind": kind, "seed": seed}))
        for alpha in alphas:
            arguments = {"kind": "structured", "seed": seed, "alpha": alpha}
            tasks.append(Task(f"alpha-{alpha:g}-{seed}", compute, arguments))
    return tasks
