"""Some random problems in the ordinary suite, and whether the examination can fail at all."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from fuzz.check import FALSE, INVALID, VERIFY, Judge
from fuzz.expressions import FAMILIES
from fuzz.generate import ORDINARY, WIDE, Case, case
from fuzz.report import Report
from fuzz.trial import CRASH, FATAL, HUNG, OPEN, Record, _disagreements, trial

import structot as sot

# Small ones: the whole examination takes some hundredths of a second each.
SEEDS = list(itertools.islice((s for s in itertools.count() if case(s).M.size <= 40), 60))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_method_gives_a_true_certificate(seed):
    record = trial(case(seed), max_iter=100)
    assert not [fault for fault in record.faults if fault[0] in FATAL], record.line


def test_a_seed_gives_one_problem():
    one, again = case(11), case(11)
    np.testing.assert_array_equal(one.M, again.M)
    assert one.line() == again.line()
    assert one.line() != case(12).line()


def test_every_family_and_both_spreads_are_drawn():
    cases = [case(seed) for seed in range(600)]
    assert {c.family for c in cases} == set(FAMILIES)
    assert {c.wide for c in cases} == {False, True}
    assert case(5, decades=WIDE).wide
    assert not case(5, decades=ORDINARY).wide
    assert any(np.isinf(c.M).any() for c in cases)
    assert any(c.reg > 0 for c in cases)


@pytest.mark.parametrize("seed", range(20))
def test_the_reproducer_is_the_same_problem(seed, monkeypatch):
    """The line of Python rebuilds costs, weights and options to the last bit."""
    calls = []
    monkeypatch.setattr(sot, "solve", lambda *args, **options: calls.append((args, options)))
    problem = case(seed)
    exec(problem.line("newton"), {"print": lambda _: None})
    ((args, options),) = calls
    for mine, theirs in zip((problem.M, problem.a, problem.b), args, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs)
    assert repr(options["structure"]) == repr(problem.structure)
    assert (options["reg"], options["tol"]) == (problem.reg, problem.tol)
    assert options["method"] == "newton"


# ---------------------------------------------------------------- the examination can fail


def _problem(reg: float = 0.0, shape: tuple[int, int] = (3, 3)) -> Case:
    M = np.random.default_rng(3).random(shape) + 0.1
    code = f"sot.Groups({[0] * (shape[0] - 1) + [1]}, None, sot.concave.Sqrt(), units='cost')"
    return Case(0, M, None, None, code, "groups", False, reg, 1e-6)


@pytest.fixture(scope="module", params=[0.0, 0.2], ids=["exact", "entropic"])
def judged(request):
    """A judge and a result in which it finds no fault."""
    problem = _problem(request.param)
    result = sot.solve(problem.M, **problem.options())
    judge = Judge(problem)
    assert judge.faults(result) == []
    return judge, result


def _kinds(judge, result):
    return {fault.kind for fault in judge.faults(result)}


def test_a_raised_bound_is_found(judged):
    judge, result = judged
    assert FALSE in _kinds(judge, replace(result, lower_bound=result.lower_bound * (1 + 1e-7)))


def test_a_lowered_value_is_found(judged):
    judge, result = judged
    assert INVALID in _kinds(judge, replace(result, value=result.value * (1 - 1e-7)))


def test_a_wrong_marginal_is_found(judged):
    judge, result = judged
    plan = result.plan.copy()
    plan[0, 0] += 1e-9
    assert INVALID in _kinds(judge, replace(result, plan=plan))


def test_a_negative_entry_is_found(judged):
    judge, result = judged
    cycle = np.zeros(result.plan.shape)
    cycle[:2, :2] = [[1, -1], [-1, 1]]
    assert INVALID in _kinds(judge, replace(result, plan=result.plan + cycle))


def test_raised_potentials_are_found(judged):
    """Potentials, and with them the bound, above what the worst cost allows."""
    judge, result = judged
    u, v = result.potentials
    false = replace(result, potentials=(u + 0.01, v), lower_bound=result.lower_bound + 0.01)
    assert {FALSE, INVALID} & _kinds(judge, false)


@pytest.mark.parametrize("shape", [(3, 3), (5, 6)], ids=["every set", "likely sets"])
def test_a_worst_cost_outside_the_polytope_is_found(shape):
    """K, the potentials and the bound fit together; only F says that K is too large."""
    problem = _problem(shape=shape)
    judge = Judge(problem)
    result = sot.solve(problem.M, **problem.options())
    factor = 1 + 1e-6
    u, v = result.potentials
    false = replace(
        result,
        worst_cost=factor * result.worst_cost,
        potentials=(factor * u, factor * v),
        lower_bound=factor * result.lower_bound,
    )
    assert {FALSE, VERIFY} <= _kinds(judge, false)


def test_a_wrong_flag_is_found(judged):
    judge, result = judged
    assert INVALID in _kinds(judge, replace(result, status=sot.Status.STALLED))
    loose = replace(result, lower_bound=0.5 * result.lower_bound, gap=0.5)
    assert INVALID in _kinds(judge, loose)  # still says that it converged
    assert INVALID in _kinds(judge, replace(result, gap=result.gap + 0.1))


def test_nan_is_found(judged):
    judge, result = judged
    assert INVALID in _kinds(judge, replace(result, plan=np.full(result.plan.shape, np.nan)))
    assert INVALID in _kinds(judge, replace(result, lower_bound=float("nan")))


def test_a_bound_above_another_value_is_found(judged):
    judge, result = judged
    lower = replace(result, value=0.9 * result.lower_bound)
    said = _disagreements(judge, {"one": result, "other": lower})
    assert (FALSE, "one") in {(kind, method) for kind, method, _ in said}
    assert not _disagreements(judge, {"one": result, "other": result})


def test_an_optimum_outside_the_interval_is_found():
    problem = _problem()
    judge = Judge(problem)
    result = sot.solve(problem.M, **problem.options())
    high = replace(result, value=2 * result.value, lower_bound=1.5 * result.value)
    assert _disagreements(judge, {"one": high})
    low = replace(result, value=0.5 * result.value, lower_bound=0.4 * result.value)
    assert _disagreements(judge, {"one": low})


def test_an_exception_is_a_crash_and_a_refusal_is_none(monkeypatch):
    def broken(*args, method, **options):
        if method == "newton":
            raise ValueError("method='newton' does not fit this problem: it is a test.")
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(sot, "solve", broken)
    record = trial(_problem())
    assert record.kinds == {CRASH}
    assert "newton" not in {method for _, method, _ in record.faults}
    assert "ZeroDivisionError" in record.faults[0][2]


def test_the_report_counts_and_judges(tmp_path):
    report = Report(tmp_path, time_limit=20.0)
    for seed in range(499):
        report.add(Record(seed, "groups", False, status="CONVERGED"))
    report.add(Record(499, "groups", False, faults=[(OPEN, "auto", "a gap")], line="print()"))
    assert report.violations() == []  # 1 of 500
    report.add(Record(500, "groups", False, faults=[(OPEN, "auto", "a gap")]))
    assert len(report.violations()) == 1
    report.add(Record(501, "rank", True, faults=[(HUNG, "auto", "no answer")]))
    assert any(HUNG in text for text in report.violations())
    assert "--seed 499" in report.failures.read_text()
    assert '"problems": 502' in report.write().read_text()
    assert "groups" in report.table()


def test_tariffs_above_their_budgets_are_found():
    code = "sot.Routes([0, 0, 1], [0, 1, 1], 0.2, units='cost')"
    problem = replace(_problem(), code=code, family="routes")
    result = sot.solve(problem.M, **problem.options())
    judge = Judge(problem)
    assert judge.faults(result) == []
    u, v = result.potentials
    more = 0.1 * result.value
    forged = replace(
        result,
        worst_cost=result.worst_cost + more,
        potentials=(u + more, v),
        lower_bound=result.lower_bound + more,
    )
    assert {fault.kind for fault in judge.faults(forged)} >= {FALSE, VERIFY}
