"""Convolution layers."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentAssertion, ArgumentError
from ...base.windows import resolve_pads
from ...framework import Variable
from ...layer_helper import LayerHelper
from ..checks import FORMATS, check_choice, check_dtype, check_switch, numbers, paddings
from .filters import check_groups, filter_initializer, filter_shape, operator_type

__all__ = ["conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose"]


def conv2d(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """Convolves images with `num_filters` trainable filters (`fluid.layers.conv2d`).

    Args:
        input: float images [N, C, H, W] (or [N, H, W, C] with `data_format='NHWC'`).
        num_filters: the number of output channels.
        filter_size, stride, dilation: an integer, or [height, width].
        padding: an integer, [height, width], [top, bottom, left, right], a pair for each dimension, 'SAME' or
            'VALID'.
        groups: filters see only the channels of their group.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias. By default
            the filters are drawn from a normal distribution of variance 2 / (C * height * width).
        use_cudnn: accepted; False picks depthwise_conv2d where groups = C, as in Fluid.
        act: the name of an activation.
        name: what the names of parameters and results are made from.
        data_format: 'NCHW' or 'NHWC'.

    Raises:
        TypeError, ValueError: for arguments that do not fit; they name the argument.
    """
    return _conv(
        2,
        "conv2d",
        input,
        num_filters,
        filter_size,
        stride,
        padding,
        dilation,
        groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
        name,
        data_format,
    )


def conv3d(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """Convolves volumes [N, C, D, H, W] (or NDHWC); otherwise as `conv2d` (`fluid.layers.conv3d`)."""
    return _conv(
        3,
        "conv3d",
        input,
        num_filters,
        filter_size,
        stride,
        padding,
        dilation,
        groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
        name,
        data_format,
    )


def _channels(layer: str, input: Variable, data_format: str, dims: int) -> int:
    """The number of channels of `input`; ValueError if the format or the shape does not say."""
    check_dtype(input, "input", layer)
    check_choice(data_format, "data_format", FORMATS[dims], layer)
    if len(input.shape) != dims + 2:
        raise ArgumentError(
            f"'input' of {layer} must have {dims + 2} dimensions, got shape {list(input.shape)}"
        )
    channels = input.shape[1 if data_format.startswith("NC") else -1]
    if channels < 0:
        raise ArgumentError(
            f"{layer} needs to know the channels of {input.name!r}, got shape {list(input.shape)}"
        )
    return channels


def _with_bias(helper: LayerHelper, out: Variable, data_format: str) -> Variable:
    channel = 1 if data_format.startswith("NC") else len(out.shape) - 1
    return helper.append_activation(helper.append_bias_op(out, dim_start=channel, dim_end=channel + 1))


def _conv(
    dims: int,
    layer: str,
    input: Variable,
    num_filters: int,
    filter_size: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int | None,
    param_attr: Any,
    bias_attr: Any,
    use_cudnn: bool,
    act: str | None,
    name: str | None,
    data_format: str,
) -> Variable:
    channels = _channels(layer, input, data_format, dims)
    check_switch(use_cudnn, "use_cudnn", layer)
    parts = groups or 1
    check_groups(parts, layer, {"the channels of 'input'": channels, "'num_filters'": num_filters})
    if param_attr is False:
        raise ArgumentAssertion(f"'param_attr' of {layer} must not be False: a convolution needs its filters")
    kernel = numbers(filter_size, dims, "filter_size", layer)
    pads, algorithm = paddings(padding, dims, data_format in ("NHWC", "NDHWC"), layer)
    op_type = operator_type(layer, channels, num_filters, parts, False, use_cudnn)
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    filters = helper.create_parameter(
        attr=helper.param_attr,
        shape=filter_shape(channels, num_filters, kernel, parts, False),
        dtype=input.dtype,
        default_initializer=filter_initializer(channels, kernel, False),
    )
    attrs = {
        "strides": numbers(stride, dims, "stride", layer),
        "paddings": pads,
        "dilations": numbers(dilation, dims, "dilation", layer),
        "groups": parts,
        "use_cudnn": use_cudnn,
        "padding_algorithm": algorithm,
        "data_format": data_format,
    }
    inputs = {"Input": input, "Filter": filters}
    out = helper.run(op_type, inputs, ("Output",), attrs=attrs)
    return _with_bias(helper, out, data_format)


def conv2d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCHW",
) -> Variable:
    """The transpose of a convolution: spreads images instead of gathering them
    (`fluid.layers.conv2d_transpose`).

    Args:
        output_size: the size of the results, an integer or [height, width]; needed if `filter_size` is left
            out, which is then made to fit.

    The other arguments are those of `conv2d`. Raises ValueError if neither size is given or they do not fit.
    """
    return _transposed(
        2,
        "conv2d_transpose",
        input,
        num_filters,
        output_size,
        filter_size,
        padding,
        stride,
        dilation,
        groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
        name,
        data_format,
    )


def conv3d_transpose(
    input: Variable,
    num_filters: int,
    output_size: Any = None,
    filter_size: Any = None,
    padding: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    groups: int | None = None,
    param_attr: Any = None,
    bias_attr: Any = None,
    use_cudnn: bool = True,
    act: str | None = None,
    name: str | None = None,
    data_format: str = "NCDHW",
) -> Variable:
    """The transpose of a convolution of volumes; otherwise as `conv2d_transpose`
    (`fluid.layers.conv3d_transpose`).
    """
    return _transposed(
        3,
        "conv3d_transpose",
        input,
        num_filters,
        output_size,
        filter_size,
        padding,
        stride,
        dilation,
        groups,
        param_attr,
        bias_attr,
        use_cudnn,
        act,
        name,
        data_format,
    )


def _transposed(
    dims: int,
    layer: str,
    input: Variable,
    num_filters: int,
    output_size: Any,
    filter_size: Any,
    padding: Any,
    stride: Any,
    dilation: Any,
    groups: int | None,
    param_attr: Any,
    bias_attr: Any,
    use_cudnn: bool,
    act: str | None,
    name: str | None,
    data_format: str,
) -> Variable:
    channels = _channels(layer, input, data_format, dims)
    check_switch(use_cudnn, "use_cudnn", layer)
    parts = groups or 1
    if param_attr is False:
        raise ArgumentError(f"'param_attr' of {layer} must not be False: a convolution needs its filters")
    strides = numbers(stride, dims, "stride", layer)
    dilations = numbers(dilation, dims, "dilation", layer)
    pads, algorithm = paddings(padding, dims, data_format in ("NHWC", "NDHWC"), layer)
    wanted = [] if output_size is None else numbers(output_size, dims, "output_size", layer)
    if filter_size is not None:
        kernel = numbers(filter_size, dims, "filter_size", layer)
    else:
        if not wanted:
            raise ArgumentError(f"{layer} needs 'output_size' or 'filter_size'")
        sizes = input.shape[2:] if data_format.startswith("NC") else input.shape[1:-1]
        if any(n < 0 for n in sizes):
            raise ArgumentError(
                f"without 'filter_size', {layer} needs to know the size of images, got {list(input.shape)}"
            )
        sides = resolve_pads(algorithm, pads, sizes, [1] * dims, strides)
        kernel = [
            (out - (n - 1) * s + sum(side) - 1) // d + 1
            for out, n, s, d, side in zip(wanted, sizes, strides, dilations, sides, strict=True)
        ]
    op_type = operator_type(layer, channels, num_filters, parts, True, use_cudnn)
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    filters = helper.create_parameter(
        attr=helper.param_attr,
        shape=filter_shape(channels, num_filters, kernel, parts, True),
        dtype=input.dtype,
    )
    attrs = {
        "output_size": wanted,
        "strides": strides,
        "paddings": pads,
        "padding_algorithm": algorithm,
        "dilations": dilations,
        "groups": parts,
        "use_cudnn": use_cudnn,
        "data_format": data_format,
    }
    inputs = {"Input": input, "Filter": filters}
    out = helper.run(op_type, inputs, ("Output",), attrs=attrs)
    return _with_bias(helper, out, data_format)
