"""Pictures: what is drawn is what was solved, on the axis that was given."""

import sys
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

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
    np.testing.assert_array_equal(heat(ax), P[[1, 0, 2]][:, [1, 0]])
    # Faint blocks stay visible: what is shown is the square root of the share of the largest.
    assert ax.images[0].norm(0.1) == pytest.approx(np.sqrt(0.1 / 0.5))
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    np.testing.assert_allclose(ax.get_yticks(), [0.0, 1.5])  # the middle of each group
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
    # Every tile row has the mass of its four points: none is dropped, as it would be by drawing
    # every fourth row.
    rows = tiles.sum(axis=1)
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


def test_options_go_to_matplotlib(solved, ax):
    data, result = solved
    plot.plan(result, ax=ax, cmap="viridis", vmax=1.0)
    assert ax.images[0].get_cmap().name == "viridis"
    assert ax.images[0].get_clim()[1] == 1.0
    plot.costs(result, ax=ax, cmap="Greys")
    assert ax.child_axes[0].images[0].get_cmap().name == "Greys"
    plot.matching(data.X, data.Y, result, ax=ax, linestyles="dotted")
    assert ax.collections[0].get_linestyle()[0][1] is not None


def test_a_new_figure_has_a_legend_and_a_colour_bar(solved):
    data, result = solved
    axis = plot.matching(data.X, data.Y, result, ["a", "b"] * 6, ["b", "c", "c"] * 3)
    entries = [text.get_text() for text in axis.get_legend().get_texts()]
    assert entries == ["source", "target", "a", "b", "c"]
    square = axis.get_legend().legend_handles[3]
    points = axis.collections[1].get_facecolor()
    np.testing.assert_allclose(to_rgba(square.get_color()), points[1])  # "b"
    plt.close(axis.figure)
    axis = plot.plan(result)
    bar = axis.figure.axes[1]
    assert bar.get_ylabel() == "mass"
    assert bar.get_ylim()[1] == pytest.approx(result.plan.max())
    plt.close(axis.figure)


def test_a_given_axis_stays_as_it_is(solved, ax):
    data, result = solved
    plot.matching(data.X, data.Y, result, data.source_labels, ax=ax)
    plot.plan(result, data.source_labels, ax=ax)
    assert ax.get_legend() is None
    assert ax.figure.axes == [ax]


def test_block_mass_shows_shares_with_the_names_of_the_groups(ax):
    M = np.array([[0.0, 1.0, 9.0], [9.0, 9.0, 0.0], [1.0, 0.0, 9.0]])
    structure = sot.Groups(["north", "south", "north"], ["x", "x", "y"])
    result = sot.solve(M, structure=structure)
    assert plot.block_mass(result, ax=ax) is ax
    np.testing.assert_allclose(heat(ax), [[2 / 3, 0.0], [0.0, 1 / 3]], atol=1e-9)
    assert [text.get_text() for text in ax.texts] == ["67 %", "0 %", "0 %", "33 %"]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["north", "south"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["x", "y"]


def test_block_mass_of_many_groups_has_a_colour_bar_instead_of_numbers():
    labels = np.arange(20)
    result = sot.solve(1.0 - np.eye(20), structure=sot.Groups(labels, labels))
    axis = plot.block_mass(result)
    assert not axis.texts
    assert axis.figure.axes[1].get_ylabel() == "share of all mass"
    plt.close(axis.figure)


def test_a_path_shows_its_table_in_the_order_of_the_dials(solved, ax):
    data, _ = solved
    labels = data.source_labels, data.target_labels
    dials = [0.9, 0.0, 0.5]
    structures = [sot.Groups(*labels, sot.concave.Discount(d)) for d in dials]
    found = sot.solve_path(data.cost, structures=structures, tol=1e-3)
    assert found.plot(ax, label="discount") is ax
    table, order = found.table(), [1, 2, 0]
    for part, column in zip(ax.child_axes, ("partners", "concentration", "linear"), strict=True):
        (curve,) = part.lines
        np.testing.assert_array_equal(curve.get_xdata(), [0.0, 0.5, 0.9])
        np.testing.assert_array_equal(curve.get_ydata(), table[column][order])
    assert ax.child_axes[0].get_xlabel() == "discount"


def test_what_does_not_change_along_a_path_looks_flat(ax):
    """Concentration 0.9 at every dial, to a millionth: not a fall over the whole panel."""
    labels = [0, 0, 0, 1, 1], [0, 0, 1, 1]
    M = np.add.outer(labels[0], labels[1]) % 2 + np.arange(20.0).reshape(5, 4) / 1000
    path = sot.solve_path(M, structures=[sot.Routes(*labels, c) for c in (0.0, 0.1, 0.2)])
    part = path.plot(ax).child_axes[1]
    assert part.get_ylabel() == "concentration"
    assert np.ptp(part.lines[0].get_ydata()) < 1e-3
    low, high = part.get_ylim()
    assert 0.05 < high - low < 0.5
    ax.figure.canvas.draw()
    assert part.yaxis.get_offset_text().get_text() == ""


def test_a_path_over_reg_is_drawn_on_a_log_scale_without_groups(solved, ax):
    data, _ = solved
    found = sot.solve_path(data.cost, reg=[10.0, 0.1], tol=1e-3)
    lower, upper = plot.path(found, ax).child_axes
    assert upper.get_xscale() == lower.get_xscale() == "log"
    assert lower.get_xlabel() == "reg"
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), found.table()["partners"][::-1])


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda r: plot.matching(np.ones((3, 2)), np.ones((9, 2)), r), r"X must .*\(12, 2\)"),
        (lambda r: plot.plan(np.ones(3)), "plan"),
        (lambda r: plot.block_mass(replace(r, structure=None)), "block_mass needs a structure"),
        (lambda r: plot.convergence({}), "empty"),
        (lambda r: plot.convergence(r, show="all"), "show"),
    ],
)
def test_wrong_input_is_named(solved, draw, words):
    with pytest.raises(ValueError, match=words):
        draw(solved[1])


def test_without_matplotlib_it_says_what_to_install(solved, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    data, result = solved
    for draw in (lambda: plot.matching(data.X, data.Y, result), lambda: plot.plan(result)):
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'structot\[plot\]'"):
            draw()


def test_colours_stay_apart_for_colour_blind_eyes():
    """Pairwise distinct when red and green are merged (deuteranopia, Viénot's matrix)."""
    from matplotlib.colors import to_rgb

    rgb = np.array([to_rgb(color) for color in plot.COLORS]) ** 2.2
    seen = (rgb @ np.array([[0.29, 0.71, 0.0], [0.29, 0.71, 0.0], [-0.02, 0.02, 1.0]]).T).clip(0, 1)
    seen = seen ** (1 / 2.2)
    distance = np.linalg.norm(seen[:, None] - seen[None], axis=2)
    assert distance[np.triu_indices(len(seen), 1)].min() > 0.1


def test_rings_show_the_mass_left_behind():
    X, Y = np.array([[0.0, 0.0], [1.0, 0.0], [9.0, 9.0]]), np.array([[0.0, 1.0], [1.0, 1.0]])
    result = sot.solve_sample(X, Y, unbalanced=2.0, unbalanced_type="TV")
    before, after = plot.matching(X, Y, result.plan), plot.matching(X, Y, result)
    source, target = after.collections[len(before.collections) :]
    share = result.left[0] / result.weights[0]
    np.testing.assert_allclose(source.get_offsets(), X[share > 0.01])
    sizes = source.get_sizes()
    np.testing.assert_allclose(sizes / sizes.max(), share[share > 0.01] / share.max())
    assert len(target.get_offsets()) == np.count_nonzero(result.left[1] > 1e-9)
    texts = [text.get_text() for text in after.get_legend().get_texts()]
    assert any("left behind" in text for text in texts)
    for axis in (before, after):
        plt.close(axis.figure)
