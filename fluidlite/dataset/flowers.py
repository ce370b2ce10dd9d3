"""`paddle.dataset.flowers`: photographs of flowers of 102 kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from os import cpu_count
from typing import Any

import numpy as np

from ..reader.decorators import map_readers
from ..reader.threaded import xmap_readers
from . import common, reading
from .image import load_image_bytes, simple_transform
from .reading import tar_members

__all__ = [
    "default_mapper",
    "fetch",
    "reader_creator",
    "test",
    "test_mapper",
    "train",
    "train_mapper",
    "valid",
]

DATA_URL = "http://paddlemodels.bj.bcebos.com/flowers/102flowers.tgz"
DATA_MD5 = "52808999861908f626f3c1f4e79d11fa"
LABEL_URL = "http://paddlemodels.bj.bcebos.com/flowers/imagelabels.mat"
LABEL_MD5 = "e0620be6f572b9609742df49c70aed4d"
SETID_URL = "http://paddlemodels.bj.bcebos.com/flowers/setid.mat"
SETID_MD5 = "a5357ecc9cb78c4bef273ce3793fc85c"

TRAIN_FLAG, TEST_FLAG, VALID_FLAG = "tstid", "trnid", "valid"
"""The lists in setid.mat; the longest one, of those to test with, is used to train."""

_MEAN = [103.94, 116.78, 123.68]

Sample = tuple[Any, int]
Mapper = Callable[[Sample], Any]
Reader = Callable[[], Iterable[Any]]


def default_mapper(is_train: bool, sample: tuple[bytes, int]) -> tuple[np.ndarray, int]:
    """The sample for the contents of a file and a label (`paddle.dataset.flowers.default_mapper`):
    float32 [3 * 224 * 224], less the mean of each channel, and the label. Needs OpenCV."""
    data, label = sample
    image = simple_transform(load_image_bytes(data), 256, 224, is_train, mean=_MEAN)
    return image.flatten(), label


train_mapper = partial(default_mapper, True)
test_mapper = partial(default_mapper, False)


def train(
    mapper: Mapper = train_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Reader:
    """A reader of 6,149 photographs to train with (`paddle.dataset.flowers.train`).

    It yields what `mapper` makes of `(contents of a file, label from 0 to 101)`; see `default_mapper`.

    Args:
        mapper: called with each sample.
        buffered_size: how many results may wait.
        use_xmap: call `mapper` in as many threads as there are processors; samples come as they get ready.
        cycle: begin again at the end, for ever.

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/flowers` nor in the cache nor can be downloaded.
        FormatError: the files are damaged or have another format.
    """
    return _reader(TRAIN_FLAG, mapper, buffered_size, use_xmap, cycle)


def test(
    mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True, cycle: bool = False
) -> Reader:
    """A reader of 1,020 photographs to test with, like `train` (`paddle.dataset.flowers.test`)."""
    return _reader(TEST_FLAG, mapper, buffered_size, use_xmap, cycle)


def valid(mapper: Mapper = test_mapper, buffered_size: int = 1024, use_xmap: bool = True) -> Reader:
    """A reader of 1,020 photographs to validate with, like `train` (`paddle.dataset.flowers.valid`)."""
    return _reader(VALID_FLAG, mapper, buffered_size, use_xmap, False)


def _reader(flag: str, mapper: Mapper, buffered_size: int, use_xmap: bool, cycle: bool) -> Reader:
    paths = (
        common.download(DATA_URL, "flowers", DATA_MD5),
        common.download(LABEL_URL, "flowers", LABEL_MD5),
        common.download(SETID_URL, "flowers", SETID_MD5),
    )
    return reader_creator(*paths, flag, mapper, buffered_size, use_xmap, cycle)


def reader_creator(
    data_file: str,
    label_file: str,
    setid_file: str,
    dataset_name: str,
    mapper: Mapper,
    buffered_size: int = 1024,
    use_xmap: bool = True,
    cycle: bool = False,
) -> Reader:
    """A reader of the list `dataset_name` of `setid_file`, like `train` (`paddle.dataset.flowers.reader_creator`).

    The photographs are read from the tar file, in its order; nothing is unpacked.
    """
    kinds = _numbers(label_file, "labels")
    listed = _numbers(setid_file, dataset_name)
    if listed.size and not 1 <= listed.min() <= listed.max() <= kinds.size:
        raise reading.damaged(setid_file, f"{dataset_name} has numbers outside of 1 ... {kinds.size}")
    labels = {f"jpg/image_{number:05}.jpg": int(kinds[number - 1]) - 1 for number in listed.tolist()}
    reader = partial(_samples, data_file, labels, cycle)
    if use_xmap:
        return xmap_readers(mapper, reader, min(4, cpu_count() or 1), buffered_size)
    return map_readers(mapper, reader)


def _samples(data_file: str, labels: dict[str, int], cycle: bool) -> Iterator[Sample]:
    while True:
        for name, data in tar_members(data_file, labels.__contains__):
            yield data, labels[name]
        if not cycle:
            return


def _numbers(path: str, name: str) -> np.ndarray:
    """The integers that a MATLAB file has under a name."""
    from scipy.io import loadmat

    try:
        numbers = np.ravel(loadmat(path, variable_names=[name])[name])
    except FileNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001  (SciPy has no error of its own for damaged files)
        raise reading.damaged(path, f"{name}: {error}") from error
    if numbers.dtype.kind not in "ui":
        raise reading.damaged(path, f"{name} are no integers")
    return numbers


def fetch() -> None:
    """Download everything now (`paddle.dataset.flowers.fetch`)."""
    common.download(DATA_URL, "flowers", DATA_MD5)
    common.download(LABEL_URL, "flowers", LABEL_MD5)
    common.download(SETID_URL, "flowers", SETID_MD5)
