"""`TensorMemory`: the elements of a tensor on the host or a GPU, with Fluid's methods for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import device_at, device_of, dlpack, moved, on_device, to_host
from ..backend.cupy_.pinned import is_pinned, pinned_array
from ..base import callsite
from ..base.arrays import owned, plain_copy
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..base.errors import EnforceNotMet
from ..base.place import CPUPlace, CUDAPinnedPlace, Place, cuda_device_count

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice


class TensorMemory:
    """The elements of a `LoDTensor`, on the host or on a GPU. Dimensions may be set before the memory is."""

    __slots__ = ("__weakref__", "_dims", "_owner", "array")

    array: Any
    _dims: list[int]
    _owner: Any
    """The version cell of the scope, which counts replacements of the memory."""

    def set(self, array: Any, place: Place | None = None) -> None:
        """Copy an array into this tensor; the levels of detail are kept.

        Args:
            array: of any shape and type of numbers: whatever NumPy reads, or an array of a GPU.
            place: where the elements are to be: a `CUDAPlace`, or `CUDAPinnedPlace` for page-locked memory. Where shape
                and dtype stay, so does the memory, unless it is in another place than one of these. None and `CPUPlace`
                leave memory of a GPU where it is; without a usable GPU every place means the CPU.

        Raises:
            TypeError: the array holds Python objects or strings.
            ValueError: there are GPUs, but not that of `place`.

        Follows `fluid.LoDTensor.set`.
        """
        source = array if on_device(array) else np.asarray(array)
        if source.dtype == object or source.dtype.kind in "US":
            raise TypeError(
                f"a LoDTensor holds numbers, got an array of dtype {source.dtype}; ragged lists need create_lod_tensor"
            )
        if self._owner is not None:
            self._owner.writes += 1
        mine = self.array
        fits = mine is not None and mine.shape == source.shape and mine.dtype == source.dtype
        if type(place) is CPUPlace or place is None:
            if fits:
                overwrite(mine, source)
            else:
                self.replace(plain_copy(to_host(source)))
        else:
            self._set_at(place, source, fits)

    def add_rows(self, rows: np.ndarray, values: np.ndarray) -> None:
        """Add `values`, on the host, to these distinct rows, in place."""
        device = device_of(self.array) if on_device(self.array) else None
        mine = self.own() if device is None else self.array
        mine[rows] += values if device is None else device.put(values)
        if self._owner is not None:
            self._owner.writes += 1

    def _set_at(self, place: Place, source: Any, fits: bool) -> None:
        device = device_at(place)
        if isinstance(place, CUDAPinnedPlace) and cuda_device_count():
            if not (fits and type(self.array) is np.ndarray and is_pinned(self.array)):
                self.replace(pinned_array(source.shape, source.dtype))
            overwrite(self.array, source)
        elif fits and device_of(self.array) is device:
            overwrite(self.array, source)
        elif device is None:
            self.replace(plain_copy(to_host(source)))
        else:
            self.replace(device.adopt(source) if on_device(source) else device.put(source))

    def on(self, device: CudaDevice | None) -> Any:
        """The elements as an array of `device` (None: the host), to which they are moved."""
        if device is None and type(self.array) is np.ndarray:
            return self.array
        here = moved(self.array, device)
        if here is not self.array:
            self.replace(here)
        return here

    def _place(self) -> Place:
        """The place of the elements; the CPU for a tensor that has not been set."""
        if self.array is None or type(self.array) is np.ndarray:
            return _host_place(self.array)
        device = device_of(self.array)
        return CPUPlace() if device is None else device.place

    def own(self) -> Any:
        """The elements, on the host, in memory that native code can read and write."""
        here = owned(self.array)
        if here is not self.array:
            self.replace(here)
        return here

    def replace(self, array: Any) -> None:
        """Make `array` the memory of this tensor, without copying."""
        self.array = array
        if self._owner is not None:
            self._owner.version += 1

    def numpy(self) -> np.ndarray:
        """A copy of the elements as an array of the host."""
        return self.__array__()

    def _elements(self) -> Any:
        if self.array is None:
            raise EnforceNotMet("this LoDTensor has not been set and holds no elements")
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.array is None:
            callsite.warn(
                "a LoDTensor that has not been set was read: it gives an empty array, as in Fluid. "
                "If it should hold a parameter, run the startup program in this scope first."
            )
            return np.empty(0, "float64" if dtype is None else dtype)
        elements = self.array
        if on_device(elements):
            if copy is False:
                raise ValueError(
                    f"a tensor on {self._place()!r} cannot be given as an array of the host without a copy"
                )
            elements = to_host(elements)
            return elements if dtype is None else elements.astype(dtype, copy=False)
        if dtype is not None and np.dtype(dtype) != elements.dtype:
            if copy is False:
                raise ValueError(f"cannot give a {elements.dtype} tensor as {np.dtype(dtype)} without a copy")
            return elements.astype(dtype)
        return elements if copy is False else elements.copy()

    def _to_dlpack(self) -> Any:
        """The memory of the elements as a DLPack capsule, which another library can take once."""
        return dlpack.capsule(self._elements())

    def __dlpack__(self, **options: Any) -> Any:
        """The memory of the elements for other libraries; see `backend.dlpack.capsule`."""
        return dlpack.capsule(self._elements(), **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.device_code(self._elements())

    def __bool__(self) -> bool:
        return True  # always, as in Fluid

    def __len__(self) -> int:
        return len(self._elements())

    def _dtype(self) -> Any:
        return to_vartype(self._elements().dtype)

    def _get_dims(self) -> list[int]:
        """The dimensions: those of the memory, or those that were set for it; [0] if there are none."""
        return list(getattr(self, "_dims", [0])) if self.array is None else list(self.array.shape)

    shape = _get_dims

    def _set_dims(self, dims: Sequence[int]) -> None:
        """Reshape to `dims`, dropping elements at the end if there are more.

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
        """True if there are elements."""
        return self.array is not None

    def _clear(self) -> None:
        """Free the memory and keep the dimensions."""
        self._dims = self._get_dims()
        self.replace(None)

    def _alloc_float(self, place: Place) -> None:
        """Allocate float32 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.FP32)

    def _alloc_double(self, place: Place) -> None:
        """Allocate float64 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.FP64)

    def _alloc_int(self, place: Place) -> None:
        """Allocate int32 memory of the tensor's dimensions at `place`."""
        self._mutable_data(place, VarType.INT32)

    def _mutable_data(self, place: Place, dtype: VarType) -> int:
        """Allocate memory of this type at `place` unless it has the type already; returns its address."""
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
        """All elements as a flat array of the host, after a check that `offset` and `dtype` are valid."""
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

    def _set_layout(self, layout: str) -> None:
        """Do nothing: operators have attributes for the order of dimensions."""


def overwrite(target: Any, source: Any) -> None:
    """Copy the elements of `source` to `target`, of the same shape and dtype, on the host or a GPU."""
    device = device_of(target)
    if device is None:
        np.copyto(target, to_host(source))
    elif on_device(source):
        device.adopt(source, target)
    else:
        device.overwrite(target, source)


def _host_place(array: Any) -> Place:
    return CPUPlace() if array is None or not is_pinned(array) else CUDAPinnedPlace()
