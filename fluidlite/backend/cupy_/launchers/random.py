"""Random numbers on the GPU, and dropout.

Operators with a seed draw the same numbers in every run, those of the CPU: they are drawn by the host. The others
draw from one generator for each GPU, whose state is in its memory and is advanced by the kernels that draw.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._ext import rng
from ....base import seeds
from ....base.dtypes import to_numpy
from ....base.sizes import with_size_of
from ...functions import constant
from .. import launch, library
from .elementwise import scale

if TYPE_CHECKING:
    from ..device import CudaDevice

_UPSCALE = "upscale_in_train"

_SMALL = 1 << 16
"""Up to this many seeded numbers are cached on the device; more are drawn and copied each time."""

_lock = threading.Lock()
_generators: dict[int, tuple[CudaDevice, Any]] = {}


def _start(device: CudaDevice) -> np.ndarray:
    """The words of a `Generator` of random.cu that has drawn nothing yet."""
    return np.array([seeds.device_key(device.number), 0, 0], np.uint64)


def generator(device: CudaDevice) -> Any:
    """The state of a device's generator, in its memory."""
    found = _generators.get(device.number)
    if found is None:
        with _lock:
            found = _generators.get(device.number)
            if found is None:
                found = _generators[device.number] = device, device.put(_start(device))
    return found[1]


@seeds.on_reseed
def _restart() -> None:
    with _lock:
        for device, state in _generators.values():
            device.overwrite(state, _start(device))


@library.on_forget
def _forget() -> None:
    _generators.clear()


def _drawn(kind: str, seed: int, count: int, *numbers: float) -> np.ndarray:
    """The numbers that an operator with a seed draws on the CPU."""
    seed = seeds.stream_of(seed)
    if kind == "dropout":
        return np.asarray(rng.dropout_mask(seed, numbers[0], count))
    if kind == "truncated":
        return np.asarray(rng.truncated_normal(seed, numbers[0], numbers[1], count))
    if kind == "integers":
        return np.asarray(rng.randint(seed, int(numbers[0]), int(numbers[1]), count))
    low, high, double = numbers
    draw = rng.uniform if kind == "uniform" else rng.normal
    return np.asarray(draw(seed, low, high, count, bool(double)))


def _seeded(device: CudaDevice, kind: str, seed: int, count: int, *numbers: float) -> Any:
    """`_drawn` on the device; not to be written into."""
    if count <= _SMALL:
        return constant(device.xp, _drawn, kind, seed, count, *numbers)
    return device.put(_drawn(kind, seed, count, *numbers))


_NUMBERS = {"uniform": ("min", "max"), "normal": ("mean", "std"), "truncated": ("mean", "std")}
"""The attributes that kinds of random numbers depend on."""


def _draw(
    device: CudaDevice, kind: str, size: Any, dtype: int, seed: int, diag_num: int = 0, **attrs: Any
) -> Any:
    """A new array of `size` with random numbers of a kind, which the attributes describe."""
    element, shape = np.dtype(to_numpy(dtype)), tuple(int(n) for n in size)
    if kind == "integers":
        return _integers(device, element, shape, seed, **attrs)
    if element not in launch.REAL or diag_num > 0:
        return NotImplemented
    count = math.prod(shape)
    low, high = (float(attrs[name]) for name in _NUMBERS[kind])
    if seed:
        double = () if kind == "truncated" else (float(element.itemsize == 8),)
        return _seeded(device, kind, seed, count, low, high, *double).astype(element).reshape(shape)
    out = device.xp.empty(shape, element)
    if count:
        # A thread makes as many numbers as four random words give.
        each = 1 if kind == "truncated" else 16 // element.itemsize
        blocks = launch.blocks_for(-(-count // each))
        args = (generator(device), out, count, low, high)
        launch.grid("random", kind, element, blocks, launch.THREADS, *args)
    return out


def _integers(
    device: CudaDevice, element: np.dtype, shape: tuple[int, ...], seed: int, low: int, high: int
) -> Any:
    if element not in launch.INTEGER:
        return NotImplemented
    count = math.prod(shape)
    if seed:
        return _seeded(device, "integers", seed, count, low, high).astype(element).reshape(shape)
    out = device.xp.empty(shape, element)
    if count:
        args = (generator(device), out, launch.wide(out), count, int(low), int(high) - int(low))
        launch.grid("random", "integers", "float32", launch.blocks_for(-(-count // 2)), launch.THREADS, *args)
    return out


def of_shape(kind: str) -> Callable[..., Any]:
    """The launcher of operators that take the shape of the result as an attribute, or as tensors."""

    def launcher(
        device: CudaDevice,
        shape: list[int],
        ShapeTensor: Any = None,
        ShapeTensorList: Any = None,
        **attrs: Any,
    ) -> Any:
        if ShapeTensor is not None or ShapeTensorList:
            return NotImplemented
        return _draw(device, kind, shape, **attrs)

    return launcher


def of_batch(kind: str) -> Callable[..., Any]:
    """The launcher of operators that take one dimension of the result from Input."""

    def launcher(
        device: CudaDevice,
        Input: Any,
        shape: list[int],
        input_dim_idx: int,
        output_dim_idx: int,
        **attrs: Any,
    ) -> Any:
        size = with_size_of(shape, Input.shape, input_dim_idx, output_dim_idx)
        return _draw(device, kind, size, **attrs)

    return launcher


def _kept_scale(prob: float, kind: str) -> float:
    """The factor of the elements that dropout keeps."""
    if kind != _UPSCALE:
        return 1.0
    return 1.0 / (1.0 - float(prob)) if prob < 1 else 0.0


def dropout(
    device: CudaDevice,
    X: Any,
    Seed: Any,
    dropout_prob: float,
    is_test: bool,
    fix_seed: bool,
    seed: int,
    dropout_implementation: str,
) -> Any:
    """Launcher of `dropout`."""
    if Seed is not None or not launch.real(X):
        return NotImplemented
    if is_test:
        if dropout_implementation == _UPSCALE:
            return X, None
        return scale(device, X, None, 1.0 - dropout_prob, 0.0, True), None
    x, factor = launch.dense(device, X), _kept_scale(dropout_prob, dropout_implementation)
    seed = int(seed) or int(fix_seed)
    if seed:
        mask = _seeded(device, "dropout", seed, X.size, float(dropout_prob)).reshape(X.shape)
        return _masked(device, x, mask, factor), mask
    out, mask = device.xp.empty(X.shape, X.dtype), device.xp.empty(X.shape, "uint8")
    if X.size:
        threshold = int(np.float32(dropout_prob) * np.float32(1 << 24))
        args = (generator(device), x, out, mask, X.size, threshold, factor)
        launch.grid("random", "dropout", X.dtype, launch.blocks_for(-(-X.size // 4)), launch.THREADS, *args)
    return out, mask


def _masked(device: CudaDevice, x: Any, mask: Any, factor: float) -> Any:
    """`x` times `factor` where `mask` is not 0, and 0 elsewhere."""
    out = device.xp.empty(x.shape, x.dtype)
    launch.each("random", "masked", x.dtype, x.size, x, launch.dense(device, mask), out, x.size, factor)
    return out


def dropout_grad(
    device: CudaDevice, Mask: Any, Out_grad: Any, dropout_prob: float, dropout_implementation: str
) -> Any:
    """Launcher of `dropout_grad`."""
    if not launch.real(Out_grad) or str(Mask.dtype) != "uint8":
        return NotImplemented
    factor = _kept_scale(dropout_prob, dropout_implementation)
    return _masked(device, launch.dense(device, Out_grad), Mask, factor)
