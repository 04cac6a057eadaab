"""The majorant and the prox of `Groups` for tensors, beside SciPy and the prox of the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from problems import moved  # noqa: E402

from structot.blocks.function import Blocks  # noqa: E402
from structot.concave import (  # noqa: E402
    Custom,
    Discount,
    Linear,
    Log,
    PiecewiseLinear,
    Power,
    Sqrt,
    Step,
    ThresholdSqrt,
    Truncation,
)
from structot.torch.majorant import decreasing_regression, vertices  # noqa: E402
from structot.torch.prox import BlockProx, secants  # noqa: E402

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
FAMILIES = (
    Linear(),
    Sqrt(),
    Power(0.3),
    Power(0.9),
    Log(0.2),
    Discount(0.75),
    Truncation(0.4),
    ThresholdSqrt(0.3, 2.0),
    PiecewiseLinear([0.5, 2.0], [1.0, 0.4, 0.1]),
    Step(),
)


def shapes(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Values whose regression has many pools, one, none, steps of them, and ties."""
    x = np.arange(n, dtype=float)
    return {
        "noise": rng.normal(size=n),
        "rising": x,
        "falling": -x,
        "walk": rng.normal(size=n).cumsum(),
        "concave": -((x / n) ** 2) + 1e-3 * rng.normal(size=n),
        "convex": (x / n) ** 2 - x / n,
        "ties": rng.integers(0, 3, n).astype(float),
        "constant": np.zeros(n),
    }[kind]


KINDS = ("noise", "rising", "falling", "walk", "concave", "convex", "ties", "constant")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_regression_is_that_of_scipy(kind: str, device: str) -> None:
    rng = np.random.default_rng(KINDS.index(kind))
    for sizes in ([1], [2, 1], [7, 0, 3, 64], [1500, 1, 333], rng.integers(1, 40, 50).tolist()):
        parts = [shapes(kind, size, rng) for size in sizes if size]
        weights = [rng.uniform(0.1, 2.0, part.size) for part in parts]
        expected = np.concatenate(
            [
                isotonic_regression(v, weights=w, increasing=False).x
                for v, w in zip(parts, weights, strict=True)
            ]
        )
        given = (torch.tensor(np.concatenate(x), device=device) for x in (parts, weights))
        found = decreasing_regression(*given, np.array(sizes)).cpu().numpy()
        size = max(1.0, abs(np.concatenate(parts)).max())
        np.testing.assert_allclose(found, expected, atol=1e-10 * size)


def test_nothing_is_left_as_it_is() -> None:
    none = torch.zeros(0, dtype=torch.float64)
    assert decreasing_regression(none, none, np.array([0, 0])).numel() == 0


@pytest.mark.parametrize("seed", range(10))
def test_vertices_are_those_of_the_hull(seed: int) -> None:
    """By definition: no chord of the block passes above a vertex, and one above all others."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, 4)
    x = np.concatenate([rng.uniform(0.5, 2.0, n).cumsum() for n in sizes])
    y = np.concatenate([rng.normal(size=n).cumsum() for n in sizes])
    found = vertices(torch.tensor(x + 1j * y), sizes).tolist()
    expected, start = [], 0
    for n in sizes:
        for k in range(start, start + n):
            heights = [
                y[i] + (y[j] - y[i]) * (x[k] - x[i]) / (x[j] - x[i])
                for i in range(start, k)
                for j in range(k + 1, start + n)
            ]
            expected += [k] if max(heights, default=-np.inf) < y[k] else []
        start += n
    assert found == expected


def layer_of(families: list, seed: int = 0) -> Blocks:
    """Blocks of uneven sizes, one for every family and group of columns, and some free pairs."""
    rng = np.random.default_rng(seed)
    M = moved(rng.random((4 * len(families), 11)) ** 3 + 0.01)
    M[rng.random(M.shape) < 0.1] = 0.0
    rows = np.sort(rng.integers(0, len(families), M.shape[0]))
    cols = rng.integers(0, 2, 11)
    blocks = len(families) * 2
    outer, inner = rng.uniform(0.5, 2.0, (2, blocks))
    functions = [g for g in families for _ in range(2)]
    return Blocks.of_groups(M, rows, cols, functions, outer, inner)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("floor", [-np.inf, 0.0])
@pytest.mark.parametrize("families", [[g] for g in FAMILIES] + [list(FAMILIES)])
def test_the_prox_is_that_of_the_blocks(families: list, floor: float, device: str) -> None:
    layer = layer_of(families)
    prox = BlockProx.of(layer, torch.device(device))
    rng = np.random.default_rng(1)
    for rho in (0.1, 1.0, 30.0):
        v = rng.normal(0.5, 1.0, layer.w.size)
        expected = layer.prox_edges(v.copy(), rho, floor).X
        found = prox(torch.tensor(v, device=device), rho, floor).cpu().numpy()
        size = abs(expected).max() + abs(v).max()
        np.testing.assert_allclose(found, expected, atol=1e-11 * size)


@pytest.mark.parametrize("g", FAMILIES, ids=repr)
def test_slopes_are_those_of_numpy_also_over_tiny_steps(g) -> None:
    layer = layer_of([g])
    rng = np.random.default_rng(2)
    x, h = rng.random(200) ** 3, 10.0 ** rng.uniform(-14, 1, 200)
    x[:20] = 0.0
    block = rng.integers(0, len(layer.table), 200)
    expected = [layer.table.secant(int(b), *at) for b, *at in zip(block, x, h, strict=True)]
    given = (torch.tensor(z) for z in (block, x, h))
    np.testing.assert_allclose(secants(layer.table, *given).numpy(), expected, rtol=1e-12)


def test_functions_in_python_are_refused() -> None:
    layer = layer_of([Custom(np.sqrt)])
    with pytest.raises(ValueError, match="NumPy"):
        BlockProx.of(layer, torch.device("cpu"))
