"""Data for structured transport: generators of synthetic problems, loaders of real ones."""

from structot.datasets.digits import Digits, ShiftedDigits, mnist, shifted_digits, usps
from structot.datasets.sick import Sick, glove, sick
from structot.datasets.synthetic import (
    ClusterProblem,
    cells,
    clusters,
    target_shift,
    two_moons,
)

__all__ = [
    "ClusterProblem",
    "Digits",
    "ShiftedDigits",
    "Sick",
    "cells",
    "clusters",
    "glove",
    "mnist",
    "shifted_digits",
    "sick",
    "target_shift",
    "two_moons",
    "usps",
]
