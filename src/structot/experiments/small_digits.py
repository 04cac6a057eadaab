"""8×8 digits against a turned, blurred, inverted, noisy copy: adaptation without any download."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from structot._typing import Array
from structot.experiments import _adaptation_report as shared
from structot.experiments._adaptation import Comparison, Domain, Setting
from structot.experiments._runner import Experiment, Records, Report, Settings, Task

TITLE = "Domain adaptation of 8×8 digits to a shifted copy (no download)"
SIDE = 8
SEEDS = 10
KEYS = ("none", "emd", "entropic", "lasso", "paper", "structured", "default")
SETTING = Setting("digits", "shifted")


@lru_cache(maxsize=1)
def load(blur: float = 0.0) -> dict[str, Domain]:
    """Both domains as vectors of norm 1; each is halved into a part to draw from and a test part.

    An image enters as its absolute difference from its own median, its paper: that undoes an
    inversion without knowing of it.
    """
    from structot.datasets.digits import shifted_digits

    data = shifted_digits()
    pairs = {"digits": (data.x_source, data.y_source), "shifted": (data.x_target, data.y_target)}
    return {name: _halves(_contrast(images), labels) for name, (images, labels) in pairs.items()}


def _contrast(images: Array) -> Array:
    flat = images.reshape(len(images), -1).astype(np.float64)
    flat = np.abs(flat - np.median(flat, axis=1, keepdims=True))
    return flat / np.linalg.norm(flat, axis=1, keepdims=True)


def _halves(points: Array, labels: Array) -> Domain:
    return Domain(points[::2], labels[::2], points[1::2], labels[1::2])


def tasks(settings: Settings, done: Records) -> list[Task]:
    """Tuning, then the reported runs."""
    return _comparison(settings).tasks(done)


def report(settings: Settings, done: Records) -> Report:
    """The table with intervals and a plain verdict."""
    comparison = _comparison(settings)
    data = shared.results(comparison, done)
    columns, pools = ["digits → shifted"], {"digits → shifted copy": [SETTING]}
    tuning = comparison.tuning_seeds
    text = "\n\n".join(
        [
            f"# {TITLE}",
            "scikit-learn's 8×8 digits, and a copy turned by 20°, blurred, inverted and noisy; "
            "ten labelled source digits per class, 100 target digits without labels, 1-NN on "
            f"the other target images. {comparison.seeds} seeds; parameters chosen on seeds "
            f"{tuning[0]}–{tuning[-1]} and other images.",
            "## Accuracy in percent, mean ± standard deviation",
            shared.accuracy_table(data, [SETTING], columns),
            "## Paired differences with 95 % intervals",
            shared.difference_table(data, [SETTING], columns, {}),
            shared.verdict(data, pools),
            "## What stands behind the plans",
            shared.trust_table(data, [SETTING]),
        ]
    )
    figures = {
        "small_digits_plans": lambda: shared.draw_plans(comparison, done, SETTING),
        "small_digits_transported": lambda: shared.draw_digits(comparison, done, SETTING, SIDE),
    }
    return Report(data, text, figures, shared.captions("small_digits"))


def _comparison(settings: Settings) -> Comparison:
    return Comparison(
        load=load,
        options={},
        settings=(SETTING,),
        methods=KEYS,
        seeds=settings.seeds or (3 if settings.quick else SEEDS),
        tuning_seeds=(100, 101) if settings.quick else (100, 101, 102, 103, 104),
        thin=5 if settings.quick else 3,
        figures=SETTING.name,
    )


EXPERIMENT = Experiment(
    "small_digits",
    TITLE,
    tasks,
    report,
    "Labels of one domain are carried to another that has none; the second table says which "
    "differences between the methods are beyond chance.",
)
