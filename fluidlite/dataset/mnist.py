"""`paddle.dataset.mnist`: handwritten digits, 28x28 pixels, ten classes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from ..base import callsite
from ..base.errors import DownloadError
from . import common, reading
from .reading import samples

__all__ = ["fetch", "reader_creator", "test", "train"]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"

Reader = Callable[[], Iterator[tuple[np.ndarray, int]]]

_SIDE = 28
_IMAGES, _LABELS = 2051, 2049
_BUNDLE = Path(__file__).with_name("data") / "mnist"

_unreachable: str | None = None
"""The reason why this process uses the bundled digits; determined, and warned about, once."""


def train() -> Reader:
    """A reader of the training digits (`paddle.dataset.mnist.train`).

    It yields `(pixels, label)`: float32 of shape [784] from -1 (background) to 1, and an int from 0 to 9. The
    60,000 digits come from `$FLUIDLITE_DATA/mnist`, the cache or the network, decoded once per process; if
    there are none, 10,000 bundled ones are used, with a warning.

    Raises:
        FormatError: a file was found that is damaged or has another format.
    """
    return _reader((TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5), (TRAIN_LABEL_URL, TRAIN_LABEL_MD5))


def test() -> Reader:
    """A reader of the test digits, like `train`: 10,000, or 2,000 bundled ones
    (`paddle.dataset.mnist.test`)."""
    return _reader((TEST_IMAGE_URL, TEST_IMAGE_MD5), (TEST_LABEL_URL, TEST_LABEL_MD5))


def fetch() -> None:
    """Download all of MNIST now (`paddle.dataset.mnist.fetch`). Raises DownloadError if that cannot be
    done."""
    global _unreachable
    for url, md5 in (
        (TRAIN_IMAGE_URL, TRAIN_IMAGE_MD5),
        (TRAIN_LABEL_URL, TRAIN_LABEL_MD5),
        (TEST_IMAGE_URL, TEST_IMAGE_MD5),
        (TEST_LABEL_URL, TEST_LABEL_MD5),
    ):
        common.download(url, "mnist", md5)
    _unreachable = None


def reader_creator(image_filename: str, label_filename: str, buffer_size: int = 100) -> Reader:
    """A reader of two IDX files, packed or not (`paddle.dataset.mnist.reader_creator`).

    Args:
        image_filename: images of 28x28 bytes.
        label_filename: as many labels.
        buffer_size: kept for Fluid's sake; the files are decoded once per process.

    The reader raises FormatError if the contents of the files are not sound.
    """
    return partial(_samples, image_filename, label_filename)


def _reader(images: tuple[str, str], labels: tuple[str, str]) -> Reader:
    image_file, label_file = _path(*images), _path(*labels)
    if image_file is None or label_file is None:
        # Images and labels belong together: if one file is missing, both come from the bundle.
        image_file, label_file = (str(_BUNDLE / url.rsplit("/", 1)[-1]) for url, _ in (images, labels))
    _decode(image_file, label_file)
    return reader_creator(image_file, label_file)


def _path(url: str, md5: str) -> str | None:
    """The path of one of the four files, or None, with a warning the first time, if it cannot be had."""
    global _unreachable
    if _unreachable is not None:
        return common.local(url, "mnist", md5)
    try:
        return common.download(url, "mnist", md5)
    except DownloadError as error:
        _unreachable = str(error)
        callsite.warn(
            "MNIST was not downloaded, a bundled part of it is used: 10,000 digits to train with and 2,000 to test. "
            "paddle.dataset.mnist.fetch() says why"
        )
        return None


def _samples(image_filename: str, label_filename: str) -> Iterator[tuple[np.ndarray, int]]:
    images, labels = _decode(image_filename, label_filename)
    # Fluid computes x / 255 * 2 - 1 in float32; for the 256 values a pixel can have, this gives the same
    # floats.
    return samples(images, labels, 127.5, -1.0)


@lru_cache(maxsize=4)
def _decode(image_filename: str, label_filename: str) -> tuple[np.ndarray, list[int]]:
    """Images as uint8 of shape [n, 784] and their labels. Raises FormatError if the files are not sound."""
    images = _idx(image_filename, _IMAGES, (_SIDE, _SIDE)).reshape(-1, _SIDE * _SIDE)
    labels = _idx(label_filename, _LABELS, ())
    if len(images) != len(labels):
        raise reading.damaged(
            label_filename, f"{len(labels)} labels for {len(images)} images in {image_filename}"
        )
    if labels.size and labels.max() > 9:
        raise reading.damaged(label_filename, f"labels must be 0 to 9, one is {labels.max()}")
    return images, labels.tolist()


def _idx(path: str, magic: int, item: tuple[int, ...]) -> np.ndarray:
    """The items of shape `item` in an IDX file of bytes."""
    data = reading.read(path)
    header = 4 * (2 + len(item))
    if len(data) < header:
        raise reading.damaged(path, f"it has {len(data)} bytes, not even a header")
    found, count, *shape = struct.unpack_from(f">{2 + len(item)}i", data)
    if found != magic:
        raise reading.damaged(path, f"it begins with {found}, expected {magic}")
    if tuple(shape) != item:
        raise reading.damaged(path, f"items have the shape {tuple(shape)}, expected {item}")
    expected = count * int(np.prod(item, dtype=np.int64))
    if count < 0 or len(data) - header != expected:
        raise reading.damaged(
            path, f"it has {len(data) - header} bytes for {count} items, expected {expected}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(count, *item)
