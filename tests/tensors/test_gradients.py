"""Derivatives of values and plans, against finite differences."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from tensors.cases import NAMES, clouds, structures  # noqa: E402

import structot as sot  # noqa: E402
from structot.concave import Discount, Sqrt  # noqa: E402
from structot.structures.derivatives import derivatives  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*does not look at M", "ignore:.*can get no further"
)

N, M_ = 9, 7
LABELS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), np.array([0, 0, 1, 1, 2, 2, 2])


def inputs(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Costs, and logits of both weights: through a softmax totals stay equal."""
    generator = torch.Generator().manual_seed(seed)
    M = torch.tensor(clouds(N, M_, seed)[0], requires_grad=True)
    logits = (
        torch.randn(size, dtype=torch.float64, generator=generator, requires_grad=True)
        for size in (N, M_)
    )
    return (M, *logits)


def answer(structure, which: str, **options):
    def solve(M, x, y):
        result = sot.solve(M, x.softmax(0), y.softmax(0), structure=structure, **options)
        return getattr(result, which)

    return solve


@pytest.mark.parametrize("which", ["value", "plan"])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_plans_of_tensors_pass_gradcheck(name: str, which: str) -> None:
    structure = structures(*LABELS)[name]
    solve = answer(structure, which, reg=0.3, tol=1e-13)
    assert torch.autograd.gradcheck(solve, inputs(), eps=1e-5, atol=1e-6, rtol=1e-4, fast_mode=True)


def test_the_gradient_of_a_value_does_not_depend_on_its_method() -> None:
    structure = structures(*LABELS)["own targets"]
    gradients = []
    for method in ("entropic", "interior_point"):
        given = inputs()
        result = answer(structure, "value", reg=0.3, tol=1e-9, method=method)(*given)
        result.backward()
        gradients.append([x.grad for x in given])
    for first, second in zip(*gradients, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-5)


HIERARCHY = [LABELS[0], np.array([0] * 6 + [1] * 3)], [LABELS[1], np.array([0] * 4 + [1] * 3)]
SOLVED_BY_ARRAYS = {
    "plain": (None, 0.0),
    "groups": (sot.Groups(*LABELS), 0.0),
    "groups, entropic": (sot.Groups(*LABELS), 0.2),
    "own targets, in units of cost": (sot.Groups(LABELS[0], None, Sqrt(), units="cost"), 0.0),
    "own targets, entropic": (sot.Groups(LABELS[0], None, Sqrt(), units="cost"), 0.2),
    "a sum, entropic": (sot.Modular() + sot.Groups(*LABELS), 0.1),
    "a function per block": (sot.Groups(*LABELS, lambda k, t: Discount(0.1 + 0.2 * k)), 0.0),
    "hierarchy": (sot.Hierarchy(*HIERARCHY), 0.0),
    "fixed charge": (sot.Modular() + sot.Coverage(*LABELS, weights=0.05, units="block"), 0.0),
    "overlapping groups": (
        sot.Groups([[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 8]], LABELS[1], equal_coverage=True),
        0.0,
    ),
}


@pytest.mark.parametrize("name", SOLVED_BY_ARRAYS)
def test_values_found_with_arrays_have_derivatives(name: str) -> None:
    structure, reg = SOLVED_BY_ARRAYS[name]
    solve = answer(structure, "value", reg=reg, tol=1e-8)
    given = inputs(3)
    solve(*given).backward()
    generator = torch.Generator().manual_seed(1)
    for k, x in enumerate(given):
        direction = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        ends = []
        for step in (1e-4, -1e-4):
            with torch.no_grad():
                moved = [y + step * direction if j == k else y for j, y in enumerate(given)]
                ends.append(float(solve(*moved)))
        slope = (ends[0] - ends[1]) / 2e-4
        assert float((x.grad * direction).sum()) == pytest.approx(slope, rel=2e-3, abs=2e-5)


RELAXED = {
    "KL": {"unbalanced": 2.0},
    "KL, entropic": {"unbalanced": 2.0, "reg": 0.2},
    "one side": {"unbalanced": (1.0, None), "reg": 0.2},
    "TV": {"unbalanced": 0.7, "unbalanced_type": "TV", "reg": 0.2},
}


@pytest.mark.parametrize("name", RELAXED)
def test_values_of_relaxed_marginals_have_derivatives(name: str) -> None:
    generator = torch.Generator().manual_seed(2)
    M = torch.tensor(clouds(N, M_)[0])
    a, b = (torch.rand(size, dtype=torch.float64, generator=generator) + 0.5 for size in (N, M_))
    given = [x.requires_grad_() for x in (M, a, b)]
    structure = sot.Groups(*LABELS) if name == "KL, entropic" else None

    def value(M, a, b):
        return sot.solve(M, a, b, structure=structure, tol=1e-9, **RELAXED[name]).value

    value(*given).backward()
    for k, x in enumerate(given):
        direction = torch.randn(x.shape, dtype=x.dtype, generator=generator)
        with torch.no_grad():
            ends = [
                float(value(*(y + t * direction if j == k else y for j, y in enumerate(given))))
                for t in (1e-4, -1e-4)
            ]
        slope = (ends[0] - ends[1]) / 2e-4
        assert float((x.grad * direction).sum()) == pytest.approx(slope, rel=1e-3, abs=1e-5)


def test_partial_transport_has_derivatives_by_cost() -> None:
    M = torch.tensor(clouds(N, M_)[0], requires_grad=True)
    result = sot.solve(M, mass=0.6)
    result.value.backward()
    torch.testing.assert_close(M.grad, result.plan, rtol=1e-6, atol=1e-9)
    a = torch.full((N,), 1 / N, dtype=torch.float64, requires_grad=True)
    with pytest.raises(NotImplementedError, match="partial transport"):
        sot.solve(M, a, mass=0.6).value.backward()


STRUCTURES = {
    **{name: structure for name, (structure, _) in SOLVED_BY_ARRAYS.items()},
    "sets": sot.Coverage.of_sets(np.eye(N * M_, dtype=bool).reshape(-1, N, M_)[:5]),
    "cut": sot.Modular() + sot.ChainCut(0.1),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_derivative_of_f_at_a_plan(name: str) -> None:
    structure = STRUCTURES[name] or sot.Modular()
    rng = np.random.default_rng(0)
    M = clouds(N, M_)[0]
    M[0, 0] = 0.0 if name == "groups" else M[0, 0]
    a, b = np.full(N, 1 / N), np.full(M_, 1 / M_)
    P = rng.random((N, M_))
    P[:3, :2] = 0.5  # a tie
    direction = rng.normal(size=M.shape) * (M > 0)
    ends = [structure.bind(M + step * direction, a, b).extension(P) for step in (1e-6, -1e-6)]
    found = float(np.sum(derivatives(structure, M, a, b, P, M).M * direction))
    assert found == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-8)


def test_a_structure_whose_derivative_is_unknown_says_so() -> None:
    class Doubled(sot.structures.Structure):
        def _bound(self, M, a, b):
            return (2.0 * sot.Modular())._bound(M, a, b)

    M = torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    value = sot.solve(M, structure=Doubled()).value
    with pytest.raises(NotImplementedError, match="derivative of Doubled"):
        value.backward()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine", "own"])
def test_samples_have_gradients(metric: str) -> None:
    from scipy.spatial.distance import cdist

    generator = torch.Generator().manual_seed(0)
    X, Y = (
        torch.randn(n, 2, dtype=torch.float64, generator=generator, requires_grad=True)
        for n in (N, M_)
    )
    structure = structures(*LABELS)["own targets"]
    chosen = (lambda X, Y: (X[:, None] - Y).abs().pow(3).sum(-1)) if metric == "own" else metric

    def solve(X, Y):
        options = {"metric": chosen, "structure": structure, "reg": 0.3, "tol": 1e-12}
        return sot.solve_sample(X, Y, **options).value

    if metric != "own":
        M = cdist(X.detach().numpy(), Y.detach().numpy(), metric)
        expected = sot.solve(M, structure=structure, reg=0.3, tol=1e-9).value
        assert float(solve(X, Y).detach()) == pytest.approx(expected, rel=1e-8)
    assert torch.autograd.gradcheck(solve, (X, Y), eps=1e-6, atol=1e-6, rtol=1e-4, fast_mode=True)


def test_equal_points_have_finite_gradients() -> None:
    X = torch.zeros(3, 2, dtype=torch.float64, requires_grad=True)
    for metric in ("sqeuclidean", "euclidean"):
        sot.solve_sample(X, torch.zeros(2, 2, dtype=torch.float64), metric=metric).value.backward()
    assert bool(X.grad.isfinite().all())


# -- the loss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", ["charge", "plain"])
def test_the_loss_has_the_gradient_of_its_solve(structure: str) -> None:
    generator = torch.Generator().manual_seed(0)
    X, Y = (torch.randn(n, 2, dtype=torch.float64, generator=generator) for n in (N, M_))
    # What reg is a part of does not move: reg is a constant of the minibatch.
    reg, mean = 0.2, float((X[:, None] - Y).square().sum(-1).mean())
    loss = sot.torch.StructuredLoss(structure, reg=reg, tol=1e-12)
    X.requires_grad_()
    value = loss(X, Y, torch.tensor(LABELS[0]))
    value.backward()
    step, direction = 1e-5, torch.randn(X.shape, dtype=X.dtype, generator=generator)
    fixed = (
        None
        if structure == "plain"
        else sot.Modular() + sot.Coverage(LABELS[0], weights=0.02, units="block")
    )
    with torch.no_grad():
        ends = [
            float(
                sot.solve_sample(
                    X + t * direction, Y, structure=fixed, reg=reg * mean, tol=1e-12
                ).value
            )
            for t in (step, -step)
        ]
    slope = (ends[0] - ends[1]) / (2 * step)
    assert float((X.grad * direction).sum()) == pytest.approx(slope, rel=1e-5)


def test_the_loss_takes_groups_of_both_sides_and_its_own_structure() -> None:
    generator = torch.Generator().manual_seed(0)
    X, Y = (torch.randn(n, 2, generator=generator, requires_grad=True) for n in (N, M_))
    labels = torch.tensor(LABELS[0]), torch.tensor(LABELS[1])
    made = []

    def own(source, target):
        made.append((source, target))
        return sot.Groups(source, target)

    for structure in ("charge", "groups", "plain", own):
        loss = sot.torch.StructuredLoss(structure, reg=0.1, normalized=True)
        value = loss(X, Y, *labels)
        assert value.dtype == torch.float32
        value.backward()
        assert repr(loss)
    assert bool(Y.grad.isfinite().all())
    np.testing.assert_array_equal(made[0][1], LABELS[1])
    with pytest.raises(ValueError, match="structure must be one of"):
        sot.torch.StructuredLoss("routs")


def test_a_normalized_loss_does_not_depend_on_the_size_of_features() -> None:
    generator = torch.Generator().manual_seed(0)
    X, Y = (torch.randn(n, 2, dtype=torch.float64, generator=generator) for n in (N, M_))
    loss = sot.torch.StructuredLoss(reg=0.1, tol=1e-10, normalized=True)
    X.requires_grad_()
    Y.requires_grad_()
    value = loss(X, Y, LABELS[0])
    assert float(loss(3.0 * X, 3.0 * Y, LABELS[0]).detach()) == pytest.approx(float(value.detach()))
    value.backward()
    along = float((X.grad * X.detach()).sum() + (Y.grad * Y.detach()).sum())
    assert along == pytest.approx(0.0, abs=1e-6)


def test_no_gradients_where_nobody_asks() -> None:
    M, x, y = inputs()
    with torch.no_grad():
        assert not answer(None, "value", reg=0.1)(M, x, y).requires_grad
    assert not sot.solve(M.detach(), reg=0.1).plan.requires_grad
