"""What the constants of `metric="auto"`, of the class maps and of the warnings buy, on the suite.

Each is changed, one at a time. Of the metric and the maps it is accuracy that counts; of a warning
how often it comes where it should, and where it should not.

Notation
--------
misuse      target points handed to a map of source points, or a scaler that saw the source alone
harm        points of accuracy that a misuse costs
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structot._typing import Array
from structot.experiments._adaptation_methods import accuracy, nearest
from structot.experiments._adaptation_report import interval, signed
from structot.experiments._adaptation_suite import CASES, Case, Draw
from structot.experiments._runner import Records, Settings, Task
from structot.experiments._tables import table

HARM = 5.0  # points of accuracy from which a misuse counts as one that costs
_DOMAINS = "structot.adaptation.domains"
_MAPPING = "structot.adaptation.mapping"
_CLASSES = "structot.adaptation.class_affine"
SHARES = (0.25, 0.5, 0.75)  # of _SURPRISE
SCALES = (1.5, 2.0, 3.0)  # of _APART
LOOKED_AT = (10, 25, 500)  # of _MANY
BATCHES = (1, 2, 5, 20)  # points, for _FEW
_DRAWN = 20  # batches of each size


@dataclass(frozen=True)
class Change:
    """A row: parameters of the estimator, and names of a module with other values."""

    title: str
    parameters: dict[str, Any] = field(default_factory=dict)
    module: str = ""
    values: dict[str, Any] = field(default_factory=dict)


AFFINE = {"map": "class-affine"}
METRIC = (
    Change('metric="euclidean" everywhere', {"metric": "euclidean"}),
    Change('metric="seuclidean" everywhere', {"metric": "seuclidean"}),
    Change("fewer than a tenth of the features, not a fifth", {}, _MAPPING, {"_FEW_OF_ALL": 0.1}),
    Change("fewer than two fifths", {}, _MAPPING, {"_FEW_OF_ALL": 0.4}),
    Change("any share", {}, _MAPPING, {"_FEW_OF_ALL": np.inf}),
)
MAPS = (
    Change("barycentric"),
    Change("shapes trusted fully (κ = 1)", AFFINE, _CLASSES, {"trust": lambda X, k: _ones(k)}),
    Change("no change of shape (A = 1)", AFFINE, _CLASSES, {"LEAST": 1.0, "MOST": 1.0}),
    Change("any change of shape", AFFINE, _CLASSES, {"LEAST": 0.0, "MOST": np.inf}),
)


def _ones(number: Array) -> Array:
    return np.ones(int(number.max()) + 1)


@contextmanager
def changed(change: Change) -> Iterator[None]:
    """The module with other values, and as it was afterwards."""
    from importlib import import_module

    module = import_module(change.module) if change.module else None
    before = {name: getattr(module, name) for name in change.values}
    try:
        for name, value in change.values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def tasks(
    cases: tuple[Case, ...], seeds: tuple[int, ...], settings: Settings, data: str | None
) -> list[Task]:
    """Every change on every draw of every case."""
    words = ["variance", *(x.title for x in METRIC + MAPS), SHARES, SCALES, LOOKED_AT, BATCHES]
    digest = hashlib.sha256(repr(words).encode()).hexdigest()[:10]
    return [
        Task(
            f"constants-{case.key}-{seed}-{digest}",
            measure,
            {"case": case.key, "seed": seed, "data": data},
        )
        for case in cases
        for seed in seeds
    ]


def measure(case: str, seed: int, data: str | None) -> dict[str, Any]:
    """Accuracies with every change, and what the warnings look at, on one draw."""
    draw = next(c for c in CASES if c.key == case).draw(seed, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "default": _accuracy(draw),
            "affine": _accuracy(draw, **AFFINE),
            "variance": {"default": _kept(draw), "affine": _kept(draw, **AFFINE)},
            "metric": [_changed_accuracy(draw, change) for change in METRIC],
            "maps": [_changed_accuracy(draw, change) for change in MAPS],
            "domain": _domain(draw),
            "units": _units(draw),
        }


def _accuracy(draw: Draw, **parameters: Any) -> float:
    from structot.adaptation import StructuredTransport

    fitted = StructuredTransport(**parameters).fit(Xs=draw.Xs, ys=draw.ys, Xt=draw.Xt)
    return accuracy(draw, np.asarray(fitted.transform(Xs=draw.Xs)))


def _kept(draw: Draw, **parameters: Any) -> float:
    """Variance inside the classes after the map, in units of that before, feature by feature."""
    from structot.adaptation import StructuredTransport

    fitted = StructuredTransport(**parameters).fit(Xs=draw.Xs, ys=draw.ys, Xt=draw.Xt)
    unit = draw.Xs.std(axis=0) if draw.scaled else 1.0
    moved = np.asarray(fitted.transform(Xs=draw.Xs))
    each = []
    for k in np.unique(draw.ys):
        if np.count_nonzero(draw.ys == k) > 1:
            after, before = (np.sum((X[draw.ys == k] / unit).var(axis=0)) for X in (moved, draw.Xs))
            each.append(after / before)
    return float(np.mean(each))


def _changed_accuracy(draw: Draw, change: Change) -> float:
    with changed(change):
        return _accuracy(draw, **change.parameters)


def _domain(draw: Draw) -> dict[str, Any]:
    """Shares of points that are nearer to the other sample, in right use and in misuse."""
    from structot.adaptation import StructuredTransport
    from structot.adaptation.domains import share_near

    rng = np.random.default_rng(0)
    right = [(X[1::2], X[::2], Y) for X, Y in ((draw.Xs, draw.Xt), (draw.Xt, draw.Xs))]
    wrong = [(draw.queries, draw.Xs, draw.Xt)]  # target points, given to a map of source points
    found: dict[str, Any] = {}
    for name, uses in (("right", right), ("wrong", wrong)):
        found[name] = {}
        for many in LOOKED_AT:
            with changed(Change("", {}, _DOMAINS, {"_MANY": many})):
                found[name][str(many)] = [share_near(*use) for use in uses]
        found[name]["batches"] = {
            str(size): [
                share_near(X[rng.permutation(len(X))[:size]], own, other)
                for X, own, other in uses
                for _ in range(_DRAWN)
            ]
            for size in BATCHES
        }
    fitted = StructuredTransport().fit(Xs=draw.Xs, ys=draw.ys, Xt=draw.Xt)
    model = nearest(draw).fit(fitted.transform(Xs=draw.Xs), draw.ys)
    scores = [model.score(X, draw.truth) for X in (draw.queries, fitted.transform(draw.queries))]
    found["harm"] = 100.0 * (scores[0] - scores[1])
    return found


def _units(draw: Draw) -> dict[str, Any]:
    """How far apart two samples are in scale that passed through one scaler, or one of them."""
    from sklearn.preprocessing import StandardScaler

    from structot.adaptation import StructuredTransport
    from structot.adaptation.domains import apart, off_standard

    scaler = StandardScaler().fit(draw.Xs)
    Xs, Xt, queries = (scaler.transform(X) for X in (draw.Xs, draw.Xt, draw.queries))
    scores = []
    for target, points in ((Xt, queries), (draw.Xt, draw.queries)):
        fitted = StructuredTransport().fit(Xs=Xs, ys=draw.ys, Xt=target)
        model = nearest(draw).fit(fitted.transform(Xs=Xs), draw.ys)
        scores.append(model.score(points, draw.truth))
    single = draw.Xs.astype(np.float32)
    return {
        "right": apart(Xs, Xt),
        "wrong": apart(Xs, draw.Xt),
        "harm": 100.0 * (scores[0] - scores[1]),
        "scaled": max(off_standard(Xs), off_standard(StandardScaler().fit_transform(single))),
        "raw": off_standard(draw.Xs),
    }


def results(
    cases: tuple[Case, ...], seeds: dict[str, tuple[int, ...]], settings: Settings, done: Records
) -> dict[str, Any]:
    """Differences by change and by stage, and rates of alarm by constant."""
    data: dict[str, Any] = {"metric": {}, "maps": {}}
    for kind, changes, reference in (("metric", METRIC, "default"), ("maps", MAPS, "affine")):
        for k, change in enumerate(changes):
            data[kind][change.title] = {
                stage: _difference(cases, some, settings, done, kind, k, reference)
                for stage, some in seeds.items()
            }
    data["variance"] = _variance(cases, seeds["reported"], settings, done)
    every = tuple(seed for some in seeds.values() for seed in some)
    records = [done[task.key] for task in tasks(cases, every, settings, None)]
    domain, units = ([record[kind] for record in records] for kind in ("domain", "units"))
    looks: dict[str, Any] = {
        f"`_SURPRISE` = {share:g}": _rates(domain, "500", share) for share in SHARES
    }
    looks |= {f"`_MANY` = {many}": _rates(domain, str(many), 0.5) for many in LOOKED_AT[:-1]}
    looks |= {
        f"`_FEW`: a batch of {size}": _rates([_batches(x, size) for x in domain], "all", 0.5)
        for size in BATCHES
    }
    data["domain"] = looks
    data["units"] = {f"`_APART` = {apart:g}": _unit_rates(units, apart) for apart in SCALES}
    data["scaled"] = max(x["scaled"] for x in units)
    data["raw"] = min(x["raw"] for x in units)
    return data


def _difference(
    cases: tuple[Case, ...],
    seeds: tuple[int, ...],
    settings: Settings,
    done: Records,
    kind: str,
    k: int,
    reference: str,
) -> dict[str, Any]:
    """Points gained by a change: mean over families, interval over seeds, families by name."""
    families: dict[str, list[list[float]]] = {}
    for case in cases:
        runs = [done[task.key] for task in tasks((case,), seeds, settings, None)]
        families.setdefault(case.family, []).append([x[kind][k] - x[reference] for x in runs])
    each = {family: np.mean(rows, axis=0) for family, rows in families.items()}
    mean, width = interval(np.mean(list(each.values()), axis=0))
    return {"mean": mean, "width": width, "families": {f: x.mean() for f, x in each.items()}}


def _variance(
    cases: tuple[Case, ...], seeds: tuple[int, ...], settings: Settings, done: Records
) -> dict[str, dict[str, float]]:
    """By map and family, what `_kept` measures."""
    found: dict[str, dict[str, list[float]]] = {"default": {}, "affine": {}}
    for case in cases:
        for task in tasks((case,), seeds, settings, None):
            for name, value in done[task.key]["variance"].items():
                found[name].setdefault(case.family, []).append(value)
    return {
        name: {family: float(np.mean(values)) for family, values in families.items()}
        for name, families in found.items()
    }


def _variances(data: dict[str, dict[str, float]]) -> list[list[str]]:
    titles = {"default": "barycentric", "affine": "class-affine"}
    return [[titles[k], *(f"{x:.2f}" for x in row.values())] for k, row in data.items()]


def _batches(found: dict[str, Any], size: int) -> dict[str, Any]:
    shares = {name: {"all": found[name]["batches"][str(size)]} for name in ("right", "wrong")}
    return {**shares, "harm": found["harm"]}


def _rates(records: list[dict[str, Any]], key: str, share: float) -> list[float]:
    """Alarms in percent: in right use, in misuse, in misuse that costs."""

    def rate(name: str, some: list[dict[str, Any]]) -> float:
        return _percent([x > share for record in some for x in record[name][key]])

    costly = [record for record in records if record["harm"] > HARM]
    return [rate("right", records), rate("wrong", records), rate("wrong", costly)]


def _unit_rates(records: list[dict[str, Any]], limit: float) -> list[float]:
    costly = [record for record in records if record["harm"] > HARM]
    return [
        _percent([record[name] > limit for record in some])
        for name, some in (("right", records), ("wrong", records), ("wrong", costly))
    ]


def _percent(alarms: list[bool]) -> float:
    return 100.0 * float(np.mean(alarms)) if alarms else float("nan")


def text(data: dict[str, Any]) -> list[str]:
    """The tables of the page."""
    head = ["change", "tuning seeds", "reported seeds", "best family", "worst family"]
    alarms = [
        "alarms, in percent",
        "right use",
        "misuse",
        f"misuse that costs over {HARM:g} points",
    ]
    rates = [
        [name, *(f"{x:.0f}" for x in row)]
        for kind in ("domain", "units")
        for name, row in data[kind].items()
    ]
    return [
        "Changed one at a time; points of accuracy gained, means over families with 95 % intervals "
        'over the seeds. First what `metric="auto"` calls few features, against the defaults:',
        table(head, _rows(data["metric"])),
        'The map "class-affine", against itself as shipped:',
        table(head, _rows(data["maps"])),
        "Variance inside a class, in units of what it was before the map, mean over classes and "
        "reported draws:",
        table(["map", *data["variance"]["default"]], _variances(data["variance"])),
        "The warnings. Points of the wrong domain: half of a sample against its other half is "
        "right use, target points given to a map of source points are misuse. Units: both samples "
        "through one scaler, or the source alone. Misuse need not cost anything where the domains "
        "lie on each other, and then there is nothing to warn of.",
        table(alarms, rates),
        f"`_EXACT`: a standardised sample is off by at most {data['scaled']:.0e} (single precision "
        f"among them), one that was not by at least {data['raw']:.0e}.",
    ]


def _rows(changes: dict[str, Any]) -> list[list[str]]:
    rows = []
    for title, stages in changes.items():
        families = stages["reported"]["families"]
        best, worst = (pick(families, key=families.get) for pick in (max, min))
        rows.append(
            [
                title,
                *(signed(stages[x]["mean"], stages[x]["width"]) for x in ("tuning", "reported")),
                f"{families[best]:+.1f} ({best})",
                f"{families[worst]:+.1f} ({worst})",
            ]
        )
    return rows
