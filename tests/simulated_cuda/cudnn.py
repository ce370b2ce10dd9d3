"""A stand-in for libcudnn: the functions that the package calls, with C's types, on simulated device memory."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .machine import machine
from .memory import device_view
from .streams import enqueue

OK, BAD_PARAM, NOT_SUPPORTED = 0, 2000, 3000
TYPES = {0: np.float32, 1: np.float64}
USES = ("Forward", "BackwardData", "BackwardFilter")


@dataclass
class Algorithm:
    """One that the heuristics name: its number, status, bytes of workspace, whether results vary, its math type."""

    number: int
    status: int = OK
    room: int = 0
    deterministic: int = 1
    math: int = 3


def usual(elements: int) -> list[Algorithm]:
    """What the heuristics say, the fastest first: some of it must not be used."""
    return [
        Algorithm(6, status=NOT_SUPPORTED),
        Algorithm(7, math=1),
        Algorithm(4, room=1 << 40),
        Algorithm(3, room=4 * elements + 256, deterministic=0),
        Algorithm(1, room=256),
        Algorithm(0),
    ]


@dataclass
class Array:
    """A tensor or filter descriptor."""

    kind: str
    dtype: Any = None
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    def view(self, pointer: int) -> np.ndarray:
        item = np.dtype(self.dtype).itemsize
        return device_view(pointer, self.shape, self.dtype, tuple(item * n for n in self.strides))


@dataclass
class Convolution:
    """A convolution descriptor."""

    pads: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()
    dtype: Any = None
    groups: int = 1
    math: int = 0

    def windows(
        self, kernel: tuple[int, ...], out: tuple[int, ...]
    ) -> Iterator[tuple[Any, tuple[slice, ...]]]:
        """For each element of the kernel: its index, and what the windows read of a padded image with it."""
        for index in itertools.product(*map(range, kernel)):
            starts = [k * d for k, d in zip(index, self.dilations, strict=True)]
            yield (
                index,
                tuple(
                    slice(start, start + (o - 1) * s + 1, s)
                    for start, o, s in zip(starts, out, self.strides, strict=True)
                ),
            )

    def out(self, image: tuple[int, ...], kernel: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            (n + 2 * p - (d * (k - 1) + 1)) // s + 1
            for n, k, p, s, d in zip(image, kernel, self.pads, self.strides, self.dilations, strict=True)
        )

    def padded(self, image: np.ndarray) -> np.ndarray:
        return np.pad(image, [(0, 0), (0, 0), *((p, p) for p in self.pads)])

    def inner(self, padded: np.ndarray) -> np.ndarray:
        sides = zip(self.pads, padded.shape[2:], strict=True)
        return padded[(slice(None), slice(None), *(slice(p, n - p) for p, n in sides))]


class Function:
    """A function as ctypes opens it: callers set its types, arguments are converted as C wants them."""

    def __init__(self, function: Callable[..., int]) -> None:
        self.function = function
        self.argtypes: Any = None
        self.restype: Any = None
        self.compiled: Any = None
        self.error: BaseException | None = None

    def guarded(self, *arguments: Any) -> int:
        try:
            return self.function(*arguments)
        except BaseException as error:
            self.error = error
            return 4000

    def __call__(self, *arguments: Any) -> int:
        if self.compiled is None:
            self.compiled = ctypes.CFUNCTYPE(self.restype, *self.argtypes)(self.guarded)
        status = self.compiled(*arguments)
        error, self.error = self.error, None
        if error is not None:
            raise error
        return status


class FakeCudnn:
    """Looks like the library that ctypes opens.

    `calls`: (use, algorithm, math type) of each convolution. `live`: descriptors that were made and not destroyed.
    `heuristics`: what names the algorithms. `refused`: uses that fail with NOT_SUPPORTED when they run.
    """

    def __init__(self, version: int = 92800) -> None:
        self.calls: list[tuple[str, int, int]] = []
        self.live: dict[int, Any] = {}
        self.heuristics = usual
        self.refused: set[str] = set()
        self._next = itertools.count(0x5000, 16)
        self.cudnnGetVersion = self._plain(lambda: version)
        self.cudnnGetErrorString = self._plain(lambda status: f"CUDNN_STATUS_{status}".encode())
        self._add("cudnnCreate", self._maker(lambda: ("handle", machine().device, [0])))
        self._add("cudnnSetStream", self._set_stream)
        for kind, make in (
            ("Tensor", lambda: Array("tensor")),
            ("Filter", lambda: Array("filter")),
            ("Convolution", Convolution),
        ):
            self._add(f"cudnnCreate{kind}Descriptor", self._maker(make))
            self._add(f"cudnnDestroy{kind}Descriptor", self._destroy)
        self._add("cudnnDestroy", self._destroy)
        self._add("cudnnSetTensorNdDescriptor", self._set_tensor)
        self._add("cudnnSetFilterNdDescriptor", self._set_filter)
        self._add("cudnnSetConvolutionNdDescriptor", self._set_convolution)
        self._add("cudnnSetConvolutionGroupCount", self._set_groups)
        self._add("cudnnSetConvolutionMathType", self._set_math)
        for use in USES:
            self._add(f"cudnnGetConvolution{use}Algorithm_v7", self._algorithms(use))
            self._add(f"cudnnGetConvolution{use}WorkspaceSize", self._room(use))
            self._add(f"cudnnConvolution{use}", self._run(use))

    @staticmethod
    def _plain(function: Callable[..., Any]) -> Any:
        def call(*arguments: Any) -> Any:
            return function(*arguments)

        return call

    def _add(self, name: str, function: Callable[..., int]) -> None:
        setattr(self, name, Function(function))

    def _maker(self, make: Callable[[], Any]) -> Callable[..., int]:
        def create(place: Any) -> int:
            key = next(self._next)
            self.live[key] = make()
            place[0] = ctypes.c_void_p(key)
            return OK

        return create

    def _destroy(self, key: int) -> int:
        return OK if self.live.pop(key, None) is not None else BAD_PARAM

    def _set_stream(self, key: int, stream: int | None) -> int:
        made = self.live.get(key)
        if not isinstance(made, tuple) or made[1] != machine().device:
            return BAD_PARAM
        made[2][0] = stream or 0
        return OK

    def _set_tensor(self, key: int, kind: int, dims: int, sizes: Any, strides: Any) -> int:
        made = self.live.get(key)
        if not isinstance(made, Array) or made.kind != "tensor" or kind not in TYPES or not 4 <= dims <= 8:
            return BAD_PARAM
        made.dtype, made.shape, made.strides = TYPES[kind], tuple(sizes[:dims]), tuple(strides[:dims])
        return OK if min(made.shape) > 0 and min(made.strides) > 0 else BAD_PARAM

    def _set_filter(self, key: int, kind: int, layout: int, dims: int, sizes: Any) -> int:
        made = self.live.get(key)
        if not isinstance(made, Array) or made.kind != "filter" or kind not in TYPES or layout or dims < 4:
            return BAD_PARAM
        made.dtype, made.shape = TYPES[kind], tuple(sizes[:dims])
        made.strides = tuple(math.prod(made.shape[k + 1 :]) for k in range(dims))
        return OK if min(made.shape) > 0 else BAD_PARAM

    def _set_convolution(
        self, key: int, dims: int, pads: Any, strides: Any, dilations: Any, mode: int, kind: int
    ) -> int:
        made = self.live.get(key)
        if not isinstance(made, Convolution) or mode != 1 or kind not in TYPES or not 2 <= dims <= 6:
            return BAD_PARAM
        made.pads, made.strides, made.dilations = (tuple(n[:dims]) for n in (pads, strides, dilations))
        made.dtype = TYPES[kind]
        return OK if min(made.pads) >= 0 and min(*made.strides, *made.dilations) > 0 else BAD_PARAM

    def _set_groups(self, key: int, groups: int) -> int:
        self.live[key].groups = groups
        return OK if groups > 0 else BAD_PARAM

    def _set_math(self, key: int, kind: int) -> int:
        self.live[key].math = kind
        return OK if kind in (0, 1, 2, 3) else BAD_PARAM

    def _parts(
        self, use: str, first: int, second: int, how: int, to: int
    ) -> tuple[Any, Any, Any, Any] | None:
        """Image, filters, result and convolution of descriptors in the order of `use`; None if they do not fit."""
        a, b, c, what = (self.live.get(key) for key in (first, second, to, how))
        order = {"Forward": (a, b, c), "BackwardData": (c, a, b), "BackwardFilter": (a, c, b)}
        image, filters, out = order[use]
        if not isinstance(what, Convolution) or not all(isinstance(x, Array) for x in (a, b, c)):
            return None
        if (image.kind, filters.kind, out.kind) != ("tensor", "filter", "tensor"):
            return None
        if len({image.dtype, filters.dtype, out.dtype, what.dtype}) > 1:
            return None
        fits = (
            image.shape[1] == filters.shape[1] * what.groups
            and filters.shape[0] % what.groups == 0
            and out.shape[:2] == (image.shape[0], filters.shape[0])
            and out.shape[2:] == what.out(image.shape[2:], filters.shape[2:])
        )
        return (image, filters, out, what) if fits else None

    def _algorithms(self, use: str) -> Callable[..., int]:
        def choose(
            handle: int, first: int, second: int, how: int, to: int, asked: int, count: Any, results: Any
        ) -> int:
            parts = self._parts(use, first, second, how, to)
            if parts is None or not isinstance(self.live.get(handle), tuple):
                return BAD_PARAM
            named = self.heuristics(math.prod(parts[0].shape))[:asked]
            for k, found in enumerate(named):
                results[k].algorithm, results[k].status, results[k].memory = (
                    found.number,
                    found.status,
                    found.room,
                )
                results[k].determinism, results[k].math = found.deterministic, found.math
            count[0] = len(named)
            return OK

        return choose

    def _needed(self, parts: Any, number: int) -> Algorithm | None:
        return next((a for a in self.heuristics(math.prod(parts[0].shape)) if a.number == number), None)

    def _room(self, use: str) -> Callable[..., int]:
        def room(handle: int, first: int, second: int, how: int, to: int, number: int, size: Any) -> int:
            parts = self._parts(use, first, second, how, to)
            found = None if parts is None else self._needed(parts, number)
            if found is None:
                return BAD_PARAM
            size[0] = found.room
            return found.status

        return room

    def _run(self, use: str) -> Callable[..., int]:
        def run(
            handle: int, alpha: int, first: int, a: int, second: int, b: int, how: int, number: int,
            room: int | None, size: int, beta: int, to: int, c: int,
        ) -> int:  # fmt: skip
            made, parts = self.live.get(handle), self._parts(use, first, second, how, to)
            if parts is None or not isinstance(made, tuple) or made[1] != machine().device:
                return BAD_PARAM
            found, what = self._needed(parts, number), parts[3]
            if found is None or found.room > size:
                return BAD_PARAM
            if use in self.refused or found.status or (found.math in (1, 2) and what.math == 3):
                return NOT_SUPPORTED
            number_type = ctypes.c_float if what.dtype is np.float32 else ctypes.c_double
            if (number_type.from_address(alpha).value, number_type.from_address(beta).value) != (1.0, 0.0):
                return BAD_PARAM
            views = [self.live[key].view(p) for key, p in ((first, a), (second, b), (to, c))]
            space = device_view(room, (size,), np.uint8) if size else None

            def work() -> None:
                if space is not None:
                    space[...] = 0xA5
                views[2][...] = _WORK[use](what, parts[1].shape[2:], parts, *views[:2])

            self.calls.append((use, number, what.math))
            enqueue(made[2][0], work)
            return OK

        return run


def _grouped(x: np.ndarray, groups: int) -> np.ndarray:
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:])


def _forward(how: Convolution, kernel: Any, parts: Any, image: np.ndarray, filters: np.ndarray) -> np.ndarray:
    out = parts[2]
    padded, total = how.padded(image), np.zeros(_grouped(np.empty(out.shape), how.groups).shape, out.dtype)
    weights = filters.reshape(how.groups, -1, *filters.shape[1:])
    for index, places in how.windows(kernel, out.shape[2:]):
        seen = _grouped(padded[(slice(None), slice(None), *places)], how.groups)
        total += np.einsum("ngc...,gmc->ngm...", seen, weights[(..., *index)])
    return total.reshape(out.shape)


def _backward_data(
    how: Convolution, kernel: Any, parts: Any, filters: np.ndarray, dout: np.ndarray
) -> np.ndarray:
    padded = how.padded(np.zeros(parts[0].shape, parts[0].dtype))
    weights = filters.reshape(how.groups, -1, *filters.shape[1:])
    for index, places in how.windows(kernel, dout.shape[2:]):
        part = np.einsum("ngm...,gmc->ngc...", _grouped(dout, how.groups), weights[(..., *index)])
        padded[(slice(None), slice(None), *places)] += part.reshape(part.shape[0], -1, *part.shape[3:])
    return how.inner(padded)


def _backward_filter(
    how: Convolution, kernel: Any, parts: Any, image: np.ndarray, dout: np.ndarray
) -> np.ndarray:
    shape = parts[1].shape
    padded, total = how.padded(image), np.empty((how.groups, shape[0] // how.groups, *shape[1:]), image.dtype)
    for index, places in how.windows(kernel, dout.shape[2:]):
        seen = _grouped(padded[(slice(None), slice(None), *places)], how.groups)
        flat = [x.reshape(*x.shape[:3], -1) for x in (_grouped(dout, how.groups), seen)]
        total[(..., *index)] = np.einsum("ngmp,ngcp->gmc", *flat)
    return total.reshape(shape)


_WORK = dict(zip(USES, (_forward, _backward_data, _backward_filter), strict=True))


@contextmanager
def _opened(open_library: Callable[[], Any]) -> Iterator[None]:
    from fluidlite.backend.cupy_ import dnn

    def forget() -> None:
        dnn._found.cache_clear()
        dnn.convolution.cache_clear()
        dnn._handle.cache_clear()

    real, dnn.open_library = dnn.open_library, open_library
    forget()
    try:
        yield
    finally:
        dnn.open_library = real
        forget()


@contextmanager
def patched(version: int = 92800) -> Iterator[FakeCudnn]:
    """Have the package find this cuDNN while the block runs."""
    fake = FakeCudnn(version)
    with _opened(lambda: fake):
        yield fake


@contextmanager
def absent() -> Iterator[None]:
    """Have the package find no cuDNN while the block runs."""

    def refuse() -> Any:
        raise OSError("libcudnn.so.9: cannot open shared object file")

    with _opened(refuse):
        yield
