"""The front verb: choice of method, limits, callbacks, warnings, input and output."""

import threading
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from problems import (
    clusters,
    constant_block,
    dirac,
    permutation,
    single_point,
    sorted_line,
    two_diracs,
)

import structot as sot

c = sot.concave


@pytest.fixture(scope="module")
def data():
    return clusters(40, 30, n_classes=3, seed=7)


@pytest.fixture(scope="module")
def groups(data):
    return sot.Groups(data.source_labels, data.target_labels, c.ThresholdSqrt(50.0), units="cost")


@pytest.mark.parametrize("make", [permutation, single_point, sorted_line, dirac, two_diracs])
def test_known_answers_of_plain_transport(make):
    known = make()
    result = sot.solve(known.M, known.a, known.b)
    assert result.method == "exact"
    assert result.value == pytest.approx(known.value, rel=1e-12, abs=1e-14)
    assert result.lower_bound == pytest.approx(known.value, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("g", [c.Sqrt(), c.ThresholdSqrt(3.0), c.Truncation(7.0)], ids=repr)
def test_known_answer_of_one_block_of_equal_costs(g):
    known = constant_block(g)
    one = sot.Groups(np.zeros(4), np.zeros(4), g, units="cost")
    result = sot.solve(known.M, known.a, known.b, structure=one, tol=1e-9)
    assert result.value == pytest.approx(known.value, rel=2e-9)
    assert one.bind(known.M).extension(known.plan) == pytest.approx(known.value, rel=1e-12)


def test_auto_says_what_it_chose(data, groups):
    assert sot.solve(data.cost).method == "exact"
    assert sot.solve(data.cost, structure=groups).method == "newton"
    assert sot.solve(data.cost, reg=1.0).method == "entropic"
    both = groups + sot.Coverage(data.source_labels, weights=0.1)
    assert sot.solve(data.cost, structure=both, tol=1e-2).method == "splitting"


@pytest.mark.parametrize(
    "concave", [c.Truncation(300.0), c.PiecewiseLinear([100.0, 900.0], [1.0, 0.4, 0.05])], ids=repr
)
def test_methods_agree_within_their_gaps(data, concave):
    groups = sot.Groups(data.source_labels, data.target_labels, concave, units="cost")
    tolerances = {
        "newton": 1e-7,
        "linear_program": 1e-7,
        "splitting": 1e-4,
        "mirror_prox": 0.05,
        "saddle_mirror_descent": 0.3,
        "mirror_descent": 0.3,
    }
    results = [
        sot.solve(data.cost, structure=groups, method=method, tol=tol)
        for method, tol in tolerances.items()
    ]
    assert all(r.converged for r in results)
    highest = max(r.lower_bound for r in results)
    lowest = min(r.value for r in results)
    assert highest <= lowest * (1 + 1e-9)
    assert results[0].value == pytest.approx(results[1].value, rel=1e-7)


def test_unknown_method_offers_the_close_match(data):
    with pytest.raises(ValueError, match="Did you mean 'mirror_prox'"):
        sot.solve(data.cost, method="mirrorprox")


@pytest.mark.parametrize(
    ("method", "options", "reason"),
    [
        ("exact", {"structure": True}, "modular"),
        ("newton", {}, "exact"),
        ("splitting", {"structure": True, "reg": 0.1}, "reg"),
        ("linear_program", {"structure": True, "reg": 0.1}, "reg"),
    ],
)
def test_a_method_that_does_not_fit_says_why(data, groups, method, options, reason):
    options = {**options, "structure": groups if options.get("structure") else None}
    with pytest.raises(ValueError, match=reason):
        sot.solve(data.cost, method=method, **options)


def test_one_warning_and_the_true_gap(data, groups):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = sot.solve(data.cost, structure=groups, max_iter=1, tol=1e-8)
    assert [w.category for w in caught] == [sot.ConvergenceWarning]
    assert result.status is sot.Status.ITERATION_LIMIT
    assert not result.converged
    assert result.n_iter == 1
    assert np.isfinite(result.gap)
    assert result.gap > 1e-8
    assert sot.certificate.verify(data.cost, None, None, groups, result).holds()


def test_time_limit(data, groups):
    with pytest.warns(sot.ConvergenceWarning, match="time limit"):
        result = sot.solve(
            data.cost, structure=groups, method="mirror_descent", tol=1e-9, time_limit=0.05
        )
    assert result.status is sot.Status.TIME_LIMIT
    assert sot.certificate.verify(data.cost, None, None, groups, result).holds()


def test_callback_sees_the_state_and_can_stop(data, groups):
    seen = []

    def stop_at_three(state):
        seen.append(state)
        return state.iteration == 3

    with pytest.warns(sot.ConvergenceWarning, match="callback"):
        result = sot.solve(
            *(data.cost,), structure=groups, method="splitting", tol=1e-12, callback=stop_at_three
        )
    assert result.n_iter == 3
    assert [s.iteration for s in seen] == [1, 2, 3]
    assert seen[-1].value >= seen[-1].lower_bound


def test_interruption_comes_through_and_leaves_nothing_behind(data, groups):
    control = pytest.importorskip("threadpoolctl")

    def interrupt(state):
        raise KeyboardInterrupt

    before = [pool["num_threads"] for pool in control.threadpool_info()]
    with pytest.raises(KeyboardInterrupt) as held:
        sot.solve(data.cost, structure=groups, callback=interrupt)
    assert [pool["num_threads"] for pool in control.threadpool_info()] == before
    assert held.value is not None
    assert sot.solve(data.cost, structure=groups).converged


@pytest.fixture(scope="module")
def large():
    """Enough edges for the shared pool of threads."""
    data = clusters(220, n_classes=4, seed=1)
    groups = sot.Groups(data.source_labels, data.target_labels, c.ThresholdSqrt(50.0), units="cost")
    return data.cost, {"structure": groups, "tol": 1e-3}


def test_same_input_same_output(large):
    M, options = large
    one, two = (sot.solve(M, **options) for _ in range(2))
    assert (one.plan == two.plan).all()
    assert one.lower_bound == two.lower_bound


def test_two_threads_at_once(large):
    M, options = large
    alone = sot.solve(M, **options)
    answers = []
    threads = [
        threading.Thread(target=lambda: answers.append(sot.solve(M, **options))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    assert all((r.plan == alone.plan).all() for r in answers)


def test_start_from_plan_potentials_or_result(data, groups):
    first = sot.solve(data.cost, structure=groups, tol=1e-6)
    for init in (first, first.plan, first.potentials):
        again = sot.solve(data.cost, structure=groups, tol=1e-6, init=init)
        assert again.value == pytest.approx(first.value, rel=2e-6)
    with pytest.raises(ValueError, match="init"):
        sot.solve(data.cost, structure=groups, init=np.ones((2, 2)))
    with pytest.raises(ValueError, match="potential"):
        sot.solve(data.cost, structure=groups, init=(np.zeros(3), np.zeros(30)))


def test_lists_frames_and_float32(data, groups):
    reference = sot.solve(data.cost, structure=groups)
    frame = sot.solve(pd.DataFrame(data.cost), structure=groups)
    lists = sot.solve(data.cost.tolist(), structure=groups)
    single = sot.solve(data.cost.astype(np.float32), structure=groups)
    assert frame.value == lists.value == reference.value
    assert single.plan.dtype == single.worst_cost.dtype == np.float32
    assert single.value == pytest.approx(reference.value, rel=1e-3)
    assert sot.certificate.verify(data.cost.astype(np.float32), None, None, groups, single).holds()
    integer = sot.solve(np.array([[1, 2], [3, 1]]))
    assert integer.plan.dtype == np.float64
    assert integer.value == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"M": [[np.nan, 1.0]]}, r"NaN at \(0, 0\)"),
        ({"M": [[1.0, -2.0]]}, r"-2.0 at \(0, 1\)"),
        ({"M": np.ones(3)}, "2 dimension"),
        ({"M": np.ones((0, 3))}, "empty"),
        ({"a": [1.0, 2.0]}, "a has 2 weights"),
        ({"a": [-1.0, 1.0, 1.0]}, "negative"),
        ({"a": [0.0, 0.0, 0.0]}, "zero everywhere"),
        ({"a": [np.nan, 1.0, 1.0]}, "finite"),
        ({"a": [0.2, 0.2, 0.2]}, "same total"),
        ({"M": [[np.inf, np.inf], [1.0, 1.0]]}, "row 0"),
        ({"structure": "groups"}, "structure"),
        ({"reg": -1.0}, "reg"),
        ({"tol": np.nan}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"max_iter": 1.5}, "max_iter"),
        ({"time_limit": 0}, "time_limit"),
    ],
)
def test_bad_input_is_refused(change, message):
    arguments = {"M": np.ones((3, 2)), **change}
    with pytest.raises(ValueError, match=message):
        sot.solve(arguments.pop("M"), **arguments)


def test_points_in_the_place_of_a_cost_are_told_from_weights():
    X, Y = np.zeros((5, 2)) - 1.0, np.ones((4, 2))
    for call in (sot.solve, partial(sot.solve_path, reg=[1.0])):
        with pytest.raises(ValueError, match=r"\(5, 2\) and \(4, 2\).*pass points to solve_sample"):
            call(X, Y)


@pytest.mark.parametrize(
    ("option", "close"),
    [("maxiter", "max_iter"), ("numItermax", "max_iter"), ("stopThr", "tol"), ("struct", "struct")],
)
def test_unknown_option_offers_the_close_match(option, close):
    for call in (sot.solve, lambda M, **o: sot.solve_sample(M, M, **o)):
        with pytest.raises(ValueError, match=f"{option}.*Did you mean '{close}"):
            call(np.ones((2, 2)), **{option: 3})


def test_weights_of_different_precision():
    a = np.random.default_rng(0).random(50).astype(np.float32)
    a /= a.sum()
    assert sot.solve(np.ones((50, 4)), a, np.full(4, 0.25)).value == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("concave", [c.Linear(), c.ThresholdSqrt(np.inf)], ids=repr)
def test_linear_g_is_recognised_as_modular(data, concave):
    groups = sot.Groups(data.source_labels, data.target_labels, concave, units="cost")
    plain = sot.solve(data.cost)
    for structure, factor in ((groups, 1.0), (sot.Modular() + groups, 2.0)):
        result = sot.solve(data.cost, structure=structure)
        assert result.method == "exact"
        assert result.value == pytest.approx(factor * plain.value, rel=1e-12)


def test_regularised_singletons_do_not_depend_on_how_they_are_written(data):
    one = sot.Groups(None, None, c.Sqrt(), units="cost")
    each = sot.Groups(None, None, lambda k, t: c.Sqrt(), units="cost")
    values = [sot.solve(data.cost, structure=s, reg=0.05, tol=1e-8).value for s in (one, each)]
    assert values[0] == pytest.approx(values[1], rel=1e-7)


def test_small_differences_of_mass_are_equalised():
    a = np.full(3, np.float32(1 / 3))
    b = np.full(7, np.float32(1 / 7))
    assert a.sum(dtype=float) != b.sum(dtype=float)
    result = sot.solve(np.ones((3, 7), np.float32), a, b)
    assert result.value == pytest.approx(1.0, rel=1e-6)


def test_save_and_load(data, groups, tmp_path):
    result = sot.solve(data.cost, structure=groups)
    result.save(tmp_path / "plan.npz")
    back = sot.Result.load(tmp_path / "plan.npz")
    assert (back.plan == result.plan).all()
    assert (back.worst_cost == result.worst_cost).all()
    assert (back.trace.value == result.trace.value).all()
    assert (back.gap, back.status, back.method) == (result.gap, result.status, result.method)
    # The structure is not saved: what it shows of the groups is missing.
    assert back.structure is None
    assert repr(back).splitlines()[-1] == repr(result).splitlines()[-1]
    assert back.verify(groups).holds()
    back.save(tmp_path / "plan.npz")  # what is unknown stays unknown
    for loaded in (back, sot.Result.load(tmp_path / "plan.npz")):
        with pytest.raises(ValueError, match=r"a structure \(Groups\).*result.verify\(structure\)"):
            loaded.verify()
    assert (back.reg, back.weights[0].tolist()) == (0.0, result.weights[0].tolist())
    assert [p.name for p in tmp_path.iterdir()] == ["plan.npz"]
    assert (sot.Result.load(tmp_path / "plan").plan == result.plan).all()
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(ValueError, match="no npz file"):
        sot.Result.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", x=1)
    with pytest.raises(ValueError, match="no saved Result"):
        sot.Result.load(tmp_path / "other.npz")


def test_sparse_plan(data):
    result = sot.solve(data.cost)
    sparse = result.sparse_plan()
    assert (sparse.toarray() == result.plan).all()
    assert sparse.nnz <= 40 + 30 - 1  # a vertex of U(a, b)


def test_repr_tells_a_person(data):
    text = repr(sot.solve(data.cost))
    for word in ("value", "lower bound", "gap", "status", "iterations"):
        assert word in text


def test_solve_sample(data):
    by_points = sot.solve_sample(data.X, data.Y)
    assert by_points.value == pytest.approx(sot.solve(data.cost).value, rel=1e-12)
    city = sot.solve_sample(data.X, data.Y, metric="cityblock")
    assert city.value > 0
    with pytest.raises(ValueError, match="features"):
        sot.solve_sample(data.X, data.Y[:, :1])
    with pytest.raises(ValueError, match="metric"):
        sot.solve_sample(data.X, data.Y, metric="no such metric")
    with pytest.raises(ValueError, match=r"X\[:, None\]"):
        sot.solve_sample(data.X[:, 0], data.Y)
    with pytest.raises(ValueError, match="Y must hold finite points"):
        sot.solve_sample(data.X, data.Y * np.nan)
    assert sot.solve_sample(data.X.astype("f4"), data.Y.astype("f4")).plan.dtype == np.float32


def test_progress_is_silent_without_a_terminal(data, groups, capfd):
    sot.solve(data.cost, structure=groups, progress=True)
    assert capfd.readouterr() == ("", "")


def test_progress_on_a_terminal(data, groups, monkeypatch, capfd):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("FORCE_COLOR", "1")
    sot.solve(data.cost, structure=groups, progress=True)
    out, shown = capfd.readouterr()
    assert out == ""
    for word in ("newton", "iteration", "value", "bound", "gap"):
        assert word in shown


def test_semi_metric():
    """Zero iff equal, symmetric, not negative, as in the paper's lemma."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    labels = np.array([0, 0, 1, 1, 2, 2])

    def distance(A, B):
        M = np.sqrt(((A[:, None] - B) ** 2).sum(-1))
        return sot.solve(M, structure=sot.Groups(labels, labels, c.Sqrt(), units="cost"), tol=1e-9)

    assert distance(X, X).value == pytest.approx(0, abs=1e-12)
    there, back = distance(X, Y), distance(Y, X)
    assert there.lower_bound > 0.01
    assert there.value == pytest.approx(back.value, rel=1e-8)
