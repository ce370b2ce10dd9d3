"""`paddle.dataset.common`: where data sets are kept, downloaded and split."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, BinaryIO

from ..base.errors import DownloadError
from ..base.storage.files import atomic_writer
from ..fluid.io.pickles import parse_pickle
from . import reading
from .reading import download as _download
from .reading import md5 as md5file

__all__ = ["DATA_HOME", "cluster_files_reader", "download", "fetch_all", "md5file", "must_mkdirs", "split"]

DATA_HOME = os.path.expanduser(os.path.join("~", ".cache", "paddle", "dataset"))
"""The cache of downloaded files, one directory a data set; the one that Paddle uses."""

_FETCHED = (
    "mnist",
    "uci_housing",
    "cifar",
    "imdb",
    "imikolov",
    "movielens",
    "conll05",
    "wmt14",
    "wmt16",
    "flowers",
    "sentiment",
    "mq2007",
)


def must_mkdirs(path: str) -> None:
    """Make the directory `path`, and those above it, unless it exists
    (`paddle.dataset.common.must_mkdirs`)."""
    os.makedirs(path, exist_ok=True)


def download(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str:
    """The path of a local copy of `url` (`paddle.dataset.common.download`).

    A file in `$FLUIDLITE_DATA/MODULE_NAME` is taken first, packed or not, whatever its checksum: who reads it
    checks the contents. Then one in `DATA_HOME/MODULE_NAME` with the right checksum; else `url` is downloaded
    to there.

    Args:
        url: http, https or file.
        module_name: the data set, `mnist`; names the directory.
        md5sum: MD5 of the contents in hexadecimal digits; None takes anything.
        save_name: the file's name; by default the last part of `url`.

    Raises:
        DownloadError: a RuntimeError that says what went wrong and where the file may be put by hand.
    """
    found = local(url, module_name, md5sum, save_name)
    if found is not None:
        return found
    path = _cached(url, module_name, save_name)
    try:
        _download(url, path, md5sum)
    except DownloadError as error:
        where = f"$FLUIDLITE_DATA/{module_name}/{os.path.basename(path)} or {path}"
        raise DownloadError(f"{error}. Without a network, put the file at {where}") from error.__cause__
    return path


def local(url: str, module_name: str, md5sum: str | None, save_name: str | None = None) -> str | None:
    """The file that `download` would return without downloading anything, or None."""
    path = _cached(url, module_name, save_name)
    name = os.path.basename(path)
    # Some names hold an encoded slash (imdb%2FaclImdb_v1.tar.gz): the part after it is the usual name of the file.
    found = reading.find(module_name, name) or reading.find(module_name, name.rpartition("%2F")[2])
    if found is None and os.path.exists(path) and md5sum in (None, md5file(path)):
        found = path
    return found


def _cached(url: str, module_name: str, save_name: str | None) -> str:
    return os.path.join(DATA_HOME, module_name, save_name or url.rsplit("/", 1)[-1])


def fetch_all() -> None:
    """Download every data set that this package reads (`paddle.dataset.common.fetch_all`)."""
    for name in _FETCHED:
        import_module(f"fluidlite.dataset.{name}").fetch()


def split(
    reader: Callable[[], Any],
    line_count: int,
    suffix: str = "%05d.pickle",
    dumper: Callable[..., Any] | None = None,
) -> None:
    """Write the samples of `reader` to numbered files of at most `line_count` samples
    (`paddle.dataset.common.split`).

    Args:
        reader: a function that returns an iterable of samples.
        line_count: samples in a file, at least 2.
        suffix: a pattern for the files' names, with a `%d` for the number.
        dumper: called as `dumper(list_of_samples, file)`; pickles by default.

    Raises:
        TypeError: `dumper` cannot be called, or `suffix` has no place for a number.
    """
    if dumper is None:
        from pickle import dump as dumper
    if not callable(dumper):
        raise TypeError(f"dumper must be callable, got {dumper!r}")
    samples: list[Any] = []
    number = 0
    for sample in reader():
        samples.append(sample)
        if len(samples) >= line_count:
            _write(samples, suffix % number, dumper)
            samples, number = [], number + 1
    if samples:
        _write(samples, suffix % number, dumper)


def _write(samples: list[Any], path: str, dumper: Callable[..., Any]) -> None:
    with atomic_writer(path, folders=False) as file:
        dumper(samples, file)


def cluster_files_reader(
    files_pattern: str, trainer_count: int, trainer_id: int, loader: Callable[[Any], Any] | None = None
) -> Callable[[], Iterator[Any]]:
    """A reader of one trainer's share of the files that `split` has written.

    Follows `paddle.dataset.common.cluster_files_reader`, but by default loads nothing but plain values and
    arrays.

    Args:
        files_pattern: a glob pattern.
        trainer_count: how many trainers share the files.
        trainer_id: which of them this is, from 0; it gets every `trainer_count`-th file in the order of their
            names.
        loader: called with an open binary file, returns a list of samples; by default unpickles plain data.

    Raises:
        TypeError: `loader` cannot be called.
    """
    if loader is None:
        loader = _load_samples
    if not callable(loader):
        raise TypeError(f"loader must be callable, got {loader!r}")

    def reader() -> Iterator[Any]:
        for path in sorted(glob.glob(files_pattern))[trainer_id::trainer_count]:
            with open(path, "rb") as file:
                yield from loader(file)

    return reader


def _load_samples(file: BinaryIO) -> Any:
    return parse_pickle(
        file.read(), file.name, "a file of samples as paddle.dataset.common.split writes them"
    )
