"""Convolutions: what they are for every API (`Convolution`), and those of programs. Pooling layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError, ArgumentNotMet, ArgumentTypeError
from ....base.windows import resolve_pads
from ....framework import Variable
from ...initializer import NormalInitializer
from ...layer_helper import LayerHelper, check_variable, run_op
from ...op_functions import of_kind
from ..checks import FLOAT_TYPES, FORMATS, alone, check_choice, check_dtype, check_switch, numbers, paddings

__all__ = [
    "adaptive_pool2d",
    "adaptive_pool3d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "pool2d",
    "pool3d",
]


class Convolution:
    """A convolution of `fluid.layers`, `fluid.dygraph` or `paddle.nn`: its operator, attributes and filters.

    Args:
        kind: the operator: 'conv2d', 'conv3d', or one of these with '_transpose'.
        stride, padding, dilation, groups, data_format, use_cudnn, output_size: as the layers take them; None: what the
            operator has by default.
        layer: what messages call it, by default `kind`.

    Raises ValueError and TypeError for what does not fit; they name the argument.
    """

    def __init__(
        self,
        kind: str,
        stride: Any,
        padding: Any,
        dilation: Any,
        groups: int | None,
        data_format: str | None = None,
        use_cudnn: bool | None = None,
        output_size: Any = None,
        layer: str | None = None,
    ) -> None:
        self.kind, self.layer, self.use_cudnn = kind, layer or kind, use_cudnn
        self.dims, self.transposed, self.groups = (
            int(kind[4]),
            kind.endswith("_transpose"),
            1 if groups is None else groups,
        )
        self.may_be_depthwise = use_cudnn is False and self.dims == 2 and bool(groups)
        formats = FORMATS[self.dims]
        if data_format is not None:
            check_choice(data_format, "data_format", formats, self.layer)
        if use_cudnn is not None:
            check_switch(use_cudnn, "use_cudnn", self.layer)
        self.channels_last = data_format == formats[1]
        self.stride = self.numbers(stride, "stride")
        self.padding, algorithm = paddings(padding, self.dims, self.channels_last, self.layer)
        self.dilation = self.numbers(dilation, "dilation")
        self.output_size = [] if output_size is None else self.numbers(output_size, "output_size")
        if self.transposed and data_format is not None:
            data_format = data_format.replace("D", "")  # as Fluid calls it, of volumes too
        given: dict[str, Any] = {
            "strides": self.stride,
            "paddings": self.padding,
            "padding_algorithm": algorithm,
            "dilations": self.dilation,
            "groups": self.groups,
            "use_cudnn": use_cudnn,
            "data_format": data_format,
            "output_size": self.output_size or None,
        }
        self.attrs = {name: value for name, value in given.items() if value is not None}

    @property
    def channel_axis(self) -> int:
        return self.dims + 1 if self.channels_last else 1

    def numbers(self, value: Any, name: str) -> list[int]:
        """Argument `name`, an integer or one for each spatial axis, as a list."""
        return numbers(value, self.dims, name, self.layer)

    def check_groups(self, sizes: dict[str, int]) -> None:
        """Raise ValueError unless `groups` divides all of `sizes`, which are named as the message shall name them."""
        for name, size in sizes.items():
            if size % self.groups:
                raise ArgumentError(
                    f"{name} of {self.layer} must be divisible by groups = {self.groups}, got {size}"
                )

    def operator(self, channels: int, filters: int) -> str:
        """The operator that makes `filters` channels of `channels`; it is depthwise where Fluid has it so.

        One channel without a word on groups is not.
        """
        if not self.may_be_depthwise or channels != self.groups:
            return self.kind
        fits = filters == channels if self.transposed else filters % channels == 0
        return f"depthwise_{self.kind}" if fits else self.kind

    def create_filters(
        self,
        create_parameter: Callable[..., Any],
        channels: int,
        filters: int,
        kernel: Sequence[int],
        attr: Any,
        dtype: Any,
    ) -> Any:
        """The parameter of the filters that make `filters` channels of `channels`, as Fluid stores it.

        It starts normal with variance 2 / (channels * size of a filter), and as any other parameter if transposed.
        """
        first, second, start = filters, channels // self.groups, None
        if self.transposed:
            first, second = channels, filters // self.groups
        else:
            start = NormalInitializer(0.0, math.sqrt(2.0 / (channels * math.prod(kernel))), 0)
        return create_parameter(
            attr=attr, shape=[first, second, *kernel], dtype=dtype, default_initializer=start
        )

    def fitting_kernel(self, sizes: Sequence[int]) -> list[int]:
        """The size of the filters with which images of `sizes` become images of `output_size`."""
        sides = resolve_pads(
            self.attrs["padding_algorithm"], self.padding, sizes, [1] * self.dims, self.stride
        )
        parts = zip(self.output_size, sizes, self.stride, self.dilation, sides, strict=True)
        return [(out - (n - 1) * s + sum(side) - 1) // d + 1 for out, n, s, d, side in parts]


def _convolution(
    kind: str,
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
    return _convolved(locals())


conv2d = of_kind(
    _convolution,
    "conv2d",
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
        use_cudnn: accepted; False picks depthwise_conv2d where groups is given and C, as in Fluid.
        act: the name of an activation.
        name: the prefix of the names of parameters and results.
        data_format: 'NCHW' or 'NHWC'.

    Returns:
        Images of `num_filters` channels; a padding of p and a stride of s make H
        (H + 2p - dilation * (height - 1) - 1) // s + 1.

    Raises:
        TypeError, ValueError: for arguments that do not fit; they name the argument.

    Example:
        >>> import paddle.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 32], "float32")
        >>> fluid.layers.conv2d(images, num_filters=8, filter_size=3, padding=1).shape
        (-1, 8, 32, 32)
    """,
)
conv3d = of_kind(
    _convolution,
    "conv3d",
    """Convolves volumes [N, C, D, H, W] (or NDHWC); otherwise as `conv2d` (`fluid.layers.conv3d`).""",
    data_format="NCDHW",
)


def _transpose(
    kind: str,
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
    return _convolved(locals())


conv2d_transpose = of_kind(
    _transpose,
    "conv2d_transpose",
    """The transpose of a convolution: spreads images instead of gathering them
    (`fluid.layers.conv2d_transpose`).

    Args:
        output_size: the size of the results, an integer or [height, width]; needed if `filter_size` is left
            out, which is then made to fit.

    The other arguments are those of `conv2d`. Raises ValueError if neither size is given or they do not fit.
    """,
)
conv3d_transpose = of_kind(
    _transpose,
    "conv3d_transpose",
    """The transpose of a convolution of volumes; otherwise as `conv2d_transpose`
    (`fluid.layers.conv3d_transpose`).
    """,
    data_format="NCDHW",
)


def _convolved(given: dict[str, Any]) -> Variable:
    """The input of a layer convolved with new filters; `given`: its arguments."""
    input, num_filters, filter_size, layer = (
        given[name] for name in ("input", "num_filters", "filter_size", "kind")
    )
    check_dtype(input, "input", layer)
    windows = ("stride", "padding", "dilation", "groups", "data_format", "use_cudnn", "output_size")
    conv = Convolution(layer, **{name: given[name] for name in windows if name in given})
    shape = input.shape
    if len(shape) != conv.dims + 2:
        raise ArgumentNotMet(
            f"'input' of {layer} must have {conv.dims + 2} dimensions, got shape {list(shape)}"
        )
    channels = shape[conv.channel_axis]
    if channels < 0:
        raise ArgumentError(f"{layer} needs to know the channels of {input.name!r}, got shape {list(shape)}")
    if not conv.transposed:
        conv.check_groups({"the channels of 'input'": channels, "'num_filters'": num_filters})
    if given["param_attr"] is False:
        error = ArgumentError if conv.transposed else ArgumentAssertion
        raise error(f"'param_attr' of {layer} must not be False: a convolution needs its filters")
    if filter_size is not None or not conv.transposed:
        kernel = conv.numbers(filter_size, "filter_size")
    elif not conv.output_size:
        raise ArgumentError(f"{layer} needs 'output_size' or 'filter_size'")
    else:
        sizes = [n for axis, n in enumerate(shape) if axis not in (0, conv.channel_axis)]
        if any(n < 0 for n in sizes):
            raise ArgumentError(
                f"without 'filter_size', {layer} needs to know the size of images, got {list(shape)}"
            )
        kernel = conv.fitting_kernel(sizes)
    op_type = conv.operator(channels, num_filters)
    helper = LayerHelper(op_type, **given)
    filters = conv.create_filters(
        helper.create_parameter, channels, num_filters, kernel, helper.param_attr, input.dtype
    )
    out = helper.run(op_type, {"Input": input, "Filter": filters}, ("Output",), conv.attrs)
    axis = conv.channel_axis
    return helper.append_activation(helper.append_bias_op(out, dim_start=axis, dim_end=axis + 1))


def _pool(
    kind: str,
    input: Variable,
    pool_size: Any = -1,
    pool_type: str = "max",
    pool_stride: Any = 1,
    pool_padding: Any = 0,
    global_pooling: bool = False,
    use_cudnn: bool = True,
    ceil_mode: bool = False,
    name: str | None = None,
    exclusive: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    given = {**locals(), "input": alone(input)}
    check_variable(given["input"], "input", kind)
    attrs = pooling_attrs(kind, int(kind[4]), given)
    return run_op(kind, {"X": given["input"]}, attrs=attrs, name=name)


pool2d = of_kind(
    _pool,
    "pool2d",
    """The maximum or the mean of each window of an image (`fluid.layers.pool2d`).

    Args:
        input: float images [N, C, H, W] (or [N, H, W, C] with `data_format='NHWC'`).
        pool_size: the window: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        pool_stride: an integer or [height, width].
        pool_padding: an integer, [height, width], [top, bottom, left, right], a pair for each dimension,
            'SAME' or 'VALID'.
        global_pooling: the window is the whole image; size and padding are ignored.
        use_cudnn: accepted and without effect.
        ceil_mode: keep a last window that reaches beyond the image.
        name: the prefix of the result's name.
        exclusive: average only the elements inside the image.
        data_format: 'NCHW' or 'NHWC'.

    Returns:
        Images of as many channels; a padding of p and a stride of s make H (H + 2p - height) // s + 1, with
        `ceil_mode` rounded up.

    Raises:
        TypeError, ValueError: for arguments that do not fit; they name the argument.

    Example:
        >>> import paddle.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 32], "float32")
        >>> fluid.layers.pool2d(images, pool_size=2, pool_type="avg", pool_stride=2).shape
        (-1, 3, 16, 16)
    """,
)
pool3d = of_kind(
    _pool,
    "pool3d",
    """Pooling of volumes [N, C, D, H, W] (or NDHWC); otherwise as `pool2d` (`fluid.layers.pool3d`).""",
    data_format="NCDHW",
)


def pooling_attrs(layer: str, dims: int, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of `pool2d` or `pool3d` for the arguments of `layer`. Raises ValueError for what does not fit."""
    data_format, size = given.get("data_format", FORMATS[dims][0]), given["pool_size"]
    check_choice(given["pool_type"], "pool_type", ("max", "avg"), layer)
    check_switch(given["use_cudnn"], "use_cudnn", layer, ArgumentTypeError)
    check_choice(data_format, "data_format", FORMATS[dims], layer)
    if size == -1 and not given["global_pooling"]:
        raise ArgumentError(f"{layer} needs 'pool_size' unless 'global_pooling' is True, got {size}")
    pads, algorithm = paddings(given["pool_padding"], dims, data_format == FORMATS[dims][1], layer)
    return {
        "pooling_type": given["pool_type"],
        "ksize": numbers(size, dims, "pool_size", layer),
        "strides": numbers(given["pool_stride"], dims, "pool_stride", layer),
        "paddings": pads,
        "padding_algorithm": algorithm,
        **{name: given[name] for name in ("global_pooling", "use_cudnn", "ceil_mode", "exclusive")},
        "data_format": data_format,
    }


def _adaptive_pool(
    kind: str,
    input: Variable,
    pool_size: Any,
    pool_type: str = "max",
    require_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    check_dtype(input, "input", kind, (*FLOAT_TYPES, VarType.INT32, VarType.INT64))
    check_choice(pool_type, "pool_type", ("max", "avg"), kind)
    check_switch(require_index, "require_index", kind)
    if pool_type == "avg" and require_index:
        raise ArgumentError("invalid setting 'require_index' true when 'pool_type' is 'avg'.")
    op_type = kind.removeprefix("adaptive_")
    ksize = numbers(pool_size, int(op_type[4]), "pool_size", kind)
    attrs: dict[str, Any] = {"ksize": ksize, "adaptive": True, "pooling_type": pool_type}
    if pool_type == "avg":
        return run_op(op_type, {"X": input}, attrs=attrs, name=name)
    # Fluid takes the operator that returns indices even if `require_index` is false.
    made: tuple[Variable, Variable] = run_op(
        f"max_{op_type}_with_index", {"X": input}, ("Out", "Mask"), attrs, name, stop_gradient=("Mask",)
    )
    return made if require_index else made[0]


adaptive_pool2d = of_kind(
    _adaptive_pool,
    "adaptive_pool2d",
    """Pools images into `pool_size` bins, whatever their size (`fluid.layers.adaptive_pool2d`).

    Args:
        input: float images [N, C, H, W].
        pool_size: how many bins: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        require_index: with 'max', also return where in the flattened image each maximum is (int32).

    Raises:
        ValueError: for another `pool_type`, or `require_index` with 'avg'.
    """,
)
adaptive_pool3d = of_kind(
    _adaptive_pool,
    "adaptive_pool3d",
    """Pools volumes [N, C, D, H, W] into bins; otherwise as `adaptive_pool2d`
    (`fluid.layers.adaptive_pool3d`).
    """,
)
