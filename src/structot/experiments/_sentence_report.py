"""Numbers, words and pictures of the experiment on sentences.

Notation: ρ Spearman's rank correlation between predicted and true scores (for a monotone curve that
of -d); MSE of a kernel regression fitted on train; intervals are 95 % of a paired bootstrap.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata

from structot._typing import Array
from structot.experiments._runner import Records, Report
from structot.experiments._sentence_tasks import APPENDIX, Choice, best_width, smooth
from structot.experiments._tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESAMPLES = 1000
PUBLISHED = {"wmd": (0.67, 0.71), "structured": (0.59, 0.75)}
NAMES = {"wmd": "plain WMD", "charge": "fixed charge", "concave": "concave"}
ORDER_NAMES = {
    "wmd": "plain WMD",
    "ngrams": "fixed charge, bigrams",
    "dependency": "fixed charge, dependency",
    "concave": "concave, bigrams",
    "position": "plain, cost + position",
}


def spearman(x: Array, y: Array) -> float:
    """Rank correlation."""
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def scores(train: tuple[Array, Array], test: tuple[Array, Array]) -> dict[str, Any]:
    """MSE of the regression fitted on train, and ρ of -d, both on test."""
    width, _ = best_width(*train)
    predicted = smooth(*train, test[0], width)
    mse = float(np.mean((predicted - test[1]) ** 2))
    return {"mse": mse, "spearman": spearman(-test[0], test[1]), "width": width}


def difference(d: Array, base: Array, y: Array) -> dict[str, float]:
    """ρ(-d) - ρ(-base) with its bootstrap interval over pairs."""
    rng = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        part = rng.integers(0, y.size, y.size)
        values.append(spearman(-d[part], y[part]) - spearman(-base[part], y[part]))
    low, high = np.percentile(values, [2.5, 97.5])
    return {"mean": spearman(-d, y) - spearman(-base, y), "low": float(low), "high": float(high)}


def _interval(values: Array) -> dict[str, float]:
    """Mean, and the bootstrap interval of it."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, (4 * RESAMPLES, values.size)).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


def make_report(
    done: Records,
    chosen: dict[str, Choice],
    limit: str,
    parts: list[Array],
    draw_keys: list[str],
    count: int,
) -> Report:
    """Everything from the records; see `sentences` for their keys."""
    whole = _whole(done, chosen, limit)
    dropped = done[f"whole_{limit}_{Choice(stop=True).name}"]
    draws = _draws(done, parts, draw_keys, count)
    order = _order(done, limit)
    appendix = {
        k: {x: v[x] for x in ("distance", "gap", "moves")} for k, v in done["appendix"].items()
    }
    results = {
        "chosen": {family: choice.words() for family, choice in chosen.items()},
        "published": {k: {"mse": v[0], "spearman": v[1]} for k, v in PUBLISHED.items()},
        "draws": draws,
        "whole": whole,
        "spread": _spread(dropped["test"], dropped["test_score"]),
        "order": order,
        "appendix": appendix,
    }
    first = done[draw_keys[0]]
    grids = {f: done[f"grid_{count}_{first['choices'][f]}"] for f in ("wmd", "charge")}
    figures = {
        "sentences_scatter": lambda: _scatter(grids, first, parts[0]),
        "sentences_order": lambda: _order_figure(order),
        "sentences_alignment": lambda: _alignments(done["appendix"]),
    }
    captions = {
        "sentences_scatter": "Distances against human judgements of relatedness.",
        "sentences_order": "How often a sentence is told from its own words in another order.",
        "sentences_alignment": "Which words go where, with and without phrases.",
    }
    return Report(results, _markdown(results), figures, captions)


def shown(chosen: dict[str, Choice]) -> dict[str, tuple[Choice, Choice | None]]:
    """The rows of the large table: a distance, and the plain one it is compared with."""
    plain, dropped = Choice(), Choice(stop=True)
    charge, concave = Choice("charge", 0.4), Choice("concave", 0.1, stop=True)
    rows: dict[str, tuple[Choice, Choice | None]] = {
        "plain WMD": (plain, None),
        "fixed charge": (charge, plain),
        "fixed charge, shuffled n-grams": (charge.shuffled(), plain),
        "plain WMD, stop words dropped": (dropped, None),
        "plain WMD, negation × 3": (replace(dropped, weights="negation"), dropped),
        "concave": (concave, dropped),
        "concave, trigrams": (replace(concave, ngram=3), dropped),
        "plain WMD, chosen": (chosen["wmd"], None),
    }
    for family in ("charge", "concave"):
        name = f"{NAMES[family]}, chosen"
        rows[name] = chosen[family], chosen["wmd"]
        rows[f"{name}, shuffled n-grams"] = chosen[family].shuffled(), chosen["wmd"]
    return rows


def _whole(done: Records, chosen: dict[str, Choice], limit: str) -> dict[str, Any]:
    """Scores on all test pairs, and paired differences from plain WMD."""
    found: dict[str, Any] = {}
    for name, (choice, plain) in shown(chosen).items():
        record = done[f"whole_{limit}_{choice.name}"]
        y = record["test_score"]
        entry = scores((record["train"], record["train_score"]), (record["test"], y))
        if plain is not None:
            base = done[f"whole_{limit}_{plain.name}"]["test"]
            entry["difference"] = difference(record["test"], base, y)
            entry["against"] = plain.words()
        found[name] = {**entry, "choice": choice.words()}
    return found


def _spread(d: Array, y: Array) -> dict[str, float]:
    """ρ of plain WMD over 500 draws of 100 test pairs: how much one draw says."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(500):
        part = rng.choice(y.size, min(100, y.size), replace=False)
        values.append(spearman(-d[part], y[part]))
    return {"least": min(values), "median": float(np.median(values)), "most": max(values)}


def _draws(done: Records, parts: list[Array], keys: list[str], count: int) -> dict[str, Any]:
    """The paper's protocol: choices, regression and scores within each draw of 100 + 100."""
    table_: dict[str, list[dict[str, Any]]] = {"wmd": [], "charge": [], "concave": []}
    for part, key in zip(parts, keys):
        record = done[key]
        for family, rows in table_.items():
            grid = done[f"grid_{count}_{record['choices'][family]}"]
            rows.append(scores((grid["d"][part], grid["y"][part]), (record[family], record["y"])))
    found: dict[str, Any] = {}
    for family, rows in table_.items():
        entry: dict[str, Any] = {}
        for score in ("mse", "spearman"):
            values = np.array([row[score] for row in rows])
            base = np.array([row[score] for row in table_["wmd"]])
            entry[score] = {**_interval(values), "values": values.tolist()}
            entry[f"{score}_difference"] = _interval(values - base)
        found[family] = entry
    return found


def _order(done: Records, limit: str) -> dict[str, Any]:
    """Accuracy on test at every price, and at the one that was best on train."""
    found: dict[str, Any] = {}
    for method in ORDER_NAMES:
        rows: dict[float, dict[str, Array]] = {}
        for key, record in done.items():
            parts = key.split("_")
            if parts[:1] == ["order"] and parts[2] == method and parts[4] == limit:
                rows.setdefault(float(parts[3]), {})[parts[1]] = record["wins"]
        best = max(rows, key=lambda price: float(rows[price]["train"].mean()))
        found[method] = {
            "best_on_train": best,
            "test": {**_interval(rows[best]["test"]), "pairs": int(rows[best]["test"].size)},
            "by_price": {f"{p:g}": float(rows[p]["test"].mean()) for p in sorted(rows)},
        }
        found[method]["_wins"] = rows[best]["test"]
    base = found["position"]["_wins"]
    for method in ORDER_NAMES:
        wins = found[method].pop("_wins")
        found[method]["minus_position"] = _interval(wins - base)
    return found


# --------------------------------------------------------------------------------------------------
# Words
# --------------------------------------------------------------------------------------------------


def _range(entry: dict[str, float], digits: int = 3) -> str:
    return f"{entry['mean']:+.{digits}f} [{entry['low']:+.{digits}f}, {entry['high']:+.{digits}f}]"


def _draw_table(draws: dict[str, Any]) -> str:
    rows = [
        [
            NAMES[family],
            f"{entry['mse']['mean']:.3f}",
            f"{entry['spearman']['mean']:.3f}",
            _range(entry["mse_difference"]) if family != "wmd" else "",
            _range(entry["spearman_difference"]) if family != "wmd" else "",
        ]
        for family, entry in draws.items()
    ]
    rows.append(["published, plain WMD (one draw)", "0.67", "0.71", "", ""])
    rows.append(["published, syntax-aware (one draw)", "0.59", "0.75", "", ""])
    return table(["", "MSE", "Spearman", "MSE − WMD", "Spearman − WMD"], rows)


def _whole_table(whole: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{entry['mse']:.3f}",
            f"{entry['spearman']:.3f}",
            _range(entry["difference"]) if "difference" in entry else "",
            entry["choice"],
        ]
        for name, entry in whole.items()
    ]
    return table(["", "MSE", "Spearman", "Spearman − plain WMD", "choice"], rows)


def _order_table(order: dict[str, Any]) -> str:
    rows = []
    for method, entry in order.items():
        test, prices = entry["test"], entry["by_price"].items()
        priced = method != "wmd"
        rows.append(
            [
                ORDER_NAMES[method],
                f"{test['mean']:.3f}",
                f"[{test['low']:.3f}, {test['high']:.3f}]",
                _range(entry["minus_position"]) if method != "position" else "",
                f"{entry['best_on_train']:g}" if priced else "",
                ", ".join(f"{p}: {v:.2f}" for p, v in prices) if priced else "",
            ]
        )
    head = ["", "accuracy", "95 % interval", "minus positional cost", "price (train)", "by price"]
    return table(head, rows)


def _markdown(results: dict[str, Any]) -> str:
    whole, draws, order = results["whole"], results["draws"], results["order"]
    n_draws, spread = len(draws["wmd"]["mse"]["values"]), results["spread"]
    pairs = order["wmd"]["test"]["pairs"]
    sections = [
        "# Sentences",
        "## Relatedness, the paper's protocol",
        f"Means over {n_draws} draws of 100 training and 100 test pairs; choices by leave-one-out "
        "error on the 100 training pairs; intervals of the mean paired difference over draws.",
        _draw_table(draws),
        f"One draw says little: over 500 draws of 100 test pairs the Spearman correlation of plain "
        f"WMD (stop words dropped) runs from {spread['least']:.2f} to {spread['most']:.2f}.",
        "## Relatedness, all of SICK",
        "Each difference is from the plain WMD with the same stop words, weights by count; in the "
        "rows named chosen, from the chosen plain WMD.",
        _whole_table(whole),
        "## Word order",
        f"{pairs} test pairs with a score of at least 4.5: is the true partner nearer than copies "
        "of it with the words shuffled? Ties count one half; the price is the best on train.",
        _order_table(order),
        "## The three sentences of the appendix",
        *(f"({name}) {text}" for name, text in APPENDIX.items()),
        _appendix(results["appendix"]),
        "## Verdict",
        _verdict(results),
    ]
    return "\n\n".join(sections)


def _appendix(found: dict[str, Any]) -> str:
    rows = [
        [
            {"wmd": "plain WMD", "ours": "fixed charge, bigrams, β = 0.4"}[name],
            *(f"{found[f'{name}_{pair}']['distance']:.3f}" for pair in ("ab", "ac", "bc")),
        ]
        for name in ("wmd", "ours")
    ]
    moves = {
        name: "; ".join(f"{s} → {t}" for s, t, _ in found[f"{name}_ab"]["moves"])
        for name in ("wmd", "ours")
    }
    return (
        table(["distance", "a – b", "a – c", "b – c"], rows)
        + f"\n\nAlignment of a and b, plain: {moves['wmd']}.\n\nWith the charge: {moves['ours']}."
    )


def _verdict(results: dict[str, Any]) -> str:
    """Sentences that follow from the numbers."""
    whole, order, draws = results["whole"], results["order"], results["draws"]
    parts = []
    for family in ("charge", "concave"):
        name = NAMES[family]
        gain = whole[f"{name}, chosen"]["difference"]
        control = whole[f"{name}, chosen, shuffled n-grams"]["difference"]
        say = "gains" if gain["low"] > 0 else "loses" if gain["high"] < 0 else "ties"
        overlap = gain["low"] <= control["high"] and control["low"] <= gain["high"]
        parts.append(
            f"Relatedness: the {name} form {say} against plain WMD on all test pairs "
            f"({_range(gain)}); with n-grams of shuffled words {_range(control)}, "
            f"{'no different' if overlap else 'different'} from it; over the draws of the paper's "
            f"protocol {_range(draws[family]['spearman_difference'])}."
        )
    ours, position = order["ngrams"], order["position"]
    tree = order["dependency"]["test"]["mean"]
    ahead = ours["minus_position"]
    against = "more accurate" if ahead["low"] > 0 else "less accurate"
    against = "no more and no less accurate" if ahead["low"] <= 0 <= ahead["high"] else against
    parts.append(
        f"Word order: plain WMD {order['wmd']['test']['mean']:.2f} by construction, the fixed "
        f"charge {ours['test']['mean']:.2f}, dependency groups {tree:.2f}, "
        f"concave groups {order['concave']['test']['mean']:.2f}, the positional cost without "
        f"structure {position['test']['mean']:.2f}: the charge is {against} than it "
        f"({_range(ahead)})."
    )
    return "\n\n".join(parts)


# --------------------------------------------------------------------------------------------------
# Pictures
# --------------------------------------------------------------------------------------------------


def _scatter(grids: dict[str, Any], first: dict[str, Any], part: Array) -> Figure:
    """Distances against scores of the first draw, with the curves fitted on train."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
    for ax, (family, name) in zip(axes, (("wmd", "plain WMD"), ("charge", "fixed charge"))):
        d, y = grids[family]["d"][part], grids[family]["y"][part]
        result = scores((d, y), (first[family], first["y"]))
        ax.scatter(d, y, 12, color="0.7", label="train")
        ax.scatter(first[family], first["y"], 12, color="#0072B2", label="test")
        at = np.linspace(min(d.min(), first[family].min()), max(d.max(), first[family].max()), 200)
        ax.plot(at, smooth(d, y, at, result["width"]), color="#D55E00", label="fitted on train")
        ax.set_title(f"{name}: MSE {result['mse']:.2f}, ρ {result['spearman']:.2f}")
        ax.set_xlabel("distance")
    axes[0].set_ylabel("relatedness")
    axes[0].legend(frameon=False)
    return figure


def _order_figure(order: dict[str, Any]) -> Figure:
    """Accuracy of the word-order test with intervals."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
    names = list(ORDER_NAMES)[::-1]
    tests = [order[name]["test"] for name in names]
    mean = np.array([test["mean"] for test in tests])
    ends = np.array([[t["mean"] - t["low"], t["high"] - t["mean"]] for t in tests]).T
    ax.barh([ORDER_NAMES[name] for name in names], mean, xerr=ends, color="#56B4E9")
    ax.axvline(0.5, color="0.3", linestyle="--", linewidth=0.8)
    ax.set(xlim=(0, 1), xlabel="true partner nearer than a shuffled copy")
    return figure


def _alignments(found: dict[str, Any]) -> Figure:
    """The pairs (a, b) and (a, c), plain and with the charge."""
    import matplotlib.pyplot as plt

    from structot.text.explain import draw_alignment

    figure, axes = plt.subplots(2, 2, figsize=(10, 5), layout="constrained")
    for row, (name, title) in zip(axes, (("wmd", "plain WMD"), ("ours", "fixed charge"))):
        for ax, pair in zip(row, ("ab", "ac")):
            record = found[f"{name}_{pair}"]
            draw_alignment(record["source"], record["target"], record["plan"], record["cost"], ax)
            ax.set_title(f"{title}, {pair[0]} – {pair[1]}: {record['distance']:.2f}", fontsize=10)
    return figure
