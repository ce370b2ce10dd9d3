"""Loads pickles that hold plain values and NumPy arrays, and nothing else: a data file must not run code."""

from __future__ import annotations

import _codecs
import pickle
from typing import Any, BinaryIO

import numpy as np

# What arrays and NumPy scalars are pickled with, taken from them: the modules' names differ between releases.
_array, _scalar = np.empty(1), np.float32(0)
_MULTIARRAY = {"_reconstruct": _array.__reduce__()[0], "scalar": _scalar.__reduce__()[0]}
_NUMERIC = {"_frombuffer": _array.__reduce_ex__(5)[0]}
_ALLOWED: dict[str, dict[str, Any]] = {
    "numpy": {"ndarray": np.ndarray, "dtype": np.dtype},
    "numpy.core.multiarray": _MULTIARRAY,
    "numpy._core.multiarray": _MULTIARRAY,
    "numpy.core.numeric": _NUMERIC,
    "numpy._core.numeric": _NUMERIC,
    # How Python 3 writes bytes for Python 2 to read.
    "_codecs": {"encode": _codecs.encode},
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _ALLOWED[module][name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"a data file may hold plain values and NumPy arrays only, this one asks for {module}.{name}"
            ) from None


def load(file: BinaryIO, encoding: str = "ASCII") -> Any:
    """The object pickled in `file`, built from plain values and NumPy arrays.

    Args:
        file: an open binary file.
        encoding: how to read strings that Python 2 wrote; `bytes` leaves them as they are.

    Raises:
        pickle.UnpicklingError: the pickle is damaged or needs anything else.
    """
    return _Unpickler(file, encoding=encoding).load()
