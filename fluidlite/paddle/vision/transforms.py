"""Transforms of images, arrays [H, W, C] or [H, W] (`paddle.vision.transforms`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...eager import Tensor
from ...fluid.layers.checks import check_choice

__all__ = [
    "Compose",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "ToTensor",
    "Transpose",
    "normalize",
    "to_tensor",
]


def _three(value: Any) -> list[float]:
    return [float(value)] * 3 if isinstance(value, (int, float)) else [float(one) for one in value]


def to_tensor(pic: Any, data_format: str = "CHW") -> Tensor:
    """An image as float32 tensor with the channels first, bytes divided by 255
    (`paddle.vision.transforms.to_tensor`)."""
    check_choice(data_format, "data_format", ("CHW", "HWC"), "to_tensor")
    image = np.asarray(pic)
    image = image[:, :, None] if image.ndim == 2 else image
    pixels = image.astype("float32") / np.float32(255) if image.dtype == np.uint8 else image.astype("float32")
    return Tensor(np.ascontiguousarray(pixels.transpose(2, 0, 1) if data_format == "CHW" else pixels))


def normalize(img: Any, mean: Any, std: Any, data_format: str = "CHW", to_rgb: bool = False) -> Any:
    """(img - mean) / std for each channel, of an array or tensor (`paddle.vision.transforms.normalize`)."""
    check_choice(data_format, "data_format", ("CHW", "HWC"), "normalize")
    array = img._on_host if isinstance(img, Tensor) else np.asarray(img, "float32")
    shape = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
    count = array.shape[0 if data_format == "CHW" else -1]
    middle, spread = (np.array(_three(value)[:count], "float32").reshape(shape) for value in (mean, std))
    found = (array - middle) / spread
    return Tensor(np.ascontiguousarray(found)) if isinstance(img, Tensor) else found


class Compose:
    """Transforms one after the other (`paddle.vision.transforms.Compose`)."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, data: Any) -> Any:
        for transform in self.transforms:
            data = transform(data)
        return data


class ToTensor:
    """`to_tensor` as a transform (`paddle.vision.transforms.ToTensor`)."""

    def __init__(self, data_format: str = "CHW", keys: Any = None) -> None:
        self.data_format = data_format

    def __call__(self, img: Any) -> Tensor:
        return to_tensor(img, self.data_format)


class Normalize:
    """`normalize` as a transform (`paddle.vision.transforms.Normalize`); numbers count for all channels."""

    def __init__(
        self,
        mean: Any = 0.0,
        std: Any = 1.0,
        data_format: str = "CHW",
        to_rgb: bool = False,
        keys: Any = None,
    ) -> None:
        self.mean, self.std, self.data_format = _three(mean), _three(std), data_format

    def __call__(self, img: Any) -> Any:
        return normalize(img, self.mean, self.std, self.data_format)


class Transpose:
    """The axes of an image in another order, by default channels first (`paddle.vision.transforms.Transpose`)."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Any = None) -> None:
        self.order = tuple(order)

    def __call__(self, img: Any) -> np.ndarray:
        image = np.asarray(img)
        return (image[:, :, None] if image.ndim == 2 else image).transpose(self.order)


class RandomHorizontalFlip:
    """The image as in a mirror, with probability `prob` (`paddle.vision.transforms.RandomHorizontalFlip`)."""

    def __init__(self, prob: float = 0.5, keys: Any = None) -> None:
        self.prob = prob

    def __call__(self, img: Any) -> np.ndarray:
        image = np.asarray(img)
        return image[:, ::-1] if np.random.random() < self.prob else image


class RandomCrop:
    """A part of `size` (height and width) at a random place (`paddle.vision.transforms.RandomCrop`).

    `padding`: how many zeros are put around the image first. Raises ValueError for images that are too small.
    """

    def __init__(self, size: Any, padding: int = 0, keys: Any = None) -> None:
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.padding = padding

    def __call__(self, img: Any) -> np.ndarray:
        image = np.asarray(img)
        border = [(self.padding, self.padding)] * 2 + [(0, 0)] * (image.ndim - 2)
        image = np.pad(image, border)
        room = [have - want for have, want in zip(image.shape, self.size, strict=False)]
        if min(room) < 0:
            raise ValueError(f"an image of shape {list(image.shape)} has no part of size {list(self.size)}")
        top, left = (np.random.randint(0, free + 1) for free in room)
        return image[top : top + self.size[0], left : left + self.size[1]]
