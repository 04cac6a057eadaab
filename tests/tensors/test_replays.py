"""Stages of an iteration recorded as CUDA graphs: what that rests on; that it changes nothing."""

from __future__ import annotations

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")

from tensors import tape  # noqa: E402
from tensors.cases import NAMES, clouds, structures  # noqa: E402

import structot as sot  # noqa: E402
from structot.solvers.interior_point.lanes.namespace import RAISED  # noqa: E402
from structot.solvers.interior_point.lanes.path import CentralPath  # noqa: E402
from structot.solvers.interior_point.lanes.start import first_point  # noqa: E402
from structot.torch import dual, replays  # noqa: E402
from structot.torch.namespace import Torch  # noqa: E402
from structot.torch.replays import Replays  # noqa: E402
from structot.torch.routes import Certificate, RouteProblem  # noqa: E402

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA")


def problem(n: int, seed: int = 0):
    """The same groups whatever the costs."""
    rows, cols = clouds(n, n - 3)[1:]
    M = torch.tensor(clouds(n, n - 3, seed)[0])
    weights = tuple(torch.full((k,), 1.0 / k, dtype=torch.float64) for k in M.shape)
    return RouteProblem.of(sot.Routes(rows, cols, charge=0.3), M, weights)


def test_a_stage_run_again_does_the_same() -> None:
    """What stages before the move read they do not change, so that a replay may be repeated."""
    given = problem(24)
    path = CentralPath(given.program, first_point(given.program, given.C))
    made = Certificate(given, path)
    *lengths, centre = path._predict_and_correct(path.total)
    stages = (
        (path._predict_and_correct, (path.total,)),
        (path._centralise, (0.5, 0.4, float(centre))),
        (path._measure, ()),
        (path._solve_for_rest, ()),
        (path._reach, ()),
        (made.certify, ()),
    )
    assert all(float(x) > 0 for x in lengths)
    for stage, numbers in stages:
        once = [float(x) for x in stage(*numbers)]
        steps = [x.clone() for step in (path._step, path._more) for x in (*step.x, *step.z)]
        assert [float(x) for x in stage(*numbers)] == once, stage.__name__
        again = [x for step in (path._step, path._more) for x in (*step.x, *step.z)]
        assert all(torch.equal(x, y) for x, y in zip(again, steps, strict=True)), stage.__name__


def test_there_are_no_graphs_where_there_is_no_such_device() -> None:
    with Replays.on(torch.device("cpu"), 10) as found:
        assert found is None


@on_cuda
@pytest.mark.parametrize("tol", [1e-7, 1e-13])
def test_graphs_change_nothing(tol: float) -> None:
    """Up to the last digits too, where factorisations fail and steps are refined."""
    M, rows, cols = clouds(60, 50)
    options = {"structure": sot.Routes(rows, cols, charge=0.3), "tol": tol}
    M = torch.tensor(M, device="cuda")
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replays, "MOST_PAIRS", 0)
        results.append(_quietly(M, options))
    results += [_quietly(M, options) for _ in range(3)]
    for result in results:
        assert float(result.value) == pytest.approx(float(results[0].value), rel=3e-7)
        assert result.gap <= max(tol, 1e-9)
        assert result.verify().holds()


@on_cuda
def test_graphs_are_those_of_the_last_solve_of_a_kind() -> None:
    """Other costs, weights and charges in the same layout; other layouts in between."""
    _, rows, cols = clouds(60, 50)
    generator = np.random.default_rng(0)
    for _ in range(2):
        for size in (60, 60, 48, 60):
            M = clouds(size, 50, seed=int(generator.integers(100)))[0]
            a = generator.dirichlet(np.full(size, 5.0))
            structure = sot.Routes(rows[:size], cols, charge=float(generator.uniform(0.1, 0.5)))
            options = {"structure": structure, "tol": 1e-8}
            found = sot.solve(torch.tensor(M, device="cuda"), a, **options)
            assert found.method == "interior_point"
            expected = sot.solve(M, a, **options)
            assert float(found.value) == pytest.approx(expected.value, rel=3e-8)
            assert found.verify().holds()
    pool = Replays._pools[torch.cuda.current_device()]
    assert pool is not None
    assert pool.last is not None  # nothing had to be given up


@on_cuda
def test_memory_of_graphs_is_held_once_and_given_back() -> None:
    M, rows, cols = clouds(200, 150)
    M = torch.tensor(M, device="cuda")

    def solve_all() -> int:
        for n in (200, 150, 100):
            _quietly(M[:n], {"structure": sot.Routes(rows[:n], cols, charge=0.3), "tol": 1e-5})
        return torch.cuda.memory_reserved()

    solve_all()
    held = solve_all()
    assert solve_all() == held
    Replays.release()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < held


@pytest.fixture
def tapes(monkeypatch) -> tape.Pool:
    """Solves on the CPU that record and replay."""
    pool = tape.Pool()
    monkeypatch.setattr(Replays, "on", lambda device, pairs, kind=None: Replays.lent(pool, kind))
    monkeypatch.setattr(Torch, "_known", {torch.device("cpu")})
    return pool


@pytest.mark.parametrize("tol", [1e-6, 1e-12])
def test_replayed_routes_are_those_that_were_run(tol: float, tapes: tape.Pool) -> None:
    """To the bit; other numbers in the same layout, other layouts in between."""
    _, rows, cols = clouds(30, 25)
    for seed, size in enumerate((30, 30, 24, 30)):
        M = torch.tensor(clouds(size, 25, seed)[0])
        structure = sot.Routes(rows[:size], cols, charge=0.1 * (1 + seed))
        options = {"structure": structure, "tol": tol}
        before = tapes.replays
        found = _quietly(M, options)
        assert tapes.replays > before
        if tol > 1e-9:  # where a factorisation fails for good its graphs are not kept
            assert tapes.last is not None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Torch, "_known", set())
            expected = _quietly(M, options)
        assert found.n_iter == expected.n_iter
        assert float(found.value) == pytest.approx(float(expected.value), rel=1e-14)
        assert found.verify().holds()


def test_replayed_steps_of_one_problem_are_those_that_were_run(tapes: tape.Pool) -> None:
    M = torch.tensor(clouds(20, 15)[0])
    for reg in (0.3, 0.01):
        found = _quietly(M, {"reg": reg, "tol": 1e-9})
        assert tapes.replays > 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Replays, "call", lambda self, work, *given: work(*given))
            expected = _quietly(M, {"reg": reg, "tol": 1e-9})
        assert float(found.value) == pytest.approx(float(expected.value), rel=1e-12)
        assert found.converged
        assert found.verify().holds()


DEVICES = ["cpu", pytest.param("cuda", marks=on_cuda)]


@contextmanager
def recording(device: str):
    if device == "cpu":
        with Replays.lent(tape.Pool(), None) as found:
            yield found
    else:
        with Replays.on(torch.device("cuda", torch.cuda.current_device()), 10) as found:
            assert found is not None
            yield found


@pytest.mark.parametrize("device", DEVICES)
def test_diagonals_are_raised_in_graphs_as_without(device: str) -> None:
    """The first part that makes a matrix definite; of all factorisations only where it must be."""
    A = torch.eye(3, dtype=torch.float64, device=device)
    S, size = A.clone(), torch.ones(3, dtype=torch.float64, device=device)
    xp = Torch(A.device)

    def factor(least):
        S.copy_(A)
        S[1, 1] = least
        one, other = xp.cholesky(4.0 * A), xp.factor(S, 0.0, size)
        return one.diagonal().sum(), other.diagonal().min()

    with recording(device) as found:
        xp.replay_with(found)
        for least in (1.0, -1e-9, 0.25, -1e-13, 1.0):
            raised = next(part for part in RAISED if least + part > 0)
            expected = [6.0, (least + raised) ** 0.5]
            assert xp.run(factor, least) == pytest.approx(expected, rel=1e-9)
            assert not found.given_up
        with pytest.raises(np.linalg.LinAlgError):  # what is left to be done without a graph
            xp.run(factor, -1.0)
        assert found.given_up


@pytest.mark.parametrize("device", DEVICES)
def test_to_look_at_a_number_ends_the_recording(device: str) -> None:
    def stage(x):
        return (torch.as_tensor(float(x) + 1.0, device=device),)

    with recording(device) as found:
        assert found.run(stage, (2.0,)) == [3.0]
        assert found.given_up
    Replays.release()


@on_cuda
@pytest.mark.parametrize("name", NAMES)
def test_graphs_of_single_problems_change_nothing(name: str) -> None:
    M, rows, cols = clouds(40, 37)
    M, structure = torch.tensor(M, device="cuda"), structures(rows, cols)[name]
    for reg in (0.2, 0.01):
        options = {"structure": structure, "reg": reg, "tol": 1e-8}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replays, "MOST_PAIRS", 0)
            expected = _quietly(M, options)
        for _ in range(2):
            result = _quietly(M, options)
            assert float(result.value) == pytest.approx(float(expected.value), rel=3e-8)
            assert result.converged == expected.converged
            assert result.verify().holds()


@on_cuda
@pytest.mark.parametrize("shape", [(1, 3, 5, 7, 1), (2, 2, 33, 40, 1), (1, 2, 20, 3, 6)])
def test_the_kernel_of_levels_is_the_reference(shape: tuple) -> None:
    kernel = dual.fused_levels()
    if kernel is None:
        pytest.skip("no compiler for Triton")
    generator = torch.Generator("cuda").manual_seed(0)
    new = {"generator": generator, "dtype": torch.float64, "device": "cuda"}
    V = torch.randn(*shape, **new)
    supply = 3.0 * torch.rand(shape[0], shape[1], shape[3], **new)
    for guess in (None, torch.randn(supply.shape, **new)):
        found = kernel(V, supply, guess, 200, 2.0**-50)
        torch.testing.assert_close(found, dual.reference_levels(V, supply, guess))


def _quietly(M, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sot.ConvergenceWarning)
        return sot.solve(M, **options)


def test_a_path_that_begins_anew_is_that_of_the_other_problem() -> None:
    one, other = problem(24), problem(24, seed=5)
    assert one.kind == other.kind
    start = first_point(other.program, other.C)
    begun = Certificate(one, CentralPath(one.program, first_point(one.program, one.C)))
    next(begun.path.steps())
    begun.put(other, start)
    fresh = Certificate(other, CentralPath(other.program, first_point(other.program, other.C)))
    for made in (begun, fresh):
        steps = made.path.steps()
        for _ in range(3):
            next(steps)
    assert begun.path.total == fresh.path.total
    assert all(torch.equal(x, y) for x, y in zip(begun.path.point.x, fresh.path.point.x))
    assert [float(x) for x in begun.certify()] == [float(x) for x in fresh.certify()]
    assert problem(25).kind != one.kind


@on_cuda
def test_a_device_on_which_a_recording_failed_gets_no_more_until_they_are_released() -> None:
    device = torch.device("cuda", torch.cuda.current_device())
    with Replays.on(device, 10) as found:
        assert found is not None
        assert found.run(lambda x: (torch.as_tensor(float(x), device=device),), (2.0,)) == [2.0]
    with Replays.on(device, 10) as found:
        assert found is None
    Replays.release()
    with Replays.on(device, 10) as found:
        assert found is not None
        assert found.run(lambda: (torch.zeros(3, device=device).sum(),), ()) == [0.0]
        assert not found.given_up
