"""The compiled solver of sentence pairs against optimality conditions and unrelated solvers."""

import itertools

import numpy as np
import ot
import pytest
from hypothesis import given
from hypothesis import strategies as st
from subset_program import subset_optimum

import structot as sot
from structot.concave.base import LINEAR, STEP
from structot.groups import ngrams
from structot.text import _blocks, _kernels, _plans, _splitting, batch
from structot.text._blocks import Copies, Model

pytestmark = pytest.mark.kernels

CONCAVE = (sot.concave.Sqrt(), sot.concave.ThresholdSqrt(0.3, 0.2), sot.concave.Truncation(0.5))


def model_of(concave, unit=1.0, price=0.0):
    if concave is None:
        return Model(STEP, np.empty(0), 1.0, price)
    kind, params = concave.pack()
    return Model(kind, params, unit, 0.0)


def flat(phrases):
    starts = np.concatenate([[0], np.cumsum([len(p) for p in phrases])])
    return np.concatenate(phrases).astype(np.int64), starts.astype(np.int64)


def blocks(source, target, m):
    return _blocks.block_edges(*flat(source), *flat(target), m)


def problem(rng, n, m, zero=False):
    M = rng.random((n, m))
    if zero:
        M[rng.random((n, m)) < 0.3] = 0.0
    a, b = rng.random(n) + 0.2, rng.random(m) + 0.2
    return M, a / a.sum(), b / b.sum()


def one_block(size, rng, zero=False):
    w = rng.random(size) + 0.05
    if zero:
        w[0] = 0.0
    d = rng.random(size) + 0.1
    start = np.array([0, size])
    return Copies(np.arange(size), start, np.where(w > 0, w, 0.2), w), d


def set_value(model, concave, w, members):
    if not members:
        return 0.0
    if concave is None:
        return model.price
    return model.unit * concave(w[list(members)].sum() / model.unit)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@given(seed=st.integers(0, 10_000), size=st.integers(1, 5))
def test_projection_is_in_the_base_polytope_and_optimal(concave, seed, size):
    """K in B(F) by all subsets; and <K, X> = f(X) with X = (Z - K)/d: the conditions of Moreau."""
    rng = np.random.default_rng(seed)
    model = model_of(concave, unit=0.7, price=0.9)
    copies, d = one_block(size, rng, zero=concave is not None and seed % 2 == 0)
    if concave is None:
        copies = copies._replace(d=d)
    Z = rng.normal(size=size)
    K, order, spare = Z.copy(), np.empty(size, np.int64), np.empty((4, size))
    _blocks.project(K, copies, model, order, spare)
    everything = range(size)
    for count in range(size + 1):
        for members in itertools.combinations(everything, count):
            assert K[list(members)].sum() <= set_value(model, concave, copies.w, members) + 1e-12
    total = set_value(model, concave, copies.w, tuple(everything))
    assert K.sum() == pytest.approx(total, abs=1e-12)
    positive = copies.w > 0 if concave is not None else np.ones(size, bool)
    X = np.where(positive, (Z - K) / copies.d, 0.0)
    shifted = X - X.min() + 0.1  # f(X + c) = f(X) + c F(all)
    f = _blocks.charges(shifted, copies, model, order) + (X.min() - 0.1) * total
    assert K @ X == pytest.approx(f, abs=1e-10)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@given(seed=st.integers(0, 10_000), size=st.integers(1, 6))
def test_prox_beats_every_perturbation(concave, seed, size):
    rng = np.random.default_rng(seed)
    model, rho = model_of(concave, unit=0.7, price=0.4), 1.7
    copies, _ = one_block(size, rng)
    V = rng.normal(size=size)
    order, spare = np.empty(size, np.int64), np.empty((4, size))

    def value(x):
        f = _blocks.charges(x, copies, model, order)
        return f + 0.5 * rho * float(copies.d @ (x - V) ** 2)

    X = V.copy()
    _blocks.prox(X, copies, model, rho, order, spare)
    assert (X >= 0).all()
    for scale in (1e-1, 1e-3):
        for _ in range(10):
            other = np.maximum(X + scale * rng.normal(size=size), 0.0)
            # Strong convexity of the quadratic term.
            gap = 0.5 * rho * float(copies.d @ (other - X) ** 2)
            assert value(other) >= value(X) + gap - 1e-12


@given(seed=st.integers(0, 10_000), n=st.integers(1, 7), m=st.integers(1, 7))
def test_exact_transport_is_that_of_pot_with_tight_potentials(seed, n, m):
    rng = np.random.default_rng(seed)
    M, a, b = problem(rng, n, m, zero=seed % 2 == 0)
    if seed % 3 == 0:
        a, b = np.full(n, 1 / n), np.full(m, 1 / m)  # degenerate
    P, u, v = np.empty((n, m)), np.empty(n), np.empty(m)
    _plans.exact(M, a, b, P, u, v)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(1), a, atol=1e-14)
    np.testing.assert_allclose(P.sum(0), b, atol=1e-14)
    assert (np.add.outer(u, v) <= M + 1e-15).all()
    assert (P * M).sum() == pytest.approx(ot.emd2(a, b, M), abs=1e-12)
    assert a @ u + b @ v == pytest.approx((P * M).sum(), abs=1e-12)


@pytest.mark.parametrize("concave", [None, sot.concave.Sqrt()])
def test_projection_onto_the_marginals_is_stationary(concave):
    rng = np.random.default_rng(3)
    M, a, b = problem(rng, 4, 6, zero=True)
    edge, start = blocks(ngrams(4, 2, True), ngrams(6, 2, True), 6)
    pair = _splitting.make_pair(M, a, b, edge, start, model_of(concave, price=0.1))
    V = rng.normal(size=(4, 6))
    Z, p, q = V.copy(), np.empty(4), np.empty(6)
    _splitting.to_marginals(Z, pair, p, q)
    np.testing.assert_allclose(Z.sum(1), a, atol=1e-12)
    np.testing.assert_allclose(Z.sum(0), b, atol=1e-12)
    np.testing.assert_allclose((Z - V) / pair.inverse, np.add.outer(p, q), atol=1e-12)


@pytest.mark.parametrize("concave", [None, sot.concave.Sqrt(), sot.concave.Truncation(0.3)])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (1, 4)])
def test_tiny_problems_against_the_program_over_all_sets(concave, shape):
    rng = np.random.default_rng(shape[0])
    M, a, b = problem(rng, *shape, zero=True)
    source, target = ngrams(shape[0], 2, True), ngrams(shape[1], 2, True)
    edge, start = blocks(source, target, shape[1])
    if concave is None:
        structure = sot.Modular() + sot.Coverage(source, target, 0.1)
    else:
        structure = sot.Groups(source, target, concave, equal_coverage=True, units="cost")
    P, tol = np.empty(shape), 1e-6
    model = model_of(concave, price=0.1)
    value, bound, _, code = _splitting.solve_pair(M, a, b, edge, start, model, tol, 20_000, P)
    optimum = subset_optimum(M, a, b, structure).value
    assert code == _splitting.CONVERGED
    assert bound <= optimum + 1e-9
    assert optimum - 1e-9 <= value <= optimum * (1 + 2e-6) + 1e-9
    assert structure.bind(M).extension(P) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@pytest.mark.parametrize("n", [2, 3])
def test_agrees_with_the_general_solver(concave, n):
    rng = np.random.default_rng(n)
    M, a, b = problem(rng, 6, 5)
    source, target = ngrams(6, n, True), ngrams(5, n, True)
    edge, start = blocks(source, target, 5)
    price = 0.3 / n**2
    if concave is None:
        structure = sot.Modular() + sot.Coverage(source, target, price)
    else:
        structure = sot.Groups(source, target, concave, equal_coverage=True, units="cost")
    P = np.empty(M.shape)
    model = model_of(concave, price=price)
    value, bound, _, _ = _splitting.solve_pair(M, a, b, edge, start, model, 1e-5, 20_000, P)
    result = sot.solve(M, a, b, structure=structure, method="splitting", tol=1e-5)
    assert result.lower_bound <= value + 1e-12
    assert bound <= result.value + 1e-12
    assert value == pytest.approx(result.value, rel=3e-5)
    np.testing.assert_allclose(P.sum(1), a, atol=1e-14)


def random_corpus(rng, sizes, n=2):
    sentences = []
    for size in sizes:
        words = rng.integers(0, 30, size)
        weights = np.full(size, 1 / size)
        sentences.append(batch.Sentence((), words, weights, ngrams(size, n, True)))
    X = rng.normal(size=(30, 5))
    return batch.pack(sentences, lambda rows: X[rows])


@pytest.mark.parametrize("kind", ["charge", "sqrt", "plain"])
def test_bounds_hold_and_answers_do_not_depend_on_the_division(kind):
    rng = np.random.default_rng(0)
    corpus, vectors = random_corpus(rng, [3, 5, 4, 6, 1])
    model = {
        "charge": model_of(None, price=0.8),
        "sqrt": model_of(sot.concave.Sqrt(), unit=2.0),
        "plain": Model(LINEAR, np.empty(0), 1.0, 0.0),
    }[kind]
    pairs = np.array(list(itertools.combinations(range(5), 2)))
    table = batch.solve_here(corpus, vectors, pairs, model, 1e-4, 20_000)
    assert (table[:, 3] == _splitting.CONVERGED).all()
    assert (table[:, 0] - table[:, 1] <= 1e-4 * table[:, 0] + 1e-15).all()
    relaxed = batch.lower_bounds(corpus, vectors, pairs, model)
    assert (relaxed <= table[:, 0] + 1e-12).all()
    assert (relaxed > 0).all()
    for k in range(len(pairs)):
        part = batch.restrict(corpus, vectors, pairs[k : k + 1])
        alone = batch.solve_chunk(part, model, 1e-4, 20_000)
        assert (alone[0] == table[k]).all()  # bit for bit


def test_the_iteration_limit_is_a_code_and_the_answer_is_still_certified():
    rng = np.random.default_rng(1)
    corpus, vectors = random_corpus(rng, [7, 8])
    pairs = np.array([[0, 1]])
    model = model_of(None, price=0.8)
    found = batch.solve(corpus, vectors, pairs, model, tol=1e-12, max_iter=15)
    assert found.code[0] == _splitting.LIMIT
    assert found.n_iter[0] == 15
    assert found.lower_bound[0] <= found.value[0]
    assert found.gap[0] > 1e-12


def test_costs_are_euclidean_and_zero_between_equal_vectors():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 7))
    M = _plans.costs(X, np.arange(4), np.arange(2, 6))
    np.testing.assert_allclose(M, ot.dist(X[:4], X[2:], "euclidean"), atol=1e-12)
    assert M[2, 0] == 0.0
    assert M[3, 1] == 0.0


def test_kernels_release_the_gil_and_are_cached():
    modules = (_blocks, _plans, _splitting, _kernels)
    for module in modules:
        for function in vars(module).values():
            if hasattr(function, "targetoptions"):
                assert function.targetoptions.get("nogil") is True
                assert type(function._cache).__name__ != "NullCache"
