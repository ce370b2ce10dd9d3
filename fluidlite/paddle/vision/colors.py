"""Colours of images changed at random (`paddle.incubate.hapi.vision.transforms`).

Images are arrays [H, W, 3], blue, green and red from 0 to 255; results have their element type. NumPy's global
generator draws. A value of 0 leaves an image as it is.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

__all__ = ["BrightnessTransform", "ColorJitter", "ContrastTransform", "HueTransform", "SaturationTransform"]

_GRAY = np.array([0.114, 0.587, 0.299], "float32")
"""Luma weights of blue, green and red (ITU-R BT.601)."""


class _Factor:
    """Multiplies something by a factor drawn from [max(0, 1 - value), 1 + value)."""

    _what: str

    def __init__(self, value: float) -> None:
        if value < 0:
            raise ValueError(f"{self._what} value should be non-negative")
        self.value = value

    def __call__(self, img: np.ndarray) -> np.ndarray:
        if self.value == 0:
            return img
        factor = np.float32(np.random.uniform(max(0, 1 - self.value), 1 + self.value))
        pixels = img.astype("float32")
        made = pixels * factor + self._fixed(pixels) * (1 - factor)
        return np.clip(made, 0, 255).astype(img.dtype)

    def _fixed(self, pixels: np.ndarray) -> Any:
        """The image at factor 0, which the factor interpolates from."""
        raise NotImplementedError


class BrightnessTransform(_Factor):
    """Makes images darker or brighter (`paddle.incubate.hapi.vision.transforms.BrightnessTransform`)."""

    _what = "brightness"

    def _fixed(self, pixels: np.ndarray) -> Any:
        return np.float32(0)


class ContrastTransform(_Factor):
    """Moves pixels away from the mean brightness, or to it
    (`paddle.incubate.hapi.vision.transforms.ContrastTransform`).
    """

    _what = "contrast"

    def _fixed(self, pixels: np.ndarray) -> Any:
        return (pixels @ _GRAY).mean()


class SaturationTransform(_Factor):
    """Moves colours away from their gray, or to it (`paddle.incubate.hapi.vision.transforms.SaturationTransform`)."""

    _what = "saturation"

    def _fixed(self, pixels: np.ndarray) -> Any:
        return (pixels @ _GRAY)[:, :, None]


class HueTransform:
    """Turns hues by a part of the circle from [-value, value), `value` from 0 to 0.5
    (`paddle.incubate.hapi.vision.transforms.HueTransform`).

    Hues are bytes meanwhile, so colours may change a little where none is turned.
    """

    def __init__(self, value: float) -> None:
        if value < 0 or value > 0.5:
            raise ValueError("hue value should be in [0.0, 0.5]")
        self.value = value

    def __call__(self, img: np.ndarray) -> np.ndarray:
        if self.value == 0:
            return img
        shift = int(np.random.uniform(-self.value, self.value) * 255)
        hue, saturation, value = _to_hsv(img.astype("uint8"))
        return _from_hsv((hue + shift) % 256, saturation, value).astype(img.dtype)


class ColorJitter:
    """The changes whose value is not 0, in an order that is drawn once by Python's `random`
    (`paddle.incubate.hapi.vision.transforms.ColorJitter`).

    Raises ValueError for a negative value, or a `hue` above 0.5.
    """

    def __init__(
        self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0
    ) -> None:
        changes = (
            (BrightnessTransform, brightness),
            (ContrastTransform, contrast),
            (SaturationTransform, saturation),
            (HueTransform, hue),
        )
        self.transforms: list[Any] = [kind(value) for kind, value in changes if value != 0]
        random.shuffle(self.transforms)

    def __call__(self, img: np.ndarray) -> np.ndarray:
        for transform in self.transforms:
            img = transform(img)
        return img


_FRACTION = 12
"""Fractional bits of the fixed-point divisions below."""


def _divided(dividend: np.ndarray, divisor: np.ndarray, of: float) -> np.ndarray:
    """`of` * dividend / divisor as whole numbers, by a rounded reciprocal; 0 where divided by 0."""
    reciprocal = np.rint((of * (1 << _FRACTION)) / np.maximum(divisor, 1)).astype("int64") * (divisor > 0)
    return (dividend * reciprocal + (1 << (_FRACTION - 1))) >> _FRACTION


def _to_hsv(image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hue (256 are the circle), saturation and value of bytes, from 0 to 255."""
    blue, green, red = np.moveaxis(image.astype("int64"), -1, 0)
    value = np.maximum(np.maximum(blue, green), red)
    spread = value - np.minimum(np.minimum(blue, green), red)
    sixths = np.where(
        value == red,
        green - blue,
        np.where(value == green, blue - red + 2 * spread, red - green + 4 * spread),
    )
    hue = _divided(sixths, spread, 256 / 6)
    return np.where(hue < 0, hue + 256, hue), _divided(spread, value, 255), value


def _from_hsv(hue: np.ndarray, saturation: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Blue, green and red as whole floats; 255 are the circle here.

    Fluid cuts fractions off, but for a few pixels at the ends of rows.
    """
    angle = hue.astype("float32") * np.float32(6 / 255)
    top, dull = (part.astype("float32") * np.float32(1 / 255) for part in (value, saturation))
    sector = np.floor(angle)
    share = angle - sector
    low, falling, rising = top * (1 - dull), top * (1 - dull * share), top * (1 - dull * (1 - share))
    levels = np.stack([top, low, falling, rising])
    chosen = _SECTORS[sector.astype("int64") % 6]
    found = np.take_along_axis(levels, np.moveaxis(chosen, -1, 0), 0)
    return np.floor(np.moveaxis(found, 0, -1) * np.float32(255))


_SECTORS = np.array([[1, 3, 0], [1, 0, 2], [3, 0, 1], [0, 2, 1], [0, 1, 3], [2, 1, 0]])
"""The indices of the levels of `_from_hsv` for blue, green and red in each sixth of the circle."""
