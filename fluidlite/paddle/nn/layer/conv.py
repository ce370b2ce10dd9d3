"""Convolutions and their transposes as layers."""

from __future__ import annotations

from typing import Any, ClassVar

from ....fluid.dygraph.layers import Layer
from ....fluid.layers.checks import FORMATS, check_choice, numbers
from ....fluid.layers.nn.convolution import Convolution
from ...dtypes import get_default_dtype
from .. import functional as F

__all__ = ["Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose"]


class _Filters(Layer):
    """The base of the six convolution layers: filters and a bias.

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

    _kind: ClassVar[str]
    """The function of `paddle.nn.functional` that computes it."""

    def _prepare(self, given: dict[str, Any]) -> None:
        """`given`: the arguments of the constructor."""
        super().__init__()
        dims, who = int(self._kind[4]), type(self).__name__
        channels, filters, groups = given["in_channels"], given["out_channels"], given["groups"]
        data_format = given["data_format"] or FORMATS[dims][0]
        conv = Convolution(self._kind, 1, 0, 1, groups, data_format, layer=who)
        conv.check_groups({"in_channels": channels, "out_channels": filters})
        size = conv.numbers(given["kernel_size"], "kernel_size")
        self._in_channels, self._out_channels, self._kernel_size = channels, filters, size
        windows = ("stride", "padding", "output_padding", "dilation", "groups")
        self._windows = {name: given[name] for name in windows if name in given}
        self._windows["data_format"] = data_format
        dtype, create = get_default_dtype(), self.create_parameter
        self.weight = conv.create_filters(create, channels, filters, size, given["weight_attr"], dtype)
        self.bias = create([filters], given["bias_attr"], dtype, is_bias=True)

    def _convolved(self, x: Any, **more: Any) -> Any:
        return getattr(F, self._kind)(x, self.weight, self.bias, **self._windows, **more)

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
        self._prepare(locals())
        check_choice(padding_mode, "padding_mode", _PADDING_MODES, type(self).__name__)
        self._padding_mode, self._border = padding_mode, []
        if padding_mode != "zeros":
            sides = numbers(padding, int(self._kind[4]), "padding", type(self).__name__)
            self._border = [side for side in reversed(sides) for _ in range(2)]
            self._windows["padding"] = 0

    def forward(self, x: Any) -> Any:
        """`x` is [N, in_channels, ...] (or channels last), the result [N, out_channels, ...]."""
        if self._border:
            x = F.pad(x, self._border, self._padding_mode, data_format=self._windows["data_format"])
        return self._convolved(x)


class Conv1D(_Convolution):
    __doc__ = f"Convolves sequences (`paddle.nn.Conv1D`). `padding_mode` is one of {_PADDING_MODES}."
    _kind = "conv1d"


class Conv2D(_Convolution):
    __doc__ = f"Convolves images (`paddle.nn.Conv2D`). `padding_mode` is one of {_PADDING_MODES}."
    _kind = "conv2d"


class Conv3D(_Convolution):
    __doc__ = f"Convolves volumes (`paddle.nn.Conv3D`). `padding_mode` is one of {_PADDING_MODES}."
    _kind = "conv3d"


class _Transpose(_Filters):
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
        self._prepare(locals())

    def forward(self, x: Any, output_size: Any = None) -> Any:
        """`x` is [N, in_channels, ...] (or channels last), the result [N, out_channels, ...], of `output_size` if
        given."""
        return self._convolved(x, output_size=output_size)


class Conv1DTranspose(_Transpose):
    """The transpose of a convolution of sequences (`paddle.nn.Conv1DTranspose`)."""

    _kind = "conv1d_transpose"

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
        self._prepare(locals())


class Conv2DTranspose(_Transpose):
    """The transpose of a convolution of images (`paddle.nn.Conv2DTranspose`).

    `output_padding`: how much larger the result is at the end of each axis.
    """

    _kind = "conv2d_transpose"


class Conv3DTranspose(_Transpose):
    """The transpose of a convolution of volumes (`paddle.nn.Conv3DTranspose`)."""

    _kind = "conv3d_transpose"
