"""`paddle.dataset.voc2012`: photographs with a class for each pixel (PASCAL VOC 2012)."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from . import common, reading
from .reading import tar_member, tar_members

__all__ = ["reader_creator", "test", "train", "val"]

VOC_URL = "http://host.robots.ox.ac.uk/pascal/VOC/voc2012/VOCtrainval_11-May-2012.tar"
VOC_MD5 = "6cd6e144f989b92b3379bac3b3de84fd"
SET_FILE = "VOCdevkit/VOC2012/ImageSets/Segmentation/{}.txt"
DATA_FILE = "VOCdevkit/VOC2012/JPEGImages/{}.jpg"
LABEL_FILE = "VOCdevkit/VOC2012/SegmentationClass/{}.png"
CACHE_DIR = "voc2012"

Reader = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]


def train() -> Reader:
    """A reader of the 2,913 photographs of the list `trainval` (`paddle.dataset.voc2012.train`).

    It yields `(photograph, marks)`: bytes of shape [height, width, 3] and [height, width], with 0 for the background
    and 255 for borders. Needs Pillow.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/voc2012` nor in the cache nor can be downloaded.
        FormatError: when read, if the file is damaged or has another format.
    """
    return reader_creator(_download(), "trainval")


def test() -> Reader:
    """A reader of the 1,464 photographs of the list `train`, like `train` (`paddle.dataset.voc2012.test`)."""
    return reader_creator(_download(), "train")


def val() -> Reader:
    """A reader of the 1,449 photographs of the list `val`, like `train` (`paddle.dataset.voc2012.val`)."""
    return reader_creator(_download(), "val")


def reader_creator(filename: str, sub_name: str) -> Reader:
    """A reader of the list `sub_name` in a tar file (`paddle.dataset.voc2012.reader_creator`)."""
    return partial(_samples, filename, sub_name)


def _download() -> str:
    return common.download(VOC_URL, CACHE_DIR, VOC_MD5)


def _samples(filename: str, sub_name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from .image import pillow

    image = pillow()
    names = tar_member(filename, SET_FILE.format(sub_name)).decode().split()
    wanted = {pattern.format(name) for name in names for pattern in (DATA_FILE, LABEL_FILE)}
    # Members are packed as they are (JPEG, PNG): keeping those of a list takes less memory than searching for each.
    members = dict(tar_members(filename, wanted.__contains__))
    for name in names:
        try:
            photograph, marks = (members[pattern.format(name)] for pattern in (DATA_FILE, LABEL_FILE))
        except KeyError as error:
            raise reading.damaged(filename, f"it has no member {error}") from None
        try:
            sample = np.array(image.open(io.BytesIO(photograph))), np.array(image.open(io.BytesIO(marks)))
        except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:
            raise reading.damaged(filename, f"the picture {name}: {error}") from error
        yield sample
