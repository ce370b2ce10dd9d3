"""Arrays of one element that convert to numbers, as scripts for Fluid expect: `float(loss.numpy())`."""

from __future__ import annotations

from typing import Any

import numpy as np


class Convertible(np.ndarray):
    """An array that `float` and `int` convert if it has one element, whatever its dimensions; its slices too.

    NumPy 2.4 dropped that for arrays with dimensions. Results of arithmetic with one element convert too; other
    results, and unpickled arrays, are plain.
    """

    def _number(self) -> Any:
        # NumPy itself refuses arrays of other sizes, with its own error.
        return self.item() if self.size == 1 else self.view(np.ndarray)

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __index__(self) -> int:
        return self._number().__index__()  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        return complex(self._number())

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(np.ndarray)
        if return_scalar or plain.ndim == 0:
            return plain[()]
        return convertible(plain) if plain.size == 1 else plain

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


# Scripts may print the name of the type.
Convertible.__name__ = Convertible.__qualname__ = "ndarray"


def convertible(array: np.ndarray) -> np.ndarray:
    """`array`, as a `Convertible` if it has dimensions; the memory is the same."""
    return array.view(Convertible) if array.ndim else array
