"""Special functions, from SciPy and cupyx.scipy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from .cupy_ import library


def erf(xp: Any, x: Any) -> Any:
    """The error function of each element of `x`, an array of the array module `xp`, in its dtype."""
    functions = importlib.import_module("scipy.special") if xp is np else library.special()
    return functions.erf(x).astype(x.dtype, copy=False)
