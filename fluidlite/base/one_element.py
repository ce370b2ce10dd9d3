"""Arrays of one element that convert to numbers, as scripts for Fluid expect of a loss: `float(loss.numpy())`."""

from __future__ import annotations

from typing import Any

import numpy as np


class OneElement(np.ndarray):
    """An array of one element, such as a loss of shape [1], of which `float` and `int` make a number.

    Arrays with dimensions lost that in NumPy 2.4. Results of arithmetic that have one element convert too; what is
    pickled, and everything larger, is a plain array.
    """

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __index__(self) -> int:
        return self.item().__index__()  # type: ignore[no-any-return]

    def __complex__(self) -> complex:
        return complex(self.item())

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Any:
        plain = array.view(np.ndarray)
        return plain[()] if return_scalar or plain.ndim == 0 else convertible(plain)

    def __reduce__(self) -> Any:
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.view(np.ndarray).__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))


def convertible(array: np.ndarray) -> np.ndarray:
    """`array`, as a `OneElement` if it has one element and dimensions."""
    return array.view(OneElement) if array.size == 1 and array.ndim else array
