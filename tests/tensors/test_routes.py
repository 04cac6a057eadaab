"""Routes for tensors: the interior-point method of NumPy on a device."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from tensors.cases import clouds, weights  # noqa: E402

import structot as sot  # noqa: E402
from structot.solvers.interior_point.lanes.namespace import NumPy  # noqa: E402
from structot.torch.namespace import Torch  # noqa: E402
from structot.torch.routes import RouteProblem  # noqa: E402


def structures(rows, cols) -> dict[str, sot.structures.Structure]:
    return {
        "routes": sot.Routes(rows, cols, charge=0.3),
        "in units of cost": sot.Routes(rows, cols, charge=0.02, units="cost"),
        "own targets": sot.Routes(rows, None, charge=0.5),
        "own sources": sot.Routes(None, cols, charge=0.5),
        "a sum": sot.Modular() + 0.5 * sot.Routes(rows, cols, charge=0.3),
        "some free": sot.Routes(rows, cols, charge=np.eye(3)),
    }


NAMES = tuple(structures(np.zeros(1, int), np.zeros(1, int)))


@pytest.mark.parametrize("shape", [(23, 17), (15, 22)])
@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_that_of_numpy_and_the_proof_holds(name: str, shape: tuple) -> None:
    M, rows, cols = clouds(*shape)
    a, b = weights(*shape)  # one weight is 0
    structure = structures(rows, cols)[name]
    options = {"structure": structure, "tol": 1e-7}
    expected = sot.solve(M, a, b, method="interior_point", **options)
    result = sot.solve(torch.tensor(M), a, torch.tensor(b), **options)
    assert result.method == "interior_point"
    assert result.converged
    assert float(result.value) == pytest.approx(expected.value, rel=2e-7)
    check = result.verify()
    assert check.holds(), check
    assert result.routes.shape == (
        len(set(rows)) if "sources" not in name else shape[0],
        *((3,) if "targets" not in name else (shape[1],)),
    )


def test_groups_of_many_sizes_are_filled_up() -> None:
    """Sizes 1 to 11 on one side: panels are few, and points of no weight change nothing."""
    sizes = np.arange(1, 12)
    M, _, cols = clouds(int(sizes.sum()), 40)
    structure = sot.Routes(np.repeat(np.arange(sizes.size), sizes), cols, charge=0.3)
    a, b = (torch.full((k,), 1.0 / k, dtype=torch.float64) for k in M.shape)
    problem = RouteProblem.of(structure, torch.tensor(M), (a, b))
    assert isinstance(problem, RouteProblem)
    assert problem.C.shape > M.shape
    result = sot.solve(torch.tensor(M), structure=structure, tol=1e-8)
    expected = sot.solve(M, structure=structure, tol=1e-8)
    assert result.method == "interior_point"
    assert result.converged
    assert float(result.value) == pytest.approx(expected.value, rel=2e-8)
    assert result.verify().holds()


def test_single_precision_costs_are_solved_in_double() -> None:
    M, rows, cols = clouds(12, 12)
    structure = sot.Routes(rows, cols)
    result = sot.solve(torch.tensor(M, dtype=torch.float32), structure=structure, tol=1e-6)
    assert result.converged
    assert result.plan.dtype == torch.float32
    assert result.verify().holds()


def test_what_the_device_cannot_do_is_left_to_arrays() -> None:
    M, rows, cols = clouds(8, 7)
    for structure in (
        sot.Routes(None, None, charge=0.1),
        sot.Routes(rows, cols, charge=np.where(np.eye(3), np.inf, 0.1)),
    ):
        result = sot.solve(torch.tensor(M), structure=structure, tol=1e-3)
        assert result.method.endswith("(by NumPy, on the CPU)")
        assert result.verify().holds()
    assert isinstance(
        RouteProblem.of(sot.Groups(rows), torch.tensor(M), (torch.ones(8), torch.ones(7))), str
    )


def test_prices_that_forbid_cost_no_digits() -> None:
    """They are left out first, by arrays; where they must be paid they are prices."""
    M, rows, cols = clouds(9, 10)
    forbidden = np.random.default_rng(0).random(M.shape) < 0.25
    structure = sot.Routes(rows, cols, charge=0.2, units="cost")
    options = {"structure": structure, "tol": 1e-7}
    wanted = sot.solve(np.where(forbidden, np.inf, M), **options)
    found = sot.solve(torch.tensor(np.where(forbidden, 1e15 * (1.0 + M), M)), **options)
    assert found.converged
    assert found.method.endswith("(by NumPy, on the CPU)")
    assert (found.plan.numpy()[forbidden] == 0.0).all()
    assert float(found.value) == pytest.approx(wanted.value, rel=2e-7)
    M[3] *= 1e9
    dear = sot.solve(torch.tensor(M), **options)
    assert dear.method == "interior_point"
    assert dear.converged
    assert dear.verify().holds()


def test_limits_are_statuses() -> None:
    M, rows, cols = clouds(20, 20)
    structure = sot.Routes(rows, cols)
    for options, status in (
        ({"max_iter": 2}, sot.Status.ITERATION_LIMIT),
        ({"time_limit": 1e-9}, sot.Status.TIME_LIMIT),
        ({"callback": lambda state: True}, sot.Status.STOPPED),
    ):
        with pytest.warns(sot.ConvergenceWarning):
            result = sot.solve(torch.tensor(M), structure=structure, tol=1e-9, **options)
        assert result.status is status
        assert result.verify().holds()


@pytest.mark.parametrize("name", ["routes", "in units of cost", "a sum"])
def test_values_have_derivatives(name: str) -> None:
    rows, cols = np.array([0] * 5 + [1] * 4 + [2] * 3), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
    structure = structures(rows, cols)[name]
    generator = torch.Generator().manual_seed(0)
    given = [torch.tensor(clouds(12, 9, 5)[0])]
    given += [torch.randn(n, dtype=torch.float64, generator=generator) for n in (12, 9)]
    given = [x.requires_grad_() for x in given]

    def value(M, x, y):
        return sot.solve(M, x.softmax(0), y.softmax(0), structure=structure, tol=1e-9).value

    value(*given).backward()
    for k, x in enumerate(given):
        direction = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        with torch.no_grad():
            ends = [
                float(value(*(y + t * direction if j == k else y for j, y in enumerate(given))))
                for t in (1e-5, -1e-5)
            ]
        slope = (ends[0] - ends[1]) / 2e-5
        assert float((x.grad * direction).sum()) == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_the_namespace_of_torch_is_that_of_numpy() -> None:
    rng = np.random.default_rng(0)
    ours, theirs = Torch(torch.device("cpu")), NumPy()
    A = rng.random((3, 5, 5))
    A = A @ A.swapaxes(1, 2) + np.eye(5)
    L = theirs.cholesky(A.copy())
    np.testing.assert_allclose(ours.numpy(ours.cholesky(ours.array(A))), L, rtol=1e-12)
    inverse = ours.numpy(ours.inverse_of_lower(ours.array(L)))
    np.testing.assert_allclose(inverse, theirs.inverse_of_lower(L.copy()), atol=1e-12)
    T, S, r = rng.random((4, 5)), 9.0 * A[0], rng.random(5)
    gram = ours.numpy(ours.subtract_gram(ours.array(S), ours.array(T)))
    np.testing.assert_allclose(np.tril(gram), np.tril(S - T.T @ T), rtol=1e-12)
    factor = ours.factor(ours.array(S), 0.1, ours.array(r))
    found = ours.numpy(ours.solve(factor, ours.array(r)))
    np.testing.assert_allclose(found, np.linalg.solve(S + np.diag(0.1 * r), r), rtol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        ours.cholesky(ours.array(-A))
