"""`.pdparams` and `.pdopt` files: dicts of arrays, pickled as Fluid 1.8 does, read without running anything.

A pickle is a program. The reader here knows the few instructions that build containers, numbers, strings and
plain arrays; arrays are made from their bytes by this module and not by code that the file names. Anything else
is refused, and so are files that would take far more memory than they have bytes: by wrong sizes, or by parts that
repeat.
"""

from __future__ import annotations

import io
import os
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...base.errors import FormatError
from ...base.storage.files import write_file

_PROTOCOL = 2  # that of Fluid, so that it can read the files
_OLD, _NEW = b"cnumpy.core.multiarray\n_reconstruct\n", b"cnumpy._core.multiarray\n_reconstruct\n"

_DAMAGED = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The exceptions that reading a damaged pickle, or another file, may raise."""


class _Refused(Exception):
    """The pickle uses something that no file of parameters needs."""


class _Dtype:
    """An element type as a pickle describes it."""

    def __init__(self, code: str, align: bool = False, copy: bool = False) -> None:
        self.code = _text(code)
        self.order = "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        if len(state) < 5 or state[2] is not None or state[3] is not None or state[4] is not None:
            raise _Refused(f"arrays of records ({self.code})")
        self.order = _text(state[1])

    def dtype(self) -> np.dtype:
        if not re.fullmatch("[?biufc][0-9]*", self.code) or self.order not in ("<", ">", "=", "|"):
            raise _Refused(f"arrays with elements {self.code!r}")
        return np.dtype(self.code).newbyteorder(self.order)  # type: ignore[arg-type]


class _Array:
    """An array as a pickle describes it; `value` builds it."""

    def __init__(self, *ignored: Any) -> None:
        self._parts: tuple[Any, Any, bool, Any] | None = None

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, dtype, fortran, data = state
        self._parts = shape, dtype, bool(fortran), data

    def size(self) -> int:
        """The size of its elements in bytes."""
        data = self._parts[3] if self._parts is not None else b""
        return len(data) if isinstance(data, (str, bytes, bytearray)) else 0

    def value(self) -> np.ndarray:
        if self._parts is None:
            raise _Refused("an array without elements")
        shape, kind, fortran, data = self._parts
        if not isinstance(kind, _Dtype):
            raise _Refused("an array without element type")
        if isinstance(data, str):
            data = data.encode("latin1")
        if not isinstance(data, (bytes, bytearray)):
            raise _Refused("arrays of Python objects")
        dtype = kind.dtype()
        array = np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
        return array.astype(np.dtype(dtype.name), order="C")


class _Scalar(_Array):
    """A NumPy scalar as a pickle describes it."""

    def __init__(self, kind: Any, data: Any) -> None:
        self._parts = (), kind, False, data

    def value(self) -> Any:
        return super().value()[()]


class _Function:
    """A function that a pickle may call but cannot change (pickles can set attributes of what they name)."""

    __slots__ = ("_run",)

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def __call__(self, *args: Any) -> Any:
        return self._run(*args)

    def __setstate__(self, state: Any) -> None:
        raise _Refused("a changed function")


@_Function
def _from_buffer(data: Any, kind: Any, shape: Any, order: Any) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, kind, order == "F", data))
    return array


@_Function
def _encode(text: str, encoding: str) -> bytes:
    if not isinstance(encoding, str) or encoding not in ("latin1", "latin-1"):
        raise _Refused(f"text in {encoding if isinstance(encoding, str) else type(encoding)!r}")
    return text.encode("latin1")


@_Function
def _empty_bytes() -> bytes:
    return b""


@_Function
def _tuple(items: Any = ()) -> tuple[Any, ...]:
    if not isinstance(items, tuple):
        raise _Refused(f"a tuple of {type(items).__name__}")
    return items


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("_codecs", "encode"): _encode,
    ("collections", "OrderedDict"): _Function(OrderedDict),
    ("__builtin__", "bytes"): _empty_bytes,
    ("builtins", "bytes"): _empty_bytes,
    ("__builtin__", "tuple"): _tuple,  # the form of tensors in Paddle 2: (name, array)
    ("builtins", "tuple"): _tuple,
}
for _core in ("numpy.core", "numpy._core"):
    _KNOWN[_core + ".multiarray", "_reconstruct"] = _Array
    _KNOWN[_core + ".multiarray", "scalar"] = _Scalar
    _KNOWN[_core + ".numeric", "_frombuffer"] = _from_buffer


class _Budget:
    """The bytes and container elements that a pickle may still create, to stop one that reuses parts to grow."""

    def __init__(self, size: int) -> None:
        self._left = size

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _Refused("parts that repeat until they outgrow the file")


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, encoding: str) -> None:
        super().__init__(io.BytesIO(data), encoding=encoding)
        self._budget = _Budget(len(data))

    def find_class(self, module: str, name: str) -> Any:
        try:
            known = _KNOWN[module, name]
        except KeyError:
            raise _Refused(f"{module}.{name}") from None
        return _Function(partial(self._call, known)) if isinstance(known, _Function) else known

    def _call(self, function: _Function, *args: Any) -> Any:
        if function is not _from_buffer:
            self._budget.spend(sum(len(arg) for arg in args if isinstance(arg, (str, list, tuple, dict))))
        return function(*args)

    def persistent_load(self, pid: Any) -> Any:
        raise _Refused("objects outside of the file")


def read_pickle(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The dict in a file such as `model.pdparams`: names -> arrays, numbers, strings, or containers of these.

    Raises FileNotFoundError if the file is missing and FormatError, naming the file, if it is no pickled dict, is
    truncated, or contains anything but plain data; nothing in it is ever called.
    """
    found = parse_pickle(Path(path).read_bytes(), f"{path}", "a file of parameters as fluid.save writes it")
    if not isinstance(found, dict):
        raise FormatError(f"{path} should hold a dict of arrays, but holds a {type(found).__name__}")
    return found


def parse_pickle(data: bytes, source: str, kind: str, encoding: str = "latin1") -> Any:
    """The plain data pickled in `data`: arrays, numbers, strings, and dicts, lists or tuples of them.

    `source` and `kind` name in messages where the bytes come from and what they should be; `encoding` is how
    strings of Python 2 are read (`bytes` leaves them as they are). Raises FormatError as `read_pickle` does.
    """
    try:
        _check_sizes(data)
        return _Plain(len(data)).of(_Unpickler(data, encoding).load())
    except _Refused as error:
        raise FormatError(
            f"{source} is refused: expected arrays of numbers, numbers, strings and dicts or lists of them, "
            f"but it has {error}. Nothing in it was run"
        ) from None
    except _DAMAGED as error:
        raise FormatError(
            f"{source} is not {kind}, or is cut off: expected pickled arrays, got {len(data)} bytes that "
            f"cannot be read as such ({type(error).__name__}: {error})"
        ) from None


def write_pickle(path: str | os.PathLike[str], state: Any) -> None:
    """Write a dict of arrays so that Fluid 1.8 reads it, all of it or nothing.

    Dicts, lists, tuples, numbers and strings among the values, or instead of the dict, are written as they are. Raises
    OSError as `open` does.
    """
    data = pickled(state)
    write_file(path, data)


def pickled(state: Any) -> bytes:
    """The contents of the file that `write_pickle` writes."""
    if isinstance(state, Mapping):
        state = {
            name: np.ascontiguousarray(value) if isinstance(value, (np.ndarray, np.generic)) else value
            for name, value in state.items()
        }
    return _with_old_names(pickle.dumps(state, _PROTOCOL))


def _with_old_names(data: bytes) -> bytes:
    """The pickle with NumPy 1's name of the function that NumPy 2 moved; it occurs where the first array begins."""
    import pickletools  # rarely needed, and slow to import

    for code, argument, position in pickletools.genops(data):
        if code.name == "GLOBAL":
            if argument == "numpy._core.multiarray _reconstruct" and position is not None:
                return data[:position] + _OLD + data[position + len(_NEW) :]
            break
    return data


_FIXED = {
    **dict.fromkeys(b"Khq\x80\x82", 1), **dict.fromkeys(b"M\x83", 2),
    **dict.fromkeys(b"Jjr\x84", 4), **dict.fromkeys(b"G\x95", 8),
}  # fmt: skip
"""Instructions with an argument of that many bytes."""
_COUNTED = {
    **dict.fromkeys(b"UC\x8c\x8a", 1),
    **dict.fromkeys(b"TBX\x8b", 4),
    **dict.fromkeys(b"\x8e\x96\x8d", 8),
}
"""Instructions with a count of `size` bytes, followed by that many bytes."""
_LINES = {**dict.fromkeys(b"FILSVgpP", 1), **dict.fromkeys(b"ci", 2)}
"""Instructions with that many lines."""


def _check_sizes(data: bytes) -> None:
    """Raise EOFError where an instruction counts more bytes than there are, or numbers a part higher than parts can be:
    both are memory that Python's reader takes before it looks."""
    at, end = 0, len(data)
    while at < end:
        code = data[at]
        at += 1
        if code in _FIXED:
            if code == _LONG_BINPUT and int.from_bytes(data[at : at + 4], "little") > end:
                raise EOFError(f"part {int.from_bytes(data[at : at + 4], 'little')} of a file of {end} bytes")
            at += _FIXED[code]
        elif code in _COUNTED:
            wide = _COUNTED[code]
            at += wide + int.from_bytes(data[at : at + wide], "little")
        elif code in _LINES:
            for _ in range(_LINES[code]):
                begin, at = at, data.find(b"\n", at) + 1
                if at == 0:
                    raise EOFError("a line without end")
            if code == _PUT and (at - begin > 12 or int(data[begin : at - 1]) > end):
                raise EOFError(f"part {data[begin : min(at - 1, begin + 20)]!r} of a file of {end} bytes")
        elif code == _STOP:
            return
    if at > end:
        raise EOFError(f"{at} bytes expected")


_LONG_BINPUT, _PUT, _STOP = b"rp."


class _Plain:
    """Replace the descriptions of arrays by arrays. Shared values stay shared."""

    def __init__(self, size: int) -> None:
        self._budget = _Budget(size)
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = self._of(value)
        return self._made[id(value)]

    def _of(self, value: Any) -> Any:
        if isinstance(value, _Array):
            self._budget.spend(value.size())
            return value.value()
        if isinstance(value, dict):
            return type(value)((self.of(key), self.of(item)) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            return type(value)(map(self.of, value))
        raise _Refused(f"an object of type {type(value).__name__}")


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("latin1")
    if not isinstance(value, str):
        raise _Refused(f"an object of type {type(value).__name__} in the description of an array")
    return value
