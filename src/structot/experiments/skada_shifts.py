"""skada's simulated shifts by skada's own pipelines, `StructuredTransportAdapter` among them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from structot._extras import optional
from structot.experiments._adaptation_report import interval, signed
from structot.experiments._runner import Experiment, Records, Report, Settings, Task
from structot.experiments._tables import table

TITLE = "skada's simulated shifts, in skada's pipelines"
SEEDS = 20
SIZE = 12  # points per blob
NOISE = 0.3
SHIFTS = ("covariate_shift", "target_shift", "conditional_shift", "subspace")
OURS = "structured"
TITLES = {
    "none": "no adaptation",
    "ot": "OTMapping",
    "entropic": "EntropicOTMapping",
    "class": "ClassRegularizerOTMapping",
    "mmd": "MMDTarSReweight",
    OURS: "StructuredTransport()",
    "estimate": 'StructuredTransport(proportions="estimate")',
    "relaxed": "StructuredTransport(unbalanced=(1, None))",
}


def evaluate(shift: str, seed: int) -> dict[str, Any]:
    """Accuracy on the target of every method, each with an SVC and skada's own defaults."""
    skada = optional("skada", "the experiment skada_shifts")
    make = optional("skada.datasets", "the experiment skada_shifts").make_shifted_datasets
    from sklearn.svm import SVC

    from structot.adaptation import StructuredTransport
    from structot.adaptation.skada import StructuredTransportAdapter

    X, y, domain = make(SIZE, SIZE, shift=shift, noise=NOISE, random_state=seed)
    estimate = StructuredTransport(proportions="estimate")
    relaxed = StructuredTransport(unbalanced=(1.0, None))
    models = {
        "ot": skada.OTMapping(SVC()),
        "entropic": skada.EntropicOTMapping(SVC()),
        "class": skada.ClassRegularizerOTMapping(SVC()),
        "mmd": skada.MMDTarSReweight(SVC().set_fit_request(sample_weight=True)),
        OURS: skada.make_da_pipeline(StructuredTransportAdapter(), SVC()),
        "estimate": skada.make_da_pipeline(StructuredTransportAdapter(estimate), SVC()),
        "relaxed": skada.make_da_pipeline(StructuredTransportAdapter(relaxed), SVC()),
    }
    target = domain < 0
    found = {"none": SVC().fit(X[~target], y[~target]).predict(X[target])}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models.items():
            # A copy: skada writes its mark of hidden labels into what it is given.
            model.fit(X, y.copy(), sample_domain=domain)
            found[name] = model.predict(X[target])
    return {name: 100.0 * float(np.mean(guess == y[target])) for name, guess in found.items()}


def tasks(settings: Settings, done: Records) -> list[Task]:
    """One per shift and seed."""
    return [
        Task(f"{shift}-{seed}", evaluate, {"shift": shift, "seed": seed})
        for shift in SHIFTS
        for seed in range(_seeds(settings))
    ]


def _seeds(settings: Settings) -> int:
    return settings.seeds or (2 if settings.quick else SEEDS)


def report(settings: Settings, done: Records) -> Report:
    """Accuracy by shift, and the difference from ours on the same data."""
    data = {
        shift: {
            name: [done[f"{shift}-{seed}"][name] for seed in range(_seeds(settings))]
            for name in TITLES
        }
        for shift in SHIFTS
    }
    rows = []
    for name, title in TITLES.items():
        cells = [f"{np.mean(data[shift][name]):.1f}" for shift in SHIFTS]
        each = np.mean([np.subtract(data[s][OURS], data[s][name]) for s in SHIFTS], axis=0)
        difference = "–" if name == OURS else signed(*interval(each))
        rows.append([title, *cells, difference])
    words = [shift.replace("_", " ") for shift in SHIFTS]
    text = "\n\n".join(
        [
            f"# {TITLE}",
            "    structot reproduce skada_shifts",
            f"`make_shifted_datasets` with {SIZE} points per blob and noise {NOISE:g}, seeds "
            f"0–{_seeds(settings) - 1}; an SVC behind every method, and every method at its own "
            "defaults. Accuracy on the target in percent; the last column averages the shifts "
            "seed by seed, with 95 % intervals.",
            table(["method", *words, "StructuredTransport(), minus it"], rows),
        ]
    )
    return Report(data, text, {})


EXPERIMENT = Experiment("skada_shifts", TITLE, tasks, report)
