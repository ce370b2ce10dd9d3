"""The array class: NumPy's over device memory, without what would copy silently between device and host."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import calls, indexing, memory, streams
from .machine import machine
from .memory import BaseMemory, MemoryPointer
from .transfer import Transfers

DTYPES = frozenset(map(np.dtype, "?bBhHiIlLqQefdFD"))


def check_dtype(dtype: Any) -> np.dtype:
    """The NumPy dtype; raises for those that are not of a GPU's."""
    found = np.dtype(dtype)
    if found not in DTYPES or not found.isnative:
        raise ValueError(f"Unsupported dtype {found}")
    return found


def _prepare_shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, ndarray):
        raise TypeError("an array is no shape")
    if hasattr(shape, "__index__"):
        shape = (shape,)
    found = tuple(operator.index(n) for n in shape)
    if any(n < 0 for n in found):
        raise ValueError("Negative dimensions are not allowed")
    return found


class Flags:
    """How an array lies in memory, as far as CuPy says so."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous = flags.c_contiguous, flags.f_contiguous
        self.owndata = False
        self.fnc = flags.f_contiguous and not flags.c_contiguous
        self.forc = flags.f_contiguous or flags.c_contiguous

    def __getitem__(self, name: str) -> bool:
        if name not in ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA"):
            raise KeyError(f"{name} is not defined for cupy.ndarray.flags")
        return bool(getattr(self, name.lower()))


class ndarray(Transfers):  # noqa: N801
    """An array in the memory of a device."""

    __slots__ = ("data", "_view", "base", "__weakref__")
    __array_priority__ = 100
    _simulated = True
    __hash__ = None  # type: ignore[assignment]

    data: MemoryPointer
    _view: np.ndarray

    def __new__(
        cls,
        shape: Any,
        dtype: Any = float,
        memptr: MemoryPointer | None = None,
        strides: Sequence[int] | None = None,
        order: str = "C",
    ) -> "ndarray":
        self = object.__new__(cls)
        kind, size = check_dtype(dtype), _prepare_shape(shape)
        if memptr is None and strides is not None:
            raise ValueError("memptr is required if strides is given.")
        if order not in ("C", "F", None):
            raise ValueError(f"order not understood. order={order}")
        if strides is None:
            strides = _strides(size, kind.itemsize, order or "C")
        count = int(np.prod(size, dtype=np.int64))
        self.data = memory.alloc(count * kind.itemsize) if memptr is None else memptr
        self.base = None
        if count == 0:
            self._view = np.empty(size, kind)
        else:
            device = machine().device_of(self.data.ptr)
            if device is None:
                self._view = memory.device_view(self.data.ptr, size, kind, strides)
            self._view = machine().devices[device or 0].view(self.data.ptr, size, kind, strides)
        return self

    @classmethod
    def _of(cls, view: np.ndarray, mem: BaseMemory) -> "ndarray":
        """The array of a NumPy view of a block's memory."""
        self = object.__new__(cls)
        self.data = MemoryPointer(mem, view.ctypes.data - mem.ptr if view.size else 0)
        self._view, self.base = view, None
        return self

    # What an array is.

    @property
    def shape(self) -> tuple[int, ...]:
        return self._view.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._view = np.reshape(self._view, shape, copy=False)

    strides = property(lambda self: self._view.strides)
    dtype = property(lambda self: self._view.dtype)
    ndim = property(lambda self: self._view.ndim)
    size = property(lambda self: self._view.size)
    nbytes = property(lambda self: self._view.nbytes)
    itemsize = property(lambda self: self._view.itemsize)
    flags = property(lambda self: Flags(self._view.flags))
    device = property(lambda self: self.data.device)
    T = property(lambda self: calls.call(np.transpose, self, view=True))
    real = property(lambda self: calls.call(np.real, self, view=True))
    imag = property(lambda self: calls.call(np.imag, self, view=True))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # Reading and writing parts.

    def __getitem__(self, key: Any) -> "ndarray":
        return indexing.getitem(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.setitem(self, key, value)

    def take(self, indices: Any, axis: int | None = None, out: Any = None) -> "ndarray":
        return indexing.take(self, indices, axis, out)

    def fill(self, value: Any) -> None:
        indexing.setitem(self, ..., value)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> "ndarray":
        new = shape[0] if len(shape) == 1 else shape
        calls.refuse_numpy(new)
        if isinstance(new, ndarray):
            raise TypeError("an array is no shape")
        return calls.call(lambda a: np.reshape(a, new, order=order), self, view=True)

    def transpose(self, *axes: Any) -> "ndarray":
        order = axes[0] if len(axes) == 1 else (axes or None)
        return calls.call(lambda a: np.transpose(a, order), self, view=True)

    def view(self, dtype: Any = None, *rest: Any) -> "ndarray":
        if rest or isinstance(dtype, type) and issubclass(dtype, ndarray):
            raise NotImplementedError("views of other classes are not simulated")
        kind = self.dtype if dtype is None else check_dtype(dtype)
        if not self.size:
            return ndarray(self._view.view(kind).shape, kind)
        return ndarray._of(self._view.view(kind), self.data.mem)

    def ravel(self, order: str = "C") -> "ndarray":
        return calls.call(lambda a: np.ravel(a, order), self, view=True)

    def flatten(self, order: str = "C") -> "ndarray":
        return calls.call(lambda a: a.flatten(order), self)

    def squeeze(self, axis: Any = None) -> "ndarray":
        return calls.call(lambda a: np.squeeze(a, axis), self, view=True)

    def copy(self, order: str = "C") -> "ndarray":
        return calls.call(lambda a: a.copy(order), self)

    __copy__ = copy

    def __deepcopy__(self, memo: Any) -> "ndarray":
        return self.copy()

    def astype(
        self, dtype: Any, order: str = "K", casting: str | None = None, subok: Any = None, copy: bool = True
    ) -> "ndarray":
        if subok is not None:
            raise TypeError("subok is not supported yet")
        kind = check_dtype(dtype)
        if not copy and kind == self.dtype:
            return self
        if casting is not None and not np.can_cast(self.dtype, kind, casting):  # type: ignore[arg-type]
            raise TypeError(
                f"Cannot cast array data from {self.dtype!r} to {kind!r} according to the rule '{casting}'"
            )
        return calls.call(lambda a: a.astype(kind, order=order), self)

    def sort(self, axis: int = -1) -> None:
        calls.change(lambda a: a.sort(axis), self)

    def nonzero(self) -> tuple["ndarray", ...]:
        return calls.call(np.nonzero, self, waits=True)

    # Operators: CuPy's own functions, whatever is on the other side.

    def __bool__(self) -> bool:
        if self.size != 1:
            return bool(np.empty(self.shape, self.dtype).__bool__()) if self.size == 0 else _ambiguous()
        return bool(self.get())

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from .functions import ufuncs

        if method != "__call__" or ufunc.signature is not None or ufunc.__name__ not in ufuncs:
            return NotImplemented
        out = kwargs.pop("out", None)
        if out is not None:
            kwargs["out"] = out[0] if isinstance(out, tuple) and len(out) == 1 else out
        return ufuncs[ufunc.__name__](*inputs, **kwargs)

    def __array_function__(self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        from .functions import namespace

        for kind in types:
            if kind not in (ndarray, np.ndarray):
                return NotImplemented
        module = func.__module__.removeprefix("numpy").removeprefix(".")
        found = namespace(module).get(func.__name__)
        if found is None:
            return NotImplemented
        return found(*args, **kwargs)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        from . import dlpack

        return dlpack.export(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.data.device_id

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        stream = streams.get_current_stream().ptr
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "descr": self.dtype.descr,
            "stream": stream or 1,
            "version": 3,
            "strides": None if self.flags.c_contiguous else self.strides,
            "data": (self.data.ptr, False),
        }


ndarray.__module__ = "cupy"


def _strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    strides, step = [], itemsize
    for n in shape if order == "F" else reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(strides if order == "F" else reversed(strides))


def _ambiguous() -> bool:
    raise ValueError(
        "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
    )
