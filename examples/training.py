"""A network that adapts: labelled 8×8 digits on one side, their shifted copies without labels.

    python examples/training.py [--seeds 5] [--tune]

Every step takes a minibatch of both sides and adds to the classification loss a transport cost
between their features: none, plain, entropic, or structured by the labels of the source (a price
for every route between a class and a target point). Printed: the accuracy on target digits that
were not seen in training, the mean over seeds with its 95 % interval, and paired differences. The
weight of each loss was chosen with ``--tune`` on other seeds than those that are reported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import structot as sot

STEPS, BATCH = 250, 60
SHIFT = (0, 1)  # pixels down, right
FIRST_SEED, FIRST_TUNING_SEED = 100, 0
WEIGHTS = (0.01, 0.1)

# The loss of each contestant, and its weight beside the classification loss.
Loss = Callable[..., Tensor]
LOSSES: dict[str, tuple[Loss | None, float]] = {
    "none": (None, 0.0),
    "plain": (sot.torch.StructuredLoss("plain", reg=0.0), 0.1),
    "entropic": (sot.torch.StructuredLoss("plain", reg=0.05), 0.1),
    "structured": (sot.torch.StructuredLoss("charge", reg=0.05), 0.1),
}


def digits(seed: int) -> dict[str, Tensor]:
    """Source, target and test digits, no image in two of them; the last two are shifted."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    source, target, test = np.split(order, [600, 1200])
    moved = np.roll(images.reshape(-1, 8, 8), SHIFT, axis=(1, 2)).reshape(-1, 64)
    return {
        "source": torch.tensor(images[source] / 16.0, dtype=torch.float32),
        "labels": torch.tensor(labels[source]),
        "target": torch.tensor(moved[target] / 16.0, dtype=torch.float32),
        "test": torch.tensor(moved[test] / 16.0, dtype=torch.float32),
        "test labels": torch.tensor(labels[test]),
    }


def train(name: str, seed: int, weight: float | None = None) -> float:
    """The accuracy on the test digits."""
    loss, own = LOSSES[name]
    weight = own if weight is None else weight
    data = digits(seed)
    torch.manual_seed(seed)
    features = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32))
    head = nn.Sequential(nn.ReLU(), nn.Linear(32, 10))
    parameters = [*features.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-3)
    generator = torch.Generator().manual_seed(seed)
    for step in range(STEPS):
        i, j = (torch.randperm(600, generator=generator)[:BATCH] for _ in range(2))
        source, labels = features(data["source"][i]), data["labels"][i]
        total = nn.functional.cross_entropy(head(source), labels)
        if loss is not None and step >= STEPS // 5:  # features that mean something first
            target = features(data["target"][j])
            total = total + weight * loss(source, target, labels)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    with torch.no_grad():
        found = head(features(data["test"])).argmax(1)
    return float((found == data["test labels"]).double().mean())


def interval(values: np.ndarray) -> str:
    """The mean and its 95 % interval, in points."""
    from scipy.stats import t

    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{100 * values.mean():5.1f} ± {100 * half:.1f}"


def tune(seeds: range) -> None:
    """The accuracy of every weight, on seeds that are not reported."""
    for name in list(LOSSES)[1:]:
        for weight in WEIGHTS:
            found = np.array([train(name, seed, weight) for seed in seeds])
            print(f"{name:12} {weight:5g} {interval(found)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tune", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # small arrays: more threads only wait for each other
    if arguments.tune:
        tune(range(FIRST_TUNING_SEED, FIRST_TUNING_SEED + arguments.seeds))
        return
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    found = {name: np.array([train(name, seed) for seed in seeds]) for name in LOSSES}
    for name, values in found.items():
        print(f"{name:12} {interval(values)}")
    for name in ("none", "plain", "entropic"):
        print(f"structured less {name:9} {interval(found['structured'] - found[name])}")


if __name__ == "__main__":
    main()
