"""Special functions that NumPy and CuPy keep in libraries of their own."""

from __future__ import annotations

import importlib
from typing import Any


def erf(xp: Any, x: Any) -> Any:
    """The error function of each element of `x`, an array of the array module `xp`, in its dtype."""
    library = "scipy.special" if xp.__name__ == "numpy" else "cupyx.scipy.special"
    return importlib.import_module(library).erf(x).astype(x.dtype, copy=False)
