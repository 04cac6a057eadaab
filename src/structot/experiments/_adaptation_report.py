"""Tables, verdict and pictures of a comparison of adaptation methods.

Notation: accuracies in percent; Δ = accuracy of the reference, a structured method, less that of
another method on the same samples, with a 95 % interval of Student's t over the seeds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from structot._typing import Array
from structot.experiments._adaptation import BY_KEY, FIGURE_METHODS, OURS, Comparison, Setting
from structot.experiments._runner import Records
from structot.experiments._tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Published = dict[str, tuple[float, ...]]  # method -> figures, one per column


def interval(differences: Array) -> tuple[float, float]:
    """Mean and half width of the 95 % interval.

    Examples
    --------
    >>> tuple(round(x, 3) for x in interval(np.array([1.0, 2.0, 3.0])))
    (2.0, 2.484)
    """
    n = len(differences)
    if n < 2:
        return float(np.mean(differences)), float("nan")
    width = stats.t.ppf(0.975, n - 1) * np.std(differences, ddof=1) / np.sqrt(n)
    return float(np.mean(differences)), float(width)


def results(comparison: Comparison, done: Records) -> dict[str, Any]:
    """Everything that the tables show, as JSON values."""
    chosen = comparison.chosen(done)
    cells: dict[str, Any] = {}
    for setting in comparison.settings:
        runs = {m: comparison.runs(done, setting, m) for m in comparison.methods}
        accuracy = {m: np.array([run["accuracy"][0] for run in runs[m]]) for m in runs}
        cells[setting.name] = {m: _cell(runs[m], accuracy[m], accuracy[OURS]) for m in runs}
        for method, cell in cells[setting.name].items():
            cell["parameters"] = chosen[setting.name][method]
    return {
        "reference": OURS,
        "seeds": comparison.seeds,
        "tuning_seeds": list(comparison.tuning_seeds),
        "settings": cells,
    }


def _cell(runs: list[dict[str, Any]], accuracy: Array, reference: Array) -> dict[str, Any]:
    difference, width = interval(reference - accuracy)
    gaps = [run["gap"][0] for run in runs if run["gap"][0] is not None]
    kept = [run["plan_mass"][0] for run in runs if run["plan_mass"][0] is not None]
    return {
        "accuracy": accuracy.tolist(),
        "mean": float(accuracy.mean()),
        "std": float(accuracy.std(ddof=1)) if len(accuracy) > 1 else 0.0,
        "structured_minus_this": difference,
        "half_width": width,
        "largest_gap": max(gaps) if gaps else None,
        "largest_marginal_error": 1.0 - min(kept) if kept else None,
    }


def pooled(data: dict[str, Any], settings: list[Setting], method: str) -> tuple[float, float]:
    """Δ averaged over settings (the directions) seed by seed, with its interval."""
    cells = [data["settings"][s.name] for s in settings]
    ours, others = ([c[m]["accuracy"] for c in cells] for m in (data["reference"], method))
    each = np.subtract(ours, others)  # (settings, seeds)
    return interval(np.mean(each, axis=0))


def accuracy_table(
    data: dict[str, Any],
    settings: list[Setting],
    columns: list[str],
    published: Published | None = None,
) -> str:
    """Mean ± standard deviation, a row per method, with the published figures beside."""
    rows = []
    for method in _methods(data, settings):
        cells = [data["settings"][s.name][method] for s in settings]
        row = [BY_KEY[method].title, *(f"{c['mean']:.1f} ± {c['std']:.1f}" for c in cells)]
        if published is not None:
            figures = published.get(method)
            row.append(" / ".join(f"{x:.1f}" for x in figures) if figures else "–")
        rows.append(row)
    return table(["method", *columns, *(["published"] if published is not None else [])], rows)


def captions(name: str) -> dict[str, str]:
    """What the two figures of an experiment show."""
    return {
        f"{name}_plans": "Plans between labelled source digits (rows, by class) and target digits "
        "(columns, by their true class, which no method has seen). What lies in the diagonal "
        "blocks is right.",
        f"{name}_transported": "Source digits, and where the plan of each method sends them on "
        "average.",
    }


def difference_table(
    data: dict[str, Any], settings: list[Setting], columns: list[str], pools: dict[str, list]
) -> str:
    """Δ against each other method; pooled columns last."""
    groups = [*([s] for s in settings), *pools.values()]
    rows = [
        [BY_KEY[method].title, *(signed(*pooled(data, g, method)) for g in groups)]
        for method in _methods(data, settings)
        if method != data["reference"]
    ]
    return table([f"{BY_KEY[data['reference']].title}, minus", *columns, *pools], rows)


def trust_table(data: dict[str, Any], settings: list[Setting]) -> str:
    """What stands behind the plans: certified gaps, marginal errors; and the parameters chosen."""
    rows = []
    for method in _methods(data, settings):
        cells = [data["settings"][s.name][method] for s in settings]
        gaps = [c["largest_gap"] for c in cells if c["largest_gap"] is not None]
        errors = [
            c["largest_marginal_error"] for c in cells if c["largest_marginal_error"] is not None
        ]
        rows.append(
            [
                BY_KEY[method].title,
                f"{max(gaps):.1e}" if gaps else "none given",
                (f"{max(errors):.1e}" if max(errors) else "0") if errors else "–",
                "; ".join(_parameters(c["parameters"]) for c in cells),
            ]
        )
    head = ["method", "largest certified gap", "largest marginal error", "parameters, by column"]
    return table(head, rows)


def verdict(data: dict[str, Any], pools: dict[str, list[Setting]]) -> str:
    """A plain sentence per method and pool: above, below, or no difference shown."""
    lines = []
    for name, members in pools.items():
        words: dict[str, list[str]] = {"above": [], "not told apart from": [], "below": []}
        for method in _methods(data, members):
            if method == data["reference"] or method in ("ward", "default", "first", "selected"):
                continue
            mean, width = pooled(data, members, method)
            word = (
                "not told apart from" if not abs(mean) > width else "above" if mean > 0 else "below"
            )
            words[word].append(f"{BY_KEY[method].title} ({signed(mean, width)})")
        parts = [f"{word} {', '.join(methods)}" for word, methods in words.items() if methods]
        lines.append(f"- {name}: {BY_KEY[data['reference']].title}, is {'; '.join(parts)}.")
    return "\n".join(lines)


def _methods(data: dict[str, Any], settings: list[Setting]) -> list[str]:
    return list(data["settings"][settings[0].name])


def signed(mean: float, width: float) -> str:
    """A difference with the half width of its interval."""
    return f"{mean:+.1f} ± {width:.1f}"


def _parameters(values: dict[str, Any]) -> str:
    shown = {k: v for k, v in values.items() if k != "target_groups"}
    return ", ".join(f"{k} {v:g}" for k, v in shown.items()) or "–"


def draw_plans(comparison: Comparison, done: Records, setting: Setting) -> Figure:
    """The coupling matrices of seed 0, rows and columns sorted by class."""
    import matplotlib.pyplot as plt

    from structot import plot

    methods = [m for m in FIGURE_METHODS if m in comparison.methods and m != "none"]
    figure, axes = plt.subplots(
        1, len(methods), figsize=(2.1 * len(methods), 2.5), layout="constrained"
    )
    for ax, method in zip(np.atleast_1d(axes), methods, strict=True):
        run = comparison.runs(done, setting, method)[0]
        ys, yt, P = run["source_labels"], run["target_labels"], run["plan"]
        plot.plan(P, ys, yt, ax=ax).set(xlabel="", ylabel="", aspect="equal")
        inside = P[ys[:, None] == yt[None, :]].sum() / P.sum()
        right = f"{100 * inside:.0f} % in class, {run['accuracy'][0]:.0f} % right"
        ax.set_title(f"{_short(method)}\n{right}", fontsize=8)
    np.atleast_1d(axes)[0].set(ylabel="source, by class", xlabel="target, by class")
    return figure


def draw_digits(comparison: Comparison, done: Records, setting: Setting, side: int) -> Figure:
    """One source digit per class and where each method carries it, seed 0."""
    import matplotlib.pyplot as plt

    methods = [m for m in FIGURE_METHODS if m in comparison.methods]
    runs = {m: comparison.runs(done, setting, m)[0] for m in methods}
    labels = runs[methods[0]]["source_labels"]
    shown = [int(np.flatnonzero(labels == c)[0]) for c in range(10) if (labels == c).any()]
    figure, axes = plt.subplots(
        len(methods),
        len(shown),
        figsize=(0.62 * len(shown) + 1.2, 0.66 * len(methods)),
        layout="constrained",
    )
    for row, method in zip(axes, methods, strict=True):
        for ax, index in zip(row, shown, strict=True):
            image = runs[method]["moved"][index].reshape(side, side)
            ax.imshow(image, cmap="gray_r", interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        name = "source" if method == "none" else _short(method)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def _short(method: str) -> str:
    names = {"lasso": "group lasso", "paper": "structured, exact", OURS: "structured"}
    return names.get(method, BY_KEY[method].title)
