"""From the records of the experiment on sentences to numbers with intervals.

Notation: ρ Spearman's rank correlation between -d and the score; MSE of a kernel regression fitted
on train; intervals are 95 % of a paired bootstrap over pairs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import rankdata

from structot._typing import Array
from structot.experiments._runner import Records
from structot.experiments._sentence_order import CHANGES, KINDS
from structot.experiments._sentence_tasks import Choice, best_width, preset, smooth

RESAMPLES = 1000
ENOUGH = 0.98  # accuracy on train that a preset must have, with room for .95 on test
NAMES = {"wmd": "plain WMD", "charge": "fixed charge", "concave": "concave"}
METHODS = ("wmd", "sets", "written", "ngrams", "dependency", "position")


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


def interval(values: Array) -> dict[str, float]:
    """Mean, and the bootstrap interval of it."""
    rng = np.random.default_rng(0)
    means = rng.choice(values, (4 * RESAMPLES, values.size)).mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


def shown(chosen: dict[str, Choice], own: Choice) -> dict[str, tuple[Choice, Choice | None]]:
    """The rows of the large table: a distance, and the plain one it is compared with."""
    gensim = Choice(normalize=True, exact=True)
    dropped, light = Choice(normalize=True, stop=True), own.plain()
    rows: dict[str, tuple[Choice, Choice | None]] = {
        "plain WMD, as in gensim": (gensim, None),
        "plain WMD, stop words dropped": (dropped, None),
        "plain WMD, stop words light": (light, None),
        "**preset**": (own, light),
        "preset, passives as written": (replace(own, active_voice=False), light),
        "preset, parsed phrases": (replace(own, groups="dependency"), light),
        "preset, phrases as sets": (replace(own, family="sets"), light),
        "preset, stop words dropped": (replace(own, stop=True), dropped),
        "plain WMD, negation × 3": (replace(dropped, weights="negation"), dropped),
        "plain WMD, chosen": (chosen["wmd"], None),
    }
    for family in ("charge", "concave"):
        name = f"{NAMES[family]}, chosen"
        rows[name] = chosen[family], chosen["wmd"]
        rows[f"{name}, shuffled n-grams"] = chosen[family].shuffled(), chosen["wmd"]
    return rows


def whole(done: Records, chosen: dict[str, Choice], limit: str) -> dict[str, Any]:
    """Scores on all test pairs, and paired differences from plain WMD."""
    found: dict[str, Any] = {}
    for name, (choice, plain) in shown(chosen, preset()).items():
        record = done[f"whole_{limit}_{choice.name}"]
        y = record["test_score"]
        entry = scores((record["train"], record["train_score"]), (record["test"], y))
        if plain is not None:
            base = done[f"whole_{limit}_{plain.name}"]["test"]
            entry["difference"] = difference(record["test"], base, y)
            entry["against"] = plain.words()
        found[name] = {**entry, "choice": choice.words()}
    return found


def spread(d: Array, y: Array) -> dict[str, float]:
    """ρ of plain WMD over 500 draws of 100 test pairs: how much one draw says."""
    rng = np.random.default_rng(1)
    values = []
    for _ in range(500):
        part = rng.choice(y.size, min(100, y.size), replace=False)
        values.append(spearman(-d[part], y[part]))
    return {"least": min(values), "median": float(np.median(values)), "most": max(values)}


def draws(done: Records, parts: list[Array], keys: list[str], count: int) -> dict[str, Any]:
    """The paper's protocol: choices, regression and scores within each draw of 100 + 100."""
    table: dict[str, list[dict[str, Any]]] = {"wmd": [], "charge": [], "concave": []}
    for part, key in zip(parts, keys):
        record = done[key]
        for family, rows in table.items():
            grid = done[f"grid_{count}_{record['choices'][family]}"]
            rows.append(scores((grid["d"][part], grid["y"][part]), (record[family], record["y"])))
    found: dict[str, Any] = {}
    for family, rows in table.items():
        entry: dict[str, Any] = {}
        for score in ("mse", "spearman"):
            values = np.array([row[score] for row in rows])
            base = np.array([row[score] for row in table["wmd"]])
            entry[score] = {**interval(values), "values": values.tolist()}
            entry[f"{score}_difference"] = interval(values - base)
        found[family] = entry
    return found


def order(done: Records, limit: str) -> dict[str, Any]:
    """Accuracies on test: ours at the charge of the preset, the positional cost as best on train.

    ``minus_position`` is the paired difference from the positional cost.
    """
    wins: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {}
    for method in METHODS:
        rows: dict[float, dict[str, dict[str, Any]]] = {}
        for key, record in done.items():
            parts = key.split("_")
            if parts[:1] == ["order"] and parts[2] == method and parts[4] == limit:
                rows.setdefault(float(parts[3]), {})[parts[1]] = record
        own = preset().price
        price = own if own in rows and method != "position" else max(rows, key=_on_train(rows))
        wins[method] = rows[price]["test"]
        found[method] = {
            "price": price,
            "by_price": {
                f"{p:g}": {kind: float(np.nanmean(rows[p]["test"][kind])) for kind in KINDS}
                for p in sorted(rows)
            },
        }
    for method in METHODS:
        for kind in (*KINDS, "roles, same voice", "roles, other voice"):
            ours, base = (_wins(wins[name], kind) for name in (method, "position"))
            used = ~np.isnan(ours)
            if used.any():
                found[method][kind] = {**interval(ours[used]), "pairs": int(used.sum())}
                found[method][kind]["minus_position"] = interval((ours - base)[used])
    return found


def _on_train(rows: dict[float, dict[str, dict[str, Any]]]) -> Any:
    """The mean accuracy of a price on train, over the kinds of copies."""
    return lambda p: float(np.mean([np.nanmean(rows[p]["train"][kind]) for kind in KINDS]))


def _wins(record: dict[str, Any], kind: str) -> Array:
    name, _, voice = kind.partition(", ")
    same = record["same_voice"]
    part = np.ones(same.size, bool) if not voice else same if voice == "same voice" else ~same
    return np.where(part, record[name], np.nan)


def candidates(done: Records, choices: dict[str, Choice], limit: str) -> dict[str, Any]:
    """What the preset was chosen from, and whether it is what the rule chooses."""
    rows = {
        name: {**done[f"candidate_{limit}_{name}"], "choice": choice.words()}
        for name, choice in choices.items()
    }
    good = [n for n, row in rows.items() if min(row[kind] for kind in KINDS) >= ENOUGH]
    best = max(good or rows, key=lambda name: rows[name]["spearman"])
    return {"rows": rows, "best": best, "is_preset": best == preset().name}


def heard(done: Records, limit: str) -> dict[str, Any]:
    """Shares of changes of order that are heard."""
    found = {}
    for name in ("preset", "dropped"):
        record = done[f"heard_{name}_{limit}"]
        found[name] = {kind: record[kind] for kind in CHANGES}
        found[name] |= {x: record[x] for x in ("mean_distance", "themselves", "asymmetry")}
    return found


def speed(done: Records, limit: str) -> dict[str, Any]:
    """Rates, and searches added up."""
    found: dict[str, Any] = {}
    for name in ("ordered", "sets"):
        record = done[f"rate_{name}_{limit}"]
        found[name] = {**record, "rate": record["pairs"] / record["seconds"]}
    parts = [record for key, record in done.items() if key.startswith("search_")]
    total = {
        name: sum(part[name] for part in parts)
        for name in ("queries", "compared", "same", "search_seconds", "all_seconds")
    }
    total["solved"] = float(np.mean([part["solved"] for part in parts]))
    total["sentences"] = parts[0]["sentences"]
    by_index = total["search_seconds"] / total["queries"]
    total["faster"] = total["all_seconds"] / total["compared"] / by_index
    return {**found, "search": total, "cold": done["cold"]}
