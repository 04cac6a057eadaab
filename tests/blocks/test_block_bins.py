"""The prox of long blocks, where most elements lie deep inside a pool and are never sorted.

Notation: one block with weights w (total W) and g(reach x / W), so that ``reach`` says how far into
its curve g is used; ``price`` is the typical V in units of the mean slope of g over rho. Prices
around 1 leave it open whether the block is worth having; pools are then the largest.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from brute_force import FAMILIES

from structot.blocks import kernels, reference
from structot.blocks.layout import Edges
from structot.blocks.pools import Pools
from structot.concave import Concave, ConcaveTable, Discount, Step, ThresholdSqrt, pack_table

Array = np.ndarray

FUNCTIONS: tuple[Concave, ...] = (*FAMILIES, ThresholdSqrt(1.0, 1e-3), Step())
REACHES = (0.2, 3.0, 1e4)
PRICES = (0.3, 0.9, 1.1, 3.0)


@dataclass
class Block:
    """One block and the point of its prox."""

    w: Array
    V: Array
    table: ConcaveTable
    rho: float
    floor: float = 0.0

    def prox(self, kernels, last: Pools | None = None) -> Pools:
        last = last or Pools.empty(self.w.size, 1)
        table = self.table if kernels is reference else self.table.arrays
        nowhere = np.zeros(self.w.size, np.int32)
        edges = Edges(np.array([0, self.w.size]), nowhere, nowhere, self.w)
        totals = np.array([self.w.sum()])
        kernels.prox_blocks(0, 1, edges, self.V, self.rho, self.floor, totals, table, last)
        return last

    @property
    def scale(self) -> float:
        return float(np.abs(self.V).max())


def draw(
    rng: np.random.Generator, size: int, g: Concave, reach: float, price: float, rho: float
) -> Block:
    """Heavy tails, with a few elements below zero."""
    w = rng.lognormal(0.0, 1.0, size)
    table = pack_table([g], np.ones(1), np.array([reach / w.sum()]))
    mean = float(table.secant(0, 0.0, w.sum())) / rho
    V = price * mean * rng.lognormal(0.0, rng.choice([0.05, 0.5, 2.0]), size)
    V[rng.random(size) < 0.05] *= -1.0
    return Block(w, V, table, rho)


def members(found: Pools) -> list[Array]:
    """The elements of each pool."""
    bounds = [0, *found.end[: found.n_pools[0]].tolist()]
    return [np.sort(found.order[low:high]) for low, high in itertools.pairwise(bounds)]


def check(block: Block, found: Pools) -> None:
    """X is that of the twin, and pools are described as promised."""
    slow = block.prox(reference)
    np.testing.assert_allclose(found.X, slow.X, rtol=0, atol=1e-12 * block.scale)
    assert found.n_active[0] <= slow.n_active[0]
    order = found.order[: found.n_active[0]]
    assert np.unique(order).size == order.size
    assert set(order.tolist()) <= set(slow.order[: slow.n_active[0]].tolist())
    ends = found.end[: found.n_pools[0]]
    active, rest = order[: ends.max(initial=0)], np.ones(block.w.size, bool)
    rest[active] = False
    assert (found.X[rest] == block.floor).all()
    if active.size:
        begins = np.concatenate([[0], ends[:-1]])
        level, V = found.X[order[begins]], block.V[active]
        assert (found.X[active] == np.repeat(level, ends - begins)).all()
        assert level.min() > block.floor
        assert (np.diff(level) <= 1e-14 * block.scale).all()
        least, most = np.minimum.reduceat(V, begins), np.maximum.reduceat(V, begins)
        assert (least[:-1] >= most[1:]).all()
        assert least[-1] >= block.V[rest].max(initial=-np.inf)


# ----------------------------------------------------------------------------- against the twin


@pytest.mark.parametrize("g", FUNCTIONS, ids=repr)
def test_long_blocks_agree_with_numpy(g: Concave) -> None:
    rng = np.random.default_rng(0)
    rhos = itertools.cycle(10.0 ** np.arange(-4, 5))
    for reach, price in itertools.product(REACHES, PRICES):
        for size in (50, 400, 5000):
            block = draw(rng, size, g, reach, price, next(rhos))
            check(block, block.prox(kernels))


@pytest.mark.kernels
@pytest.mark.parametrize("g", FUNCTIONS, ids=repr)
def test_blocks_with_ties_agree_with_numpy(g: Concave) -> None:
    rng = np.random.default_rng(1)
    for reach, price in itertools.product(REACHES, PRICES):
        block = draw(rng, 150, g, reach, price, 2.0)
        unit = block.scale / 16
        block.V = np.ceil(block.V / unit) * unit
        check(block, block.prox(kernels))
        block.w = np.ones(150)
        check(block, block.prox(kernels))


def test_values_over_more_octaves_than_there_are_bins() -> None:
    rng = np.random.default_rng(2)
    for g in FUNCTIONS:
        block = draw(rng, 3000, g, 3.0, 1.0, 1.0)
        block.V = 2.0 ** rng.uniform(-1070, 3, 3000)
        block.V[:3] = 0.0, -0.0, 5e-324
        check(block, block.prox(kernels))
        block.V = 2.0 ** rng.uniform(-80, 3, 3000)
        check(block, block.prox(kernels))


# ------------------------------------------------------------------------------ what is spared


@pytest.mark.kernels
def test_the_inside_of_a_large_pool_is_not_sorted() -> None:
    rng = np.random.default_rng(3)
    block = draw(rng, 1000, ThresholdSqrt(1.0), 100.0, 1.0, 1.0)
    block.V = float(block.table.secant(0, 0.0, block.w.sum())) * rng.uniform(1.0, 1.6, 1000)
    found = block.prox(kernels)
    check(block, found)
    largest = max(members(found), key=len)
    assert largest.size > 900
    rises = np.diff(block.V[found.order[: found.n_active[0]]]) > 0
    assert rises.sum() > 300  # nearly 500 in a random order
    block.V = 0.5 * block.V  # now the block is not worth having, and that without any sorting
    assert (block.V > block.table.slope(0, block.w.sum())).sum() > 100
    assert block.prox(kernels).n_active[0] == 0


@pytest.mark.kernels
def test_a_block_of_middling_size_that_is_not_worth_it_is_not_sorted() -> None:
    rng = np.random.default_rng(8)
    for g, reach in ((ThresholdSqrt(1.0), 10.0), (Discount(0.75), 1.0)):
        block = draw(rng, 100, g, reach, 1.0, 1.0)
        total = block.w.sum()
        least, mean = float(block.table.slope(0, total)), float(block.table.secant(0, 0.0, total))
        block.V = least + (mean - least) * rng.uniform(0.1, 0.9, 100)  # the whole block costs more
        block.V[:3] = 1.05 * mean  # and a few alone more still
        assert block.prox(reference).n_active[0] > 0
        found = block.prox(kernels)
        assert found.n_active[0] == 0
        check(block, found)


@pytest.mark.kernels
@pytest.mark.parametrize("g", FUNCTIONS, ids=repr)
def test_blocks_that_are_not_worth_it_have_no_pools(g: Concave) -> None:
    block = draw(np.random.default_rng(4), 200, g, 30.0, 1.0, 5.0)
    # A set S is worth having if V w(S) exceeds g(w(S)) / rho; the whole block is the best one.
    mean = float(block.table.secant(0, 0.0, block.w.sum())) / block.rho
    for share, level in ((1 - 1e-9, 0.0), (1 + 1e-9, 1e-9 * mean)):
        block.V = np.full(200, share * mean)
        found = block.prox(kernels)
        assert (found.n_pools[0] > 0) == (level > 0.0)
        assert found.n_pools[0] <= 1 or g.is_linear
        np.testing.assert_allclose(found.X, level, rtol=1e-5, atol=1e-14 * mean)


def test_blocks_that_stay_in_full() -> None:
    rng = np.random.default_rng(5)
    for g in FUNCTIONS:
        block = draw(rng, 2000, g, 3.0, 1.0, 1.0)
        # Above every slope of g, except that at 0 where it is infinite or g jumps.
        block.V = np.abs(block.V) + 50.0 * float(block.table.secant(0, 0.0, block.w.min()))
        found = block.prox(kernels)
        assert (found.X > 0).all()
        check(block, found)


# -------------------------------------------------------------------------------- invariance


def test_prox_moves_with_its_floor() -> None:
    rng = np.random.default_rng(6)
    for g, price in itertools.product(FUNCTIONS, PRICES):
        block = draw(rng, 700, g, 3.0, price, 1.0)
        X = block.prox(kernels).X
        for floor in (-30.0 * block.scale, 2.0 * block.scale):
            moved = Block(block.w, block.V + floor, block.table, block.rho, floor)
            found = moved.prox(kernels)
            np.testing.assert_allclose(found.X - floor, X, rtol=0, atol=1e-13 * abs(floor))
            check(moved, found)


def test_prox_is_homogeneous() -> None:
    """Powers of two move every element by whole octaves and round nothing."""
    rng = np.random.default_rng(7)
    for g, price in itertools.product(FUNCTIONS, PRICES):
        block = draw(rng, 700, g, 3.0, price, 1.0)
        X = block.prox(kernels).X
        for c in (2.0**-40, 2.0**70):
            scaled = Block(block.w, c * block.V, block.table, block.rho / c)
            assert (scaled.prox(kernels).X == c * X).all()


# ---------------------------------------------------------------------- memory of the last call


@pytest.mark.parametrize("move", [1e-4, 1e-2, 1.0])
def test_moved_points_reuse_the_last_pools(move: float) -> None:
    rng = np.random.default_rng(8)
    for g, reach in itertools.product(FUNCTIONS, REACHES):
        block = draw(rng, 1000, g, reach, 1.1, 1.0)
        last = None
        for step in range(5):
            block.V = block.V * (1.0 + move * rng.normal(size=1000))
            block.rho = 1.0 + 0.1 * step
            last = block.prox(kernels, last)
            check(block, last)
            fresh = block.prox(kernels)
            assert last.n_active[0] == fresh.n_active[0]
            for old, new in zip(members(last), members(fresh), strict=True):
                assert old.tolist() == new.tolist()
