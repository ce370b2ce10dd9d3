"""`paddle.dataset.image`: reading, resizing and cutting pictures, on OpenCV (the package opencv-python)."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..base import missing
from ..base.storage.files import atomic_writer
from .reading import tar_members

__all__ = [
    "batch_images_from_tar",
    "center_crop",
    "left_right_flip",
    "load_and_transform",
    "load_image",
    "load_image_bytes",
    "random_crop",
    "resize_short",
    "simple_transform",
    "to_chw",
]


def opencv() -> Any:
    """The module `cv2`; ImportError that says what to install."""
    try:
        import cv2
    except ImportError as error:
        raise ImportError(
            "paddle.dataset.image needs OpenCV: pip install 'fluidlite[images]' (or opencv-python-headless)",
            name="cv2",
        ) from error
    return cv2


def pillow() -> Any:
    """The module `PIL.Image`; ImportError that says what to install."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "this data set needs Pillow: pip install 'fluidlite[images]' (or pillow)", name="PIL"
        ) from error
    return Image


def load_image(file: str, is_color: bool = True) -> np.ndarray:
    """The picture in a file (`paddle.dataset.image.load_image`): bytes [height, width, 3], blue first, or
    [height, width] of grey. None, as in OpenCV, if it cannot be read."""
    return opencv().imread(file, int(is_color))  # type: ignore[no-any-return]


def load_image_bytes(bytes: bytes, is_color: bool = True) -> np.ndarray:
    """The picture in the contents of a file, like `load_image` (`paddle.dataset.image.load_image_bytes`)."""
    return opencv().imdecode(np.frombuffer(bytes, np.uint8), int(is_color))  # type: ignore[no-any-return]


def resize_short(im: np.ndarray, size: int) -> np.ndarray:
    """A picture [height, width, ...] whose shorter side is `size` (`paddle.dataset.image.resize_short`)."""
    cv2 = opencv()
    height, width = im.shape[:2]
    new = (size, size * height // width) if height > width else (size * width // height, size)
    return cv2.resize(im, new, interpolation=cv2.INTER_CUBIC)  # type: ignore[no-any-return]


def to_chw(im: np.ndarray, order: Sequence[int] = (2, 0, 1)) -> np.ndarray:
    """A picture with its axes in another order, by default channels first (`paddle.dataset.image.to_chw`).

    Raises AssertionError if it has another number of axes.
    """
    assert im.ndim == len(order), f"expected an array with {len(order)} axes, got shape {list(im.shape)}"
    return im.transpose(order)


def center_crop(im: np.ndarray, size: int, is_color: bool = True) -> np.ndarray:
    """The middle `size` x `size` points of a picture (`paddle.dataset.image.center_crop`); ValueError if it is
    smaller."""
    top, left = (room // 2 for room in _room(im, size))
    return im[top : top + size, left : left + size]


def random_crop(im: np.ndarray, size: int, is_color: bool = True) -> np.ndarray:
    """Any `size` x `size` points of a picture (`paddle.dataset.image.random_crop`); ValueError if it is smaller.

    Where is drawn from `np.random`.
    """
    top, left = (np.random.randint(0, room + 1) for room in _room(im, size))
    return im[top : top + size, left : left + size]


def _room(im: np.ndarray, size: int) -> tuple[int, int]:
    height, width = im.shape[:2]
    if size > min(height, width):
        raise ValueError(f"a picture of {height} x {width} has no part of {size} x {size}")
    return height - size, width - size


def left_right_flip(im: np.ndarray, is_color: bool = True) -> np.ndarray:
    """A picture in a mirror (`paddle.dataset.image.left_right_flip`)."""
    return im[:, ::-1]


def simple_transform(
    im: np.ndarray,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> np.ndarray:
    """Resize, crop and normalise a picture (`paddle.dataset.image.simple_transform`).

    float32 [3, crop_size, crop_size], or [crop_size, crop_size] unless `is_color`: resized so that the shorter side is
    `resize_size`, cut, with channels first, less `mean`. To train with it is cut anywhere, and one in two is mirrored
    (by `np.random`).

    Args:
        mean: a number for each channel, or an array as large as the result.
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if np.random.randint(2) == 0:
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    if im.ndim == 3:
        im = to_chw(im)
    im = im.astype("float32")
    if mean is not None:
        less = np.array(mean, dtype=np.float32)
        if is_color and less.ndim == 1:
            less = less[:, np.newaxis, np.newaxis]
        elif is_color:
            assert less.ndim == im.ndim, f"expected {im.ndim} axes, got a mean of shape {list(less.shape)}"
        im -= less
    return im


def load_and_transform(
    filename: str, resize_size: int, crop_size: int, is_train: bool, is_color: bool = True, mean: Any = None
) -> np.ndarray:
    """`simple_transform` of the picture in a file (`paddle.dataset.image.load_and_transform`)."""
    return simple_transform(load_image(filename, is_color), resize_size, crop_size, is_train, is_color, mean)


def batch_images_from_tar(
    data_file: str, dataset_name: str, img2label: Mapping[str, Any], num_per_batch: int = 1024
) -> str:
    """Write the pictures of a tar file that have a label to pickles (`paddle.dataset.image.batch_images_from_tar`).

    Each, `{data_file}_batch/{dataset_name}/batch_0` and so on, is a dict of at most `num_per_batch` contents of files
    (`data`, bytes) and their labels (`label`).

    Args:
        img2label: labels by name of the member.

    Returns:
        the path of a text file with the paths of the pickles. If it exists nothing is written.
    """
    folder = os.path.join(f"{data_file}_batch", dataset_name)
    listing = f"{folder}.txt"
    if os.path.exists(listing):
        return listing
    batches: list[dict[str, list[Any]]] = []
    for name, data in tar_members(data_file, img2label.__contains__):
        if not batches or len(batches[-1]["data"]) == num_per_batch:
            batches.append({"label": [], "data": []})
        batches[-1]["data"].append(data)
        batches[-1]["label"].append(img2label[name])
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.abspath(os.path.join(folder, f"batch_{number}")) for number in range(len(batches))]
    for path, batch in zip(paths, batches, strict=True):
        with atomic_writer(path) as file:
            pickle.dump(batch, file, protocol=2)
    with atomic_writer(listing) as file:
        file.write("".join(f"{path}\n" for path in paths).encode())
    return listing


_missing = missing.reporter(__name__)


@cache
def _probed_import() -> dict[str, Any]:
    """Another process that imports OpenCV, what it printed and how it ended, as Fluid leaves them in this module."""
    started = subprocess.Popen(
        [sys.executable, "-c", "import cv2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = started.communicate()
    return {"import_cv2_proc": started, "out": out, "err": err, "retcode": started.returncode}


def __getattr__(name: str) -> Any:
    return _probed_import()[name] if name in ("import_cv2_proc", "out", "err", "retcode") else _missing(name)
