"""Convolutions by cuDNN 9, a C library whose functions are declared here, on the compute stream of a device."""

from __future__ import annotations

import ctypes
import functools
import math
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_float, c_int, c_size_t, c_void_p
from dataclasses import dataclass, replace
from typing import Any

from ...base import flags
from ...base.errors import EnforceNotMet
from ...base.windows import Geometry
from . import library
from .device import CudaDevice
from .library import open_first

NAMES = ("libcudnn.so.9",)
PACKAGES = ("nvidia.cudnn", "torch")
VARIABLE = "FLUIDLITE_CUDNN"

FLOAT, DOUBLE = 0, 1  # cudnnDataType_t
NCHW = 0  # cudnnTensorFormat_t
CROSS_CORRELATION = 1  # cudnnConvolutionMode_t
DEFAULT_MATH, TENSOR_MATH, TENSOR_MATH_CONVERTING, FMA_MATH = 0, 1, 2, 3  # cudnnMathType_t
DETERMINISTIC = 1  # cudnnDeterminism_t

OLDEST = 90000
"""The oldest supported version."""


class Performance(ctypes.Structure):
    """The properties of an algorithm (cudnnConvolutionFwdAlgoPerf_t and those for the gradients)."""

    _fields_ = [
        ("algorithm", c_int),
        ("status", c_int),
        ("time", c_float),
        ("memory", c_size_t),
        ("determinism", c_int),
        ("math", c_int),
        ("reserved", c_int * 3),
    ]


_INTS = POINTER(c_int)
_NEW = (POINTER(c_void_p),)
_OLD = (c_void_p,)
_FOUR = (c_void_p,) * 4
_CHOICE = (c_void_p, *_FOUR, c_int, _INTS, POINTER(Performance))
_ROOM = (c_void_p, *_FOUR, c_int, POINTER(c_size_t))
_RUN = (c_void_p, c_void_p, *_FOUR, c_void_p, c_int, c_void_p, c_size_t, c_void_p, c_void_p, c_void_p)

SIGNATURES: Mapping[str, Sequence[Any]] = {
    "cudnnCreate": _NEW,
    "cudnnDestroy": _OLD,
    "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnCreateTensorDescriptor": _NEW,
    "cudnnDestroyTensorDescriptor": _OLD,
    "cudnnSetTensorNdDescriptor": (c_void_p, c_int, c_int, _INTS, _INTS),
    "cudnnCreateFilterDescriptor": _NEW,
    "cudnnDestroyFilterDescriptor": _OLD,
    "cudnnSetFilterNdDescriptor": (c_void_p, c_int, c_int, c_int, _INTS),
    "cudnnCreateConvolutionDescriptor": _NEW,
    "cudnnDestroyConvolutionDescriptor": _OLD,
    "cudnnSetConvolutionNdDescriptor": (c_void_p, c_int, _INTS, _INTS, _INTS, c_int, c_int),
    "cudnnSetConvolutionGroupCount": (c_void_p, c_int),
    "cudnnSetConvolutionMathType": (c_void_p, c_int),
    "cudnnGetConvolutionForwardAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionBackwardDataAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionBackwardFilterAlgorithm_v7": _CHOICE,
    "cudnnGetConvolutionForwardWorkspaceSize": _ROOM,
    "cudnnGetConvolutionBackwardDataWorkspaceSize": _ROOM,
    "cudnnGetConvolutionBackwardFilterWorkspaceSize": _ROOM,
    "cudnnConvolutionForward": _RUN,
    "cudnnConvolutionBackwardData": _RUN,
    "cudnnConvolutionBackwardFilter": _RUN,
}
"""The functions that are used, with the types of their arguments; all of them return a cudnnStatus_t."""


class Unsupported(Exception):
    """cuDNN has no algorithm for a case, or none within the limits."""


def open_library() -> Any:
    """cuDNN without signatures; OSError if it cannot be found or opened."""
    return open_first(NAMES, PACKAGES, VARIABLE)


def cudnn() -> Any | None:
    """cuDNN; None if it cannot be used, see `problem`."""
    return _found()[0]


def problem() -> str:
    """The reason why cuDNN cannot be used, for a message; empty if it can."""
    return _found()[1]


@functools.cache
def _found() -> tuple[Any | None, str]:
    try:
        lib = open_library()
        lib.cudnnGetVersion.argtypes, lib.cudnnGetVersion.restype = (), c_size_t
        lib.cudnnGetErrorString.argtypes, lib.cudnnGetErrorString.restype = (c_int,), c_char_p
        version = int(lib.cudnnGetVersion())
        if version < OLDEST:
            return None, f"cuDNN 9 is needed, found version number {version}"
        for name, arguments in SIGNATURES.items():
            function = getattr(lib, name)
            function.argtypes, function.restype = arguments, c_int
    except (OSError, AttributeError) as error:
        return None, f"cuDNN cannot be used: {error}"
    return lib, ""


def call(name: str, *arguments: Any) -> None:
    """Call a function of cuDNN.

    Raises Unsupported for its statuses NOT_SUPPORTED, EnforceNotMet for any other that is not success.
    """
    lib = cudnn()
    assert lib is not None, problem()
    status = getattr(lib, name)(*arguments)
    if not status:
        return
    said = lib.cudnnGetErrorString(status)
    text = f"{name} reports {said.decode() if said else 'status'} ({status})"
    if 3000 <= status < 4000:
        raise Unsupported(text)
    raise EnforceNotMet(text)


def integers(numbers: Sequence[int]) -> Any:
    """An array of C integers."""
    return (c_int * len(numbers))(*numbers)


def created(kind: str) -> c_void_p:
    """A new object of cuDNN: cudnnCreate<kind>."""
    made = c_void_p()
    call(f"cudnnCreate{kind}", ctypes.byref(made))
    return made


library.on_forget(_found.cache_clear)

# Convolutions by cuDNN, on the compute stream of a device.
#
# The module has the same interface as `patches` and `depthwise`. Its functions raise `Unsupported` where cuDNN is
# missing or has no algorithm, before anything is written.
#
# cuDNN pads both sides of an axis equally, so excess padding of one side is applied by hand.

_TYPES = {"float32": (FLOAT, ctypes.c_float), "float64": (DOUBLE, ctypes.c_double)}
_ASKED = 8  # at least the number of algorithms of any kind
_TOO_MANY = 2**31  # elements of an array
_KEPT = 512  # size of the cache of descriptors and algorithms


class Handle:
    """cuDNN's state for one device: one call at a time, `with handle.bound() as pointer`."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._stream: int | None = None
        with device.active(), library.errors(f"setting up cuDNN on GPU {device.number}"):
            self._pointer = created("")

    @contextmanager
    def bound(self) -> Iterator[c_void_p]:
        """The handle for calls of this thread alone, bound to the stream that it computes on."""
        with self._lock:
            stream = self._device.compute.ptr
            if stream != self._stream:
                call("cudnnSetStream", self._pointer, stream)
                self._stream = stream
            yield self._pointer


@functools.cache
def _handle(device: CudaDevice) -> Handle | str:
    """cuDNN's handle for a device, or the reason why there is none."""
    if cudnn() is None:
        return problem()
    try:
        return Handle(device)
    except (Unsupported, EnforceNotMet) as error:
        return f"cuDNN cannot be used: {error}"


def missing(device: CudaDevice) -> str:
    """The reason why convolutions on `device` do not use cuDNN; empty if they do."""
    found = _handle(device)
    return found if isinstance(found, str) else ""


def handle(device: CudaDevice) -> Handle:
    """cuDNN's handle for a device; always the same one. Raises Unsupported if cuDNN cannot be used."""
    found = _handle(device)
    if isinstance(found, str):
        raise Unsupported(found)
    return found


@dataclass(frozen=True)
class Sizes:
    """The cache key of a convolution: batch size, channels of input and output, geometry and type."""

    dtype: str
    batch: int
    channels: int
    maps: int
    groups: int
    geometry: Geometry


class Descriptor:
    """An object of cuDNN's, made by cudnnCreate<kind> and filled by cudnnSet<kind>[Nd]Descriptor."""

    def __init__(self, kind: str, setter: str, *values: Any) -> None:
        self.pointer = created(kind)
        lib = cudnn()
        weakref.finalize(self, getattr(lib, f"cudnnDestroy{kind}"), self.pointer).atexit = False
        call(setter, self.pointer, *values)


def _tensor(kind: int, shape: Sequence[int]) -> Descriptor:
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return Descriptor(
        "TensorDescriptor", "cudnnSetTensorNdDescriptor", kind, len(shape), integers(shape), integers(strides)
    )


class Convolution:
    """One convolution of images without padding in excess: its descriptors, and an algorithm for each of its uses."""

    def __init__(self, device: CudaDevice, sizes: Sizes) -> None:
        self.device = device
        self.handle = handle(device)
        g = sizes.geometry
        kind, self.number = _TYPES[sizes.dtype]
        filters = (sizes.maps, sizes.channels // sizes.groups, *g.kernel)
        self.image = _tensor(kind, (sizes.batch, sizes.channels, *g.image))
        self.out = _tensor(kind, (sizes.batch, sizes.maps, *g.out))
        self.filters = Descriptor(
            "FilterDescriptor",
            "cudnnSetFilterNdDescriptor",
            kind,
            NCHW,
            len(filters),
            integers(filters),
        )
        self.convolution = Descriptor(
            "ConvolutionDescriptor",
            "cudnnSetConvolutionNdDescriptor",
            len(g.kernel),
            integers([before for before, _ in g.pads]),
            integers(g.strides),
            integers(g.dilations),
            CROSS_CORRELATION,
            kind,
        )
        call("cudnnSetConvolutionGroupCount", self.convolution.pointer, sizes.groups)
        # Full precision as in Fluid, unless TF32, cuDNN's default on newer GPUs, is allowed.
        self.tf32 = flags.allow_tf32() and sizes.dtype == "float32"
        products = DEFAULT_MATH if self.tf32 else FMA_MATH
        call("cudnnSetConvolutionMathType", self.convolution.pointer, products)
        self.algorithms: dict[str, tuple[int, int] | str] = {}

    def run(
        self, use: str, first: Descriptor, a: Any, second: Descriptor, b: Any, to: Descriptor, out: Any
    ) -> None:
        """Compute `out` from `a` and `b` by cudnnConvolution<use>; raises Unsupported."""
        if use not in self.algorithms:
            self._choose(use, first, second, to)
        chosen = self.algorithms[use]
        if isinstance(chosen, str):
            raise Unsupported(chosen)
        algorithm, size = chosen
        room = self.device.xp.cuda.alloc(size) if size else None
        one, zero = self.number(1), self.number(0)
        try:
            with self.handle.bound() as pointer:
                call(
                    f"cudnnConvolution{use}",
                    pointer,
                    ctypes.addressof(one),
                    first.pointer,
                    c_void_p(a.data.ptr),
                    second.pointer,
                    c_void_p(b.data.ptr),
                    self.convolution.pointer,
                    algorithm,
                    c_void_p(room.ptr if room is not None else 0),
                    size,
                    ctypes.addressof(zero),
                    to.pointer,
                    c_void_p(out.data.ptr),
                )
        except Unsupported as error:
            self.algorithms[use] = str(error)
            raise

    def _choose(self, use: str, first: Descriptor, second: Descriptor, to: Descriptor) -> None:
        """Choose the algorithm for `use`."""
        try:
            with self.handle.bound() as pointer:
                self.algorithms[use] = self._best_algorithm(pointer, use, first, second, to)
        except Unsupported as error:
            self.algorithms[use] = str(error)

    def _best_algorithm(
        self, pointer: c_void_p, use: str, first: Descriptor, second: Descriptor, to: Descriptor
    ) -> tuple[int, int]:
        """The fastest allowed algorithm by cuDNN's heuristic, and its workspace in bytes."""
        what = (first.pointer, second.pointer, self.convolution.pointer, to.pointer)
        results, count = (Performance * _ASKED)(), ctypes.c_int()
        call(
            f"cudnnGetConvolution{use}Algorithm_v7",
            pointer,
            *what,
            _ASKED,
            ctypes.byref(count),
            results,
        )
        limit, same = flags.convolution_workspace(), flags.cudnn_deterministic()
        for found in results[: count.value]:
            if found.status or (same and found.determinism != DETERMINISTIC):
                continue
            if not self.tf32 and found.math in (TENSOR_MATH, TENSOR_MATH_CONVERTING):
                continue
            size = ctypes.c_size_t()
            try:
                call(
                    f"cudnnGetConvolution{use}WorkspaceSize",
                    pointer,
                    *what,
                    found.algorithm,
                    ctypes.byref(size),
                )
            except Unsupported:
                continue
            if size.value <= limit:
                return found.algorithm, size.value
        raise Unsupported(f"cuDNN has no algorithm for {use} that is exact and works in {limit} bytes")


@functools.lru_cache(maxsize=_KEPT)
def convolution(device: CudaDevice, sizes: Sizes) -> Convolution:
    """The cached descriptors and algorithms of a convolution; raises Unsupported."""
    g = sizes.geometry
    largest = sizes.batch * max(sizes.channels * math.prod(g.image), sizes.maps * math.prod(g.out))
    if largest >= _TOO_MANY:
        raise Unsupported(f"cuDNN counts elements with 32 bits, these are {largest}")
    with library.errors("describing a convolution to cuDNN"):
        return Convolution(device, sizes)


def _symmetric(g: Geometry) -> tuple[Geometry, list[tuple[int, int]]]:
    """`g` with the same padding on both sides of each axis, and the excess padding, to apply by hand."""
    common = [min(pair) for pair in g.pads]
    rest = [(before - n, after - n) for (before, after), n in zip(g.pads, common, strict=True)]
    image = tuple(n + before + after for n, (before, after) in zip(g.image, rest, strict=True))
    return replace(g, image=image, pads=tuple((n, n) for n in common)), rest


def _inner(g: Geometry, rest: list[tuple[int, int]]) -> tuple[slice, ...]:
    """The slices of the image within one padded by `rest`."""
    spatial = (slice(before, before + n) for n, (before, _) in zip(g.image, rest, strict=True))
    return (slice(None), slice(None), *spatial)


def _padded(device: CudaDevice, image: Any, g: Geometry, even: Geometry, rest: list[tuple[int, int]]) -> Any:
    if even.image == g.image:
        return image
    padded = device.xp.zeros((*image.shape[:2], *even.image), image.dtype)
    padded[_inner(g, rest)] = image
    return padded


def correlate(device: CudaDevice, image: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The convolution of images [N, C, S...] with filters [M, C / groups, K...]: [N, M, O...]."""
    even, rest = _symmetric(g)
    what = convolution(
        device, Sizes(str(image.dtype), image.shape[0], image.shape[1], filters.shape[0], groups, even)
    )
    image = _padded(device, image, g, even, rest)
    out = device.xp.empty((image.shape[0], filters.shape[0], *g.out), image.dtype)
    what.run("Forward", what.image, image, what.filters, filters, what.out, out)
    return out


def spread(device: CudaDevice, out: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the images from `out`, that of its result: [N, C, S...]."""
    even, rest = _symmetric(g)
    channels = filters.shape[1] * groups
    what = convolution(device, Sizes(str(out.dtype), out.shape[0], channels, filters.shape[0], groups, even))
    image = device.xp.empty((out.shape[0], channels, *even.image), out.dtype)
    what.run("BackwardData", what.filters, filters, what.out, out, what.image, image)
    return image if even.image == g.image else device.xp.ascontiguousarray(image[_inner(g, rest)])


def filter_gradient(device: CudaDevice, image: Any, out: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the filters from `out`, that of its result: [M, C / groups, K...]."""
    even, rest = _symmetric(g)
    what = convolution(
        device, Sizes(str(image.dtype), image.shape[0], image.shape[1], out.shape[1], groups, even)
    )
    image = _padded(device, image, g, even, rest)
    filters = device.xp.empty((out.shape[1], image.shape[1] // groups, *g.kernel), image.dtype)
    what.run("BackwardFilter", what.image, image, what.out, out, what.filters, filters)
    return filters


library.on_forget(convolution.cache_clear)
library.on_forget(_handle.cache_clear)
