"""`paddle.dataset.cifar`: 32x32 colour photographs in 10 or 100 classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..fluid.io.pickles import parse_pickle
from . import common, reading
from .reading import samples, tar_members

__all__ = ["fetch", "reader_creator", "test10", "test100", "train10", "train100"]

URL_PREFIX = "https://dataset.bj.bcebos.com/cifar/"
CIFAR10_URL = URL_PREFIX + "cifar-10-python.tar.gz"
CIFAR10_MD5 = "c58f30108f718f92721af3b95e74349a"
CIFAR100_URL = URL_PREFIX + "cifar-100-python.tar.gz"
CIFAR100_MD5 = "eb9058c3a382ffc7106e4002c42a8d85"

Reader = Callable[[], Iterator[tuple[np.ndarray, int]]]

_PIXELS = 3 * 32 * 32


def train10(cycle: bool = False) -> Reader:
    """A reader of CIFAR-10's 50,000 training photographs (`paddle.dataset.cifar.train10`).

    It yields `(pixels, label)`: float32 of shape [3072] from 0 to 1 (all red ones, all green ones, all blue
    ones, row by row) and an int.

    Args:
        cycle: begin again at the end, for ever.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/cifar` nor in the cache nor can be downloaded.
        FormatError: the file is damaged or has another format.
    """
    return reader_creator(common.download(CIFAR10_URL, "cifar", CIFAR10_MD5), "data_batch", cycle)


def test10(cycle: bool = False) -> Reader:
    """A reader of CIFAR-10's 10,000 test photographs, like `train10` (`paddle.dataset.cifar.test10`)."""
    return reader_creator(common.download(CIFAR10_URL, "cifar", CIFAR10_MD5), "test_batch", cycle)


def train100() -> Reader:
    """A reader of CIFAR-100's 50,000 training photographs, like `train10`
    (`paddle.dataset.cifar.train100`)."""
    return reader_creator(common.download(CIFAR100_URL, "cifar", CIFAR100_MD5), "train")


def test100() -> Reader:
    """A reader of CIFAR-100's 10,000 test photographs, like `train10` (`paddle.dataset.cifar.test100`)."""
    return reader_creator(common.download(CIFAR100_URL, "cifar", CIFAR100_MD5), "test")


def fetch() -> None:
    """Download both data sets now (`paddle.dataset.cifar.fetch`)."""
    common.download(CIFAR10_URL, "cifar", CIFAR10_MD5)
    common.download(CIFAR100_URL, "cifar", CIFAR100_MD5)


def reader_creator(filename: str, sub_name: str, cycle: bool = False) -> Reader:
    """A reader of those members of a tar file that have `sub_name` in their name
    (`paddle.dataset.cifar.reader_creator`).

    Args:
        filename: a tar file, packed or not, of pickled dictionaries with `data` and `labels` (or
            `fine_labels`).
        sub_name: `data_batch`, `test_batch`, `train` or `test`.
        cycle: begin again at the end, for ever.

    Raises FormatError if the contents are not sound.
    """
    _decode(filename, sub_name)
    return partial(_samples, filename, sub_name, cycle)


def _samples(filename: str, sub_name: str, cycle: bool) -> Iterator[tuple[np.ndarray, int]]:
    images, labels = _decode(filename, sub_name)
    while True:
        yield from samples(images, labels, 255.0, 0.0)
        if not cycle:
            return


@lru_cache(maxsize=2)
def _decode(filename: str, sub_name: str) -> tuple[np.ndarray, list[int]]:
    """Images as uint8 of shape [n, 3072] and their labels, in the order of the file."""
    images: list[np.ndarray] = []
    labels: list[int] = []
    for member, packed in tar_members(filename, lambda name: sub_name in name):
        batch = parse_pickle(packed, f"{member} in {filename}", "a batch of CIFAR", encoding="bytes")
        data, numbers = _batch(filename, member, batch)
        images.append(data)
        labels += numbers
    if not images:
        raise reading.damaged(filename, f"none of its members has {sub_name!r} in its name")
    return np.concatenate(images), labels


def _batch(filename: str, member: str, batch: Any) -> tuple[np.ndarray, list[int]]:
    """The images and labels of one unpickled member."""
    if not isinstance(batch, dict):
        raise reading.damaged(filename, f"{member} holds no dictionary")
    data = batch.get(b"data")
    labels = batch.get(b"labels", batch.get(b"fine_labels"))
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.ndim != 2
        or data.shape[1] != _PIXELS
    ):
        raise reading.damaged(filename, f"{member} has no bytes of shape [n, {_PIXELS}]")
    if not isinstance(labels, list) or len(labels) != len(data):
        raise reading.damaged(
            filename, f"{member} does not have one label for each of its {len(data)} images"
        )
    return data, [int(label) for label in labels]
