"""Scripts written for POT run with the constructor replaced and every other line unchanged."""

from __future__ import annotations

import numpy as np
import ot
import pytest

pytest.importorskip("sklearn")

from structot.adaptation import StructuredTransport
from structot.datasets import clusters

SCRIPTS = {
    "keywords": """
adapt.fit(Xs=Xs, ys=ys, Xt=Xt)
moved = adapt.transform(Xs=Xs)
back = adapt.inverse_transform(Xt=Xt)
""",
    "fit_transform": """
moved = adapt.fit_transform(Xs=Xs, ys=ys, Xt=Xt, yt=None)
plan = adapt.coupling_
assert plan.shape == (len(Xs), len(Xt))
back = adapt.inverse_transform(Xt=Xt)
""",
    "unsupervised": """
adapt.fit(Xs=Xs, Xt=Xt)
moved = adapt.transform(Xs=Xs)
back = adapt.inverse_transform(Xs=Xs, ys=ys, Xt=Xt, yt=yt, batch_size=8)
""",
    "semi-supervised": """
adapt.fit(Xs=Xs, Xt=Xt, ys=ys, yt=yt)
moved = adapt.transform(Xs, ys, Xt, yt, 16)
back = adapt.inverse_transform(Xt=Xt)
assert adapt.cost_.shape == (len(Xs), len(Xt))
""",
    "out of sample, labels": """
adapt.fit(Xs, ys, Xt)
moved = adapt.transform(Xs=Xs)
new = adapt.transform(Xs=Xs[::2] + 0.01, batch_size=5)
assert np.allclose(new, moved[::2] + 0.01)
soft = adapt.transform_labels(ys=ys)
assert soft.shape == (len(Xt), 3) and np.allclose(soft.sum(axis=1), 1)
assert adapt.inverse_transform_labels(yt=yt).shape == (len(Xs), 3)
back = adapt.inverse_transform(Xt=Xt)
""",
}


CONSTRUCTORS = {
    "emd": lambda: ot.da.EMDTransport(),
    "lpl1": lambda: ot.da.SinkhornLpl1Transport(reg_e=0.5, reg_cl=0.1, norm="max"),
    "ours": StructuredTransport,
}


@pytest.mark.parametrize(
    ("script", "name"),
    # POT's group lasso needs labels.
    [
        (script, name)
        for script, text in SCRIPTS.items()
        for name in CONSTRUCTORS
        if not (name == "lpl1" and "fit(Xs=Xs, Xt=Xt)" in text)
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_pot_scripts_run_with_the_constructor_replaced(script, name):
    even = clusters(30, 30, rotation=0.2, seed=1)
    names = {"np": np, "adapt": CONSTRUCTORS[name](), "Xs": even.X, "Xt": even.Y}
    names |= {"ys": even.source_labels, "yt": even.target_labels}
    exec(SCRIPTS[script], names)
    assert names["moved"].shape == (30, 2)
    assert names["back"].shape == (30, 2)
    # Every image is an average of target points: inside their bounding box.
    assert (names["moved"] >= even.Y.min(axis=0) - 1e-9).all()
    assert (names["moved"] <= even.Y.max(axis=0) + 1e-9).all()
