"""`LoDTensor`: a dense array with level-of-detail offsets (`fluid.LoDTensor`), and its constructors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...backend import device_at, device_of, dlpack, moved, on_device, to_host
from ...backend.cupy_.pinned import is_pinned, pinned_array
from ...base import lod as lods
from ...base.arrays import owned, plain_copy
from ...base.dtypes import to_vartype
from ...base.errors import EnforceNotMet
from ...base.lod import Lod, as_lod
from ...base.place import CPUPlace, CUDAPinnedPlace, Place, cuda_device_count
from ...base.tensor_array import TensorArray
from .tensor_memory import TensorMemory

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_IN_C = {"float32": "float", "float64": "double", "int32": "int", "float16": "::paddle::platform::float16"}
_IN_C |= {name: f"{name}_t" for name in ("int8", "uint8", "int16", "int64")}


class LoDTensor(TensorMemory):
    """An n-dimensional array whose rows may be grouped into sequences (and sequences of sequences).

    A level of detail is a list of offsets that begins with 0; the last level ends with the number of rows. The elements
    are on the host, or on the GPU where a program or `set` has put them. Follows `fluid.LoDTensor` (also
    `fluid.Tensor`).
    """

    __slots__ = ("__weakref__", "_lod", "_owner", "array")

    def __init__(self, recursive_sequence_lengths: Sequence[Sequence[int]] = ()) -> None:
        self.array: Any = None
        self._lod: Lod = ()
        self._owner: Any = None  # a scope's version cell: told when the memory is replaced
        if recursive_sequence_lengths:
            self.set_recursive_sequence_lengths(recursive_sequence_lengths)

    @classmethod
    def wrap(cls, array: Any, lod: Sequence[Any] = ()) -> LoDTensor:
        """A tensor over `array` itself: nothing is copied, later changes to `array` show.

        `lod`: offsets that are known to fit, for each level; see `set_lod` for others.
        """
        tensor = cls.__new__(cls)
        tensor.array = array
        tensor._lod = as_lod(lod) if lod else ()
        tensor._owner = None
        return tensor

    def __setstate__(self, state: tuple[None, dict[str, Any]]) -> None:
        for name, value in state[1].items():
            setattr(self, name, value)
        self._lod = as_lod(self._lod)  # copies of arrays can be written, unlike these

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
        """Add `values`, on the host, to these rows, of which none is there twice; the memory stays."""
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
        """The elements as an array of `device` (None: the host); from now on they are there."""
        here = moved(self.array, device)
        if here is not self.array:
            self.replace(here)
        return here

    def _place(self) -> Place:
        """Where the elements are; the CPU for a tensor that has not been set."""
        if self.array is None or type(self.array) is np.ndarray:
            return _host_place(self.array)
        device = device_of(self.array)
        return CPUPlace() if device is None else device.place

    def own(self) -> Any:
        """The elements, which are on the host, where native code can read and write them."""
        here = owned(self.array)
        if here is not self.array:
            self.replace(here)
        return here

    def replace(self, array: Any) -> None:
        """Take `array` as the new memory of this tensor, without copying."""
        self.array = array
        if self._owner is not None:
            self._owner.version += 1

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
        """Take offsets that are known to fit. Plans, which read no sequences from a scope, look again if there are."""
        if self._owner is not None and bool(levels) != bool(self._lod):
            self._owner.version += 1
        self._lod = levels

    def _rows(self) -> int | None:
        """How many rows there are; None for a tensor that has not been set. A single number is one row, as in Fluid."""
        if self.array is None:
            return None
        return self.array.shape[0] if self.array.ndim else 1

    def _ends_with_rows(self) -> bool:
        """Whether the last sequence ends where the rows do; other elements may have been set after the levels."""
        return not self._lod or self._lod[-1][-1] == self._rows()

    def recursive_sequence_lengths(self) -> list[list[int]]:
        """The lengths of the sequences of each level, outermost first."""
        return lods.lengths(self._lod)

    def set_recursive_sequence_lengths(self, lengths: Sequence[Any]) -> None:
        """Set the levels of detail from lengths instead of offsets; see `set_lod`."""
        self._take_lod(tuple([lods.from_lengths(level) for level in lengths]))

    def has_valid_recursive_sequence_lengths(self) -> bool:
        """Whether the levels of detail fit each other and the number of rows."""
        return lods.problem(self._lod, self._rows()) is None

    def numpy(self) -> np.ndarray:
        """A copy of the elements as an array of the host."""
        return self.__array__()

    def _elements(self) -> Any:
        if self.array is None:
            raise ValueError("this LoDTensor has not been set and holds no elements")
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.array is None:
            warnings.warn(
                "a LoDTensor that has not been set was read: it gives an empty array, as in Fluid. "
                "If it should hold a parameter, run the startup program in this scope first.",
                stacklevel=2,
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
        return True  # whatever it holds, and if it has not been set, as in Fluid

    def __len__(self) -> int:
        return len(self._elements())

    def _dtype(self) -> Any:
        return to_vartype(self._elements().dtype)

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


def overwrite(target: Any, source: Any) -> None:
    """Copy the elements of `source` into those of `target`, of the same shape and dtype, wherever both are."""
    device = device_of(target)
    if device is None:
        np.copyto(target, to_host(source))
    elif on_device(source):
        device.adopt(source, target)
    else:
        device.overwrite(target, source)


def _host_place(array: Any) -> Place:
    return CPUPlace() if array is None or not is_pinned(array) else CUDAPinnedPlace()


class LoDTensorArray(list):
    """A list of `LoDTensor` (`fluid.LoDTensorArray`)."""

    def _move_to_list(self) -> list[LoDTensor]:
        """The tensors in a plain list; the array is empty afterwards."""
        tensors = list(self)
        self.clear()
        return tensors

    def elements(self) -> TensorArray:
        """The tensors as programs work on them; what was never set is left out."""
        known = [tensor.array for tensor in self if tensor.array is not None]
        array = TensorArray((known[0].shape, known[0].dtype) if known else None)
        for index, tensor in enumerate(self):
            if tensor.array is not None:
                array.write(index, tensor.array, tensor.offsets)
        return array

    def take(self, array: TensorArray) -> None:
        """Become what a program has made."""
        self[:] = [LoDTensor() if element is None else LoDTensor.wrap(element, lod) for element, lod in array]


def from_dlpack(source: Any) -> LoDTensor:
    """A LoDTensor over the memory of another library's array, without copying if its layout is C's.

    Args:
        source: a DLPack capsule, which can be taken once, or anything with `__dlpack__`; of the host or of a GPU, of
            any shape. On a GPU its memory is used after what is computing it (for capsules: on CUDA's default stream).

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
        ValueError: the last lengths are not those of the lists.
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
            raise ValueError(
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
    """The elements of sequences end to end, with one more dimension of size 1; int64 if there are none."""
    parts = [np.asarray(sequence) for sequence in sequences if len(sequence)]
    return (np.concatenate(parts) if parts else np.zeros(0, np.int64))[..., np.newaxis]


def create_random_int_lodtensor(
    recursive_seq_lens: Sequence[Sequence[int]], base_shape: Sequence[int], place: Place, low: int, high: int
) -> LoDTensor:
    """A tensor of random int64 in [low, high] with rows of `base_shape` (`fluid.create_random_int_lodtensor`)."""
    rows = sum(recursive_seq_lens[-1])
    data = np.random.randint(low, high + 1, (rows, *base_shape)).astype("int64")
    return create_lod_tensor(data, recursive_seq_lens, place)
