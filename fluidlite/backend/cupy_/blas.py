"""Matrix products through cuBLAS, and convolutions as such products (im2col, and col2im for gradients).

CuPy refuses its own products while a stream is captured into a graph, so cuBLAS is called here directly, with a
workspace allocated before any capture. Without cuBLAS, CuPy multiplies, and steps with products are not
captured.

Patches of all images of a batch are one matrix [C * K, N * L] (K elements of the kernel, L places of the
output), so that a convolution is one product for each group. Batches whose patches would take more than
`flags.convolution_workspace()` bytes are done in parts.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base import flags
from ...base.errors import EnforceNotMet
from ...base.windows import Geometry
from . import launch, library
from .device import CudaDevice

_STATUS = {
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}
_PLAIN, _TF32 = 0, 3
"""CUBLAS_DEFAULT_MATH, CUBLAS_TF32_TENSOR_OP_MATH."""

_LARGEST = 2**31 - 1
_KINDS: dict[Any, tuple[str, Any]] = {
    np.dtype("float32"): ("S", ctypes.c_float),
    np.dtype("float64"): ("D", ctypes.c_double),
}

_INT, _LONG, _POINTER, _SIZE = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p, ctypes.c_size_t
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (_POINTER,),
    "cublasSetStream_v2": (_POINTER, _POINTER),
    "cublasSetWorkspace_v2": (_POINTER, _POINTER, _SIZE),
    "cublasSetMathMode": (_POINTER, _INT),
}
for _letter in "SD":
    _PROTOTYPES[f"cublas{_letter}gemm_v2"] = (
        _POINTER, _INT, _INT, _INT, _INT, _INT, _POINTER, _POINTER, _INT, _POINTER, _INT, _POINTER, _POINTER, _INT,
    )  # fmt: skip
    _PROTOTYPES[f"cublas{_letter}gemmStridedBatched"] = (
        _POINTER, _INT, _INT, _INT, _INT, _INT, _POINTER, _POINTER, _INT, _LONG, _POINTER, _INT, _LONG, _POINTER,
        _POINTER, _INT, _LONG, _INT,
    )  # fmt: skip


def open_library() -> Any:
    """libcublas of the CUDA that CuPy uses, or of the other major version; raises OSError if there is none."""
    major = library.load().cuda.runtime.runtimeGetVersion() // 1000
    versions = sorted((12, 13), key=lambda version: version != major)
    names = [f"libcublas.so.{version}" for version in versions]
    return library.open_first(names, ["nvidia.cublas", "nvidia.cu13"], "FLUIDLITE_CUBLAS")


class Blas:
    """cuBLAS on one device: its handle and its workspace. All products run on one stream, so that one is enough.

    `missing`: the reason why cuBLAS cannot be used; empty if it can.
    """

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._scalars: dict[tuple[Any, float], Any] = {}
        self._math, self._bound = _PLAIN, (0, False)
        self._workspaces: dict[bool, Any] = {}
        self.missing = ""
        try:
            self._library = open_library()
            for name, arguments in _PROTOTYPES.items():
                getattr(self._library, name).argtypes = arguments
        except (OSError, AttributeError) as error:
            self.missing = f"cuBLAS cannot be used: {error}"
            return
        cuda = device.xp.cuda
        self._handle = _POINTER()
        with device.active(), library.errors(f"setting up cuBLAS on GPU {device.number}"):
            self._call("cublasCreate_v2", ctypes.byref(self._handle))
            # What NVIDIA recommends: 32 MiB from Hopper on, 4 MiB before; much less where there is less than 1 GiB.
            size = (32 if int(cuda.Device(device.number).compute_capability) >= 90 else 4) * 2**20
            self._size = size if cuda.runtime.memGetInfo()[1] >= 2**30 else size // 32
            self._workspace(False)
            self._call("cublasSetMathMode", self._handle, _PLAIN)

    def _workspace(self, aside: bool) -> Any:
        """Memory for products of the main stream (and of graphs, which run there), or of streams aside of it.

        It is no part of any plan's memory, and there before anything is captured.
        """
        found = self._workspaces.get(aside)
        if found is None:
            with library.errors(f"allocating memory for cuBLAS on GPU {self._device.number}"):
                found = self._workspaces[aside] = self._device.xp.cuda.MemoryPool().malloc(self._size)
        return found

    def _call(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise EnforceNotMet(
                f"{function} on GPU {self._device.number} failed: {_STATUS.get(status, f'status {status}')}"
            )

    def run(self, function: str, *arguments: Any) -> None:
        """Call a product with the handle, on the stream of this thread and with the wanted precision."""
        math = _TF32 if flags.allow_tf32() else _PLAIN
        bound = stream, aside = self._device.compute.ptr, self._device.aside
        with self._lock:
            if bound != self._bound:
                # In this order: setting the stream resets the workspace.
                self._call("cublasSetStream_v2", self._handle, stream)
                workspace = self._workspace(aside)
                self._call("cublasSetWorkspace_v2", self._handle, workspace.ptr, self._size)
                self._bound = bound
            if math != self._math:
                self._call("cublasSetMathMode", self._handle, math)
                self._math = math
            self._call(function, self._handle, *arguments)

    def scalar(self, kind: Any, value: float) -> Any:
        """A number of C type `kind` in host memory, by reference."""
        found = self._scalars.get((kind, value))
        if found is None:
            found = ctypes.byref(kind(value))
            if len(self._scalars) < 64:
                self._scalars[kind, value] = found
        return found


_blas: dict[int, Blas] = {}
_making = threading.Lock()


def blas(device: CudaDevice) -> Blas:
    """cuBLAS on `device`."""
    found = _blas.get(device.number)
    if found is None:
        with _making:
            found = _blas.get(device.number)
            if found is None:
                found = _blas[device.number] = Blas(device)
    return found


def missing(device: CudaDevice) -> str:
    """The reason why products on `device` go through CuPy, so that steps cannot be captured; empty if they do not."""
    return blas(device).missing


def gemm(
    device: CudaDevice, a: Any, b: Any, out: Any = None, trans_a: bool = False, trans_b: bool = False,
    alpha: float = 1.0, beta: float = 0.0,
) -> Any:  # fmt: skip
    """alpha op(a) op(b) + beta out, written to `out` ([m, n], rows contiguous; made if None) and returned.

    `a`: [m, k], [k, m] with `trans_a`; `b`: [k, n], [n, k] with `trans_b`; both of one type, float32 or float64. The
    device must be active. Raises EnforceNotMet if cuBLAS fails.
    """
    return _product(device, a, b, out, trans_a, trans_b, alpha, beta)


def gemm_batched(
    device: CudaDevice, a: Any, b: Any, out: Any = None, trans_a: bool = False, trans_b: bool = False,
    alpha: float = 1.0, beta: float = 0.0,
) -> Any:  # fmt: skip
    """`gemm` for each matrix of batches: `a`, `b` and `out` have the same leading dimensions, contiguous.

    One of `a` and `b` may be a single matrix, which is then a factor of every product.
    """
    batch = a.shape[:-2] or b.shape[:-2]
    flat_a, flat_b = (x if x.ndim == 2 else _stacked(device, x) for x in (a, b))
    flat_out = None if out is None else out.reshape(-1, *out.shape[-2:])
    made = _product(device, flat_a, flat_b, flat_out, trans_a, trans_b, alpha, beta)
    return made.reshape(*batch, *made.shape[-2:]) if out is None else out


def _stacked(device: CudaDevice, x: Any) -> Any:
    """A batch as [count, rows, columns], contiguous."""
    rows, columns = x.shape[-2:]
    count = int(np.prod(x.shape[:-2]))
    return device.xp.ascontiguousarray(x).reshape(count, rows, columns)


def _layout(device: CudaDevice, x: Any, trans: bool) -> tuple[Any, int, bool]:
    """(array, elements from row to row, whether to transpose) of a factor; contiguous columns are rows transposed."""
    rows, columns = x.shape[-2:]
    item, (down, across) = x.itemsize, x.strides[-2:]
    if (across == item or columns == 1) and (rows == 1 or (down >= columns * item and down % item == 0)):
        return x, max(down // item if rows > 1 else columns, 1), trans
    if (down == item or rows == 1) and (columns == 1 or (across >= rows * item and across % item == 0)):
        return x, max(across // item if columns > 1 else rows, 1), not trans
    return device.xp.ascontiguousarray(x), columns, trans


def _product(
    device: CudaDevice, a: Any, b: Any, out: Any, trans_a: bool, trans_b: bool, alpha: float, beta: float
) -> Any:
    xp = device.xp
    m, k = a.shape[-2:][::-1] if trans_a else a.shape[-2:]
    k_b, n = b.shape[-2:][::-1] if trans_b else b.shape[-2:]
    count = next((x.shape[0] for x in (a, b) if x.ndim == 3), None)
    shape = (m, n) if count is None else (count, m, n)
    if k != k_b or a.dtype != b.dtype or any(x.ndim == 3 and x.shape[0] != count for x in (a, b)):
        raise ValueError(
            f"factors of shapes {a.shape} ({a.dtype}) and {b.shape} ({b.dtype}) do not fit "
            f"(trans_a={trans_a}, trans_b={trans_b})"
        )
    if out is None:
        out = xp.empty(shape, a.dtype)
    elif out.shape != shape or out.dtype != a.dtype or not out.flags.c_contiguous:
        raise ValueError(
            f"the result must be contiguous, {shape} and {a.dtype}, got {out.shape} and {out.dtype}"
        )
    if not out.size:
        return out
    if not k:
        if beta:
            out *= out.dtype.type(beta)
        else:
            out.fill(0)
        return out
    engine = blas(device)
    if engine.missing or a.dtype not in _KINDS or max(m, n, k, count or 0) > _LARGEST:
        return _by_cupy(xp, a, b, out, trans_a, trans_b, alpha, beta)
    letter, kind = _KINDS[a.dtype]
    a, ld_a, trans_a = _layout(device, a, trans_a)
    b, ld_b, trans_b = _layout(device, b, trans_b)
    # cuBLAS is column-major: its op(b) op(a) is the transpose of our row-major result.
    head = (int(trans_b), int(trans_a), n, m, k, engine.scalar(kind, alpha))
    tail = engine.scalar(kind, beta)
    if count is None:
        engine.run(f"cublas{letter}gemm_v2", *head, b.data.ptr, ld_b, a.data.ptr, ld_a, tail, out.data.ptr, n)
        return out
    step_a, step_b = (x.strides[0] // x.itemsize if x.ndim == 3 else 0 for x in (a, b))
    engine.run(
        f"cublas{letter}gemmStridedBatched",
        *head, b.data.ptr, ld_b, step_b, a.data.ptr, ld_a, step_a, tail, out.data.ptr, n, m * n, count,
    )  # fmt: skip
    return out


def _by_cupy(
    xp: Any, a: Any, b: Any, out: Any, trans_a: bool, trans_b: bool, alpha: float, beta: float
) -> Any:
    made = xp.matmul(a.swapaxes(-1, -2) if trans_a else a, b.swapaxes(-1, -2) if trans_b else b)
    if alpha != 1:
        made *= made.dtype.type(alpha)
    out[...] = made + out * out.dtype.type(beta) if beta else made
    return out


@library.on_forget
def _forget() -> None:
    _blas.clear()


def three(numbers: Sequence[int], missing: int) -> list[np.int32]:
    """Sizes along one to three axes as three C integers, `missing` in front."""
    return [np.int32(n) for n in (*[missing] * (3 - len(numbers)), *numbers)]


def geometry_arguments(g: Geometry) -> list[np.int32]:
    """A geometry as the kernels of `cuda/im2col.cu` take it."""
    return [
        *three(g.image, 1),
        *three(g.kernel, 1),
        *three(g.strides, 1),
        *three(g.dilations, 1),
        *three([before for before, _ in g.pads], 0),
        *three(g.out, 1),
    ]


def _parts(batch: int, channels: int, g: Geometry, itemsize: int) -> Iterator[tuple[int, int]]:
    """(first, end) of the images of each chunk."""
    each = channels * math.prod(g.kernel) * math.prod(g.out) * itemsize
    step = max(1, flags.convolution_workspace() // max(each, 1))
    for first in range(0, batch, step):
        yield first, min(first + step, batch)


def _im2col(device: CudaDevice, image: Any, g: Geometry, groups: int) -> Any:
    """Images [n, C, S...] as patches [groups, C / groups * K, n * L]."""
    batch, channels = image.shape[:2]
    columns, k = batch * math.prod(g.out), math.prod(g.kernel)
    patches = device.xp.empty((groups, channels // groups * k, columns), image.dtype)
    count = channels * columns
    launch.each(
        "im2col", "gather", image.dtype, count, image, patches, batch, channels, *geometry_arguments(g)
    )
    return patches


def _col2im(patches: Any, image: Any, g: Geometry) -> None:
    """Accumulate patches into `image` at the positions they were taken from (col2im)."""
    batch, channels = image.shape[:2]
    launch.each(
        "im2col", "scatter", image.dtype, image.size, patches, image, batch, channels, *geometry_arguments(g)
    )


def _grouped(device: CudaDevice, out: Any, groups: int) -> Any:
    """[n, M, O...] as [groups, M / groups, n * L]."""
    batch, maps = out.shape[:2]
    flat = out.reshape(batch, maps, -1).transpose(1, 0, 2)
    return device.xp.ascontiguousarray(flat).reshape(groups, maps // groups, -1)


def _weights(filters: Any, groups: int) -> Any:
    """[M, C / groups, K...] as [groups, M / groups, C / groups * K]."""
    return filters.reshape(groups, filters.shape[0] // groups, -1)


def _pointwise(g: Geometry) -> bool:
    """Whether the patches of images are the images themselves (1x1 filters)."""
    return g.image == g.out and math.prod(g.kernel) == 1 and not any(map(any, g.pads))


def correlate(device: CudaDevice, image: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The convolution of images [N, C, S...] with filters [M, C / groups, K...]: [N, M, O...]."""
    batch, channels = image.shape[:2]
    maps, places = filters.shape[0], math.prod(g.out)
    if groups == 1 and batch and _pointwise(g):
        made = gemm_batched(device, filters.reshape(maps, channels), image.reshape(batch, channels, places))
        return made.reshape(batch, maps, *g.out)
    out = device.xp.empty((batch, maps, places), image.dtype)
    for first, end in _parts(batch, channels, g, image.itemsize):
        patches = _im2col(device, image[first:end], g, groups)
        target = out[first:end].reshape(groups, maps // groups, places) if end - first == 1 else None
        made = gemm_batched(device, _weights(filters, groups), patches, out=target)
        if target is None:
            out[first:end] = made.reshape(maps, end - first, places).transpose(1, 0, 2)
    return out.reshape(batch, maps, *g.out)


def spread(device: CudaDevice, out: Any, filters: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the images from `out`, that of its result: [N, C, S...]."""
    batch, channels = out.shape[0], filters.shape[1] * groups
    if groups == 1 and batch and _pointwise(g):
        weights, rows = filters.reshape(-1, channels), out.reshape(batch, filters.shape[0], -1)
        return gemm_batched(device, weights, rows, trans_a=True).reshape(batch, channels, *g.image)
    image = device.xp.empty((batch, channels, *g.image), out.dtype)
    for first, end in _parts(batch, channels, g, out.itemsize):
        rows = _grouped(device, out[first:end], groups)
        patches = gemm_batched(device, _weights(filters, groups), rows, trans_a=True)
        _col2im(patches, image[first:end], g)
    return image


def filter_gradient(device: CudaDevice, image: Any, out: Any, g: Geometry, groups: int) -> Any:
    """The gradient of `correlate` for the filters from `out`, that of its result: [M, C / groups, K...]."""
    batch, channels = image.shape[:2]
    maps = out.shape[1]
    rows = channels // groups * math.prod(g.kernel)
    filters = device.xp.zeros((groups, maps // groups, rows), image.dtype)
    for first, end in _parts(batch, channels, g, image.itemsize):
        patches = _im2col(device, image[first:end], g, groups)
        dout = _grouped(device, out[first:end], groups)
        gemm_batched(device, dout, patches, out=filters, trans_b=True, beta=float(first > 0))
    return filters.reshape(maps, channels // groups, *g.kernel)
