"""Pooling: the mean or the maximum of windows.

`stride` is by default the size of the window; `padding` is as for convolutions.
"""

from __future__ import annotations

from typing import Any

from ....layers.checks import FORMATS, check_choice, numbers, paddings
from ...run_mode import run
from ...tensor.manipulation import squeeze, unsqueeze
from .conv import along_width

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
    dims: int,
    kind: str,
    x: Any,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    data_format: str,
    name: str | None,
    exclusive: bool = True,
    divisor: float | None = None,
    mask: bool = False,
) -> Any:
    who = f"{kind}_pool{dims}d"
    check_choice(data_format, "data_format", FORMATS[dims], who)
    around, algorithm = paddings(padding, dims, data_format == FORMATS[dims][1], who)
    ksize = numbers(kernel_size, dims, "kernel_size", who)
    attrs: dict[str, Any] = {
        "ksize": ksize,
        "strides": ksize if stride is None else numbers(stride, dims, "stride", who),
        "paddings": around,
    }
    if mask:
        return run(
            f"max_pool{dims}d_with_index", {"X": x}, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",)
        )
    attrs |= {
        "pooling_type": kind,
        "padding_algorithm": algorithm,
        "ceil_mode": ceil_mode,
        "exclusive": exclusive and divisor is None,
        "data_format": data_format,
    }
    out = run(f"pool{dims}d", {"X": x}, attrs=attrs, name=name)
    if divisor is None:
        return out
    count = 1
    for size in ksize:
        count *= size
    return out * (count / divisor)


def max_pool2d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """The largest of each window of images (`paddle.nn.functional.max_pool2d`).

    `ceil_mode` keeps a last window that reaches beyond the image. With `return_mask` also the places, as numbers in
    the flattened image.
    """
    return _pool(2, "max", x, kernel_size, stride, padding, ceil_mode, data_format, name, mask=return_mask)


def max_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    return_mask: bool = False,
    ceil_mode: bool = False,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Any:
    """The largest of each window of volumes; as `max_pool2d` (`paddle.nn.functional.max_pool3d`)."""
    return _pool(3, "max", x, kernel_size, stride, padding, ceil_mode, data_format, name, mask=return_mask)


def avg_pool2d(
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
    """The mean of each window of images (`paddle.nn.functional.avg_pool2d`).

    `exclusive`: only what lies inside of the image counts; `divisor_override`: divide the sums by this instead.
    """
    return _pool(
        2, "avg", x, kernel_size, stride, padding, ceil_mode, data_format, name, exclusive, divisor_override
    )


def avg_pool3d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    exclusive: bool = True,
    divisor_override: float | None = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Any:
    """The mean of each window of volumes; as `avg_pool2d` (`paddle.nn.functional.avg_pool3d`)."""
    return _pool(
        3, "avg", x, kernel_size, stride, padding, ceil_mode, data_format, name, exclusive, divisor_override
    )


def _window(value: Any, who: str) -> list[int]:
    return [1, numbers(value, 1, "kernel_size", who)[0]]


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
    who = "max_pool1d"
    out = max_pool2d(
        unsqueeze(x, 2),
        _window(kernel_size, who),
        None if stride is None else [1, numbers(stride, 1, "stride", who)[0]],
        along_width(padding, who),
        return_mask,
        ceil_mode,
    )
    return tuple(squeeze(part, 2) for part in out) if return_mask else squeeze(out, 2)


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
    who = "avg_pool1d"
    step = None if stride is None else [1, numbers(stride, 1, "stride", who)[0]]
    out = avg_pool2d(
        unsqueeze(x, 2), _window(kernel_size, who), step, along_width(padding, who), ceil_mode, exclusive
    )
    return squeeze(out, 2)


def _adaptive(
    dims: int, kind: str, x: Any, output_size: Any, data_format: str, name: str | None, mask: bool = False
) -> Any:
    who = f"adaptive_{kind}_pool{dims}d"
    check_choice(data_format, "data_format", FORMATS[dims], who)
    spatial = list(x.shape[1:-1] if data_format == FORMATS[dims][1] else x.shape[2:])
    wanted = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size] * dims
    sizes = [have if want is None else int(want) for have, want in zip(spatial, wanted, strict=True)]
    attrs: dict[str, Any] = {"ksize": sizes, "adaptive": True}
    if mask:
        return run(
            f"max_pool{dims}d_with_index", {"X": x}, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",)
        )
    return run(
        f"pool{dims}d", {"X": x}, attrs=attrs | {"pooling_type": kind, "data_format": data_format}, name=name
    )


def adaptive_avg_pool2d(x: Any, output_size: Any, data_format: str = "NCHW", name: str | None = None) -> Any:
    """Means of windows such that the result has `output_size`, a number or [height, width], where None keeps a size
    (`paddle.nn.functional.adaptive_avg_pool2d`)."""
    return _adaptive(2, "avg", x, output_size, data_format, name)


def adaptive_avg_pool3d(x: Any, output_size: Any, data_format: str = "NCDHW", name: str | None = None) -> Any:
    """As `adaptive_avg_pool2d`, of volumes (`paddle.nn.functional.adaptive_avg_pool3d`)."""
    return _adaptive(3, "avg", x, output_size, data_format, name)


def adaptive_max_pool2d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """As `adaptive_avg_pool2d`, the largest; with `return_mask` also the places
    (`paddle.nn.functional.adaptive_max_pool2d`)."""
    return _adaptive(2, "max", x, output_size, "NCHW", name, return_mask)


def adaptive_max_pool3d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """As `adaptive_max_pool2d`, of volumes (`paddle.nn.functional.adaptive_max_pool3d`)."""
    return _adaptive(3, "max", x, output_size, "NCDHW", name, return_mask)


def adaptive_avg_pool1d(x: Any, output_size: Any, name: str | None = None) -> Any:
    """As `adaptive_avg_pool2d`, of sequences [N, C, L] (`paddle.nn.functional.adaptive_avg_pool1d`)."""
    size = numbers(output_size, 1, "output_size", "adaptive_avg_pool1d")
    return squeeze(_adaptive(2, "avg", unsqueeze(x, 2), [1, *size], "NCHW", name), 2)


def adaptive_max_pool1d(x: Any, output_size: Any, return_mask: bool = False, name: str | None = None) -> Any:
    """As `adaptive_max_pool2d`, of sequences [N, C, L] (`paddle.nn.functional.adaptive_max_pool1d`)."""
    size = numbers(output_size, 1, "output_size", "adaptive_max_pool1d")
    out = _adaptive(2, "max", unsqueeze(x, 2), [1, *size], "NCHW", name, return_mask)
    return tuple(squeeze(part, 2) for part in out) if return_mask else squeeze(out, 2)
