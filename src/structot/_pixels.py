"""Images of every kind as RGB from 0 to 1, and back: grey or colour, alpha, 8 or 16 bit, floats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structot._typing import Array

__all__ = ["Pixels", "pixel_labels"]

_DEPTH = {np.dtype(np.uint8): 255.0, np.dtype(np.uint16): 65535.0}


@dataclass(frozen=True, eq=False)
class Pixels:
    """An image as RGB from 0 to 1, and what is needed to give an answer of its kind."""

    rgb: Array  # (height, width, 3)
    visible: Array  # (height, width), False where transparent
    alpha: Array | None  # as it came
    kind: np.dtype
    shape: tuple[int, ...]

    @property
    def grey(self) -> bool:
        """Whether the image has no colour channels."""
        return len(self.shape) == 2 or self.shape[2] < 3

    @classmethod
    def of(cls, name: str, value: Any) -> Pixels:
        """Check an image; ``name`` is what an error calls it."""
        array = np.asarray(value)
        if array.ndim not in (2, 3) or (array.ndim == 3 and not 1 <= array.shape[2] <= 4):
            raise ValueError(
                f"{name} must be an image of shape (height, width) or (height, width, 1 to 4 "
                f"channels); got shape {array.shape}."
            )
        if array.size == 0:
            raise ValueError(f"{name} has no pixels (shape {array.shape}); pass an image.")
        kind = array.dtype
        if kind in _DEPTH:
            values = array / _DEPTH[kind]
        elif kind.kind == "f":
            values = array.astype(float)
            if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
                raise ValueError(
                    f"{name} of floats must lie between 0 and 1; it holds values from "
                    f"{np.min(array)} to {np.max(array)}. Divide by the largest possible value."
                )
        else:
            raise ValueError(
                f"{name} has numbers of type {kind}; convert it to uint8, uint16 or floats from 0 "
                "to 1."
            )
        layers = values[..., None] if values.ndim == 2 else values
        n_colors = 1 if layers.shape[2] < 3 else 3
        alpha = array[..., n_colors] if layers.shape[2] > n_colors else None
        visible = np.ones(layers.shape[:2], bool) if alpha is None else layers[..., n_colors] > 0
        if not visible.any():
            raise ValueError(f"{name} is wholly transparent; there are no colours to transport.")
        rgb = np.broadcast_to(layers[..., :n_colors], (*layers.shape[:2], 3))
        return cls(rgb, visible, alpha, kind, array.shape)

    def like(self, rgb: Array, grey: bool) -> Array:
        """An image of this one's kind with other colours; transparent pixels stay as they are."""
        rgb = np.where(self.visible[..., None], np.clip(rgb, 0.0, 1.0), self.rgb)
        colors = rgb.mean(axis=2, keepdims=True) if grey else rgb
        if self.kind in _DEPTH:
            colors = np.rint(colors * _DEPTH[self.kind])
        colors = colors.astype(self.kind)
        if self.alpha is not None:
            colors = np.concatenate([colors, self.alpha[..., None]], axis=2)
        return colors[..., 0] if len(self.shape) == 2 and grey else colors


def pixel_labels(name: str, value: Any, shape: tuple[int, ...]) -> Array:
    """One label per pixel of an image of this shape."""
    labels = np.asarray(value)
    if labels.shape != tuple(shape):
        raise ValueError(
            f"{name} must hold one label per pixel, shape {tuple(shape)}; got {labels.shape}."
        )
    return labels
