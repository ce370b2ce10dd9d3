"""Convolutions and their transposes.

`padding` is a number, one for each spatial axis, a pair for each, or 'same' or 'valid'. `data_format` says whether
channels come second ('NCL', 'NCHW', 'NCDHW') or last ('NLC', 'NHWC', 'NDHWC').
"""

from __future__ import annotations

from typing import Any

from ....fluid.layers.checks import FORMATS, check_choice, numbers
from ....fluid.layers.nn.convolution import Convolution
from ....fluid.op_functions import of_kind
from ...modes import run
from ...tensor.manipulation import squeeze, unsqueeze

__all__ = [
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
]


def _convolved(
    kind: str,
    operands: tuple[Any, Any, Any],
    windows: tuple[Any, Any, Any, int, str],
    name: str | None,
    output_padding: Any = 0,
    output_size: Any = None,
) -> Any:
    """The implementation of all convolutions; a sequence is convolved as an image of height 1.

    `operands`: input, filters, bias; `windows`: stride, padding, dilation, groups, layout.
    """
    x, weight, bias = operands
    axis = None
    if kind.startswith("conv1d"):
        stride, padding, dilation, groups, layout = windows
        check_choice(layout, "data_format", FORMATS[1], kind)
        last = layout == "NLC"
        axis = 1 if last else 2
        x, weight = unsqueeze(x, axis), unsqueeze(weight, 2)
        stride, dilation = wide(stride, "stride", kind), wide(dilation, "dilation", kind)
        windows = (stride, along_width(padding, kind), dilation, groups, FORMATS[2][last])
        output_padding = [0, *numbers(output_padding or 0, 1, "output_padding", kind)]
        output_size = None if output_size is None else wide(output_size, "output_size", kind)
    conv = Convolution(kind.replace("1", "2"), *windows, layer=kind)
    if conv.transposed:
        _fix_size(conv, x, weight, output_padding, output_size)
    out = run(conv.kind, {"Input": x, "Filter": weight}, ("Output",), conv.attrs, name)
    if bias is not None:
        out = run("elementwise_add", {"X": out, "Y": bias}, attrs={"axis": conv.channel_axis})
    return out if axis is None else squeeze(out, axis)


def wide(value: Any, name: str, who: str) -> list[int]:
    """Argument `name`, a number for sequences, as that for images of height 1."""
    return [1, *numbers(value, 1, name, who)]


def along_width(value: Any, who: str) -> Any:
    """The padding of a sequence as that of an image of height 1."""
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        value = list(value[1 if list(value[-1]) == [0, 0] and len(value) == 3 else -1])
    if isinstance(value, (list, tuple)) and len(value) == 2:
        return [0, 0, *value]
    if isinstance(value, str):
        return value
    return [0, numbers(value, 1, "padding", who)[0]]


def _fix_size(conv: Convolution, x: Any, weight: Any, output_padding: Any, output_size: Any) -> None:
    """Say of the transposed `conv` how large its results are: `output_size`, or `output_padding` more at the end of
    each axis."""
    if output_size is None:
        more = conv.numbers(output_padding or 0, "output_padding")
        if not any(more):
            return
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


def _convolution(
    kind: str,
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
    return _convolved(kind, (x, weight, bias), (stride, padding, dilation, groups, data_format), name)


conv2d = of_kind(
    _convolution,
    "conv2d",
    """Convolves images `x` [N, C, H, W] with filters `weight` [F, C / groups, h, w], plus `bias` [F]
    (`paddle.nn.functional.conv2d`).

    `stride` and `dilation` are a number or one for each spatial axis.
    """,
)
conv3d = of_kind(
    _convolution,
    "conv3d",
    "Convolves volumes; arguments as in `conv2d` (`paddle.nn.functional.conv3d`).",
    data_format="NCDHW",
)
conv1d = of_kind(
    _convolution,
    "conv1d",
    """Convolves sequences `x` [N, C, L] with filters `weight` [F, C / groups, l]; other arguments as in `conv2d`
    (`paddle.nn.functional.conv1d`).""",
    data_format="NCL",
)


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
    windows = (stride, padding, dilation, groups, data_format)
    return _convolved("conv2d_transpose", (x, weight, bias), windows, name, output_padding, output_size)


def _transpose(
    kind: str,
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
    windows = (stride, padding, dilation, groups, data_format)
    return _convolved(kind, (x, weight, bias), windows, name, output_padding, output_size)


conv3d_transpose = of_kind(
    _transpose,
    "conv3d_transpose",
    "The transpose of `conv3d`; arguments as in `conv2d_transpose` (`paddle.nn.functional.conv3d_transpose`).",
)
conv1d_transpose = of_kind(
    _transpose,
    "conv1d_transpose",
    "The transpose of `conv1d`; arguments as in `conv2d_transpose` (`paddle.nn.functional.conv1d_transpose`).",
    data_format="NCL",
)
