"""`paddle.dataset.uci_housing`: house prices in Boston, 13 features and a price each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from . import common, reading
from .reading import unpack

__all__ = [
    "FLUID_MD5_MODEL",
    "FLUID_URL_MODEL",
    "feature_names",
    "feature_range",
    "fetch",
    "fluid_model",
    "load_data",
    "predict_reader",
    "test",
    "train",
]

URL = "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data"
MD5 = "d4accdce7a25600298819f8e28e8d593"
FLUID_URL_MODEL = "https://github.com/PaddlePaddle/book/raw/develop/01.fit_a_line/fluid/fit_a_line.fluid.tar"
FLUID_MD5_MODEL = "6e6dd637ccd5993961f68bfbde46090b"
feature_names = [
    "CRIM",
    "ZN",
    "INDUS",
    "CHAS",
    "NOX",
    "RM",
    "AGE",
    "DIS",
    "RAD",
    "TAX",
    "PTRATIO",
    "B",
    "LSTAT",
]

UCI_TRAIN_DATA: Any = None
"""Rows to train with, features and price, once `load_data` was called."""
UCI_TEST_DATA: Any = None
"""Rows to test with, likewise."""

Reader = Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]]


def load_data(filename: str, feature_num: int = 14, ratio: float = 0.8) -> None:
    """Read a table of numbers into UCI_TRAIN_DATA and UCI_TEST_DATA (`paddle.dataset.uci_housing.load_data`).

    Args:
        filename: a text file of numbers between blanks, packed or not.
        feature_num: columns, the price being the last. All others are centred at their mean and divided by
            their range.
        ratio: the part of the rows, from the beginning, to train with.

    Raises:
        FormatError: the contents are not such a table.
    """
    global UCI_TRAIN_DATA, UCI_TEST_DATA
    try:
        numbers = np.array(reading.read(filename).split(), dtype=np.float64)
    except ValueError as error:
        raise reading.damaged(filename, str(error)) from error
    if not numbers.size or numbers.size % feature_num:
        raise reading.damaged(filename, f"it holds {numbers.size} numbers, expected rows of {feature_num}")
    rows = numbers.reshape(-1, feature_num)
    features = rows[:, :-1]
    span = features.max(axis=0) - features.min(axis=0)
    features -= features.mean(axis=0)
    features /= np.where(span == 0, 1, span)
    count = int(len(rows) * ratio)
    UCI_TRAIN_DATA, UCI_TEST_DATA = rows[:count], rows[count:]


def train() -> Reader:
    """A reader of the first four fifths of the houses (`paddle.dataset.uci_housing.train`).

    It yields `(features, price)`: float64 of shape [13], normalised as `load_data` says, and float64 of shape
    [1].

    Raises:
        DownloadError: the data is neither in `$FLUIDLITE_DATA/uci_housing` nor in the cache nor can be
        downloaded.
    """
    return partial(_rows, _split(0))


def test() -> Reader:
    """A reader of the last fifth of the houses, like `train` (`paddle.dataset.uci_housing.test`)."""
    return partial(_rows, _split(1))


def fetch() -> None:
    """Download the data now (`paddle.dataset.uci_housing.fetch`)."""
    common.download(URL, "uci_housing", MD5)


def predict_reader() -> tuple[np.ndarray]:
    """The features of the first house of the test data, alone in a tuple (`paddle.dataset.uci_housing`)."""
    return (_split(1)[0][:-1],)


def fluid_model() -> str:
    """A new folder with the model of Paddle's book, which is downloaded (`paddle.dataset.uci_housing.fluid_model`).

    Raises DownloadError as `train` does.
    """
    folder = tempfile.mkdtemp()
    unpack(common.download(FLUID_URL_MODEL, "uci_housing", FLUID_MD5_MODEL), folder)
    return folder


def feature_range(maximums: np.ndarray, minimums: np.ndarray) -> None:
    """Draw how far each feature goes, into `image/ranges.png` (`paddle.dataset.uci_housing.feature_range`).

    Raises ImportError without matplotlib.
    """
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots()
    count = len(maximums)
    axes.bar(range(count), np.asarray(maximums) - np.asarray(minimums), align="center")
    axes.set_title("feature scale")
    axes.set_xticks(range(count), feature_names[:count], rotation=60)
    axes.set_xlim(-1, count)
    os.makedirs("image", exist_ok=True)
    figure.savefig("image/ranges.png", dpi=48)
    pyplot.close(figure)


def _split(which: int) -> np.ndarray:
    if UCI_TRAIN_DATA is None:
        load_data(common.download(URL, "uci_housing", MD5))
    return (UCI_TRAIN_DATA, UCI_TEST_DATA)[which]


def _rows(table: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return ((row[:-1], row[-1:]) for row in table)
