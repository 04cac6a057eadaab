"""Words and pictures of the experiment on sentences; the page of the documentation is made here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from structot._typing import Array
from structot.experiments import _sentence_numbers as numbers
from structot.experiments import _sentence_words as words
from structot.experiments._runner import Records, Report
from structot.experiments._sentence_numbers import ENOUGH, KINDS, NAMES, scores
from structot.experiments._sentence_order import CHANGES
from structot.experiments._sentence_tasks import APPENDIX, Choice, preset, smooth
from structot.experiments._tables import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PUBLISHED = {"wmd": (0.67, 0.71), "structured": (0.59, 0.75)}
ORDER_NAMES = {
    "wmd": "plain WMD",
    "sets": "bigrams as sets",
    "written": "preset, passives as written",
    "ngrams": "**preset**: ordered bigrams",
    "dependency": "preset with parsed phrases",
    "position": "plain, cost + position",
}
KIND_NAMES = {"shuffled": "shuffled", "reversed": "reversed", "roles": "roles swapped"}


def make_report(
    done: Records,
    chosen: dict[str, Choice],
    limit: str,
    parts: list[Array],
    draw_keys: list[str],
    count: int,
    candidates: dict[str, Choice],
) -> Report:
    """Everything from the records; see `sentences` for their keys."""
    light = done[f"whole_{limit}_{preset().plain().name}"]
    appendix = {
        k: {x: v[x] for x in ("distance", "gap", "moves", "kept", "broken")}
        for k, v in done["appendix"].items()
    }
    results: dict[str, Any] = {
        "chosen": {family: choice.words() for family, choice in chosen.items()},
        "published": {k: {"mse": v[0], "spearman": v[1]} for k, v in PUBLISHED.items()},
        "candidates": numbers.candidates(done, candidates, limit),
        "draws": numbers.draws(done, parts, draw_keys, count),
        "whole": numbers.whole(done, chosen, limit),
        "spread": numbers.spread(light["test"], light["test_score"]),
        "order": numbers.order(done, limit),
        "heard": numbers.heard(done, limit),
        "speed": numbers.speed(done, limit),
        "appendix": appendix,
    }
    first = done[draw_keys[0]]
    grids = {f: done[f"grid_{count}_{first['choices'][f]}"] for f in ("wmd", "charge")}
    figures = {
        "sentences_order": lambda: _order_figure(results["order"]),
        "sentences_scatter": lambda: _scatter(grids, first, parts[0]),
        "sentences_alignment": lambda: _alignments(done["appendix"]),
    }
    captions = {
        "sentences_order": "How often a sentence is told from its own words in another order.",
        "sentences_scatter": "Distances against human judgements of relatedness.",
        "sentences_alignment": "Which words go where, with and without phrases.",
    }
    return Report(results, markdown(results), figures, captions)


# --------------------------------------------------------------------------------------------------
# Words and tables
# --------------------------------------------------------------------------------------------------


def _line(text: str, **values: Any) -> str:
    """A paragraph on one line."""
    return " ".join(text.split()).format(**values)


def _signed(entry: dict[str, float], digits: int = 3) -> str:
    return f"{entry['mean']:+.{digits}f} [{entry['low']:+.{digits}f}, {entry['high']:+.{digits}f}]"


def _plain(entry: dict[str, float], digits: int = 3) -> str:
    return f"{entry['mean']:.{digits}f} [{entry['low']:.{digits}f}, {entry['high']:.{digits}f}]"


def markdown(results: dict[str, Any], figures: str | None = None) -> str:
    """The report; with links to the figures in a folder, for the documentation."""

    def figure(name: str, caption: str) -> list[str]:
        return [] if figures is None else [f"![{caption}]({figures}/sentences_{name}.png)"]

    draws, own = results["draws"], results["candidates"]
    sections = [
        "# Sentences: relatedness and word order on SICK",
        "    structot reproduce sentences --data FOLDER",
        " ".join(words.INTRODUCTION.split()),
        "## Verdict",
        *_verdict(results),
        "## Is a change of order heard?",
        _line(words.HEARD),
        _heard_table(results["heard"]),
        "## Is the paraphrase nearer than a copy of it with its words moved?",
        _line(words.COPIES),
        _order_table(results["order"]),
        *figure("order", "Accuracy against copies with words moved"),
        "Accuracy by price, shuffled / reversed / roles swapped:",
        _price_table(results["order"]),
        "## How the preset was chosen",
        _line(
            words.CHOICE,
            enough=ENOUGH,
            best=own["rows"][own["best"]]["choice"],
            verdict="this one" if own["is_preset"] else "**another one**",
        ),
        _line(words.LOOKED, enough=ENOUGH),
        _candidate_table(own["rows"]),
        "## Relatedness, all of SICK",
        _line(words.WHOLE),
        _whole_table(results["whole"]),
        "## Relatedness, the paper's protocol",
        _line(words.DRAWS, draws=len(draws["wmd"]["mse"]["values"])),
        _draw_table(draws),
        _line(words.SPREAD, **results["spread"]),
        *figure("scatter", "Distances and scores of the first draw"),
        "## The three sentences of the paper's appendix",
        *(f"({name}) {text}" for name, text in APPENDIX.items()),
        _appendix(results["appendix"]),
        *figure("alignment", "Alignments"),
        "## Speed",
        *_speed(results["speed"]),
    ]
    return "\n\n".join(sections) + "\n"


def _heard_table(heard: dict[str, Any]) -> str:
    names = {"preset": "preset", "dropped": "preset, stop words dropped"}
    rows = [
        [
            names[name],
            *(f"{100 * entry[k]['heard']:.2f} % of {entry[k]['cases']}" for k in CHANGES),
            f"{entry['themselves']:g}",
            f"{entry['asymmetry']:g}",
        ]
        for name, entry in heard.items()
    ]
    head = ["", *CHANGES, "largest d(s, s)", "largest d(s, t) − d(t, s)"]
    return table(head, rows)


def _order_table(order: dict[str, Any]) -> str:
    kinds = [*KINDS, "roles, same voice", "roles, other voice"]
    rows = []
    for kind in (k for k in kinds if k in order["wmd"]):
        for method, name in ORDER_NAMES.items():
            entry = order[method][kind]
            against = "" if method == "position" else _signed(entry["minus_position"])
            rows.append([kind, name, _plain(entry), against, str(entry["pairs"])])
    return table(["copies", "", "accuracy", "minus positional cost", "pairs"], rows)


def _price_table(order: dict[str, Any]) -> str:
    rows = [
        [ORDER_NAMES[method], price, " / ".join(f"{values[kind]:.3f}" for kind in KINDS)]
        for method, entry in order.items()
        for price, values in entry["by_price"].items()
    ]
    return table(["", "price", "accuracy"], rows)


def _candidate_table(rows: dict[str, Any]) -> str:
    listed = sorted(rows.values(), key=lambda row: -row["spearman"])
    cells = [[row["choice"], *(f"{row[x]:.4f}" for x in ("spearman", *KINDS))] for row in listed]
    return table(["choice", "Spearman (train)", *KIND_NAMES.values()], cells)


def _whole_table(whole: dict[str, Any]) -> str:
    rows = [
        [
            name,
            f"{entry['mse']:.3f}",
            f"{entry['spearman']:.3f}",
            _signed(entry["difference"]) if "difference" in entry else "",
            entry["choice"],
        ]
        for name, entry in whole.items()
    ]
    return table(["", "MSE", "Spearman", "Spearman − plain WMD", "choice"], rows)


def _draw_table(draws: dict[str, Any]) -> str:
    rows = [
        [
            NAMES[family],
            f"{entry['mse']['mean']:.3f}",
            f"{entry['spearman']['mean']:.3f}",
            _signed(entry["mse_difference"]) if family != "wmd" else "",
            _signed(entry["spearman_difference"]) if family != "wmd" else "",
        ]
        for family, entry in draws.items()
    ]
    rows.append(["published, plain WMD (one draw)", "0.67", "0.71", "", ""])
    rows.append(["published, syntax-aware (one draw)", "0.59", "0.75", "", ""])
    return table(["", "MSE", "Spearman", "MSE − WMD", "Spearman − WMD"], rows)


def _appendix(found: dict[str, Any]) -> str:
    names = {"wmd": "plain WMD, vectors of length 1", "ours": "preset"}
    rows = [
        [name, *(f"{found[f'{key}_{pair}']['distance']:.3f}" for pair in ("ab", "ac", "bc"))]
        for key, name in names.items()
    ]
    fates = found["ours_ac"]
    nearer = fates["distance"] < found["ours_ab"]["distance"]
    order = "nearer to its paraphrase (c) than to (b)" if nearer else "nearer to (b) than to (c)"
    return (
        table(["distance", "a – b", "a – c", "b – c"], rows)
        + "\n\nGloVe 6B, 100 dimensions. Phrases of (a) that the preset keeps on the way to (c): "
        + f"{', '.join(fates['kept']) or 'none'}; broken: {', '.join(fates['broken']) or 'none'}. "
        + f"To the preset (a) is {order}."
    )


def _speed(speed: dict[str, Any]) -> list[str]:
    search, ordered = speed["search"], speed["ordered"]
    milliseconds = 1000 * search["search_seconds"] / search["queries"]
    return [
        _line(words.RATE, pairs=ordered["pairs"], rate=ordered["rate"], sets=speed["sets"]["rate"]),
        _line(words.SEARCH, milliseconds=milliseconds, **search),
        _line(words.COLD, **speed["cold"]),
    ]


def _verdict(results: dict[str, Any]) -> list[str]:
    """Sentences that follow from the numbers."""
    whole, order, heard = results["whole"], results["order"], results["heard"]
    least = min(entry[kind]["heard"] for entry in heard.values() for kind in CHANGES)
    ours, parsed = order["ngrams"], order["dependency"]
    ahead = ours["reversed"]["minus_position"]
    gain, tree = whole["**preset**"]["difference"], whole["preset, parsed phrases"]["difference"]

    def says(entry: dict[str, float]) -> str:
        return "gains" if entry["low"] > 0 else "loses" if entry["high"] < 0 else "ties"

    def rho(name: str) -> str:
        return f"{whole[name]['spearman']:.3f}"

    def error(name: str) -> str:
        return f"{whole[name]['mse']:.3f}"

    def listed(entry: dict[str, Any]) -> str:
        return ", ".join(f"{KIND_NAMES[kind]} {entry[kind]['mean']:.3f}" for kind in KINDS)

    missed = [KIND_NAMES[k] for k in KINDS if ours[k]["mean"] < 0.95]
    goal = f"; below .95: {' and '.join(missed)}" if missed else "; all above .95"
    clear = "more accurate" if ahead["low"] > 0 else "not more accurate"
    voices = [f"roles, {voice} voice" for voice in ("same", "other")]
    by_voice = " and ".join(f"{ours[v]['mean']:.3f} ({v[7:]})" for v in voices if v in ours)
    chosen = [whole[f"{NAMES[family]}, chosen"]["difference"] for family in ("charge", "concave")]
    return [
        f"**Order is heard.** At least {math.floor(1e4 * least) / 100:.2f} % of all changes of "
        "order, of each kind, with and without stop words; a sentence is at distance 0 from "
        "itself, and both directions are the same.",
        f"**Who did what to whom.** Paraphrases are nearer than their copies: the preset "
        f"{listed(ours)}{goal}. On reversed copies it is {clear} than the positional cost "
        f"({_signed(ahead)}). Swapped roles split by voice: {by_voice}. Parsed phrases: "
        f"{listed(parsed)}.",
        f"**Relatedness.** The preset {says(gain)} against plain WMD with the same words "
        f"({_signed(gain)} in Spearman; in MSE {error('**preset**')} against "
        f"{error('plain WMD, stop words light')}), parsed phrases: {says(tree)} "
        f"({_signed(tree)}). Stop words matter more: as in gensim "
        f"{rho('plain WMD, as in gensim')}, preset {rho('**preset**')}, dropped "
        f"{rho('plain WMD, stop words dropped')}.",
        f"**The paper's claim, that structure predicts relatedness better.** Choices by "
        f"cross-validation: the fixed charge {says(chosen[0])} ({_signed(chosen[0])}), the concave "
        f"form {says(chosen[1])} ({_signed(chosen[1])}) against the chosen plain WMD.",
    ]


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
    """Accuracies against the three kinds of copies, with intervals."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9.5, 2.8), layout="constrained", sharey=True)
    names = list(ORDER_NAMES)[::-1]
    labels = [ORDER_NAMES[name].replace("*", "") for name in names]
    colors = ["#E69F00" if name == "position" else "#56B4E9" for name in names]
    for ax, kind in zip(axes, KINDS):
        tests = [order[name][kind] for name in names]
        mean = np.array([test["mean"] for test in tests])
        ends = np.array([[t["mean"] - t["low"], t["high"] - t["mean"]] for t in tests]).T
        ax.barh(labels, mean, xerr=ends, color=colors)
        ax.axvline(0.5, color="0.3", linestyle="--", linewidth=0.8)
        ax.set(xlim=(0, 1), title=KIND_NAMES[kind])
    axes[1].set_xlabel("share of paraphrases nearer than the copy")
    return figure


def _alignments(found: dict[str, Any]) -> Figure:
    """The pairs (a, b) and (a, c), plain and with the charge."""
    import matplotlib.pyplot as plt

    from structot.text.explain import draw_alignment

    figure, axes = plt.subplots(2, 2, figsize=(10, 5), layout="constrained")
    for row, (name, title) in zip(axes, (("wmd", "plain WMD"), ("ours", "preset"))):
        for ax, pair in zip(row, ("ab", "ac")):
            record = found[f"{name}_{pair}"]
            draw_alignment(record["source"], record["target"], record["plan"], record["cost"], ax)
            ax.set_title(f"{title}, {pair[0]} – {pair[1]}: {record['distance']:.2f}", fontsize=10)
    return figure
