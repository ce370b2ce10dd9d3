"""What Fluid's native module offers for the memory of tensors: dimensions, allocation, single elements, slices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType, to_numpy
from ...base.errors import EnforceNotMet

if TYPE_CHECKING:
    from ...base.lod import Lod
    from ...base.place import Place
    from .lod_tensor import LoDTensor


class TensorMemory:
    """The part of `LoDTensor` that programs use to fill tensors by hand. Dimensions may be set before the memory is."""

    __slots__ = ("_dims",)

    array: Any
    _dims: list[int]

    def _get_dims(self) -> list[int]:
        """The dimensions: those of the memory, or those that were set for it; [0] if there are none."""
        return list(getattr(self, "_dims", [0])) if self.array is None else list(self.array.shape)

    shape = _get_dims

    def _set_dims(self, dims: Sequence[int]) -> None:
        """Look at the elements, or at as many of them as fit, with other dimensions.

        If there are too few, the tensor has no elements until memory is allocated (`_alloc_float`).
        """
        dims = [int(n) for n in dims]
        count = int(np.prod(dims))
        if self.array is not None and count <= self.array.size:
            self.replace(self.array.reshape(-1)[:count].reshape(dims))
        else:
            self._dims = dims
            self.replace(None)

    def _is_initialized(self) -> bool:
        """Whether there are elements."""
        return self.array is not None

    def _clear(self) -> None:
        """Give the memory up and keep the dimensions."""
        self._dims = self._get_dims()
        self.replace(None)

    def _alloc_float(self, place: Place) -> None:
        """Have float32 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.FP32)

    def _alloc_double(self, place: Place) -> None:
        """Have float64 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.FP64)

    def _alloc_int(self, place: Place) -> None:
        """Have int32 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.INT32)

    def _mutable_data(self, place: Place, dtype: VarType) -> int:
        """Have memory of this type at `place`, and give its address; memory that fits already keeps its elements."""
        kind = to_numpy(dtype)
        if self.array is None or self.array.dtype != kind:
            self.set(np.zeros(self._get_dims(), kind), place)
        memory = self.array
        return int(memory.ctypes.data if type(memory) is np.ndarray else memory.data.ptr)

    def _set_float_element(self, offset: int, value: float) -> None:
        """Set element number `offset`, counted through all dimensions, of a float32 tensor."""
        self._set_element(offset, value, "float32")

    def _get_float_element(self, offset: int) -> float:
        """Element number `offset`, counted through all dimensions, of a float32 tensor.

        Raises EnforceNotMet if there is no such element, or the tensor has another type.
        """
        return float(self._flat(offset, "float32")[offset])

    def _set_double_element(self, offset: int, value: float) -> None:
        """Set element number `offset`, counted through all dimensions, of a float64 tensor."""
        self._set_element(offset, value, "float64")

    def _get_double_element(self, offset: int) -> float:
        """Element number `offset` of a float64 tensor; see `_get_float_element`."""
        return float(self._flat(offset, "float64")[offset])

    def _flat(self, offset: int, dtype: str) -> np.ndarray:
        """All elements of the host in a row, after a check of the element that is wanted."""
        size = 0 if self.array is None else self.array.size
        if not 0 <= offset < size:
            raise EnforceNotMet(f"the tensor has {size} elements, got the offset {offset}")
        if self.array.dtype != dtype:
            raise EnforceNotMet(
                f"Tensor holds the wrong type, it holds {self.array.dtype}, but desires to be {dtype}"
            )
        flat: np.ndarray = to_host(self.array).reshape(-1)
        return flat

    def _set_element(self, offset: int, value: float, dtype: str) -> None:
        self._flat(offset, dtype)
        self.array.reshape(-1)[offset] = value

    def _share_data_with(self, other: LoDTensor) -> LoDTensor:
        """Have the memory of `other`; changes of the elements of one show in the other. Returns `other`."""
        self.replace(other.array)
        return other

    def _copy(self, place: Place) -> LoDTensor:
        """A copy at `place`, with the levels of detail."""
        made = type(self)()
        made.set(self._elements(), place)
        made.set_lod(self.offsets)
        return made  # type: ignore[return-value]

    def _set_layout(self, layout: str) -> None:
        """Nothing is changed: operators have attributes for the order of dimensions."""

    def __getitem__(self, key: Any) -> LoDTensor:
        """A copy of part of the elements; a dimension that is indexed by a number stays, with the size 1.

        Raises IndexError for a number outside.
        """
        elements = self._elements()
        keys = key if isinstance(key, tuple) else (key,)
        for part, size in zip(keys, elements.shape, strict=False):
            if not isinstance(part, slice) and not -size <= part < size:
                raise IndexError(f"index {part} is out of range for a dimension of size {size}")
        slices = tuple(part if isinstance(part, slice) else slice(part, part + 1 or None) for part in keys)
        return type(self).wrap(elements[slices].copy())  # type: ignore[attr-defined, no-any-return]

    if TYPE_CHECKING:

        def set(self, array: Any, place: Place | None = None) -> None: ...

        def replace(self, array: Any) -> None: ...

        def _elements(self) -> Any: ...

        @property
        def offsets(self) -> Lod: ...

        def set_lod(self, lod: Sequence[Any]) -> None: ...
