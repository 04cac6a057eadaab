"""The public operations on U(a, b) refuse what does not fit together, before any kernel runs."""

import numpy as np
import pytest

from structot import submodular
from structot.structures import Groups
from structot.transport import (
    MarginalProjection,
    c_transform,
    emd,
    marginal_error,
    round_plan,
    sinkhorn,
)

M = np.ones((3, 2))
A, B = np.full(3, 1 / 3), np.full(2, 1 / 2)


@pytest.mark.parametrize("call", [emd, round_plan, sinkhorn, marginal_error])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": B, "b": A}, "a has 2 weights"),
        ({"b": A}, "b has 3 weights"),
        ({"a": -A}, "a is -0.3"),
        ({"a": A * np.nan}, "a is nan at 0"),
        ({"a": 2 * A}, "same total mass; got 2 and 1"),
        ({"matrix": np.ones(3)}, "2 dimension"),
        ({"matrix": "no"}, "numeric"),
    ],
)
def test_refused(call, change, message):
    arguments = {"matrix": M, "a": A, "b": B, **change}
    with pytest.raises(ValueError, match=message):
        call(*arguments.values())


@pytest.mark.parametrize("call", [emd, round_plan, sinkhorn, marginal_error])
def test_lists_and_integers_are_taken(call):
    given = call([[0, 1], [1, 0]], [1, 1], [1, 1])
    same = call(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones(2), np.ones(2))
    for one, two in zip(np.atleast_1d(given), np.atleast_1d(same), strict=True):
        plans = (getattr(x, "plan", x) for x in (one, two))
        np.testing.assert_array_equal(*plans)


def test_other_shapes():
    with pytest.raises(ValueError, match="u belongs to the rows"):
        c_transform(M, np.ones(1))
    with pytest.raises(ValueError, match="allowed has shape"):
        round_plan(M / 6, A, B, allowed=np.ones((2, 3), bool))
    with pytest.raises(ValueError, match="allowed has shape"):
        MarginalProjection(M, np.ones((2, 3), bool))


def test_structures_must_be_bound_first():
    for call in (submodular.extension, submodular.greedy, submodular.minimize, submodular.project):
        with pytest.raises(ValueError, match=r"pass F.bind\(M\)"):
            call(Groups([0, 0, 1]), M)


def test_min_norm_point_of_a_python_function():
    K = submodular.min_norm_point(lambda S: min(S.sum(), 1), np.zeros((1, 2)))
    assert K == pytest.approx(np.array([[0.5, 0.5]]))
    with pytest.raises(ValueError, match="Z must be given"):
        submodular.min_norm_point(lambda S: 0.0)
