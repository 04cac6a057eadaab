"""The estimator for domain adaptation against POT's class-regularised one, fit and all.

Notation: n points per domain, 10 source classes, own targets; ys source labels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ot

from benchmarks.measure import Contestants, race
from benchmarks.rows import Row, compare
from structot._parallel import single_threaded_blas
from structot.adaptation import StructuredTransport
from structot.concave import ThresholdSqrt
from structot.datasets import ClusterProblem, clusters

CLASSES = 10
ALPHA = 1.0  # threshold of the paper's model, in average costs


def adaptation(quick: bool) -> list[Row]:
    """`StructuredTransport.fit`, by default and exact, against `SinkhornLpl1Transport.fit`."""
    n = 200 if quick else 1000

    def make(size: int) -> Contestants:
        data = clusters(size, n_classes=CLASSES, seed=0)
        exact = StructuredTransport(
            "groups", concave=ThresholdSqrt(ALPHA), cost_scale="mean", tol=1e-3
        )
        # The regularisation that the other tasks give POT's group lasso, and POT's own defaults.
        lasso = ot.da.SinkhornLpl1Transport(reg_e=0.05, reg_cl=0.1, norm="max")
        return {
            "defaults": _fit(StructuredTransport(), data),
            "exact": _fit(exact, data),
            "group lasso": _fit(lasso, data),
            "group lasso, POT's defaults": _fit(ot.da.SinkhornLpl1Transport(), data),
        }

    # POT's products would wait for each other on busy cores; ours run on one BLAS thread anyway.
    with single_threaded_blas(n):
        times = race(make, n, warm_size=60)
    row = partial(compare, "adaptation", tol=1e-3)
    case = f"n = {n}, 10 source classes, StructuredTransport.fit, gap 0.001"
    peer = "POT SinkhornLpl1Transport.fit"
    ours, exact, lasso = (times[name] for name in ("defaults", "exact", "group lasso"))
    plain = times["group lasso, POT's defaults"]
    return [
        row(f"{case}, defaults", peer, ours, lasso, 1.0, "no slower"),
        row(f"{case}, exact, α = {ALPHA:g}", peer, exact, lasso, 5.0, "≤ 5× its time"),
        row(f"{case}, defaults", f"{peer}, POT's defaults", ours, plain, None, "shown"),
        row(
            f"{case}, exact, α = {ALPHA:g}", f"{peer}, POT's defaults", exact, plain, None, "shown"
        ),
    ]


def _fit(estimator: Any, data: ClusterProblem) -> Callable[[], Any]:
    """A fit that returns the certified result where there is one."""

    def run() -> Any:
        fitted = estimator.fit(Xs=data.X, ys=data.source_labels, Xt=data.Y)
        return getattr(fitted, "result_", None)

    return run
