"""Domain adaptation with tensors: matched on their device, tensors back."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: structot[torch]")
pytest.importorskip("sklearn")

import structot as sot  # noqa: E402


def test_tensors_are_adapted_as_arrays_are() -> None:
    data = sot.datasets.clusters(30, 24, seed=0)
    arrays = sot.StructuredTransport(tol=1e-7).fit(data.X, data.source_labels, data.Y)
    given = torch.tensor(data.X), torch.tensor(data.source_labels), torch.tensor(data.Y)
    tensors = sot.StructuredTransport(tol=1e-7).fit(*given)
    moved = tensors.transform(given[0])
    assert isinstance(moved, torch.Tensor)
    np.testing.assert_allclose(moved.numpy(), arrays.transform(data.X), atol=1e-3)
    back = tensors.inverse_transform(given[2])
    np.testing.assert_allclose(back.numpy(), arrays.inverse_transform(data.Y), atol=1e-3)
    labels = tensors.transform_labels(data.source_labels)
    np.testing.assert_allclose(labels, arrays.transform_labels(data.source_labels), atol=1e-3)
