"""Domain adaptation: carry labelled source points onto a target sample, classes together.

    from structot.adaptation import StructuredTransport
    mapped = StructuredTransport().fit_transform(Xs=Xs, ys=ys, Xt=Xt)

Needs scikit-learn: ``pip install "structot[ml]"``.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "structot.adaptation needs scikit-learn: pip install 'structot[ml]'", name="sklearn"
    ) from None

from structot.adaptation.estimator import StructuredTransport
from structot.adaptation.pipeline import AdaptTo
from structot.adaptation.selection import Selection, select

__all__ = ["AdaptTo", "Selection", "StructuredTransport", "select"]
