"""All that proves: what counts as zero, lower bounds, and the check of a result from scratch."""

from structot.certificate.bounds import (
    Dual,
    complete,
    dual_by_exact_transport,
    dual_from_cost,
    dual_from_potentials,
    dual_from_tariffs,
    dual_terms,
    entropic_bound,
    first_answer,
    infeasibility,
    lowered,
    potential_size,
    saddle_gap,
    transport_bound,
    zero_dual,
)
from structot.certificate.rule import (
    ROUNDING,
    absolute_tolerance,
    is_converged,
    relative_gap,
    safe_sum,
)
from structot.certificate.verify import Verification, verify

__all__ = [
    "ROUNDING",
    "Dual",
    "Verification",
    "absolute_tolerance",
    "complete",
    "dual_by_exact_transport",
    "dual_from_cost",
    "dual_from_potentials",
    "dual_from_tariffs",
    "dual_terms",
    "entropic_bound",
    "first_answer",
    "infeasibility",
    "is_converged",
    "lowered",
    "potential_size",
    "relative_gap",
    "saddle_gap",
    "safe_sum",
    "transport_bound",
    "verify",
    "zero_dual",
]
