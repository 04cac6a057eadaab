"""Pictures: what is drawn is what was solved, on the axis that was given."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection

import structot as sot
from structot import plot
from structot.datasets.synthetic import clusters


@pytest.fixture(scope="module")
def solved():
    data = clusters(12, 9, n_classes=3)
    structure = sot.Groups(
        data.source_labels, data.target_labels, sot.concave.ThresholdSqrt(10.0), units="cost"
    )
    return data, sot.solve(data.cost, structure=structure)


@pytest.fixture
def ax():
    figure, axis = plt.subplots()
    yield axis
    plt.close(figure)


def heat(axis):
    return np.asarray(axis.images[0].get_array())


def test_plan_shows_mass_sorted_by_group(ax):
    P = np.array([[0.0, 0.4], [0.1, 0.0], [0.0, 0.5]])
    assert plot.plan(P, ["b", "a", "b"], ["y", "x"], ax=ax) is ax
    sorted_mass = P[[1, 0, 2]][:, [1, 0]]
    np.testing.assert_allclose(heat(ax), np.sqrt(sorted_mass / 0.5))
    dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert [line.get_ydata()[0] for line in dashed[:1]] == [0.5]  # below the one point of "a"
    assert len(dashed) == 2


def test_a_large_plan_is_pooled_without_losing_mass(ax):
    n = 1000
    P = np.zeros((n, n))
    P[np.arange(n), np.random.default_rng(0).permutation(n)] = 1.0 / n
    plot.plan(P, ax=ax)
    tiles = heat(ax)
    assert max(tiles.shape) <= 250
    # The square of what is shown is proportional to the mass in each tile: every tile row has the
    # mass of its four points, none is dropped as by drawing every fourth row.
    rows = (tiles**2).sum(axis=1)
    np.testing.assert_allclose(rows, rows.mean(), rtol=1e-9)


def test_overlapping_groups_can_be_drawn(ax):
    groups = [[0, 1], [1, 2], [2, 3]]
    plot.plan(np.eye(4) / 4, groups, groups, ax=ax)
    assert heat(ax).shape == (4, 4)


def test_matching_draws_each_pair_once_with_width_by_mass(ax):
    X, Y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    P = np.array([[0.5, 0.0, 0.1], [0.0, 0.4, 0.0]])
    assert plot.matching(X, Y, P, [0, 1], ax=ax) is ax
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = {tuple(map(tuple, path.vertices)) for path in lines.get_paths()}
    assert ends == {
        ((0.0, 0.0), (0.0, 1.0)),
        ((0.0, 0.0), (2.0, 1.0)),
        ((1.0, 0.0), (1.0, 1.0)),
    }
    widths = np.asarray(lines.get_linewidths())
    assert (np.diff(widths) < 0).all()  # from the heaviest pair to the lightest
    colors = np.asarray(lines.get_colors())
    assert (colors[0, :3] == colors[2, :3]).all()  # both from the first source point
    assert (colors[0, :3] != colors[1, :3]).any()


def test_matching_of_a_thousand_points_stays_one_collection(ax):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 1000, 2))
    plot.matching(X, Y, np.full((1000, 1000), 1e-6), ax=ax, max_lines=500)
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert len(lines) == 1
    assert len(lines[0].get_paths()) == 500


def test_convergence_draws_the_certified_history(solved, ax):
    _, result = solved
    assert plot.convergence({"newton": result}, ax=ax, show="gap") is ax
    (curve, _end) = ax.lines
    trace = result.trace
    gap = (trace.value - trace.lower_bound) / np.abs(trace.value)
    np.testing.assert_allclose(curve.get_ydata()[-1], max(gap[-1], 1e-16))
    np.testing.assert_array_equal(curve.get_xdata(), trace.time)
    assert ax.get_yscale() == "log"


def test_convergence_shares_an_axis_between_bands_and_gap(solved, ax):
    data, newton = solved
    structure = sot.Groups(
        data.source_labels, data.target_labels, sot.concave.ThresholdSqrt(10.0), units="cost"
    )
    other = sot.solve(data.cost, structure=structure, method="splitting")
    assert plot.convergence({"newton": newton, "splitting": other.trace}, ax=ax) is ax
    bands, gaps = ax.child_axes
    assert [text.get_text() for text in bands.get_legend().get_texts()] == ["newton", "splitting"]
    assert gaps.get_ylabel() == "relative gap"
    low, high = bands.get_ylim()
    assert low < other.lower_bound
    assert other.value < high


def test_costs_shows_both_matrices(solved, ax):
    data, result = solved
    labels = data.source_labels, data.target_labels
    assert plot.costs(result, *labels, ax=ax) is ax
    ground, _, worst, _ = ax.child_axes
    np.testing.assert_allclose(heat(ground), data.cost)  # the points are sorted by label already
    np.testing.assert_allclose(heat(worst), result.worst_cost)


def test_forbidden_pairs_stay_empty(ax):
    M = np.array([[1.0, np.inf], [2.0, 1.0]])
    plot.costs(sot.solve(M), ax=ax)
    assert np.ma.getmaskarray(ax.child_axes[0].images[0].get_array())[0, 1]


def test_a_few_forbidden_pairs_do_not_hide_the_tiles_they_lie_in(solved, ax):
    M = np.random.default_rng(0).uniform(size=(600, 500))
    M[::2, ::2] = np.inf
    plot.costs(replace(solved[1], ground_cost=M), ax=ax)
    assert np.isfinite(np.ma.filled(ax.child_axes[0].images[0].get_array(), np.nan)).all()


def test_equal_labels_have_equal_colours_on_both_sides(ax):
    X, Y = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    plot.matching(X, Y, np.full((2, 3), 1 / 6), ["a", "b"], ["b", "c", np.nan], ax=ax)
    source, target = (np.asarray(points.get_facecolor()) for points in ax.collections[1:])
    assert (source[1] == target[0]).all()
    assert len(np.unique(np.vstack([source, target]), axis=0)) == 4


def test_an_empty_plan_is_drawn_without_lines(ax):
    with np.errstate(all="raise"):
        plot.plan(np.zeros((2, 3)), ax=ax)
        plot.matching(np.eye(2), np.ones((3, 2)), np.zeros((2, 3)), ax=ax)
    assert not len(ax.collections[0].get_paths())


def test_a_new_figure_is_made_without_an_axis(solved):
    data, result = solved
    before = plt.get_fignums()  # other tests may leave figures open
    for axis in (
        plot.plan(result),
        plot.matching(data.X, data.Y, result),
        plot.convergence(result),
        plot.costs(result),
    ):
        axis.figure.canvas.draw()
        assert axis in axis.figure.axes
        plt.close(axis.figure)
    assert plt.get_fignums() == before  # one figure each, and no other


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda r: plot.matching(np.ones((3, 2)), np.ones((9, 2)), r), r"X must .*\(12, 2\)"),
        (lambda r: plot.plan(np.ones(3)), "plan"),
        (lambda r: plot.convergence({}), "empty"),
        (lambda r: plot.convergence(r, show="all"), "show"),
    ],
)
def test_wrong_input_is_named(solved, draw, words):
    with pytest.raises(ValueError, match=words):
        draw(solved[1])


def test_colours_stay_apart_for_colour_blind_eyes():
    """Pairwise distinct when red and green are merged (deuteranopia, Viénot's matrix)."""
    from matplotlib.colors import to_rgb

    rgb = np.array([to_rgb(color) for color in plot.COLORS]) ** 2.2
    seen = (rgb @ np.array([[0.29, 0.71, 0.0], [0.29, 0.71, 0.0], [-0.02, 0.02, 1.0]]).T).clip(0, 1)
    seen = seen ** (1 / 2.2)
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=2)
    assert distance[np.triu_indices(len(seen), 1)].min() > 0.1
