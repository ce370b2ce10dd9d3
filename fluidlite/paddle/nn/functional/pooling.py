"""Pooling: the mean or the maximum of windows.

`stride` is by default the size of the window; `padding` is as for convolutions.
"""

from __future__ import annotations

import math
from typing import Any

from ....fluid.layers.checks import FORMATS, check_choice, numbers, paddings
from ....fluid.op_functions import of_kind
from ...modes import run
from ...tensor.manipulation import squeeze, unsqueeze
from .conv import along_width, wide

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
]


def _pool(
    kind: str,
    x: Any,
    windows: tuple[Any, Any, Any],
    ceil_mode: bool,
    data_format: str,
    name: str | None,
    exclusive: bool = True,
    divisor: float | None = None,
    mask: bool = False,
) -> Any:
    """Pooling by windows; `windows`: size, stride, padding. Sequences are pooled as images of height 1."""
    method, dims = kind[:3], int(kind[-2])
    size, stride, padding = windows
    if dims == 1:
        stride = None if stride is None else wide(stride, "stride", kind)
        windows = (wide(size, "kernel_size", kind), stride, along_width(padding, kind))
        found = _pool(
            f"{method}_pool2d", unsqueeze(x, 2), windows, ceil_mode, "NCHW", None, exclusive, mask=mask
        )
        return tuple(squeeze(part, 2) for part in found) if mask else squeeze(found, 2)
    check_choice(data_format, "data_format", FORMATS[dims], kind)
    amounts, algorithm = paddings(padding, dims, data_format == FORMATS[dims][1], kind)
    ksize = numbers(size, dims, "kernel_size", kind)
    attrs: dict[str, Any] = {
        "ksize": ksize,
        "strides": ksize if stride is None else numbers(stride, dims, "stride", kind),
        "paddings": amounts,
    }
    if mask:
        return _with_places(dims, x, attrs, name)
    attrs |= {
        "pooling_type": method,
        "padding_algorithm": algorithm,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive and divisor is None,
        "data_format": data_format,
    }
    out = run(f"pool{dims}d", {"X": x}, attrs=attrs, name=name)
    return out if divisor is None else out * (math.prod(ksize) / divisor)


def _with_places(dims: int, x: Any, attrs: dict[str, Any], name: str | None) -> Any:
    """The maximum of each window and its index."""
    return run(f"max_pool{dims}d_with_index", {"X": x}, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",))


def _max_pool(
    kind: str,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    windows = (kernel_size, stride, padding)
    return _pool(kind, x, windows, ceil_mode, data_format, name, mask=return_mask)


max_pool2d = of_kind(
    _max_pool,
    "max_pool2d",
    """The largest of each window of images (`paddle.nn.functional.max_pool2d`).

    `ceil_mode` keeps a last window that reaches beyond the image. With `return_mask` also the places, as numbers in
    the flattened image.
    """,
)
max_pool3d = of_kind(
    _max_pool,
    "max_pool3d",
    "The largest of each window of volumes; as `max_pool2d` (`paddle.nn.functional.max_pool3d`).",
    data_format="NCDHW",
)


def max_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Any:
    """The largest of each window of sequences [N, C, L]; as `max_pool2d` (`paddle.nn.functional.max_pool1d`)."""
    return _max_pool("max_pool1d", x, kernel_size, stride, padding, return_mask, ceil_mode)


def _avg_pool(
    kind: str,
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    windows = (kernel_size, stride, padding)
    return _pool(kind, x, windows, ceil_mode, data_format, name, exclusive, divisor_override)


avg_pool2d = of_kind(
    _avg_pool,
    "avg_pool2d",
    """The mean of each window of images (`paddle.nn.functional.avg_pool2d`).

    `exclusive`: average only the elements inside the image; `divisor_override`: divide the sums by this instead.
    """,
)
avg_pool3d = of_kind(
    _avg_pool,
    "avg_pool3d",
    "The mean of each window of volumes; as `avg_pool2d` (`paddle.nn.functional.avg_pool3d`).",
    data_format="NCDHW",
)


def avg_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    exclusive: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
) -> Any:
    """The mean of each window of sequences [N, C, L]; as `avg_pool2d` (`paddle.nn.functional.avg_pool1d`)."""
    return _avg_pool("avg_pool1d", x, kernel_size, stride, padding, ceil_mode, exclusive)


def _adaptive(
    kind: str, x: Any, output_size: Any, data_format: str, name: str | None, mask: bool = False
) -> Any:
    """Pooling to a given number of windows; sequences as images of height 1."""
    method, dims = kind[9:12], int(kind[-2])
    if dims == 1:
        sizes = wide(output_size, "output_size", kind)
        found = _adaptive(f"adaptive_{method}_pool2d", unsqueeze(x, 2), sizes, "NCHW", name, mask)
        return tuple(squeeze(part, 2) for part in found) if mask else squeeze(found, 2)
    check_choice(data_format, "data_format", FORMATS[dims], kind)
    spatial = list(x.shape[1:-1] if data_format == FORMATS[dims][1] else x.shape[2:])
    wanted = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * dims
    sizes = [have if want is None else int(want) for have, want in zip(spatial, wanted, strict=True)]
    attrs: dict[str, Any] = {"ksize": sizes, "adaptive": True}
    if mask:
        return _with_places(dims, x, attrs, name)
    attrs |= {"pooling_type": method, "data_format": data_format}
    return run(f"pool{dims}d", {"X": x}, attrs=attrs, name=name)


def _adaptive_avg(
    kind: str, x: Any, output_size: Any, data_format: str = "NCHW", name: str | None = None
) -> Any:
    return _adaptive(kind, x, output_size, data_format, name)


adaptive_avg_pool2d = of_kind(
    _adaptive_avg,
    "adaptive_avg_pool2d",
    """Means of windows such that the result has `output_size`, a number or [height, width], where None keeps a size
    (`paddle.nn.functional.adaptive_avg_pool2d`).""",
)
adaptive_avg_pool3d = of_kind(
    _adaptive_avg,
    "adaptive_avg_pool3d",
    "As `adaptive_avg_pool2d`, of volumes (`paddle.nn.functional.adaptive_avg_pool3d`).",
    data_format="NCDHW",
)


def adaptive_avg_pool1d(x: Any, output_size: Any, name: str | None = None) -> Any:
    """As `adaptive_avg_pool2d`, of sequences [N, C, L] (`paddle.nn.functional.adaptive_avg_pool1d`)."""
    return _adaptive("adaptive_avg_pool1d", x, output_size, "NCL", name)


def _adaptive_max(
    kind: str, x: Any, output_size: Any, return_mask: bool = False, name: str | None = None
) -> Any:
    return _adaptive(kind, x, output_size, FORMATS[int(kind[-2])][0], name, return_mask)


adaptive_max_pool2d = of_kind(
    _adaptive_max,
    "adaptive_max_pool2d",
    """As `adaptive_avg_pool2d`, the largest; with `return_mask` also the places
    (`paddle.nn.functional.adaptive_max_pool2d`).""",
)
adaptive_max_pool3d = of_kind(
    _adaptive_max,
    "adaptive_max_pool3d",
    "As `adaptive_max_pool2d`, of volumes (`paddle.nn.functional.adaptive_max_pool3d`).",
)
adaptive_max_pool1d = of_kind(
    _adaptive_max,
    "adaptive_max_pool1d",
    "As `adaptive_max_pool2d`, of sequences [N, C, L] (`paddle.nn.functional.adaptive_max_pool1d`).",
)
