"""How far elements are from leaving their pools, against the set function and the prox itself."""

import itertools

import numpy as np
import pytest

import structot as sot
from structot.blocks import reference
from structot.problem import Problem

c = sot.concave
pytestmark = pytest.mark.kernels
RHO = 2.0


@pytest.fixture(params=["discount", "root", "threshold", "pieces", "linear", "own targets"])
def prox(request):
    """A layer of blocks, the point of a prox, and its pools; K = ρ w (V - X)."""
    rng = np.random.default_rng(4)
    M = rng.random((9, 8)) + 0.1
    rows, cols = np.arange(9) % 3, np.arange(8) % 2
    structure = {
        "discount": sot.Groups(rows, cols, c.Discount(0.8)),
        "root": sot.Groups(rows, cols, c.Sqrt(), units="cost"),
        "threshold": sot.Groups(rows, cols, c.ThresholdSqrt(2.0), units="cost"),
        "pieces": sot.Groups(
            rows, cols, c.PiecewiseLinear([0.5, 2.0], [1.0, 0.4, 0.1]), units="cost"
        ),
        "linear": sot.Groups(rows, cols, c.Linear(), units="cost"),
        "own targets": sot.Groups(rows, None, c.Discount(0.8)),
    }[request.param]
    (F,) = Problem.of(M, structure=structure).layers
    V = rng.normal(0.35, 0.25, F.w.size)
    pools = F.prox_edges(V.copy(), RHO, 0.0)
    return F, V, pools


def in_pools(F, pools):
    """How many elements share the pool of each; 0 where X = 0."""
    out = np.zeros(F.w.size, int)
    for b in range(F.start.size - 1):
        ends = [0, *pools.end[F.start[b] :][: pools.n_pools[b]]]
        for low, high in itertools.pairwise(ends):
            out[F.start[b] + pools.order[F.start[b] :][low:high]] = high - low
    return out


def shares(F, V, pools, reach):
    K = RHO * F.w * (V - pools.X)
    F.loosen_edges(K, pools, reach)
    return K


def distances(F, V, pools, reach):
    """What the shares say about distances, by the inverse of their definition."""
    with np.errstate(divide="ignore", invalid="ignore"):  # K is left in blocks not in use
        return reach * (shares(F, V, pools, reach) ** (-2 / 3) - 1)


def test_against_numpy(prox):
    F, V, pools = prox
    for reach in (1e-3, 0.1, 10.0):
        K = RHO * F.w * (V - pools.X)
        reference.loosen_blocks(0, F.start.size - 1, F.edges, K, pools, reach, F.table)
        found, used = shares(F, V, pools, reach), np.repeat(pools.n_pools > 0, np.diff(F.start))
        near = used & (K > 17.0**-1.5)
        assert found[near] == pytest.approx(K[near], rel=1e-9)
        # Farther away a bound is enough, and errs on the side of what is near.
        assert (found[used] >= K[used] * (1 - 1e-9)).all()


def test_from_the_definition(prox):
    """up = F(S + e) - F(S) - K_e and down = K_e - F(S + B) + F(S + B - e), by the set function."""
    F, V, pools = prox
    found, size, K = distances(F, V, pools, 1e3), in_pools(F, pools), RHO * F.w * (V - pools.X)
    assert (size > 1).any() or F.table.functions[0] == c.Linear()

    def value(inside):
        return F.value(F.scatter(inside.astype(float)) > 0)

    block = np.repeat(np.arange(F.start.size - 1), np.diff(F.start))
    for e in range(F.w.size):
        own = block == block[e]
        if not pools.n_pools[block[e]]:
            continue
        above, alone = own & (pools.X > pools.X[e]), np.arange(F.w.size) == e
        ways = [value(above | alone) - value(above) - K[e]]
        if size[e]:
            until = own & (pools.X >= pools.X[e])
            ways.append(K[e] - value(until) + value(until & ~alone))
        if size[e] == 1:
            assert found[e] == 0
        else:
            assert min(ways) >= -1e-12
            assert found[e] == pytest.approx(max(min(ways), 0.0), abs=1e-6)


def test_an_element_leaves_its_pool_just_there(prox):
    """The prox moves it alone as soon as its V has moved so far, and not before.

    Of a pool of several the others move with it: there the distance is at fixed K of the others.
    """
    F, V, pools = prox
    found, size = distances(F, V, pools, 1e3), in_pools(F, pools)
    block = np.repeat(np.arange(F.start.size - 1), np.diff(F.start))
    zeros = np.flatnonzero((size == 0) & (pools.n_pools[block] > 0))
    assert zeros.size
    for e in zeros:
        # From 0 an element may also rise together with others, and so earlier; alone at the latest.
        V_ = V.copy()
        V_[e] += 1.001 * found[e] / (RHO * F.w[e]) + 1e-9
        assert F.prox_edges(V_, RHO, 0.0).X[e] > 0


def test_the_greater_the_reach_the_looser(prox):
    F, V, pools = prox
    used = np.repeat(pools.n_pools > 0, np.diff(F.start))
    some = [shares(F, V, pools, reach)[used] for reach in (1e-9, 1e-3, 1.0, 1e12)]
    for low, high in itertools.pairwise(some):
        assert (low <= high * (1 + 1e-12)).all()
    single = in_pools(F, pools)[used] == 1
    assert (some[0][single] == 1).all()
    assert some[-1] == pytest.approx(1.0, rel=1e-6)
