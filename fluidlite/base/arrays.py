"""Arrays of NumPy as native code takes them, and arrays of one element that convert to numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtypes import element_types

_CANONICAL = {dtype: dtype for dtype in element_types()}
NUMBERS = frozenset(dtype.num for dtype in _CANONICAL)
"""The type numbers of elements in plain arrays."""


def is_plain(array: Any) -> bool:
    """Whether native code can read `array` where it is; see `plain`."""
    if type(array) is not np.ndarray:
        return False
    flags, dtype = array.flags, array.dtype
    return flags.c_contiguous and flags.aligned and dtype.isnative and dtype.num in NUMBERS


def plain(array: Any) -> np.ndarray:
    """The elements of `array` as native code can read them: itself, a view, or a copy.

    The result is C-contiguous, aligned, in native byte order, no subclass, and its dtype is the very one that Fluid's
    element type has here (`np.longlong` is equal to `np.int64`, but another type to C). Nothing but the memory differs:
    dtypes that Fluid does not have are kept.
    """
    array = np.asarray(array)
    return array if is_plain(array) else plain_copy(array)


def owned(array: Any) -> np.ndarray:
    """`array` itself if native code can write into it where it is, otherwise a plain copy."""
    if type(array) is np.ndarray:
        flags, dtype = array.flags, array.dtype
        if flags.carray and dtype.isnative and dtype.num in NUMBERS:
            return array
    return plain_copy(array)


def plain_copy(array: Any) -> np.ndarray:
    """A plain array of its own with the elements of `array`; see `plain`."""
    array = np.asarray(array)
    native = array.dtype.newbyteorder("=")
    result = np.empty(array.shape, _CANONICAL.get(native, native))
    result[...] = array
    return result


def halves(values: np.ndarray) -> np.ndarray:
    """`values` in float16 as Fluid makes them on the CPU: the next ones toward zero; infinity above the largest."""
    single = values.astype(np.float32)
    made = single.astype(np.float16)
    made.view(np.uint16)[...] -= np.abs(made.astype(np.float32)) > np.abs(single)
    return np.where(np.abs(single) > np.finfo(np.float16).max, np.copysign(np.inf, single), made).astype(
        np.float16
    )


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
