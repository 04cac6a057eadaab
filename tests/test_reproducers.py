"""What once went wrong, each as it was found: certificates, units, crashes, limits."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import structot as sot
from structot import _deadline
from structot.certificate import first_answer, verify
from structot.problem import Problem
from structot.solvers._loop import Limits, Step, _Best
from structot.transport import emd, relative_entropy

c = sot.concave


def quiet(*args, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sot.solve(*args, **options)


def costs_with_prices_that_forbid(price=1e15, n=20, seed=0):
    rng = np.random.default_rng(seed)
    M = rng.random((n, n))
    M[rng.random((n, n)) < 0.3] = price
    return M, rng.integers(0, 3, n), rng.integers(0, 3, n)


# -- certificates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["newton", "splitting", "linear_program", "auto"])
def test_the_gap_hides_nothing_in_its_denominator(method):
    """0.1 divided by 1e-12 · T · max M and certified 4.5e-5 where the true gap was 36 %."""
    M, ys, yt = costs_with_prices_that_forbid()
    structure = sot.Groups(ys, yt, c.Truncation(50.0), units="cost")
    result = quiet(M, structure=structure, method=method, max_iter=60)
    optimum = quiet(M, structure=structure, method="linear_program")
    assert optimum.gap <= 1e-9
    assert result.gap == max(0.0, result.value - result.lower_bound) / abs(result.value)
    assert result.lower_bound <= optimum.value <= result.value * (1 + 1e-9)
    assert result.converged == (
        result.value - result.lower_bound <= 1e-4 * result.value + result.atol
    )
    assert result.atol <= 0.1 * 1e-4 * result.value
    assert verify(M, None, None, structure, result).holds()


def test_verify_sees_through_a_gap_that_is_too_small():
    M, ys, yt = costs_with_prices_that_forbid()
    structure = sot.Groups(ys, yt, c.Truncation(50.0), units="cost")
    result = quiet(M, structure=structure, method="newton", max_iter=10)
    assert result.gap > 1e-2
    lie = replace(result, gap=4.5e-5, status=sot.Status.CONVERGED)
    check = verify(M, None, None, structure, lie)
    assert not check.holds()
    assert check.claim > 1e-3
    assert check.gap == pytest.approx(result.gap, rel=1e-6)


def test_a_bound_that_rounding_lifts_above_a_value_of_zero_is_no_breakdown():
    structure = sot.Coverage([0, 0, 1], [0, 1, 1], weights=[[0, 3.0], [3.0, 0]])
    result = sot.solve(
        np.zeros((3, 3)), [0.5, 0.25, 0.25], [0.75, 0.125, 0.125], structure=structure
    )
    assert result.converged
    assert result.lower_bound <= result.value


def test_the_entropy_does_not_cancel_near_the_independent_plan():
    """x log(x/r) - x + r is (x - r)²/2r there: 2e-30 where the three terms gave -4e-15."""
    a, b = np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    r = np.outer(a, b)
    t = 1e-15 * np.array([[1.0, -1.0, 0.5], [-0.5, 1.0, 0.25]])
    entropy, _ = relative_entropy(r * (1 + t), a, b)
    exact = float((((r * (1 + t)) - r) ** 2 / (2 * r)).sum())
    assert entropy == pytest.approx(exact, rel=1e-9)
    assert 0 < entropy < 1e-29


@pytest.mark.parametrize("structure", [None, sot.Groups([0, 0, 1], None, c.Sqrt(), units="cost")])
@pytest.mark.parametrize("reg", [1.0, 1e3, 1e6, 1e12])
def test_bounds_stay_below_values_however_large_reg_is(structure, reg):
    rng = np.random.default_rng(1)
    for _ in range(20):
        M, a, b = rng.random((3, 4)), rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(4))
        result = quiet(M, a, b, structure=structure, reg=reg, tol=1e-12)
        assert result.lower_bound <= result.value + result.atol
        assert verify(M, a, b, structure, result, reg=reg).holds()


def test_a_plan_whose_tiny_points_are_rounded_may_cost_less_than_the_bound_by_atol_only():
    M = [[2.2438315702934386e-15], [1.4419395353084567e-17], [5.742834334935438e-19]]
    a = [0.00014519060016875918, 0.9998548093917341, 8.09720499055539e-12]
    results = [quiet(M, a, [1.0], method=method) for method in ("exact", "linear_program")]
    for one in results:
        for other in results:
            assert one.lower_bound <= other.value + one.atol + other.atol


@pytest.mark.parametrize("method", ["splitting", "interior_point", "mirror_prox"])
def test_a_cost_that_rounding_raised_where_no_known_plan_goes_proves_nothing(method):
    """Left of multipliers of 1e12, K was 5e-4 too high on one pair, which was best for K alone."""
    far = 1e15
    M = [
        [0.207, 0.819, far, 0.393, 0.189, 0.6, 0.516, far, 0.924, 0.365, far],
        [0.703, 0.945, 0.26, 0.065, 0.765, 0.93, 0.865, 0.506, 0.315, far, 0.049],
        [0.849, 0.523, 0.849, 0.472, 0.654, 0.336, 0.308, 0.118, 0.825, 0.012, 0.084],
    ]
    a = np.array([0.621008670564935, 1.2928944054908214e-07, 0.3789912001456244])
    sources = [[0, 1], [1, 2]]
    targets = [list(range(11)), [0, 1, 4, 6, 7, 8, 9, 10], [3, 6, 8]]
    structure = sot.Modular() + sot.Coverage(sources, targets, 0.0, units="cost")
    result = quiet(M, a, structure=structure, method=method, tol=1e-8, max_iter=3000)
    optimum = quiet(M, a).value  # a price of 0 is none
    assert result.lower_bound <= optimum + result.atol
    assert verify(M, a, None, structure, result).holds()


def test_a_ground_cost_far_above_all_of_F_leaves_no_rounding_in_the_first_cost():
    """Projected once, costs of 1e6 left 2e-13 in worst costs of 1e-8."""
    price = 1.0476446985590847e-08
    function = sot.SetFunction(lambda S: price * float(S.any(axis=0).sum() + S.any(axis=1).sum()))
    M, b = [[1.8264927006564385e-08, 1.3784850570991988e-09, 931408.8223643235]], [0.0, 1.0, 0.0]
    for method in ("saddle_mirror_descent", "mirror_prox"):
        result = quiet(M, None, b, structure=function, method=method, max_iter=20)
        assert verify(M, None, b, function, result).holds()


def test_tariffs_of_highs_are_not_below_zero():
    """HiGHS takes -1e-9 of the largest tariff for no less than 0; below budgets that was a gain."""
    far = 1e14
    M = [
        [7.662, 0.042, 1.932, 0.035, 0.81, 1.561, 2.653, far, 3.666, 6.126, 0.147],
        [1.394, 1.91, far, 1.959, far, far, 0.002, 0.011, 0.107, 0.788, 1.45],
        [far, 0.126, 2.37, 0.114, far, far, far, far, 4.26, 6.888, 0.283],
        [far, far, 1.108, far, 0.316, far, 1.667, far, 2.487, 4.569, 0.002],
        [0.646, far, 0.33, 3.158, far, far, 0.113, 0.073, 0.002, far, 2.501],
        [8.388, far, far, 0.1, 1.057, 1.898, 3.087, 3.321, far, 6.777, 0.261],
        [far, 0.009, 1.192, 0.012, far, 0.905, 1.77, 1.949, 2.613, 4.739, 0.007],
    ]
    a = np.full(7, 5.494205447539799e-07)
    b = [5.1624917504895825e-15, 2.8808051826221962e-08, 5.565047566683025e-15]
    b += [2.6367871952081614e-06, 1.9513217690468642e-13, 5.548782156430818e-10]
    b += [1.0138700303691342e-09, 1.0093276077690013e-14, 1.329907227063893e-11]
    b += [1.178766302966369e-06, 5.83181271148541e-18]
    charge = np.array(
        [
            [0.007242783878565426, 0.01350801179196739, 0.005834566670564035],
            [0.015021360350488146, 0.0054029587910223225, 0.0],
            [0.01438654014926726, 0.012167765557031016, 0.0025785080093633744],
        ]
    )
    more = np.array(
        [
            [0.005906414934547281, 0.01304907852213074],
            [0.00826612041006382, 0.0042956004856020075],
            [0.008506151360807067, 0.004770836771964235],
        ]
    )
    charge = np.hstack([charge, more])
    labels = [1, 1, 0, 1, 2, 0, 0], [0, 2, 3, 1, 0, 4, 1, 4, 3, 2, 3]
    structure = sot.Routes(*labels, charge, units="cost")
    result = quiet(M, a, b, structure=structure, method="linear_program", tol=1e-2)
    assert verify(M, a, b, structure, result).holds()


def test_a_set_function_without_pairs_is_none():
    nothing = sot.SetFunction(lambda S: float(S.any()), support=np.zeros((2, 2), bool))
    M = np.array([[0.0, 1.0], [1.0, 0.5]])
    result = sot.solve(M, structure=sot.Modular() + nothing)
    assert result.converged
    assert result.value == pytest.approx(sot.solve(M).value)


def test_verify_knows_the_independent_plan_to_rounding_only():
    """P = r costs 1e-38 where r is known as a product of doubles, and 1e-51 where it is exact."""
    a = np.array([0.004815627035526966])
    b = [0.0045695178264339685, 3.570556424167708e-08, 0.0002432484365874379]
    b += [2.782406849370437e-06, 1.1799592173768845e-09, 1.2868481617639246e-13]
    b += [4.147361630764949e-08, 6.572134444068243e-14, 6.322017004691511e-12]
    structure = sot.Groups([0], [0, 3, 2, 2, 3, 0, 3, 0, 2], c.Power(0.5), units="cost")
    M, reg = np.zeros((1, 9)), 0.3313604171514796
    result = sot.solve(M, a, b, structure=structure, reg=reg, tol=0.01, method="interior_point")
    assert verify(M, a, b, structure, result, reg=reg).holds()


def test_half_a_step_that_is_right_is_kept_when_the_other_half_is_not_a_number():
    problem = Problem.of(np.array([[1.0, 2.0], [3.0, 1.0]]))
    plan, dual = first_answer(problem)
    best = _Best(problem, Limits())
    assert not best.take(Step(problem.objective(plan), lambda: plan, np.nan, lambda: dual))
    assert best.value == problem.objective(plan)
    assert not best.take(Step(np.nan, lambda: plan, dual.bound, lambda: dual))
    assert best.bound == dual.bound


# -- units and scale -------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1.0, 1e8, 1e-8])
def test_splitting_does_not_depend_on_units(k):
    """Layers without a price had the scale 1: 81 steps at k = 1, stalled at k = 1e8."""
    rng = np.random.default_rng(3)
    M = rng.random((3, 4))
    structure = sot.Modular() + sot.Coverage([[0, 1], [1, 2]], weights=0.3 * k)
    base = sot.Modular() + sot.Coverage([[0, 1], [1, 2]], weights=0.3)
    result = sot.solve(k * M, structure=structure, method="splitting")
    first = sot.solve(M, structure=base, method="splitting")
    assert result.converged
    assert abs(result.value / k - first.value) <= 2e-4 * first.value


@pytest.mark.parametrize("method", ["newton", "splitting", "mirror_descent", "mirror_prox", "auto"])
def test_nothing_to_pay(method):
    result = sot.solve(
        np.zeros((2, 2)),
        [0.1, 0.9],
        [0.45, 0.55],
        structure=sot.Groups([0, 0], [0, 0]),
        method=method,
    )
    assert result.converged
    assert (result.value, result.gap) == (0.0, 0.0)


# -- crashes ---------------------------------------------------------------------------------------


def test_no_division_by_a_crowd_of_zero():
    result = quiet(
        [[1e-10, 1, 1e-3], [0.1, 1e-7, 1e-5]],
        structure=sot.Groups([0, 0], [0, 0, 0], c.Sqrt(), units="cost"),
        reg=1e-3,
    )
    assert np.isfinite(result.gap)
    assert result.lower_bound <= result.value


@pytest.mark.parametrize("method", ["auto", "saddle_mirror_descent", "mirror_prox", "splitting"])
def test_no_more_vertices_than_the_dimension_allows(method):
    rank_one = sot.Modular() + sot.LogDet([[3.0]], [[2.0], [3.0]], sigma=100.0)
    quiet([[3.0, 2.0]], structure=rank_one, method=method, max_iter=50)
    weak = sot.Modular() + 2.75 * sot.LogDet([[1.0, 2.0], [1.0, 0.0]], None, sigma=86.8)
    b = [0.6031887751648393, 0.39681122483516074]
    result = quiet([[1.0, 0.0], [3.0, 4.0]], [0.0, 1.0], b, structure=weak, method=method)
    assert result.lower_bound <= result.value + result.atol


def test_what_a_function_of_the_user_raises_is_not_taken_for_our_own():
    def divides(mask):
        return 1.0 / int(mask.sum() == 0)

    with pytest.raises(ValueError, match="ZeroDivisionError"):
        sot.solve(np.ones((2, 2)), structure=sot.SetFunction(divides))


def test_breakdowns_of_linear_algebra_end_in_a_status(monkeypatch):
    from structot.solvers.newton import solver as newton

    calls = []

    def breaks(*args):
        calls.append(args)
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(newton, "_newton_step", breaks)
    rng = np.random.default_rng(0)
    M = rng.random((6, 6))
    structure = sot.Groups([0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1], c.Sqrt(), units="cost")
    alone = quiet(M, structure=structure, method="newton")
    assert calls
    assert alone.status is sot.Status.STALLED
    assert alone.lower_bound <= alone.value < np.inf
    assert verify(M, None, None, structure, alone).holds()
    assert sot.solve(M, structure=structure).converged  # others go on where it broke


def test_a_failing_network_simplex_ends_in_a_status(monkeypatch):
    from structot.solvers import exact

    def fails(*args):
        raise RuntimeError("no optimum")

    monkeypatch.setattr(exact, "relaxed_emd", fails)
    M = np.array([[1.0, 2.0], [3.0, 1.0]])
    result = quiet(M, method="exact")
    assert result.status is sot.Status.STALLED
    assert result.lower_bound <= 1.0 <= result.value
    assert sot.solve(M).value == pytest.approx(1.0)


# -- costs of very different sizes -----------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(
    "structure",
    [
        sot.Modular() + sot.Coverage.of_sets(np.random.default_rng(0).random((6, 8, 7)) < 0.3, 0.1),
        sot.Modular() + sot.GraphCut([(i, i + 1) for i in range(7)], None, 0.1),
        sot.Groups([0, 0, 0, 1, 1, 1, 2, 2], [0, 0, 0, 1, 1, 1, 1], c.Sqrt(), units="cost"),
        sot.Groups([[0, 1, 2, 3], [2, 3, 4, 5, 6, 7]], None, c.Log(0.1), units="cost"),
    ],
    ids=["sets", "graph", "groups", "windows"],
)
def test_costs_over_twelve_decades(structure, seed):
    rng = np.random.default_rng(seed)
    M = 10.0 ** rng.uniform(-9, 3, (8, 7))
    result = sot.solve(M, structure=structure)
    assert result.converged
    assert verify(M, None, None, structure, result).holds()


def test_a_finite_price_that_can_only_mean_forbidden_draws_one_warning():
    M, ys, yt = costs_with_prices_that_forbid(price=1e4)
    structure = sot.Groups(ys, yt, c.Truncation(50.0), units="cost")
    with pytest.warns(UserWarning, match="inf") as caught:
        sot.solve(M, structure=structure)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sot.solve(np.where(M == 1e4, np.inf, M), structure=structure)
        sot.solve(np.array([[0.0, 1.0], [1.0, 0.0]]))
        sot.solve(10.0 ** np.random.default_rng(0).uniform(-6, 6, (5, 5)))


# -- limits ----------------------------------------------------------------------------------------


class SlowFunction:
    """A set function that takes its time."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __call__(self, mask):
        time.sleep(self.seconds)
        return float(mask.sum()) ** 0.5


def limited(M, seconds, **options):
    """The seconds beyond the limit. Far fewer than a solve without it would take."""
    result = quiet(M, tol=1e-14, time_limit=seconds, **options)
    assert result.status in (sot.Status.TIME_LIMIT, sot.Status.CONVERGED, sot.Status.STALLED)
    assert np.isfinite(result.gap) or result.value == 0
    return result


def test_a_deadline_reaches_the_min_norm_point_and_the_functions_of_users():
    structure = sot.Modular() + sot.SetFunction(SlowFunction(1e-4), check=False)
    M = np.random.default_rng(0).random((15, 15))
    begin = time.perf_counter()
    limited(M, 1.0, structure=structure)
    # Without the limit minutes; a full look at F, twice at the end, takes some tenths of a second.
    assert time.perf_counter() - begin < 30.0


def test_a_deadline_reaches_highs_and_the_answer_is_certified():
    rng = np.random.default_rng(0)
    M = rng.random((120, 120))
    structure = sot.Groups(np.arange(120) % 5, np.arange(120) % 7, c.Truncation(40.0), units="cost")
    result = limited(M, 0.5, structure=structure, method="linear_program")
    assert verify(M, None, None, structure, result).holds()


def test_what_cannot_be_stopped_is_left_behind():
    release = threading.Event()
    deadline = _deadline.Deadline(0.05)
    with deadline.in_force(), pytest.raises(_deadline.OutOfTime):
        _deadline.call_foreign(release.wait)
    release.set()
    assert _deadline.call_foreign(lambda: 3) == 3
    with pytest.raises(KeyError):
        _deadline.call_foreign({}.__getitem__, 1)


def test_a_deadline_is_that_of_its_own_context():
    with _deadline.Deadline(0.0).in_force():
        with pytest.raises(_deadline.OutOfTime):
            _deadline.check_time()
        seen = []
        other = threading.Thread(target=lambda: seen.append(_deadline.time_left()))
        other.start()
        other.join()
        assert seen == [float("inf")]
    _deadline.check_time()
    # Building blocks called outside a solve have no limit.
    assert emd(np.eye(2), np.ones(2), np.ones(2)).value == 0.0


def test_plain_transport_goes_on_where_linear_programs_give_up(monkeypatch):
    """Prices of 1e12 beside a value of 3: neither the network simplex nor HiGHS came nearer."""
    for solver in (sot.solvers.Exact, sot.solvers.LinearProgram):
        monkeypatch.setattr(solver, "steps", lambda self, problem, start: (x for x in ()))
    M = np.random.default_rng(0).random((5, 6))
    result = sot.solve(M)
    assert result.converged
    assert result.method.endswith("interior_point")


@pytest.mark.parametrize("method", ["mirror_prox", "saddle_mirror_descent"])
def test_a_value_of_zero_is_verified_up_to_its_rounding_error(method):
    """A bound of 1e-19 above a value of 0 from terms of size 1 is no false certificate."""
    edges = [(0, 1), (0, 2), (0, 4), (0, 7), (1, 2), (1, 5), (1, 6), (2, 6), (3, 4), (3, 6), (4, 6)]
    structure = sot.Modular() + sot.GraphCut(edges, None, 0.018001665284090324, neighbors="one")
    result = sot.solve(np.zeros((8, 6)), structure=structure, method=method)
    assert result.converged
    assert result.verify().holds()


def test_a_worst_cost_below_the_function_proves_its_bound():
    """Solvers lower it by its rounding error: K(all) is then less than F(all), and no harm done."""
    rng = np.random.default_rng(0)
    M, labels = rng.random((5, 6)), (np.arange(5) % 2, np.arange(6) % 2)
    function = sot.Groups(*labels).bind(M)
    K = function.greedy(rng.random((5, 6)))
    assert function.above(K) <= 1e-14
    assert function.above(K - 0.01) == 0.0
    assert function.excess(K - 0.01) == pytest.approx(0.3)
    K[2, 3] += 0.01
    assert function.above(K) == pytest.approx(0.01)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interruption_reaches_a_solve_inside_highs():
    """Ctrl-C while HiGHS works is not noticed by HiGHS, but by us."""
    script = textwrap.dedent(
        """
        import signal, sys, numpy as np, structot as sot
        signal.signal(signal.SIGINT, signal.default_int_handler)
        rng = np.random.default_rng(0)
        M = rng.random((300, 300))
        groups = sot.Groups(np.arange(300) % 5, np.arange(300) % 7, sot.concave.Truncation(0.3))
        print("ready", flush=True)
        try:
            sot.solve(M, structure=groups, method="linear_program")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            import os
            os._exit(0)
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, bufsize=1
    )
    assert process.stdout.readline().strip() == "ready"
    time.sleep(2.0)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert out.strip() == "interrupted"


def test_what_is_uncounted_takes_no_time_of_a_deadline():
    now = 0.0
    deadline = _deadline.Deadline(1.0, lambda: now)
    with deadline.in_force():
        now = 0.4
        with _deadline.uncounted():
            now = 5.0  # an import
        assert deadline.elapsed == pytest.approx(0.4)
        assert _deadline.time_left() == pytest.approx(0.6)
    with _deadline.uncounted():  # no deadline, nothing to do
        pass
