"""Convolutions and their transposes, pooling, and convolution over trees."""

from __future__ import annotations

from typing import Any

from ...layers.checks import numbers
from ...layers.nn.convolution import Convolution, pooling_attrs
from ..layers import Layer, setting

__all__ = ["Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Pool2D", "TreeConv"]


class _Convolution(Layer):
    """The common base of the four convolutions: filters, bias, activation."""

    _kind: str
    _stride, _padding, _dilation = setting("strides"), setting("paddings"), setting("dilations")

    def _prepare(self, args: dict[str, Any]) -> None:
        """`given`: the arguments of the constructor; the padding is a number for each axis, as in Fluid."""
        super().__init__(dtype=args["dtype"])
        who, kind, dtype = type(self).__name__, self._kind, self._dtype
        channels, filters = args["num_channels"], args["num_filters"]
        windows = (
            args["stride"],
            numbers(args["padding"], int(kind[4]), "padding", who),
            args["dilation"],
        )
        switches = (args["groups"], None, args["use_cudnn"], args.get("output_size"))
        conv = Convolution(kind, *windows, *switches, layer=who)
        if args["param_attr"] is False:
            raise AssertionError(f"param_attr should not be False in {who}: a convolution needs its filters")
        conv.check_groups({"num_channels": channels, "num_filters": filters})
        for name in (
            "num_channels",
            "num_filters",
            "groups",
            "filter_size",
            "use_cudnn",
            "act",
            "param_attr",
        ):
            setattr(self, f"_{name}", args[name])
        self._attrs, self._l_type, self._bias_attr = (
            conv.attrs,
            conv.operator(channels, filters),
            args["bias_attr"],
        )
        kernel = conv.numbers(args["filter_size"], "filter_size")
        if conv.transposed:
            self._filter_size, self._groups = kernel, conv.groups
        create = self.create_parameter
        self.weight = conv.create_filters(create, channels, filters, kernel, args["param_attr"], dtype)
        self.bias = create([filters], args["bias_attr"], dtype, is_bias=True)

    def forward(self, input: Any) -> Any:
        """`input` is [N, num_channels, ...] with two or three spatial axes, the result [N, num_filters, ...]."""
        inputs = {"Input": input, "Filter": self.weight}
        out = self._helper.run(self._l_type, inputs, ("Output",), self._attrs)
        return self._helper.append_activation(self._helper.add_bias(out, self.bias, 1), self._act)

    def extra_repr(self) -> str:
        return (
            f"{self._num_channels}, {self._num_filters}, kernel_size={self.weight.shape[2:]}, "
            f"stride={self._stride}, padding={self._padding}"
        )


class _Gathering(_Convolution):
    """The constructor of those that are not transposed."""

    def __init__(
        self,
        num_channels: int,
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
        dtype: Any = "float32",
    ) -> None:
        self._prepare(locals())


class Conv2D(_Gathering):
    """Convolves images with trainable filters (`fluid.dygraph.Conv2D`).

    Args:
        num_channels: channels of the input.
        num_filters: channels of the result.
        filter_size, stride, padding, dilation: an integer, or [height, width].
        groups: filters see only the channels of their group; None: 1.
        param_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias. By default filters
            are drawn from a normal distribution of variance 2 / (num_channels * height * width).
        use_cudnn: accepted; False picks the operator depthwise_conv2d where groups is given and num_channels, as in
            Fluid.
        act: the name of an activation.
        dtype: 'float32' or 'float64'.

    `weight` is [num_filters, num_channels / groups, height, width], `bias` [num_filters].

    Raises:
        ValueError: sizes do not fit. AssertionError, as in Fluid: `param_attr` is False.
    """

    _kind = "conv2d"


class Conv3D(_Gathering):
    """Convolves volumes [N, C, D, H, W] (`fluid.dygraph.Conv3D`); arguments as for `Conv2D`, with three sizes."""

    _kind = "conv3d"


class Conv2DTranspose(_Convolution):
    """The transpose of a convolution: spreads images (`fluid.dygraph.Conv2DTranspose`).

    Arguments as for `Conv2D`; `output_size`, an integer or [height, width], chooses among the sizes that fit.
    `weight` is [num_channels, num_filters / groups, height, width].
    """

    _kind = "conv2d_transpose"
    _output_size = setting("output_size", [])
    _op_type = property(lambda self: self._l_type)

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Any,
        output_size: Any = None,
        padding: Any = 0,
        stride: Any = 1,
        dilation: Any = 1,
        groups: int | None = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        if output_size is not None and not isinstance(output_size, (int, list, tuple)):
            raise ValueError(f"output_size of Conv2DTranspose should be list or int, got {output_size!r}")
        self._prepare(locals())


class Conv3DTranspose(_Convolution):
    """The transpose of a convolution of volumes (`fluid.dygraph.Conv3DTranspose`); arguments as for `Conv3D`."""

    _kind = "conv3d_transpose"

    def __init__(
        self,
        num_channels: int,
        num_filters: int,
        filter_size: Any,
        padding: Any = 0,
        stride: Any = 1,
        dilation: Any = 1,
        groups: int | None = None,
        param_attr: Any = None,
        bias_attr: Any = None,
        use_cudnn: bool = True,
        act: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        self._prepare(locals())


class Pool2D(Layer):
    """The maximum or the mean of each window of an image (`fluid.dygraph.Pool2D`).

    Args:
        pool_size: the window: an integer or [height, width].
        pool_type: 'max' or 'avg'.
        pool_stride, pool_padding: an integer or [height, width].
        global_pooling: the window is the whole image; size and padding are ignored.
        use_cudnn: accepted and without effect.
        ceil_mode: keep a last window that reaches beyond the image.
        exclusive: averages ignore the padding.

    Raises:
        ValueError: for arguments that do not fit; names them.
    """

    _pool_type, _pool_size, _pool_stride = setting("pooling_type"), setting("ksize"), setting("strides")
    _pool_padding, _global_pooling = setting("paddings"), setting("global_pooling")
    _use_cudnn, _ceil_mode, _exclusive = setting("use_cudnn"), setting("ceil_mode"), setting("exclusive")
    _l_type = "pool2d"

    def __init__(
        self,
        pool_size: Any = -1,
        pool_type: str = "max",
        pool_stride: Any = 1,
        pool_padding: Any = 0,
        global_pooling: bool = False,
        use_cudnn: bool = True,
        ceil_mode: bool = False,
        exclusive: bool = True,
    ) -> None:
        pool_padding, global_pooling = (
            numbers(pool_padding, 2, "pool_padding", "Pool2D"),
            bool(global_pooling),
        )
        attrs = pooling_attrs("Pool2D", 2, locals())
        super().__init__()
        self._attrs = attrs

    def forward(self, input: Any) -> Any:
        """`input` is [N, C, H, W]; the result has the same N and C."""
        return self._helper.run(self._l_type, {"X": input}, attrs=self._attrs)

    def extra_repr(self) -> str:
        return f"{self._pool_type}, size={self._pool_size}, stride={self._pool_stride}"


class TreeConv(Layer):
    """Convolves over each node of a tree and its descendants (`fluid.dygraph.TreeConv`; Mou et al. 2016).

    Args:
        feature_size: the number of features of a node.
        output_size: the number of features of the result.
        num_filters: how many filters there are.
        max_depth: how many levels a filter looks at.
        act: the name of an activation.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of `weight`, [feature_size, 3, output_size,
            num_filters], and `bias`, [num_filters]; there is no bias if it is None or False.
        name: accepted and without effect, as in Fluid.
        dtype: 'float32' or 'float64'.
    """

    _max_depth = setting("max_depth")

    def __init__(
        self,
        feature_size: int,
        output_size: int,
        num_filters: int = 1,
        max_depth: int = 2,
        act: str | None = "tanh",
        param_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype=dtype)
        self._act, self._name, self._param_attr, self._bias_attr = act, name, param_attr, bias_attr
        self._feature_size, self._output_size, self._num_filters = feature_size, output_size, num_filters
        self._attrs = {"max_depth": max_depth}
        self.bias = self.create_parameter([num_filters], bias_attr or False, dtype, is_bias=True)
        self.weight = self.create_parameter([feature_size, 3, output_size, num_filters], param_attr, dtype)

    def forward(self, nodes_vector: Any, edge_set: Any) -> Any:
        """`nodes_vector` is [N, nodes, feature_size], `edge_set` int32 [N, edges, 2]: pairs of nodes, parent first,
        counted from 1. The result is [N, nodes, output_size, num_filters].
        """
        inputs = {"NodesVector": nodes_vector, "EdgeSet": edge_set, "Filter": self.weight}
        out = self._helper.run("tree_conv", inputs, attrs=self._attrs)
        return self._helper.append_activation(self._helper.add_bias(out, self.bias, 3), self._act)
