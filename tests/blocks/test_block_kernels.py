"""The compiled block kernels: against NumPy, on all sorts of orders, from several threads."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from brute_force import FAMILIES
from hypothesis import given
from hypothesis import strategies as st

from structot.blocks import kernels, layout, polytope, reference
from structot.blocks.layout import Edges
from structot.blocks.pools import Pools
from structot.blocks.sorting import sort_descending
from structot.concave import Step, pack_table
from structot.structures import Coverage, Groups

pytestmark = pytest.mark.kernels

Array = np.ndarray

KERNELS = (
    sort_descending,
    kernels.prox_blocks,
    polytope.greedy_blocks,
    polytope.entropy_blocks,
    polytope.minimize_blocks,
    polytope.euclidean_blocks,
    polytope.best_prefix,
)


class Case:
    """Random blocks with a function each; ties where ``coarse``."""

    def __init__(self, seed: int, coarse: bool, longest: int = 40) -> None:
        rng = np.random.default_rng(seed)
        blocks = int(rng.integers(1, 6))
        self.start = np.concatenate([[0], np.cumsum(rng.integers(1, longest, blocks))])
        size = int(self.start[-1])
        self.w = rng.integers(1, 4, size) / 2 if coarse else rng.uniform(0.01, 2, size)
        self.V = rng.integers(-3, 4, size) / 2 if coarse else rng.normal(size=size)
        self.Z = np.abs(self.V) + 0.5
        choice = rng.integers(0, len(FAMILIES) + 1, blocks)
        functions = [(*FAMILIES, Step())[c] for c in choice]
        self.table = pack_table(functions, rng.uniform(0.5, 2, blocks), rng.uniform(0.5, 2, blocks))
        self.totals = np.add.reduceat(self.w, self.start[:-1])
        self.blocks, self.size = blocks, size
        nowhere = np.zeros(size, np.int32)
        self.edges = Edges(self.start, nowhere, nowhere, self.w)

    def prox(self, home, rho: float, floor: float, last: Pools | None = None) -> Pools:
        last = last or Pools.empty(self.size, self.blocks)
        table = self.table if home is reference else self.table.arrays
        shared = self.edges, self.V, rho, floor, self.totals, table
        home.prox_blocks(0, self.blocks, *shared, last)
        return last

    def run(self, home, name: str, point: Array) -> Array:
        table = self.table if home is reference else self.table.arrays
        K = np.full(self.size, np.nan)
        getattr(home, name)(0, self.blocks, self.edges, point, table, K)
        return K


cases = st.builds(Case, st.integers(0, 2**31), st.booleans())

# ------------------------------------------------------------------------------ against NumPy


@given(case=cases)
def test_greedy_entropy_and_euclidean_agree_with_numpy(case: Case) -> None:
    for name, point in (
        ("greedy_blocks", case.V),
        ("entropy_blocks", case.Z),
        ("euclidean_blocks", case.V),
    ):
        fast, slow = (case.run(home, name, point) for home in (polytope, reference))
        assert fast == pytest.approx(slow, abs=1e-10)


@given(case=cases, rho=st.sampled_from([0.2, 1.0, 7.0]), floor=st.sampled_from([-np.inf, 0.0]))
def test_prox_agrees_with_numpy(case: Case, rho: float, floor: float) -> None:
    fast, slow = (case.prox(home, rho, floor) for home in (kernels, reference))
    np.testing.assert_allclose(fast.X, slow.X, rtol=0, atol=1e-11)
    assert (fast.n_active <= slow.n_active).all()  # the kernel skips more of what ends at the floor
    for b in range(case.blocks):
        s, length = case.start[b], fast.n_active[b]
        assert np.sort(fast.order[s : s + length]).tolist() == sorted(slow.order[s : s + length])


@given(case=cases, rho=st.sampled_from([0.2, 1.0, 7.0]), floor=st.sampled_from([-np.inf, 0.0]))
def test_pools_describe_the_prox(case: Case, rho: float, floor: float) -> None:
    """X is constant on each pool, at the mean of V minus the slope of g across the pool."""
    found = case.prox(kernels, rho, floor)
    for b in range(case.blocks):
        block = slice(case.start[b], case.start[b + 1])
        X, w, V = found.X[block], case.w[block], case.V[block]
        order = found.order[block][: found.n_active[b]]
        assert np.unique(order).size == order.size
        bounds = np.concatenate([[0], found.end[block][: found.n_pools[b]]])
        assert (np.diff(bounds) > 0).all()
        W = 0.0
        levels = []
        for low, high in itertools.pairwise(bounds.tolist()):
            pool = order[low:high]
            weight = w[pool].sum()
            price = float(case.table.secant(b, W, weight))
            levels.append((w[pool] @ V[pool]) / weight - price / rho)
            assert X[pool] == pytest.approx(levels[-1], abs=1e-10)
            W += weight
        assert (np.diff(levels) <= 1e-10).all()
        rest = np.setdiff1d(np.arange(w.size), order[: bounds[-1]])
        assert (X[rest] == floor).all()


@given(case=cases)
def test_minimisers_agree_with_numpy(case: Case) -> None:
    out = []
    for home in (polytope, reference):
        table = case.table if home is reference else case.table.arrays
        inside, minimum = np.zeros(case.size, bool), np.zeros(case.blocks)
        home.minimize_blocks(0, case.blocks, case.edges, case.V, table, inside, minimum)
        out.append(minimum)
        for b in range(case.blocks):
            block = slice(case.start[b], case.start[b + 1])
            chosen = inside[block]
            value = case.table.value(b, case.w[block][chosen].sum()) + case.V[block][chosen].sum()
            assert value == pytest.approx(minimum[b], abs=1e-11)
    assert out[0] == pytest.approx(out[1], abs=1e-11)


def test_kernels_touch_their_blocks_only() -> None:
    case = Case(3, False)
    assert case.blocks > 2
    table, K = case.table.arrays, np.full(case.size, np.nan)
    polytope.greedy_blocks(1, 2, case.edges, case.V, table, K)
    assert (~np.isnan(K)).nonzero()[0].tolist() == list(range(case.start[1], case.start[2]))
    parts = Pools.empty(case.size, case.blocks)
    for first, last in ((2, case.blocks), (0, 1), (1, 2)):
        shared = case.edges, case.V, 1.0, 0.0, case.totals, table
        kernels.prox_blocks(first, last, *shared, parts)
    whole = case.prox(kernels, 1.0, 0.0)
    assert (parts.X == whole.X).all()
    assert (parts.n_pools == whole.n_pools).all()


# ------------------------------------------------------------------------------------- sorting


def starts(rng: np.random.Generator, size: int) -> dict[str, Array]:
    """Keys in every sort of order."""
    falling = -np.sort(rng.normal(size=size))
    nearly = falling.copy()
    for _ in range(size // 50):
        i, j = rng.integers(0, size, 2)
        nearly[i], nearly[j] = nearly[j], nearly[i]
    return {
        "random": rng.normal(size=size),
        "falling": falling,
        "rising": falling[::-1].copy(),
        "nearly falling": nearly,
        "shifted a little": falling + 1e-3 * rng.normal(size=size),
        "ties": rng.integers(0, 5, size).astype(float),
        "all equal": np.ones(size),
        "two runs": np.concatenate([falling[: size // 2], falling[size // 3 :]])[:size],
        "infinite": np.where(rng.random(size) < 0.3, np.inf, rng.integers(-2, 2, size)),
        "saw": np.arange(size) % 17.0,
    }


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 33, 257, 900])
def test_adaptive_sort_is_a_stable_sort(size: int) -> None:
    for name, keys in starts(np.random.default_rng(size), size).items():
        order = np.arange(size, dtype=np.int32)
        sort_descending(keys, order, np.empty(size, np.int32))
        assert order.tolist() == np.argsort(-keys, kind="stable").tolist(), name


@given(keys=st.lists(st.integers(-5, 5), max_size=120), seed=st.integers(0, 2**31))
def test_adaptive_sort_from_any_seed_order(keys: list[int], seed: int) -> None:
    values = np.array(keys, float)
    order = np.random.default_rng(seed).permutation(values.size).astype(np.int32)
    expected = order[np.argsort(-values[order], kind="stable")]
    sort_descending(values, order, np.empty_like(order))
    assert order.tolist() == expected.tolist()


# ---------------------------------------------------------------------- memory of the last call


@given(case=cases, seed=st.integers(0, 2**31), floor=st.sampled_from([-np.inf, 0.0]))
def test_reused_pools_equal_fresh_ones(case: Case, seed: int, floor: float) -> None:
    rng = np.random.default_rng(seed)
    last = None
    for step in range(4):
        case.V = case.V + 0.3 * rng.normal(size=case.size)
        last = case.prox(kernels, 1.0 + step, floor, last)
        fresh = case.prox(kernels, 1.0 + step, floor)
        np.testing.assert_allclose(last.X, fresh.X, rtol=0, atol=1e-12)
        assert last.n_active.tolist() == fresh.n_active.tolist()
        for b in range(case.blocks):
            s, length = case.start[b], fresh.n_active[b]
            old, new = (p.order[s : s + length] for p in (last, fresh))
            assert np.sort(old).tolist() == np.sort(new).tolist()
            assert np.unique(old).size == length
            ends = fresh.end[s : s + fresh.n_pools[b]]
            assert last.end[s : s + last.n_pools[b]].tolist() == ends.tolist()
            for end in ends:  # inside a pool the order is left open
                assert set(old[:end].tolist()) == set(new[:end].tolist())


def test_prox_edges_writes_into_the_last_pools() -> None:
    rng = np.random.default_rng(0)
    F = Groups(np.arange(9) % 3, np.arange(8) % 2).bind(rng.uniform(0, 1, (9, 8))).layers[0]
    v = rng.normal(size=72)
    first = F.prox_edges(v, 1.0, 0.0)
    again = F.prox_edges(v + 0.1, 1.0, 0.0, last=first)
    assert again is first
    fresh = F.prox_edges(v + 0.1, 1.0, 0.0)
    np.testing.assert_allclose(again.X, fresh.X, rtol=0, atol=1e-13)


def test_elements_that_end_at_zero_are_skipped() -> None:
    rng = np.random.default_rng(1)
    for structure in (Groups(np.zeros(12), np.zeros(10)), Coverage(np.zeros(12), np.zeros(10))):
        F = structure.bind(rng.uniform(0.5, 1.5, (12, 10))).layers[0]
        v = rng.normal(size=120)
        cut, free = F.prox_edges(v, 1.0, 0.0), F.prox_edges(v, 1.0)
        assert free.n_active[0] == 120
        threshold = F.table.slope(0, F.totals[0])
        assert (cut.X > 0).sum() <= cut.n_active[0] <= (v > threshold).sum() < 120
        np.testing.assert_allclose(cut.X, np.maximum(free.X, 0), rtol=0, atol=1e-13)
        assert cut.n_pools[0] <= free.n_pools[0]


@pytest.mark.parametrize("size", [255, 256, 257, 600])
def test_all_elements_of_long_blocks_are_found(size: int) -> None:
    rng = np.random.default_rng(size)
    w, v = rng.uniform(0.1, 1, (1, size)), rng.normal(size=(1, size))
    F = Groups([0], np.zeros(size)).bind(w).layers[0]
    found = F.prox_edges(F.gather(v), 1.0)
    assert found.n_active[0] == size
    K = F.gather(F.metric * v) - F.w * found.X
    assert K.sum() == pytest.approx(F.value(np.ones((1, size), bool)), rel=1e-12)


# --------------------------------------------------------------------------------------- layout


@given(seed=st.integers(0, 2**31))
def test_block_order_holds_every_positive_pair_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 8, 2)
    rows = np.unique(rng.integers(0, 3, n), return_inverse=True)[1]
    cols = np.unique(rng.integers(0, 3, m), return_inverse=True)[1]
    weights = rng.choice([0.0, 1.0, 2.5, np.inf], (n, m))
    row, col, start, used = layout.block_order(weights, rows, cols)
    blocks = rows[row] * (cols.max() + 1) + cols[col]
    assert (np.repeat(used, np.diff(start)) == blocks).all()
    assert (np.diff(used) > 0).all()
    found = np.zeros((n, m), bool)
    found[row, col] = True
    assert (found == ((weights > 0) & (weights < np.inf))).all()
    assert row.size == found.sum()
    back = layout.scatter(layout.gather(weights, row, col), row, col, (n, m), 7.0)
    assert (back == np.where(found, weights, 7.0)).all()


# -------------------------------------------------------------------------------------- threads


@pytest.mark.skipif(
    not hasattr(sort_descending, "targetoptions"), reason="compilation is switched off"
)
@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels_release_the_gil(kernel) -> None:
    options = kernel.targetoptions
    assert options["nogil"]
    assert not options.get("parallel")
    assert not options.get("fastmath")


def test_two_threads_at_once_give_what_one_gives() -> None:
    rng = np.random.default_rng(5)
    n = 24
    F = Groups(np.arange(n) % 3, np.arange(n) % 4).bind(rng.uniform(0, 1, (n, n))).layers[0]
    inputs = [rng.normal(size=(6, F.w.size)) for _ in range(4)]

    def work(vs: Array) -> list[Array]:
        out, last = [], None
        for v in vs:
            last = F.prox_edges(v, 2.0, 0.0, last)
            out.append(last.X.copy())
        return out

    alone = [work(vs) for vs in inputs]
    together: dict[int, list[Array]] = {}
    barrier = threading.Barrier(len(inputs))

    def run(k: int) -> None:
        barrier.wait()
        together[k] = work(inputs[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(inputs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k, expected in enumerate(alone):
        assert all((x == y).all() for x, y in zip(together[k], expected, strict=True))
