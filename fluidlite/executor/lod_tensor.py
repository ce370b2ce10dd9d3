"""`LoDTensor`: a dense array with level-of-detail offsets (`fluid.LoDTensor`), its constructors and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

from ..backend import dlpack, on_device, to_host
from ..base import lod as lods
from ..base.dtypes import to_vartype
from ..base.errors import ArgumentAssertion, EnforceNotMet, FormatError
from ..base.lod import Lod, as_lod
from ..base.place import CPUPlace, Place
from ..base.tensor_array import TensorArray
from .tensor_memory import TensorMemory

_IN_C = {"float32": "float", "float64": "double", "int32": "int", "float16": "::paddle::platform::float16"}
_IN_C |= {name: f"{name}_t" for name in ("int8", "uint8", "int16", "int64")}


class LoDTensor(TensorMemory):
    """An n-dimensional array whose rows may be grouped into sequences (and sequences of sequences).

    A level of detail is a list of offsets that begins with 0; the last level ends with the number of rows. The elements
    are on the host, or on the GPU where a program or `set` has put them. Follows `fluid.LoDTensor` (also
    `fluid.Tensor`).
    """

    __slots__ = ("_lod",)

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


def write_tensor(file: BinaryIO, tensor: LoDTensor) -> None:
    """Append `tensor` (elements and levels of detail) to a binary file.

    A tensor without dimensions is written with shape [1], as Fluid has none. Raises ValueError if it was
    never set, TypeError for an element type that Fluid cannot hold.
    """
    if tensor.array is None:
        raise ValueError("a LoDTensor that has not been set cannot be written: it holds no elements")
    from ..base.storage import messages  # few processes write files

    messages.write(file, to_host(tensor.array), tensor.offsets)


def read_tensors(file: BinaryIO, names: Sequence[str], what: str | os.PathLike[str]) -> dict[str, LoDTensor]:
    """The tensors of a binary file that holds exactly one for each of `names`, in that order.

    `what` names the file in errors. Raises FormatError if the file holds fewer or more, is cut off, or is no
    such file.
    """
    from ..base.storage import messages  # few processes read files

    reader = messages.Reader(file, os.fspath(what))
    tensors = {}
    for number, name in enumerate(names):
        if number and reader.left == 0:
            raise FormatError(
                f"{what} ends after {number} tensors, expected {len(names)}: {name!r} and what follows are "
                "not in it. "
                "It was saved with fewer variables"
            )
        tensors[name] = LoDTensor.wrap(*reader.tensor(name))
    if reader.left:
        raise FormatError(
            f"{what} has {reader.left} bytes after its {len(names)} tensor{'s' if len(names) != 1 else ''}: "
            "expected "
            "its end. It was saved with more variables, or is not a file of tensors as Fluid writes them"
        )
    return tensors
