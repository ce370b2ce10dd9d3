"""`paddle.utils.image_util`: images cut, turned and made ready, as arrays [channels, height, width]."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dataset.image import pillow
from ...fluid.io.pickles import read_pickle

__all__ = [
    "ImageTransformer",
    "crop_img",
    "decode_jpeg",
    "flip",
    "load_image",
    "load_meta",
    "oversample",
    "preprocess_img",
    "resize_image",
]


def resize_image(img: Any, target_size: int) -> Any:
    """A Pillow image whose shorter side is `target_size` long (`paddle.utils.image_util.resize_image`)."""
    part = target_size / float(min(img.size))
    size = [round(side * part) for side in img.size]
    return img.resize(size, pillow().LANCZOS)


def flip(im: np.ndarray) -> np.ndarray:
    """An image, [channels, height, width] or [height, width], as in a mirror (`paddle.utils.image_util.flip`)."""
    return im[..., ::-1]


def crop_img(im: np.ndarray, inner_size: int, color: bool = True, test: bool = True) -> np.ndarray:
    """A square of `inner_size` from an image [3, height, width], or [height, width] without `color`.

    With `test` from its middle, else from anywhere, and mirrored half of the time, both as `np.random` has it. Images
    that are smaller are put in the middle of zeros first. Follows `paddle.utils.image_util.crop_img`.
    """
    height, width = (max(inner_size, size) for size in im.shape[-2:])
    whole = np.zeros((*im.shape[:-2], height, width), im.dtype)
    top, left = (height - im.shape[-2]) // 2, (width - im.shape[-1]) // 2
    whole[..., top : top + im.shape[-2], left : left + im.shape[-1]] = im
    if test:
        row, column = (height - inner_size) // 2, (width - inner_size) // 2
    else:
        row, column = (np.random.randint(0, size - inner_size + 1) for size in (height, width))
    part = whole[..., row : row + inner_size, column : column + inner_size]
    return flip(part) if not test and np.random.randint(2) == 0 else part


def decode_jpeg(jpeg_string: bytes) -> np.ndarray:
    """The image in the bytes of a file, channels first if it has some (`paddle.utils.image_util.decode_jpeg`)."""
    image = np.array(pillow().open(io.BytesIO(jpeg_string)))
    return image.transpose(2, 0, 1) if image.ndim == 3 else image


def preprocess_img(
    im: np.ndarray, img_mean: np.ndarray, crop_size: int, is_train: bool, color: bool = True
) -> np.ndarray:
    """A square of an image less its mean, flat float32 (`paddle.utils.image_util.preprocess_img`)."""
    part = crop_img(im.astype("float32"), crop_size, color, test=not is_train)
    return (part - img_mean).flatten()


def load_meta(meta_path: str, mean_img_size: int, crop_size: int, color: bool = True) -> np.ndarray:
    """The middle of the mean image of a file that has one as `data_mean`: float32 [3, crop, crop], grey [crop, crop].

    The file is one of NumPy, or what `ImageClassificationDatasetCreater` wrote.

    Raises AssertionError for a mean image that is no square of `mean_img_size`. Follows
    `paddle.utils.image_util.load_meta`.
    """
    with open(meta_path, "rb") as file:
        zipped = file.read(2) == b"PK"
    mean = (np.load(meta_path, allow_pickle=False) if zipped else read_pickle(meta_path))["data_mean"]
    channels = 3 if color else 1
    if mean.size != channels * mean_img_size * mean_img_size:
        raise AssertionError(
            f"the mean image has {mean.size} numbers, expected {channels} * {mean_img_size} ** 2"
        )
    border = (mean_img_size - crop_size) // 2
    shape = (3, mean_img_size, mean_img_size) if color else (mean_img_size, mean_img_size)
    middle = mean.reshape(shape)[..., border : border + crop_size, border : border + crop_size]
    return np.asarray(middle, "float32")


def load_image(img_path: str, is_color: bool = True) -> Any:
    """A Pillow image from a file; grey without `is_color` (`paddle.utils.image_util.load_image`)."""
    image = pillow().open(img_path)
    image.load()
    return image if is_color else image.convert("L")


def oversample(img: Sequence[np.ndarray], crop_dims: Sequence[int]) -> np.ndarray:
    """Ten parts of each image [height, width, channels]: corners and middle, then the same mirrored, float32.

    Follows `paddle.utils.image_util.oversample`.
    """
    height, width = (int(size) for size in crop_dims)
    parts = []
    for image in img:
        bottom, right = image.shape[0] - height, image.shape[1] - width
        places = [(0, 0), (0, right), (bottom, 0), (bottom, right), (bottom // 2, right // 2)]
        cut = [image[row : row + height, column : column + width] for row, column in places]
        parts += [*cut, *(part[:, ::-1] for part in cut)]
    return np.array(parts, "float32")


class ImageTransformer:
    """Reorders axes and channels and takes a mean off (`paddle.utils.image_util.ImageTransformer`).

    `transpose`: the order of axes; `channel_swap`: that of channels, the first axis then; `mean`: a number for each
    channel, or an array as images are; `is_color`: whether images have channels.
    """

    def __init__(
        self,
        transpose: Sequence[int] | None = None,
        channel_swap: Sequence[int] | None = None,
        mean: np.ndarray | None = None,
        is_color: bool = True,
    ) -> None:
        self.is_color = is_color
        self.set_transpose(transpose)
        self.set_channel_swap(channel_swap)
        self.set_mean(mean)

    def set_transpose(self, order: Sequence[int] | None) -> None:
        """AssertionError for another number of axes than images have."""
        if order is not None and self.is_color and len(order) != 3:
            raise AssertionError(f"color images have 3 axes, got the order {order}")
        self.transpose = order

    def set_channel_swap(self, order: Sequence[int] | None) -> None:
        if order is not None and self.is_color and len(order) != 3:
            raise AssertionError(f"color images have 3 channels, got the order {order}")
        self.channel_swap = order

    def set_mean(self, mean: np.ndarray | None) -> None:
        self.mean = mean[:, np.newaxis, np.newaxis] if mean is not None and mean.ndim == 1 else mean

    def transformer(self, data: np.ndarray) -> np.ndarray:
        """An image, changed."""
        if self.transpose is not None:
            data = data.transpose(self.transpose)
        if self.channel_swap is not None:
            data = data[list(self.channel_swap), :, :]
        return data if self.mean is None else (data - self.mean).astype(data.dtype)
