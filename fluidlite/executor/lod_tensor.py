"""`LoDTensor`: a dense array with level-of-detail offsets (`fluid.LoDTensor`), and its constructors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backend import device_at, device_of, dlpack, moved, on_device, to_host
from ..backend.cupy_.pools import is_pinned, pinned_array
from ..base import callsite
from ..base import lod as lods
from ..base.arrays import owned, plain_copy
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..base.errors import ArgumentAssertion, EnforceNotMet
from ..base.lod import Lod, as_lod
from ..base.place import CPUPlace, CUDAPinnedPlace, Place, cuda_device_count
from ..base.tensor_array import TensorArray

if TYPE_CHECKING:
    from ..backend.cupy_.device import CudaDevice

_IN_C = {"float32": "float", "float64": "double", "int32": "int", "float16": "::paddle::platform::float16"}
_IN_C |= {name: f"{name}_t" for name in ("int8", "uint8", "int16", "int64")}


class LoDTensor:
    """An n-dimensional array whose rows may be grouped into sequences (and sequences of sequences).

    A level of detail is a list of offsets that begins with 0; the last level ends with the number of rows. The elements
    are on the host, or on the GPU where a program or `set` has put them; dimensions may be set before they are. Follows
    `fluid.LoDTensor` (also `fluid.Tensor`).
    """

    __slots__ = ("__weakref__", "_dims", "_lod", "_owner", "array")

    array: Any
    _dims: list[int]
    _owner: Any
    """The version cell of the scope, which counts replacements of the memory."""

    def __init__(self, recursive_sequence_lengths: Sequence[Sequence[int]] = ()) -> None:
        self.array = None
        self._lod: Lod = ()
        self._owner = None
        if recursive_sequence_lengths:
            self.set_recursive_sequence_lengths(recursive_sequence_lengths)

    @classmethod
    def wrap(cls, array: Any, lod: Sequence[Any] = ()) -> LoDTensor:
        """A tensor that shares the memory of `array`.

        `lod`: valid offsets for each level, which are not checked; see `set_lod` for others.
        """
        tensor = cls.__new__(cls)
        tensor.array = array
        tensor._lod = as_lod(lod) if lod else ()
        tensor._owner = None
        return tensor

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        self._lod = as_lod(self._lod)  # unpickled arrays are writable, offsets are not

    @property
    def offsets(self) -> Lod:
        """The offsets of each level, outermost first, as read-only int64 arrays; () for a plain tensor."""
        return self._lod

    def lod(self) -> list[list[int]]:
        """The offsets of each level, outermost first; empty for a plain tensor. Follows `fluid.LoDTensor.lod`."""
        return lods.as_lists(self._lod)

    def set_lod(self, lod: Sequence[Any]) -> None:
        """Set the offsets of each level.

        Args:
            lod: lists or arrays of whole numbers, outermost level first; they are copied.

        Raises:
            EnforceNotMet: a level does not begin with 0, decreases, or does not match the level or the rows below.
                (A tensor that has not been set yet may get any number of rows.)
            TypeError: the levels do not hold whole numbers.

        Follows `fluid.LoDTensor.set_lod`.
        """
        self._take_lod(tuple([lods.frozen_offsets(level) for level in lod]))

    def _take_lod(self, levels: Lod) -> None:
        problem = lods.problem(levels, self._rows())
        if problem:
            raise EnforceNotMet(f"invalid LoD {lods.as_lists(levels)!r:.200}: {problem}")
        self.hold_lod(levels)

    def hold_lod(self, levels: Lod) -> None:
        """Set valid offsets. Plans, which read no sequences from a scope, bind anew if there are some now."""
        if self._owner is not None and bool(levels) != bool(self._lod):
            self._owner.version += 1
        self._lod = levels

    def _rows(self) -> int | None:
        """The number of rows; None for a tensor that has not been set. A scalar is one row, as in Fluid."""
        if self.array is None:
            return None
        return self.array.shape[0] if self.array.ndim else 1

    def _ends_with_rows(self) -> bool:
        """True if the last sequence ends with the last row; elements may have been set after the levels."""
        return not self._lod or self._lod[-1][-1] == self._rows()

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of the sequences of each level, outermost first."""
        return lods.lengths(self._lod)

    def set_recursive_sequence_lengths(self, lengths: Sequence[Any]) -> None:
        """Set the levels of detail from lengths instead of offsets; see `set_lod`."""
        self._take_lod(tuple([lods.from_lengths(level) for level in lengths]))

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """True if the levels of detail match each other and the number of rows."""
        return lods.problem(self._lod, self._rows()) is None

    def _share_data_with(self, other: LoDTensor) -> LoDTensor:
        """Share the memory of `other`, which is returned."""
        self.replace(other.array)
        return other

    def _copy(self, place: Place) -> LoDTensor:
        """A copy at `place`, with the levels of detail."""
        made = LoDTensor()
        made.set(self._elements(), place)
        made.set_lod(self.offsets)
        return made

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
        return LoDTensor.wrap(elements[slices].copy())

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
            return CUDAPinnedPlace() if self.array is not None and is_pinned(self.array) else CPUPlace()
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

    def __str__(self) -> str:
        """Levels, shape and all elements, as Fluid prints them."""
        if self.array is None:
            return repr(self)
        elements = to_host(self.array)
        lod = "".join("{" + ", ".join(map(str, level)) + "}" for level in self._lod)
        form = "g" if elements.dtype.kind == "f" else "d"
        data = " ".join(format(one, form) for one in elements.reshape(-1).tolist())
        lines = [f"lod: {{{lod}}}", f"dim: {', '.join(map(str, elements.shape))}", "layout: NCHW"]
        lines += [f"dtype: {_IN_C.get(elements.dtype.name, elements.dtype.name)}", f"data: [{data}]"]
        return "".join(f"\t{line}\n" for line in lines)

    def __repr__(self) -> str:
        if self.array is None:
            return "LoDTensor(not set)"
        lod = f", lod={self.lod()}" if self._lod else ""
        place = f", place={self._place()!r}" if on_device(self.array) else ""
        elements = to_host(self.array)
        return f"LoDTensor(shape={list(elements.shape)}, dtype={elements.dtype}{lod}{place},\n{elements})"


class LoDTensorArray(list):
    """A list of `LoDTensor` (`fluid.LoDTensorArray`)."""

    def _move_to_list(self) -> list[LoDTensor]:
        """The tensors in a plain list; the array is empty afterwards."""
        tensors = list(self)
        self.clear()
        return tensors

    def elements(self) -> TensorArray:
        """The tensors as a `TensorArray`, without those that were never set."""
        set_arrays = [tensor.array for tensor in self if tensor.array is not None]
        array = TensorArray((set_arrays[0].shape, set_arrays[0].dtype) if set_arrays else None)
        for index, tensor in enumerate(self):
            if tensor.array is not None:
                array.write(index, tensor.array, tensor.offsets)
        return array

    def take(self, array: TensorArray) -> None:
        """Take over the elements of a program's tensor array."""
        self[:] = [LoDTensor() if element is None else LoDTensor.wrap(element, lod) for element, lod in array]


def overwrite(target: Any, source: Any) -> None:
    """Copy the elements of `source` to `target`, of the same shape and dtype, on the host or a GPU."""
    device = device_of(target)
    if device is None:
        np.copyto(target, to_host(source))
    elif on_device(source):
        device.adopt(source, target)
    else:
        device.overwrite(target, source)


def from_dlpack(source: Any) -> LoDTensor:
    """A LoDTensor over the memory of another library's array, without copying if its layout is C's.

    Args:
        source: a DLPack capsule, which can be taken once, or anything with `__dlpack__`; of the host or of a GPU, of
            any shape. On a GPU its memory is used after pending work on it (for capsules: on CUDA's default stream).

    Raises:
        TypeError: it is neither, or holds elements of a type that Fluid does not have.
        ValueError: the capsule was taken before, or is of another kind of device.

    Follows `fluid.core.from_dlpack`.
    """
    array = dlpack.from_external(source)
    to_vartype(array.dtype)
    return LoDTensor.wrap(array)


def create_lod_tensor(
    data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Place | None = None
) -> LoDTensor:
    """A tensor of `data` with levels of detail given as sequence lengths (`fluid.create_lod_tensor`).

    Args:
        data: an array, a LoDTensor, or a list of sequences: lists of numbers or arrays, which are put end to end and
            become a column (ints of int64, floats of float64).
        recursive_seq_lens: the lengths for each level, outermost first; lists or arrays.
        place: where the elements are to be; see `LoDTensor.set`.

    Raises:
        AssertionError: the last lengths are not those of the lists (also a ValueError).
        EnforceNotMet: the lengths do not add up to the rows.
        TypeError: for other data.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> rows = np.array([[1], [2], [3]])
        >>> tensor = fluid.create_lod_tensor(rows, [[2, 1]], fluid.CPUPlace())
        >>> tensor.recursive_sequence_lengths(), tensor.lod()
        ([[2, 1]], [[0, 2, 3]])
    """
    if isinstance(data, LoDTensor):
        return create_lod_tensor(np.array(data), recursive_seq_lens, place)
    if isinstance(data, list):
        lengths = [len(sequence) for sequence in data]
        if not len(recursive_seq_lens) or list(recursive_seq_lens[-1]) != lengths:
            raise ArgumentAssertion(
                f"recursive_seq_lens and data do not match: the lists have lengths {lengths!r:.200}, got "
                f"{recursive_seq_lens!r:.200}"
            )
        data = _column(data)
    if not isinstance(data, np.ndarray):
        raise TypeError(f"data must be a LoDTensor, an array or a list of lists, got {type(data).__name__}")
    tensor = LoDTensor()
    tensor.set(data, place if place is not None else CPUPlace())
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    return tensor


def _column(sequences: list[Any]) -> np.ndarray:
    """The concatenated elements of sequences with one more dimension of size 1; int64 if there are none."""
    parts = [np.asarray(sequence) for sequence in sequences if len(sequence)]
    return (np.concatenate(parts) if parts else np.zeros(0, np.int64))[..., np.newaxis]


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Place, low: int, high: int
) -> LoDTensor:
    """A tensor of random int64 in [low, high] with rows of `base_shape` (`fluid.create_random_int_lodtensor`)."""
    rows = sum(recursive_seq_lens[-1])
    data = np.random.randint(low, high + 1, (rows, *base_shape)).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
