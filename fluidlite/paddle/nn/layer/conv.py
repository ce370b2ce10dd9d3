"""Convolutions and their transposes as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from ....dygraph.layers import Layer
from ....layers.checks import FORMATS, check_choice, numbers
from ....layers.nn.convolution import Convolution
from ...dtypes import get_default_dtype
from .. import functional as F

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]


class _Filters(Layer):
    """What the six have in common: filters and a bias.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the result.
        kernel_size: the size of the filters, a number or one for each spatial axis; so are `stride` and `dilation`.
        stride: how far apart the filters are applied.
        padding: what is added around the input: a number, one for each axis, a pair for each, or 'same' or 'valid'.
        dilation: how far apart the filters' elements are.
        groups: filters see only the channels of their group.
        weight_attr: a ParamAttr, a name or an initializer of `weight`, by default normal with variance
            2 / (in_channels * size of a filter); Xavier for transposes.
        bias_attr: the same for `bias`, [out_channels]; False: none.
        data_format: where the channels are.

    Raises:
        ValueError: sizes that do not fit; names them.
    """

    _dims: ClassVar[int]
    _transposed: ClassVar[bool] = False

    def _prepare(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        groups: int,
        weight_attr: Any,
        bias_attr: Any,
        data_format: str,
    ) -> None:
        who = type(self).__name__
        kind = f"conv{self._dims}d_transpose" if self._transposed else f"conv{self._dims}d"
        conv = Convolution(kind, 1, 0, 1, groups, data_format, layer=who)
        conv.check_groups({"in_channels": in_channels, "out_channels": out_channels})
        size = conv.numbers(kernel_size, "kernel_size")
        self._in_channels, self._out_channels, self._kernel_size = in_channels, out_channels, size
        self._groups, self._data_format = groups, data_format
        dtype, create = get_default_dtype(), self.create_parameter
        self.weight = conv.create_filters(create, in_channels, out_channels, size, weight_attr, dtype)
        self.bias = self.create_parameter([out_channels], bias_attr, dtype, is_bias=True)

    def extra_repr(self) -> str:
        return f"{self._in_channels}, {self._out_channels}, kernel_size={self._kernel_size}"


_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(_Filters):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        dims, who = self._dims, type(self).__name__
        super().__init__(f"conv{dims}d")
        data_format = FORMATS[dims][0] if data_format is None else data_format
        self._prepare(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, data_format)
        check_choice(padding_mode, "padding_mode", _PADDING_MODES, who)
        self._padding_mode, self._around = padding_mode, []
        if padding_mode != "zeros":
            sides = numbers(padding, dims, "padding", who)
            self._around = [side for side in reversed(sides) for _ in range(2)]
            padding = 0
        self._stride, self._padding, self._dilation = stride, padding, dilation

    def forward(self, x: Any) -> Any:
        """`x` is [N, in_channels, ...] (or channels last), the result [N, out_channels, ...]."""
        if self._around:
            x = F.pad(x, self._around, self._padding_mode, data_format=self._data_format)
        return _CONVOLVE[self._dims](
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            self._dilation,
            self._groups,
            self._data_format,
        )


class Conv1D(_Convolution):
    __doc__ = f"Convolves sequences (`paddle.nn.Conv1D`). `padding_mode` is one of {_PADDING_MODES}."
    _dims = 1


class Conv2D(_Convolution):
    __doc__ = f"Convolves images (`paddle.nn.Conv2D`). `padding_mode` is one of {_PADDING_MODES}."
    _dims = 2


class Conv3D(_Convolution):
    __doc__ = f"Convolves volumes (`paddle.nn.Conv3D`). `padding_mode` is one of {_PADDING_MODES}."
    _dims = 3


class _Transpose(_Filters):
    _transposed = True

    def _set(self, stride: Any, padding: Any, output_padding: Any, dilation: Any) -> None:
        self._stride, self._padding, self._dilation = stride, padding, dilation
        self._output_padding = output_padding

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """`x` is [N, in_channels, ...] (or channels last), the result [N, out_channels, ...], of `output_size` if
        given."""
        return _TRANSPOSE[self._dims](
            x,
            self.weight,
            self.bias,
            self._stride,
            self._padding,
            self._output_padding,
            groups=self._groups,
            dilation=self._dilation,
            output_size=output_size,
            data_format=self._data_format,
        )


class Conv1DTranspose(_Transpose):
    """The transpose of a convolution of sequences (`paddle.nn.Conv1DTranspose`)."""

    _dims = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str = "NCL",
    ) -> None:
        super().__init__("conv1d_transpose")
        self._prepare(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, data_format)
        self._set(stride, padding, output_padding, dilation)


class _SpatialTranspose(_Transpose):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        weight_attr: Any = None,
        bias_attr: Any = None,
        data_format: str | None = None,
    ) -> None:
        super().__init__(f"conv{self._dims}d_transpose")
        data_format = FORMATS[self._dims][0] if data_format is None else data_format
        self._prepare(in_channels, out_channels, kernel_size, groups, weight_attr, bias_attr, data_format)
        self._set(stride, padding, output_padding, dilation)


class Conv2DTranspose(_SpatialTranspose):
    """The transpose of a convolution of images (`paddle.nn.Conv2DTranspose`).

    `output_padding`: how much larger the result is at the end of each axis.
    """

    _dims = 2


class Conv3DTranspose(_SpatialTranspose):
    """The transpose of a convolution of volumes (`paddle.nn.Conv3DTranspose`)."""

    _dims = 3


_CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSE: dict[int, Any] = {1: F.conv1d_transpose, 2: F.conv2d_transpose, 3: F.conv3d_transpose}
