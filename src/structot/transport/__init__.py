"""Operations on the transport polytope U(a, b) = {P >= 0, P1 = a, P'1 = b}."""

from ._flow import InfeasibleError
from .affine import MarginalProjection
from .entropy import relative_entropy, surpluses
from .exact import ExactResult, c_transform, emd
from .kernels import residuals
from .rounding import Split, fill_columns, marginal_error, round_plan, split_rounding
from .sinkhorn import SinkhornResult, SinkhornStatus, sinkhorn

__all__ = [
    "ExactResult",
    "InfeasibleError",
    "MarginalProjection",
    "SinkhornResult",
    "SinkhornStatus",
    "Split",
    "c_transform",
    "emd",
    "fill_columns",
    "marginal_error",
    "relative_entropy",
    "residuals",
    "round_plan",
    "sinkhorn",
    "split_rounding",
    "surpluses",
]
