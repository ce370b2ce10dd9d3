"""Data sets of images, and transforms (`paddle.vision`)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..dataset import cifar, mnist
from ..eager import Tensor
from ..fluid.layers.checks import check_choice
from .io import Dataset

__path__: list[str] = []  # the modules below are views: base/names/views.py

__all__ = [
    "Cifar10",
    "Cifar100",
    "Compose",
    "MNIST",
    "Normalize",
    "RandomCrop",
    "RandomHorizontalFlip",
    "ToTensor",
    "Transpose",
    "normalize",
    "to_tensor",
]


class _Images(Dataset[Any]):
    """Images that are read once, and a transform."""

    def __init__(self, transform: Callable[[Any], Any] | None) -> None:
        self.transform = transform
        self.images: np.ndarray
        self.labels: np.ndarray

    def __getitem__(self, idx: int) -> tuple[Any, np.ndarray]:
        image, label = self.images[idx], self.labels[idx : idx + 1]
        return (image if self.transform is None else self.transform(image)), label

    def __len__(self) -> int:
        return len(self.labels)


class MNIST(_Images):
    """Handwritten digits (`paddle.vision.datasets.MNIST`).

    Args:
        image_path, label_path: files in IDX format; by default those that `paddle.dataset.mnist` finds, which without a
            network are a part of the digits, with a warning.
        mode: 'train' or 'test'.
        transform: called with each image.
        download: accepted.
        backend: 'cv2': images are float32 arrays [28, 28, 1] from 0 to 255.

    Items are (image, label), the label int64 of shape [1].
    """

    def __init__(
        self,
        image_path: str | None = None,
        label_path: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str = "cv2",
    ) -> None:
        super().__init__(transform)
        check_choice(mode, "mode", ("train", "test"), "MNIST")
        if (image_path is None) != (label_path is None):
            raise ValueError("MNIST takes both image_path and label_path, or neither")
        if image_path is not None and label_path is not None:
            reader = mnist.reader_creator(image_path, label_path)
        else:
            reader = mnist.train() if mode == "train" else mnist.test()
        pixels, labels = zip(*reader(), strict=True)
        # The reader has them from -1 to 1.
        self.images = np.round((np.stack(pixels) + 1) * 127.5).astype("float32").reshape(-1, 28, 28, 1)
        self.labels = np.array(labels, "int64")


class _Cifar(_Images):
    _readers: tuple[Callable[[], Any], Callable[[], Any]]

    def __init__(
        self,
        data_file: str | None = None,
        mode: str = "train",
        transform: Callable[[Any], Any] | None = None,
        download: bool = True,
        backend: str = "cv2",
    ) -> None:
        super().__init__(transform)
        check_choice(mode, "mode", ("train", "test"), type(self).__name__)
        if data_file is not None:
            raise ValueError(
                f"{type(self).__name__} takes the data from where paddle.dataset.cifar finds it, not from data_file"
            )
        train, test = type(self)._readers
        pixels, labels = zip(*(train if mode == "train" else test)()(), strict=True)
        self.images = (
            np.round(np.stack(pixels) * 255).astype("float32").reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        )
        self.labels = np.array(labels, "int64")


class Cifar10(_Cifar):
    """Small photographs of ten classes (`paddle.vision.datasets.Cifar10`).

    `mode` is 'train' or 'test', `transform` is called with each image, a float32 array [32, 32, 3] from 0 to 255. Items
    are (image, label), the label int64 of shape [1].
    """

    _readers = (cifar.train10, cifar.test10)


class Cifar100(_Cifar):
    """Small photographs of a hundred classes (`paddle.vision.datasets.Cifar100`); as `Cifar10`."""

    _readers = (cifar.train100, cifar.test100)


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
