"""Convolutions and their transposes.

`padding` is a number, one for each spatial axis, a pair for each, or 'same' or 'valid'. `data_format` says whether
channels come second ('NCL', 'NCHW', 'NCDHW') or last ('NLC', 'NHWC', 'NDHWC').
"""

from __future__ import annotations

from typing import Any

from ....layers.checks import FORMATS, check_choice, numbers, paddings
from ...calls import run
from ...tensor.manipulation import squeeze, unsqueeze

__all__ = [
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
]


def _run(
    dims: int,
    transposed: bool,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_format: str,
    more: dict[str, Any] | None = None,
    name: str | None = None,
) -> Any:
    kind = f"conv{dims}d_transpose" if transposed else f"conv{dims}d"
    check_choice(data_format, "data_format", FORMATS[dims], kind)
    last = data_format == FORMATS[dims][1]
    around, algorithm = paddings(padding, dims, last, kind)
    attrs = {
        "strides": numbers(stride, dims, "stride", kind),
        "paddings": around,
        "padding_algorithm": algorithm,
        "dilations": numbers(dilation, dims, "dilation", kind),
        "groups": groups,
        "data_format": data_format,
        **(more or {}),
    }
    out = run(kind, {"Input": x, "Filter": weight}, ("Output",), attrs, name)
    if bias is None:
        return out
    return run("elementwise_add", {"X": out, "Y": bias}, attrs={"axis": dims + 1 if last else 1})


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
    return _run(2, False, x, weight, bias, stride, padding, dilation, groups, data_format, None, name)


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
    return _run(3, False, x, weight, bias, stride, padding, dilation, groups, data_format, None, name)


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
    return _sequence(False, x, weight, bias, stride, padding, dilation, groups, data_format, None, name)


def _sequence(
    transposed: bool,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_format: str,
    more: dict[str, Any] | None,
    name: str | None,
) -> Any:
    """A sequence as an image of height 1."""
    who = "conv1d_transpose" if transposed else "conv1d"
    check_choice(data_format, "data_format", FORMATS[1], who)
    last = data_format == "NLC"
    axis = 1 if last else 2
    step, spread = numbers(stride, 1, "stride", who)[0], numbers(dilation, 1, "dilation", who)[0]
    out = _run(
        2,
        transposed,
        unsqueeze(x, axis),
        unsqueeze(weight, 2),
        bias,
        [1, step],
        along_width(padding, who),
        [1, spread],
        groups,
        FORMATS[2][last],
        more,
        name,
    )
    return squeeze(out, axis)


def _output_size(
    dims: int, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, last: bool
) -> list[int]:
    """The size of a transposed convolution with `output_padding` more at the end of each axis."""
    who = f"conv{dims}d_transpose"
    around, algorithm = paddings(padding, dims, last, who)
    if algorithm != "EXPLICIT":
        raise ValueError(f"{who} takes output_padding with numbers as padding, got {padding!r}")
    both = (
        [2 * side for side in around]
        if len(around) == dims
        else [a + b for a, b in zip(*[iter(around)] * 2, strict=True)]
    )
    parts = zip(
        x.shape[1:-1] if last else x.shape[2:],
        weight.shape[2:],
        numbers(stride, dims, "stride", who),
        both,
        numbers(dilation, dims, "dilation", who),
        numbers(output_padding, dims, "output_padding", who),
        strict=True,
    )
    return [
        (size - 1) * step - cut + spread * (reach - 1) + 1 + more
        for size, reach, step, cut, spread, more in parts
    ]


def _sized(
    dims: int, x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, output_size: Any,
    data_format: str,
) -> dict[str, Any] | None:  # fmt: skip
    if output_size is not None:
        if hasattr(output_size, "tolist"):
            output_size = output_size.tolist()
        return {"output_size": numbers(output_size, dims, "output_size", f"conv{dims}d_transpose")}
    if output_padding in (0, None) or not any(
        numbers(output_padding, dims, "output_padding", "conv_transpose")
    ):
        return None
    last = data_format == FORMATS[dims][1]
    return {"output_size": _output_size(dims, x, weight, stride, padding, dilation, output_padding, last)}


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
    more = _sized(2, x, weight, stride, padding, dilation, output_padding, output_size, data_format)
    return _run(2, True, x, weight, bias, stride, padding, dilation, groups, data_format, more, name)


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
    more = _sized(3, x, weight, stride, padding, dilation, output_padding, output_size, data_format)
    return _run(3, True, x, weight, bias, stride, padding, dilation, groups, data_format, more, name)


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
    size = output_size
    if output_size is None and output_padding not in (0, [0], (0,)):
        last = data_format == "NLC"
        size = _output_size(1, x, weight, stride, padding, dilation, output_padding, last)
    more = (
        None if size is None else {"output_size": [1, numbers(size, 1, "output_size", "conv1d_transpose")[0]]}
    )
    return _sequence(True, x, weight, bias, stride, padding, dilation, groups, data_format, more, name)
