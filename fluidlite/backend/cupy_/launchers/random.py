"""Random numbers on the GPU, and dropout.

Operators with a seed draw the same numbers in every run, those of the CPU: they are drawn by the host. The others
draw from one generator for each GPU, whose state is in its memory and is advanced by the kernels that draw.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from ...._ext import rng
from ....base import seeds
from ....base.dtypes import to_numpy
from ....base.sizes.shapes import with_size_of
from ...constants import constant
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


def _draw(device: CudaDevice, kind: str, size: Any, dtype: int, seed: int, low: float, high: float) -> Any:
    """A new array of the given kind of random numbers; `low`, `high`: their limits, or mean and deviation."""
    element, shape = np.dtype(to_numpy(dtype)), tuple(int(n) for n in size)
    if element not in launch.REAL:
        return NotImplemented
    count = math.prod(shape)
    if seed:
        double = () if kind == "truncated" else (float(element.itemsize == 8),)
        return (
            _seeded(device, kind, seed, count, float(low), float(high), *double)
            .astype(element)
            .reshape(shape)
        )
    out = device.xp.empty(shape, element)
    if count:
        # A thread makes as many numbers as four random words give.
        each = 1 if kind == "truncated" else 16 // element.itemsize
        blocks = launch.blocks_for(-(-count // each))
        args = (generator(device), out, count, float(low), float(high))
        launch.grid("random", kind, element, blocks, launch.THREADS, *args)
    return out


def uniform_random(
    device: CudaDevice,
    ShapeTensor: Any,
    ShapeTensorList: list[Any],
    shape: list[int],
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    dtype: int,
) -> Any:
    """Launcher of `uniform_random`."""
    if ShapeTensor is not None or ShapeTensorList or diag_num > 0:
        return NotImplemented
    return _draw(device, "uniform", shape, dtype, seed, min, max)


def uniform_random_like(
    device: CudaDevice,
    Input: Any,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    min: float,
    max: float,
    seed: int,
    diag_num: int,
    dtype: int,
) -> Any:
    """Launcher of `uniform_random_batch_size_like`."""
    if diag_num > 0:
        return NotImplemented
    size = with_size_of(shape, Input.shape, input_dim_idx, output_dim_idx)
    return _draw(device, "uniform", size, dtype, seed, min, max)


def gaussian_random(
    device: CudaDevice,
    ShapeTensor: Any,
    ShapeTensorList: list[Any],
    shape: list[int],
    mean: float,
    std: float,
    seed: int,
    dtype: int,
) -> Any:
    """Launcher of `gaussian_random`."""
    if ShapeTensor is not None or ShapeTensorList:
        return NotImplemented
    return _draw(device, "normal", shape, dtype, seed, mean, std)


def gaussian_random_like(
    device: CudaDevice,
    Input: Any,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    mean: float,
    std: float,
    seed: int,
    dtype: int,
) -> Any:
    """Launcher of `gaussian_random_batch_size_like`."""
    size = with_size_of(shape, Input.shape, input_dim_idx, output_dim_idx)
    return _draw(device, "normal", size, dtype, seed, mean, std)


def truncated_gaussian_random(
    device: CudaDevice, shape: list[int], mean: float, std: float, seed: int, dtype: int
) -> Any:
    """Launcher of `truncated_gaussian_random`."""
    return _draw(device, "truncated", shape, dtype, seed, mean, std)


def randint(
    device: CudaDevice,
    ShapeTensor: Any,
    ShapeTensorList: list[Any],
    shape: list[int],
    low: int,
    high: int,
    seed: int,
    dtype: int,
) -> Any:
    """Launcher of `randint`."""
    element, size = np.dtype(to_numpy(dtype)), tuple(int(n) for n in shape)
    if ShapeTensor is not None or ShapeTensorList or element not in launch.INTEGER:
        return NotImplemented
    count = math.prod(size)
    if seed:
        return _seeded(device, "integers", seed, count, low, high).astype(element).reshape(size)
    out = device.xp.empty(size, element)
    if count:
        args = (generator(device), out, launch.wide(out), count, int(low), int(high) - int(low))
        launch.grid("random", "integers", "float32", launch.blocks_for(-(-count // 2)), launch.THREADS, *args)
    return out


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
