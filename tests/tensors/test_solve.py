"""`solve` for tensors: the same answers as NumPy, certified, on the device they came from."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from tensors.cases import NAMES, clouds, structures, weights  # noqa: E402

import structot as sot  # noqa: E402
from structot.torch import dual, hessian, newton, proof, stack  # noqa: E402
from structot.torch.fixed_charge import FixedCharge, Layout  # noqa: E402
from structot.torch.result import TensorResult  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*does not look at M")


def layout(name: str, n: int, m: int, reg: float, seed: int = 0) -> Layout:
    M, rows, cols = clouds(n, m, seed)
    part = FixedCharge.of(structures(rows, cols)[name], M.shape)
    assert isinstance(part, FixedCharge)
    a, b = (torch.as_tensor(x)[None] for x in weights(n, m))
    regs = torch.tensor([reg], dtype=torch.float64)
    return Layout.of([part], torch.as_tensor(M)[None], a, b, regs)


# -- the answer ------------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.5, 0.05, 0.005])
@pytest.mark.parametrize("name", NAMES)
def test_the_value_is_that_of_numpy_and_the_proof_holds(name: str, reg: float) -> None:
    M, rows, cols = clouds(23, 17)
    a, b = weights(23, 17)
    structure = structures(rows, cols)[name]
    expected = sot.solve(M, a, b, structure=structure, reg=reg, tol=1e-10)
    result = sot.solve(torch.tensor(M), torch.tensor(a), b, structure=structure, reg=reg, tol=1e-10)
    assert isinstance(result, TensorResult)
    assert result.converged
    assert result.method == "entropic"
    assert float(result.value) == pytest.approx(expected.value, rel=1e-9)
    check = result.verify()
    assert check.holds(), check


def test_weights_are_uniform_by_default_and_may_come_from_anywhere() -> None:
    M, _, _ = clouds(6, 5)
    even = np.full(6, 1 / 6), np.full(5, 1 / 5)
    first = sot.solve(torch.tensor(M), reg=0.1)
    second = sot.solve(M, torch.tensor(even[0]), list(even[1]), reg=0.1)
    torch.testing.assert_close(first.plan, second.plan, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", ["plain", "own targets", "both"])
def test_powers_of_two_change_no_bit_of_the_plan(name: str) -> None:
    M, rows, cols = clouds(14, 11)
    a, b = weights(14, 11)
    made = structures(rows, cols)[name]
    priced = made if name != "both" else sot.Modular() + sot.Coverage(rows, cols, weights=0.5 * 64)
    first = sot.solve(torch.tensor(M), a, b, structure=made, reg=0.1)
    moved = torch.tensor(M) * 64.0, a / 8.0, b / 8.0
    second = sot.solve(*moved, structure=priced, reg=0.1 * 64)
    assert torch.equal(first.plan, second.plan * 8.0)


def test_single_precision_certifies_small_gaps() -> None:
    M, rows, _ = clouds(40, 30)
    structure = sot.Modular() + sot.Coverage(rows, weights=0.02, units="block")
    reg = 0.05 * float(M.mean())
    expected = sot.solve(M, structure=structure, reg=reg, tol=1e-9).value
    result = sot.solve(torch.tensor(M, dtype=torch.float32), structure=structure, reg=reg, tol=1e-6)
    assert result.converged
    assert result.plan.dtype == result.worst_cost.dtype == torch.float32
    assert float(result.value) == pytest.approx(expected, rel=1e-6)
    assert result.verify().holds()


@pytest.mark.parametrize("name", ["plain", "own targets", "own sources", "both"])
def test_the_tiles_do_not_matter(name: str, monkeypatch) -> None:
    M, rows, cols = clouds(23, 17)
    structure = structures(rows, cols)[name]
    whole = sot.solve(torch.tensor(M), structure=structure, reg=0.05, tol=1e-10)
    monkeypatch.setitem(stack._TILE, "cpu", 40)
    tiled = sot.solve(torch.tensor(M), structure=structure, reg=0.05, tol=1e-10)
    assert float(tiled.value) == pytest.approx(float(whole.value), rel=1e-10)
    assert tiled.verify().holds()


def test_answers_are_tensors_and_can_be_looked_at() -> None:
    M, rows, cols = clouds(8, 6)
    structure = structures(rows, cols)["both"]
    result = sot.solve(torch.tensor(M), structure=structure, reg=0.1)
    plan = result.plan.numpy()
    np.testing.assert_allclose(result.marginals[0].numpy(), np.full(8, 1 / 8), rtol=1e-12)
    Y = np.random.default_rng(0).normal(size=(6, 2))
    there = result.barycentric_map(torch.tensor(Y))
    np.testing.assert_allclose(there.numpy(), 8 * plan @ Y, rtol=1e-9)
    np.testing.assert_allclose(result.barycentric_map(Y), 8 * plan @ Y, rtol=1e-9)
    assert 0.0 < result.concentration <= 1.0
    assert "TensorResult(cpu" in repr(result)
    assert result.sparse_plan().shape == (8, 6)
    assert float(result.block_mass().mass.sum()) == pytest.approx(1.0)


def test_a_tensor_result_can_be_saved(tmp_path) -> None:
    result = sot.solve(torch.rand(4, 3, dtype=torch.float64), reg=0.1)
    result.save(tmp_path / "answer")
    loaded = sot.Result.load(tmp_path / "answer")
    np.testing.assert_array_equal(loaded.plan, result.plan.numpy())


# -- what has no method on tensors -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("structure", "options"),
    [
        (sot.Groups([0, 0, 1, 1]), {}),
        (sot.Groups([0, 0, 1, 1]), {"reg": 0.1}),
        (None, {}),
        (sot.Coverage([0, 0, 1, 1]) + sot.Coverage(None, [0, 1, 0]), {"reg": 0.1, "tol": 1e-2}),
        (sot.Coverage([[0, 1, 2], [2, 3]], weights=0.1), {"reg": 0.1, "tol": 1e-2}),
        (None, {"reg": 0.1, "init": torch.full((4, 3), 1 / 12, dtype=torch.float64)}),
    ],
)
def test_arrays_do_what_tensors_cannot(structure, options) -> None:
    M = torch.tensor(clouds(4, 3)[0])
    result = sot.solve(M, structure=structure, **options)
    assert result.method.endswith("(by NumPy, on the CPU)")
    assert isinstance(result.plan, torch.Tensor)
    expected = sot.solve(M.numpy(), structure=structure, **options)
    assert float(result.value) == expected.value
    assert result.verify().holds()


def test_forbidden_pairs_stay_forbidden() -> None:
    M = torch.tensor(clouds(4, 3)[0])
    M[0, 0] = torch.inf
    result = sot.solve(M, reg=0.1)
    assert result.plan[0, 0] == 0.0
    assert result.verify().holds()


def test_many_single_points_beside_a_large_group_are_left_to_arrays() -> None:
    labels = np.ma.array(np.zeros(60, int), mask=np.arange(60) >= 10)
    part = FixedCharge.of(sot.Coverage(labels), (60, 8))
    assert part == "groups of very different sizes have no method on tensors"


# -- how it ends -----------------------------------------------------------------------------------


def test_limits_are_statuses_and_the_answer_is_certified() -> None:
    M, rows, _ = clouds(30, 30)
    structure = sot.Modular() + sot.Coverage(rows, weights=0.1, units="block")
    with pytest.warns(sot.ConvergenceWarning, match="iteration limit"):
        result = sot.solve(torch.tensor(M), structure=structure, reg=0.01, tol=1e-9, max_iter=1)
    assert result.status is sot.Status.ITERATION_LIMIT
    assert result.n_iter == 1
    assert result.verify().holds()
    with pytest.warns(sot.ConvergenceWarning, match="time limit"):
        result = sot.solve(torch.tensor(M), structure=structure, reg=0.01, time_limit=1e-9)
    assert result.status is sot.Status.TIME_LIMIT
    assert result.verify().holds()


def test_a_callback_sees_the_iterations_and_may_stop() -> None:
    seen = []
    M = torch.tensor(clouds(30, 30)[0])
    with pytest.warns(sot.ConvergenceWarning, match="callback"):
        result = sot.solve(
            M, reg=0.001, tol=1e-12, callback=lambda state: seen.append(state) or len(seen) == 2
        )
    assert result.status is sot.Status.STOPPED
    assert [state.iteration for state in seen] == [1, 2]
    assert len(result.trace) == 2


def test_a_gap_beyond_doubles_is_a_stall_and_no_endless_loop() -> None:
    M = torch.tensor(clouds(12, 9)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sot.ConvergenceWarning)
        result = sot.solve(M, reg=0.05, tol=0.0)
    assert result.gap < 1e-11
    assert result.status in (sot.Status.STALLED, sot.Status.CONVERGED)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.tensor([[1.0, -1.0]]),), "M must not be negative"),
        ((torch.tensor([[1.0, torch.nan]]),), "M is NaN"),
        ((torch.ones(3),), "2 dimension"),
        ((torch.ones(2, 2), torch.ones(3)), "a has 3 weights"),
        ((torch.ones(2, 2), torch.tensor([1.0, -1.0])), "a is negative"),
        ((torch.ones(2, 2), torch.ones(2), 2 * torch.ones(2)), "same total mass"),
    ],
)
def test_mistakes_have_the_messages_of_arrays(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sot.solve(*arguments, reg=0.1)


def test_options_are_checked() -> None:
    M = torch.ones(2, 2)
    for options, message in (
        ({"tol": -1.0}, "tol"),
        ({"reg": -1.0}, "reg"),
        ({"max_iter": 0}, "max_iter"),
        ({"method": "entropy"}, "Did you mean 'entropic'"),
        ({"stopThr": 1e-3}, "Did you mean 'tol'"),
    ):
        with pytest.raises(ValueError, match=message):
            sot.solve(M, **{"reg": 0.1, **options})


# -- the parts -------------------------------------------------------------------------------------


def test_levels_share_out_what_there_is() -> None:
    rng = np.random.default_rng(0)
    V = torch.tensor(10.0 * rng.normal(size=(2, 3, 5, 4, 2)))
    supply = torch.tensor(rng.random((2, 3, 4)) * 10.0 ** rng.integers(-3, 3, (2, 3, 4)))
    for guess in (None, torch.zeros_like(supply), torch.full_like(supply, 100.0)):
        t = dual.levels(V, supply, guess)
        above = (V - t[:, :, None, :, None]).clamp(min=0.0).sum((2, 4))
        torch.testing.assert_close(above, supply, rtol=1e-10, atol=1e-13)


# Without a cost whole blocks are pools, and H has no inverse: there the damping decides.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "no cost"])
def test_the_factors_invert_the_derivative_of_the_gradient(name: str) -> None:
    made = layout(name, 9, 7, 0.3).stack
    generator = torch.Generator().manual_seed(0)
    p, q, _ = newton.first_potentials(made)
    p, q = (x + 0.1 * torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in (p, q))
    point = dual.evaluate(made, p, q, made.reg)
    g, h = (torch.randn(x.shape, dtype=x.dtype, generator=generator) for x in (p, q))
    g, h = torch.where(made.a > 0, g, 0.0), torch.where(made.b > 0, h, 0.0)
    # In the range of H: both sum to the same.
    h -= torch.where(made.b > 0, (h.sum() - g.sum()) / (made.b > 0).sum(), 0.0)
    factors = hessian.factorize(made, point, made.reg, torch.zeros_like(made.reg), lent=0.0)
    x, y = factors.solve(g, h)
    step = 1e-6 / float(torch.maximum(x.abs().max(), y.abs().max()))
    up = dual.evaluate(made, p + step * x, q + step * y, made.reg, point.level)
    down = dual.evaluate(made, p - step * x, q - step * y, made.reg, point.level)
    for found, expected in ((up.rows - down.rows, g), (up.cols - down.cols, h)):
        torch.testing.assert_close(found / (2 * step), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_that_of_the_dual_function(name: str) -> None:
    made = layout(name, 9, 7, 0.3).stack
    p, q, _ = newton.first_potentials(made)
    point = dual.evaluate(made, p, q, made.reg)
    step = 1e-6
    for k in range(made.a.numel()):
        moved = torch.zeros_like(p)
        moved.view(-1)[k] = step
        up, down = (dual.evaluate(made, p + x, q, made.reg).phi for x in (moved, -moved))
        slope = float((up - down) / (2 * step))
        assert slope == pytest.approx(float((made.a - point.rows).view(-1)[k]), abs=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_sweeps_raise_the_dual_function(name: str) -> None:
    made = layout(name, 9, 7, 0.05).stack
    p, q, _ = newton.first_potentials(made)
    point = dual.evaluate(made, p, q, made.reg)
    for _ in range(5):
        following = dual.sweep(made, point, made.reg, 1)
        assert float(following.phi) >= float(point.phi) - 1e-12 * abs(float(point.phi))
        point = following


def test_the_entropy_of_a_plan_near_the_independent_one_keeps_its_digits() -> None:
    r = torch.full((7,), 0.25, dtype=torch.float64)
    t = torch.tensor([0.0, 1e-9, -1e-4, 0.01, 0.3, -0.9, 40.0], dtype=torch.float64)
    exact = np.array([float(_surplus(x)) for x in t.tolist()])
    np.testing.assert_allclose(proof.surplus(r * (1 + t), r).numpy(), 0.25 * exact, rtol=1e-6)


def _surplus(t: float) -> np.longdouble:
    x = np.longdouble(t)
    return x * x * (0.5 - x / 6) if abs(t) < 1e-5 else (1 + x) * np.log1p(x) - x
