"""Weighted projection onto {X1 = a, X'1 = b}: against a dense solve, and its properties."""

import numpy as np
import pytest

from structot.transport import InfeasibleError, MarginalProjection
from structot.transport import kernels as _kernels


def dense_projection(V, w, a, b, allowed):
    """Solve the KKT system of the allowed entries by least squares (the rank is deficient)."""
    n, m = V.shape
    C = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    keep = allowed.ravel()
    C, size = C[:, keep], keep.sum()
    kkt = np.block([[np.diag(w.ravel()[keep]), C.T], [C, np.zeros((n + m, n + m))]])
    right = np.concatenate([(w * V).ravel()[keep], a, b])
    X = np.zeros(n * m)
    X[keep] = np.linalg.lstsq(kkt, right, rcond=1e-13)[0][:size]
    return X.reshape(n, m)


def random_problem(seed, n, m):
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    return rng.normal(size=(n, m)), 10.0 ** rng.uniform(-1, 1, (n, m)), a, b


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (5, 1), (4, 7), (7, 4), (6, 6)])
def test_agrees_with_the_dense_system(shape):
    V, w, a, b = random_problem(0, *shape)
    X = MarginalProjection(w).project(V, a, b)
    expected = dense_projection(V, w, a, b, np.ones(shape, bool))
    np.testing.assert_allclose(X, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(4, 7), (7, 4), (6, 6)])
def test_forbidden_pairs_agree_with_the_dense_system(shape):
    V, w, a, b = random_problem(1, *shape)
    allowed = np.random.default_rng(1).random(shape) > 0.3
    allowed[0], allowed[:, 0] = True, True  # connected
    X = MarginalProjection(w, allowed).project(V, a, b)
    assert not X[~allowed].any()
    expected = dense_projection(np.where(allowed, V, 0), w, a, b, allowed)
    np.testing.assert_allclose(X, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("flip", [False, True])
def test_disconnected_pairs(flip):
    # Two full blocks, one lone pair, and a row and a column with no pair at all.
    V, w, _, _ = random_problem(2, 7, 9)
    allowed = np.zeros((7, 9), bool)
    allowed[:2, :3] = allowed[2:5, 3:7] = allowed[5, 7] = True
    inside = np.where(allowed, np.random.default_rng(3).random((7, 9)), 0.0)
    a, b = inside.sum(axis=1), inside.sum(axis=0)
    if flip:
        V, w, allowed, a, b = V.T, w.T, allowed.T, b, a
    X = MarginalProjection(w, allowed).project(V, a, b)
    np.testing.assert_allclose(X.sum(axis=1), a, atol=1e-14)
    np.testing.assert_allclose(X.sum(axis=0), b, atol=1e-14)
    expected = dense_projection(np.where(allowed, V, 0), w, a, b, allowed)
    np.testing.assert_allclose(X, expected, rtol=1e-8, atol=1e-10)


def test_multipliers_and_characterisation():
    V, w, a, b = random_problem(4, 30, 20)
    projection = MarginalProjection(w)
    X = projection.project(V, a, b)
    p, q = projection.multipliers(V, a, b)
    np.testing.assert_allclose(X, V + (p[:, None] + q) / w, atol=1e-12)
    # w (V - X) is orthogonal to every matrix with zero marginals.
    D = projection.project(np.random.default_rng(5).normal(size=V.shape), 0 * a, 0 * b)
    assert abs(np.vdot(w * (V - X), D)) <= 1e-10 * np.linalg.norm(w * (V - X))
    np.testing.assert_allclose(projection.project(X, a, b), X, atol=1e-13)
    np.testing.assert_array_equal(projection.project(V, a, b), X)  # no state


@pytest.mark.parametrize("scale", [1e-250, 1e-12, 1e12, 1e250])
def test_scale_of_the_weights_does_not_matter(scale):
    V, w, a, b = random_problem(6, 8, 5)
    X = MarginalProjection(w).project(V, a, b)
    np.testing.assert_allclose(MarginalProjection(scale * w).project(V, a, b), X, atol=1e-11)


def test_marginals_are_right_for_ill_conditioned_weights():
    rng = np.random.default_rng(7)
    V, _, a, b = random_problem(7, 40, 50)
    w = 10.0 ** rng.uniform(-6, 6, V.shape)
    X = MarginalProjection(w).project(V, a, b)
    assert np.abs(X.sum(axis=1) - a).max() <= 1e-10
    assert np.abs(X.sum(axis=0) - b).max() <= 1e-10


def test_unbalanced_parts_are_refused():
    projection = MarginalProjection(np.ones((2, 2)), np.eye(2, dtype=bool))
    half = np.array([0.5, 0.5])
    np.testing.assert_allclose(projection.project(np.ones((2, 2)), half, half), np.diag(half))
    with pytest.raises(InfeasibleError, match="2 parts"):
        projection.project(np.ones((2, 2)), half, np.array([0.4, 0.6]))
    with pytest.raises(InfeasibleError):
        MarginalProjection(np.ones((2, 2)), np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="V must be finite"):
        projection.project(np.diag([np.nan, 1.0]), half, half)


@pytest.mark.kernels
@pytest.mark.parametrize("shape", [(1, 1), (3, 4), (4, 3)])
def test_kernels_agree_with_numpy(shape):
    rng = np.random.default_rng(8)
    X, B = rng.random(shape), rng.random(shape)
    p, q = rng.normal(size=shape[0]), rng.normal(size=shape[1])
    expected = X + (p[:, None] + q) * B
    Q = X.copy()
    rows, columns = _kernels.shift_sums(X, B, p, q)
    np.testing.assert_allclose(X, expected, rtol=1e-14)
    np.testing.assert_allclose(rows, expected.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(columns, expected.sum(axis=0), atol=1e-14)
    r, c = np.abs(p), np.abs(q)
    outer = Q + 0.3 * np.outer(r, c)
    _kernels.add_outer(Q, r, c, 0.3)
    np.testing.assert_allclose(Q, outer, rtol=1e-14)
