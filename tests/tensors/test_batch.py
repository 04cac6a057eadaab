"""`solve_batch` for tensors: ragged, each problem with its own answer, certificate and status."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from tensors.cases import clouds, structures, weights  # noqa: E402

import structot as sot  # noqa: E402
from structot.torch import many  # noqa: E402


def problems(count: int):
    """Costs of different shapes, with weights and structures of every kind."""
    rng = np.random.default_rng(0)
    Ms, a, b, chosen = [], [], [], []
    for k in range(count):
        n, m = rng.integers(3, 12, 2)
        M, rows, cols = clouds(n, m, k)
        x, y = weights(n, m, k)
        rows[:3], cols[:3] = range(3), range(3)  # all labels are there
        names = ("plain", "own targets", "own sources", "both")
        Ms.append(torch.tensor(M))
        a.append(None if k % 2 else torch.tensor(x))
        b.append(None if k % 2 else y)
        chosen.append(structures(rows, cols)[names[k % 4]])
    return Ms, a, b, chosen


def test_a_ragged_batch_has_the_answers_of_single_problems(monkeypatch) -> None:
    Ms, a, b, chosen = problems(24)
    results = sot.solve_batch(Ms, a, b, structures=chosen, reg=0.1, tol=1e-10)
    assert len(results) == 24
    assert bool(results.converged.all())
    for M, x, y, structure, result in zip(Ms, a, b, chosen, results, strict=True):
        x = None if x is None else x.numpy()
        expected = sot.solve(M.numpy(), x, y, structure=structure, reg=0.1, tol=1e-10)
        assert result.plan.shape == M.shape
        assert float(result.value) == pytest.approx(expected.value, rel=1e-9)
        assert result.verify().holds()
    monkeypatch.setitem(many._PAIRS, "cpu", 100)
    apart = sot.solve_batch(Ms, a, b, structures=chosen, reg=0.1, tol=1e-10)
    torch.testing.assert_close(apart.values, results.values, rtol=1e-9, atol=0.0)


def test_one_tensor_of_costs_and_one_structure_for_all() -> None:
    rows = clouds(8, 6)[1]
    Ms = torch.stack([torch.tensor(clouds(8, 6, k)[0]) for k in range(5)])
    structure = sot.Modular() + sot.Coverage(rows, weights=0.02, units="block")
    results = sot.solve_batch(Ms, structures=structure, reg=0.1, tol=1e-9)
    expected = sot.solve_batch(Ms.numpy(), structures=structure, reg=0.1, tol=1e-9)
    for result, other in zip(results, expected, strict=True):
        assert float(result.value) == pytest.approx(other.value, rel=1e-8)
    assert [float(x) for x in results.values] == [float(r.value) for r in results[:]]


def test_small_and_large_reg_of_one_batch_do_not_disturb_each_other() -> None:
    """Costs of different sizes make different parts of one reg: each has its own continuation."""
    M = torch.tensor(clouds(9, 8)[0])
    factors = [1.0, 10.0, 100.0]
    results = sot.solve_batch([x * M for x in factors], reg=0.1, tol=1e-9)
    for factor, result in zip(factors, results, strict=True):
        single = sot.solve(factor * M, reg=0.1, tol=1e-9)
        assert result.converged
        assert float(result.value) == pytest.approx(float(single.value), rel=1e-8)


def test_values_of_a_batch_can_be_differentiated() -> None:
    Ms, a, b, chosen = problems(6)
    chosen[5] = sot.Groups([0] * Ms[5].shape[0])  # left to arrays
    for M in Ms:
        M.requires_grad_()
    results = sot.solve_batch(Ms, a, b, structures=chosen, reg=0.2, tol=1e-10)
    results.values.sum().backward()
    for k, M in enumerate(Ms):
        alone = M.detach().clone().requires_grad_()
        result = sot.solve(alone, a[k], b[k], structure=chosen[k], reg=0.2, tol=1e-10)
        result.value.backward()
        torch.testing.assert_close(M.grad, alone.grad, rtol=1e-4, atol=1e-7)


def test_relaxed_marginals_are_not_forgotten() -> None:
    Ms = torch.stack([torch.tensor(clouds(6, 5, k)[0]) for k in range(2)])
    for result, M in zip(sot.solve_batch(Ms, reg=0.1, unbalanced=0.5), Ms, strict=True):
        expected = sot.solve(M.numpy(), reg=0.1, unbalanced=0.5)
        assert result.method.endswith("(by NumPy, on the CPU)")
        assert float(result.value) == pytest.approx(expected.value, rel=1e-3)


def test_what_misses_its_gap_is_said_once() -> None:
    Ms = torch.stack([torch.tensor(clouds(20, 20, k)[0]) for k in range(3)])
    with pytest.warns(sot.ConvergenceWarning, match="3 of 3 problems missed") as caught:
        results = sot.solve_batch(Ms, reg=0.001, tol=1e-9, max_iter=1)
    assert len(caught) == 1
    assert {result.status for result in results} == {sot.Status.ITERATION_LIMIT}
    assert all(result.verify().holds() for result in results)


def test_mistakes_name_their_problem() -> None:
    M = torch.ones(2, 2)
    with pytest.raises(ValueError, match="problem 1: M must not be negative"):
        sot.solve_batch([M, -M], reg=0.1)
    with pytest.raises(ValueError, match="problem 1: a and b must have the same total"):
        sot.solve_batch([M, M], [None, torch.ones(2)], reg=0.1)
    with pytest.raises(ValueError, match="a has 1 entries for 2 problems"):
        sot.solve_batch([M, M], [None], reg=0.1)
    with pytest.raises(ValueError, match="pass \\[M\\]"):
        sot.solve_batch(M, reg=0.1)


def test_no_problem_has_no_answer() -> None:
    assert len(sot.solve_batch(torch.ones(0, 2, 2), reg=0.1)) == 0
