"""Convolutions and their transposes.

`padding` is a number, one for each spatial axis, a pair for each, or 'same' or 'valid'. `data_format` says whether
channels come second ('NCL', 'NCHW', 'NCDHW') or last ('NLC', 'NHWC', 'NDHWC').
"""

from __future__ import annotations

from typing import Any

from ....layers.checks import FORMATS, check_choice, numbers
from ....layers.nn.convolution import Convolution
from ...run_mode import run
from ...tensor.manipulation import squeeze, unsqueeze

__all__ = [
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
]


def _run(conv: Convolution, x: Any, weight: Any, bias: Any, name: str | None = None) -> Any:
    out = run(conv.kind, {"Input": x, "Filter": weight}, ("Output",), conv.attrs, name)
    if bias is None:
        return out
    return run("elementwise_add", {"X": out, "Y": bias}, attrs={"axis": conv.channel_axis})


def conv2d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCHW",
    name: str | None = None,
) -> Any:
    """Convolves images `x` [N, C, H, W] with filters `weight` [F, C / groups, h, w], plus `bias` [F]
    (`paddle.nn.functional.conv2d`).

    `stride` and `dilation` are a number or one for each spatial axis.
    """
    conv = Convolution("conv2d", stride, padding, dilation, groups, data_format)
    return _run(conv, x, weight, bias, name)


def conv3d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Any:
    """Convolves volumes; arguments as in `conv2d` (`paddle.nn.functional.conv3d`)."""
    conv = Convolution("conv3d", stride, padding, dilation, groups, data_format)
    return _run(conv, x, weight, bias, name)


def along_width(value: Any, who: str) -> Any:
    """What a sequence is padded by, as the padding of an image of height 1."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = list(value[1 if list(value[-1]) == [0, 0] and len(value) == 3 else -1])
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return [0, 0, *value]
    if isinstance(value, str):
        return value
    return [0, numbers(value, 1, "padding", who)[0]]


def conv1d(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    data_format: str = "NCL",
    name: str | None = None,
) -> Any:
    """Convolves sequences `x` [N, C, L] with filters `weight` [F, C / groups, l]; other arguments as in `conv2d`
    (`paddle.nn.functional.conv1d`)."""
    return _sequence("conv1d", x, weight, bias, stride, padding, dilation, groups, data_format, name)


def _sequence(
    kind: str,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_format: str,
    name: str | None,
    output_padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """A sequence convolved as an image of height 1."""
    check_choice(data_format, "data_format", FORMATS[1], kind)
    last = data_format == "NLC"
    axis = 1 if last else 2
    step, spread = numbers(stride, 1, "stride", kind), numbers(dilation, 1, "dilation", kind)
    conv = Convolution(
        kind.replace("1", "2"),
        [1, *step],
        along_width(padding, kind),
        [1, *spread],
        groups,
        FORMATS[2][last],
        layer=kind,
    )
    image, filters = unsqueeze(x, axis), unsqueeze(weight, 2)
    if conv.transposed:
        more = [0, *numbers(output_padding or 0, 1, "output_padding", kind)]
        size = None if output_size is None else [1, *numbers(output_size, 1, "output_size", kind)]
        conv = _sized(conv, image, filters, more, size)
    return squeeze(_run(conv, image, filters, bias, name), axis)


def _sized(conv: Convolution, x: Any, weight: Any, output_padding: Any, output_size: Any) -> Convolution:
    """The transposed `conv` with results of `output_size`, or with `output_padding` more at the end of each axis."""
    if output_size is None:
        more = conv.numbers(output_padding or 0, "output_padding")
        if not any(more):
            return conv
        if conv.attrs["padding_algorithm"] != "EXPLICIT":
            raise ValueError(f"{conv.layer} takes output_padding with numbers as padding")
        sizes, sides = x.shape[1:-1] if conv.channels_last else x.shape[2:], conv.padding
        both = (
            [2 * side for side in sides]
            if len(sides) == conv.dims
            else [a + b for a, b in zip(sides[::2], sides[1::2], strict=True)]
        )
        parts = zip(sizes, weight.shape[2:], conv.stride, both, conv.dilation, more, strict=True)
        output_size = [
            (size - 1) * step - cut + spread * (reach - 1) + 1 + end
            for size, reach, step, cut, spread, end in parts
        ]
    conv.attrs["output_size"] = conv.numbers(output_size, "output_size")
    return conv


def conv2d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    data_format: str = "NCHW",
    output_size: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of `conv2d`; `weight` is [C, F / groups, h, w] (`paddle.nn.functional.conv2d_transpose`).

    `output_padding`: how much larger the result is at the end of each axis; `output_size`: its spatial size instead.
    """
    conv = Convolution("conv2d_transpose", stride, padding, dilation, groups, data_format)
    return _run(_sized(conv, x, weight, output_padding, output_size), x, weight, bias, name)


def conv3d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    output_size: Any = None,
    data_format: str = "NCDHW",
    name: str | None = None,
) -> Any:
    """The transpose of `conv3d`; arguments as in `conv2d_transpose` (`paddle.nn.functional.conv3d_transpose`)."""
    conv = Convolution("conv3d_transpose", stride, padding, dilation, groups, data_format)
    return _run(_sized(conv, x, weight, output_padding, output_size), x, weight, bias, name)


def conv1d_transpose(
    x: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    groups: int = 1,
    dilation: Any = 1,
    output_size: Any = None,
    data_format: str = "NCL",
    name: str | None = None,
) -> Any:
    """The transpose of `conv1d`; arguments as in `conv2d_transpose` (`paddle.nn.functional.conv1d_transpose`)."""
    kind, described = "conv1d_transpose", (stride, padding, dilation, groups, data_format, name)
    return _sequence(kind, x, weight, bias, *described, output_padding, output_size)
