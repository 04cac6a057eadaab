"""The compiled solver of small problems against optimality conditions and unrelated solvers."""

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
from structot.solvers.batch import layers, plans, splitting
from structot.solvers.batch.proofs import CONVERGED, LIMIT, Goal, make_proof
from structot.text import _kernels, pairs
from structot.text._kernels import Model
from structot.text.phrases import Phrase, Tree, blocks_between, subtrees, windows
from structot.text.sentence import Sentence, pack, restrict

pytestmark = pytest.mark.kernels

CONCAVE = (sot.concave.Sqrt(), sot.concave.ThresholdSqrt(0.3, 0.2), sot.concave.Truncation(0.5))


def model_of(concave, unit=1.0, price=0.0):
    if concave is None:
        return Model(STEP, np.empty(0), 1.0, price)
    kind, params = concave.pack()
    return Model(kind, params, unit, 0.0)


def flat(phrases):
    """Phrases of the compiled code: given with roles, or as sets, where all roles are the same."""
    phrases = [p if isinstance(p, Phrase) else Phrase(p, np.zeros_like(p)) for p in phrases]
    starts = np.concatenate([[0], np.cumsum([p.members.size for p in phrases])])
    members, roles = (np.concatenate(x).astype(np.int64) for x in zip(*phrases))
    return _kernels.Side(members, roles, starts.astype(np.int64))


def copies_of(M, model, source, target):
    return _kernels.phrase_copies(M, model, flat(source), flat(target))


def sets_of(copies, m):
    """The blocks as sets of pairs, in no order."""
    parts = np.split(copies.edge, copies.start[1:-1])
    return sorted(sorted(zip((part // m).tolist(), (part % m).tolist())) for part in parts)


def solved(C, a, b, copies, tol):
    """The outcome, the plan and the proof of one problem."""
    P, proof = np.empty(C.shape), make_proof(*C.shape)
    return splitting.solve_small(C, a, b, copies, Goal(tol, 0.0, 20_000), P, proof), P, proof


def problem(rng, n, m, zero=False):
    M = rng.random((n, m))
    if zero:
        M[rng.random((n, m)) < 0.3] = 0.0
    a, b = rng.random(n) + 0.2, rng.random(m) + 0.2
    return M, a / a.sum(), b / b.sum()


def one_block(size, rng, concave, price=0.0, unit=1.0):
    """A block with weights of its own, and a price of it if it has no concave function."""
    kind, params = (STEP, np.empty(0)) if concave is None else concave.pack()
    outer = price if concave is None else unit
    return layers.make_copies(
        np.arange(size),
        np.array([0, size]),
        rng.random(size) + 0.05,
        np.array([0, 1]),
        np.array([kind]),
        np.array([0, params.size]),
        params,
        np.array([outer]),
        np.array([1.0 / unit]),
    )


def set_value(concave, w, members, price, unit):
    if not members:
        return 0.0
    return price if concave is None else unit * concave(w[list(members)].sum() / unit)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@given(seed=st.integers(0, 10_000), size=st.integers(1, 5))
def test_projection_is_in_the_base_polytope_and_optimal(concave, seed, size):
    """K in B(F) by all subsets; and <K, X> = f(X) with X = (Z - K)/d: the conditions of Moreau."""
    rng = np.random.default_rng(seed)
    values = {"price": 0.9, "unit": 0.7}
    copies = one_block(size, rng, concave, **values)
    Z = rng.normal(size=size)
    K, memory = Z.copy(), layers.make_memory(copies)
    layers.project(K, copies, memory)
    everything = range(size)
    for count in range(size + 1):
        for members in itertools.combinations(everything, count):
            most = set_value(concave, copies.w, members, **values)
            assert K[list(members)].sum() <= most + 1e-12
    total = set_value(concave, copies.w, tuple(everything), **values)
    assert K.sum() == pytest.approx(total, abs=1e-12)
    X = (Z - K) / copies.d
    shifted = X - X.min() + 0.1  # f(X + c) = f(X) + c F(all)
    f = layers.extension(shifted, copies, memory) + (X.min() - 0.1) * total
    assert K @ X == pytest.approx(f, abs=1e-10)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@given(seed=st.integers(0, 10_000), size=st.integers(1, 40))
def test_prox_beats_every_perturbation(concave, seed, size):
    rng = np.random.default_rng(seed)
    rho, copies = 1.7, one_block(size, rng, concave, price=0.4, unit=0.7)
    V = rng.normal(size=size)
    memory = layers.make_memory(copies)

    def value(x):
        f = layers.extension(x, copies, memory)
        return f + 0.5 * rho * float(copies.d @ (x - V) ** 2)

    X = V.copy()
    layers.prox(X, copies, rho, memory)
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
    plans.exact(M, a, b, P, u, v)
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
    copies = copies_of(M, model_of(concave, price=0.1), ngrams(4, 2, True), ngrams(6, 2, True))
    small = splitting.make_small(M, a, b, copies)
    V = rng.normal(size=(4, 6))
    Z, p, q = V.copy(), np.empty(4), np.empty(6)
    splitting.to_marginals(Z, small, p, q)
    np.testing.assert_allclose(Z.sum(1), a, atol=1e-12)
    np.testing.assert_allclose(Z.sum(0), b, atol=1e-12)
    np.testing.assert_allclose((Z - V) / small.inverse, np.add.outer(p, q), atol=1e-12)


@pytest.mark.parametrize("concave", [None, sot.concave.Sqrt(), sot.concave.Truncation(0.3)])
@pytest.mark.parametrize("shape", [(2, 3), (3, 3), (1, 4)])
def test_tiny_problems_against_the_program_over_all_sets(concave, shape):
    rng = np.random.default_rng(shape[0])
    M, a, b = problem(rng, *shape, zero=True)
    source, target = ngrams(shape[0], 2, True), ngrams(shape[1], 2, True)
    # The price of a model is that of all blocks of a pair of words together.
    copies_each = sum(map(len, source)) * sum(map(len, target)) / M.size
    model = model_of(concave, price=0.1 * copies_each)
    if concave is None:
        structure, C = sot.Modular() + sot.Coverage(source, target, 0.1), M
    else:
        structure = sot.Groups(source, target, concave, units="cost", equal_coverage=True)
        C = np.zeros(shape)
    (value, _, bound, *_, code), P, _ = solved(
        C, a, b, copies_of(M, model, source, target), tol=1e-6
    )
    optimum = subset_optimum(M, a, b, structure).value
    assert code == CONVERGED
    assert bound <= optimum + 1e-9
    assert optimum - 1e-9 <= value <= optimum * (1 + 2e-6) + 1e-9
    assert structure.bind(M).extension(P) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("concave", [None, *CONCAVE])
@pytest.mark.parametrize("n", [2, 3])
def test_agrees_with_the_general_solver(concave, n):
    rng = np.random.default_rng(n)
    M, a, b = problem(rng, 6, 5)
    source, target = ngrams(6, n, True), ngrams(5, n, True)
    if concave is None:
        structure, C = sot.Modular() + sot.Coverage(source, target, 0.3 / n**2), M
    else:
        structure = sot.Groups(source, target, concave, units="cost", equal_coverage=True)
        C = np.zeros(M.shape)
    copies = copies_of(M, model_of(concave, price=0.3), source, target)
    (value, _, bound, *_), P, _ = solved(C, a, b, copies, tol=1e-5)
    result = sot.solve(M, a, b, structure=structure, method="splitting", tol=1e-5)
    assert result.lower_bound <= value + 1e-12
    assert bound <= result.value + 1e-12
    assert value == pytest.approx(result.value, rel=3e-5)
    np.testing.assert_allclose(P.sum(1), a, atol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_ordered_blocks_are_those_of_the_reference(n):
    """Windows, and trees with relations; every price adds up to the charge for each pair."""
    rng = np.random.default_rng(n)
    M = problem(rng, 6, 5)[0]
    trees = [
        Tree([0, 1, 1, 2, 2, 3], list("raabab")),
        Tree([2, 0, 2, 3, 3], list("aracb")),
    ]
    for source, target in (
        (windows(6, n), windows(5, n)),
        tuple(subtrees(tree, n) for tree in trees),
    ):
        copies = copies_of(M, model_of(None, price=0.3), source, target)
        expected = blocks_between(source, target, M.shape)
        assert sets_of(copies, 5) == sorted(sorted(map(tuple, s.tolist())) for s in expected)
        np.testing.assert_allclose(copies.outer, 0.3 / n, rtol=1e-15)


def test_ordered_blocks_against_the_general_solver():
    rng = np.random.default_rng(7)
    M, a, b = problem(rng, 6, 5)
    copies = copies_of(M, model_of(None, price=0.6), windows(6, 3), windows(5, 3))
    (value, _, bound, *_), _, _ = solved(M, a, b, copies, tol=1e-5)
    sets = sot.groups.diagonals(6, 5, 3)
    structure = sot.Modular() + sot.Coverage.of_sets(sets, 0.2)
    result = sot.solve(M, a, b, structure=structure, method="linear_program")
    assert value == pytest.approx(result.value, rel=2e-5)
    assert bound <= result.value + 1e-12


def random_corpus(rng, sizes, n=2):
    sentences = []
    for size in sizes:
        words = rng.integers(0, 30, size)
        weights = np.full(size, 1 / size)
        sentences.append(Sentence((), words, weights, windows(size, n)))
    X = rng.normal(size=(30, 5))
    return pack(sentences, lambda rows: X[rows])


@pytest.mark.parametrize("kind", ["charge", "sqrt", "plain"])
def test_bounds_hold_and_answers_do_not_depend_on_the_division(kind):
    rng = np.random.default_rng(0)
    corpus, vectors = random_corpus(rng, [3, 5, 4, 6, 1])
    model = {
        "charge": model_of(None, price=0.8),
        "sqrt": model_of(sot.concave.Sqrt(), unit=2.0),
        "plain": Model(LINEAR, np.empty(0), 1.0, 0.0),
    }[kind]
    chosen, goal = np.array(list(itertools.combinations(range(5), 2))), Goal(1e-4, 0.0, 20_000)
    table = pairs.solve_here(corpus, vectors, chosen, model, goal)
    assert (table[:, 3] == CONVERGED).all()
    assert (table[:, 0] - table[:, 1] <= 1e-4 * table[:, 0] + 1e-15).all()
    for s in range(5):
        query, rows, _ = restrict(corpus, vectors, np.array([[s, s]]))
        relaxed = pairs.lower_bounds(query, rows, corpus, vectors, model)
        for (i, j), value in zip(chosen, table[:, 0]):
            if s in (i, j):
                other = relaxed[i + j - s]
                assert 0 < other <= value + 1e-12
    for k in range(len(chosen)):
        part = restrict(corpus, vectors, chosen[k : k + 1])
        alone = pairs.solve_chunk(part, model, goal)
        assert (alone[0] == table[k]).all()  # bit for bit


def test_the_iteration_limit_is_a_code_and_the_answer_is_still_certified():
    rng = np.random.default_rng(1)
    corpus, vectors = random_corpus(rng, [7, 8])
    model = model_of(None, price=0.8)
    found = pairs.solve(corpus, vectors, np.array([[0, 1]]), model, tol=1e-12, max_iter=15)
    assert found.code[0] == LIMIT
    assert found.n_iter[0] == 15
    assert found.lower_bound[0] <= found.value[0]
    assert found.gap[0] > 1e-12


def test_costs_are_euclidean_and_zero_between_equal_vectors():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 7))
    M = _kernels.costs(X, np.arange(4), np.arange(2, 6))
    np.testing.assert_allclose(M, ot.dist(X[:4], X[2:], "euclidean"), atol=1e-12)
    assert M[2, 0] == 0.0
    assert M[3, 1] == 0.0
