"""Networks of several layers (`fluid.nets`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework import Variable
from .layer_helper import LayerHelper, check_variable, run_op
from .layers.nn.activations import dropout
from .layers.nn.convolution import conv2d, pool2d
from .layers.nn.dense import fc
from .layers.nn.normalization import batch_norm
from .layers.sequence_lod import sequence_conv, sequence_pool

__all__ = [
    "glu",
    "img_conv_group",
    "scaled_dot_product_attention",
    "sequence_conv_pool",
    "simple_img_conv_pool",
]


def simple_img_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: Any,
    pool_size: Any,
    pool_stride: Any,
    pool_padding: Any = 0,
    pool_type: str = "max",
    global_pooling: bool = False,
    conv_stride: Any = 1,
    conv_padding: Any = 0,
    conv_dilation: Any = 1,
    conv_groups: int = 1,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    use_cudnn: bool = True,
) -> Variable:
    """`layers.conv2d`, then `layers.pool2d` (`fluid.nets.simple_img_conv_pool`); their arguments with a
    prefix.
    """
    convolved = conv2d(
        input,
        num_filters,
        filter_size,
        stride=conv_stride,
        padding=conv_padding,
        dilation=conv_dilation,
        groups=conv_groups,
        param_attr=param_attr,
        bias_attr=bias_attr,
        act=act,
        use_cudnn=use_cudnn,
    )
    return pool2d(
        convolved,
        pool_size,
        pool_type,
        pool_stride,
        pool_padding,
        global_pooling=global_pooling,
        use_cudnn=use_cudnn,
    )


def img_conv_group(
    input: Variable,
    conv_num_filter: Sequence[int],
    pool_size: Any,
    conv_padding: Any = 1,
    conv_filter_size: Any = 3,
    conv_act: str | None = None,
    param_attr: Any = None,
    conv_with_batchnorm: bool | Sequence[bool] = False,
    conv_batchnorm_drop_rate: float | Sequence[float] = 0.0,
    pool_stride: Any = 1,
    pool_type: str = "max",
    use_cudnn: bool = True,
) -> Variable:
    """Convolutions, each perhaps with batch_norm and dropout, then one pooling (`fluid.nets.img_conv_group`).

    Args:
        conv_num_filter: the filters of each convolution, as a list or tuple.
        conv_padding, conv_filter_size, param_attr, conv_with_batchnorm, conv_batchnorm_drop_rate: one for all
            convolutions, or a list with one for each.
        conv_act: the activation, after batch_norm where there is one.

    Raises:
        TypeError: if `conv_num_filter` is no list or tuple. ValueError: if a list has another length.
    """
    if not isinstance(conv_num_filter, (list, tuple)):
        raise TypeError(
            f"'conv_num_filter' of img_conv_group must be a list or tuple, got {conv_num_filter!r}"
        )

    def each(value: Any, name: str) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            return [value] * len(conv_num_filter)
        if len(value) != len(conv_num_filter):
            raise ValueError(
                f"'{name}' of img_conv_group must have one element for each of {len(conv_num_filter)} "
                "convolutions, got "
                f"{len(value)}"
            )
        return list(value)

    settings = zip(
        conv_num_filter,
        each(conv_filter_size, "conv_filter_size"),
        each(conv_padding, "conv_padding"),
        each(param_attr, "param_attr"),
        each(conv_with_batchnorm, "conv_with_batchnorm"),
        each(conv_batchnorm_drop_rate, "conv_batchnorm_drop_rate"),
        strict=True,
    )
    out = input
    for filters, size, padding, attr, normalised, drop_rate in settings:
        out = conv2d(
            out,
            filters,
            size,
            padding=padding,
            param_attr=attr,
            act=None if normalised else conv_act,
            use_cudnn=use_cudnn,
        )
        if normalised:
            out = batch_norm(out, act=conv_act)
            if abs(drop_rate) > 1e-5:
                out = dropout(out, dropout_prob=drop_rate)
    return pool2d(out, pool_size, pool_type, pool_stride, use_cudnn=use_cudnn)


def sequence_conv_pool(
    input: Variable,
    num_filters: int,
    filter_size: int,
    param_attr: Any = None,
    act: str | None = "sigmoid",
    pool_type: str = "max",
    bias_attr: Any = None,
) -> Variable:
    """`layers.sequence_conv`, then `layers.sequence_pool` (`fluid.nets.sequence_conv_pool`)."""
    check_variable(input, "input", "sequence_conv_pool")
    convolved = sequence_conv(
        input, num_filters, filter_size, param_attr=param_attr, bias_attr=bias_attr, act=act
    )
    return sequence_pool(convolved, pool_type)


def glu(input: Variable, dim: int = -1) -> Variable:
    """The gated linear unit: one half of `input` along `dim`, times the sigmoid of the other
    (`fluid.nets.glu`).
    """
    check_variable(input, "input", "glu")
    axis = dim % len(input.shape)
    if input.shape[axis] % 2:
        raise ValueError(f"glu needs an even dimension {dim}, got shape {list(input.shape)}")
    halves = LayerHelper("split")
    parts = [halves.create_variable_for_type_inference(input.dtype) for _ in range(2)]
    halves.append_op(
        type="split",
        inputs={"X": [input]},
        outputs={"Out": parts},
        attrs={"num": 2, "sections": [], "axis": axis},
    )
    gate = run_op("sigmoid", {"X": parts[1]})
    attrs = {"axis": -1}
    return run_op("elementwise_mul", {"X": parts[0], "Y": gate}, attrs=attrs)


def scaled_dot_product_attention(
    queries: Variable, keys: Variable, values: Variable, num_heads: int = 1, dropout_rate: float = 0.0
) -> Variable:
    """Attention: softmax(queries * keys / sqrt(width)) * values (`fluid.nets.scaled_dot_product_attention`).

    Args:
        queries: floats [N, queries, width].
        keys: floats [N, items, width].
        values: floats [N, items, value width].
        num_heads: with more than one, all three are projected by fully connected layers and split into heads.
        dropout_rate: the probability of dropping a weight.

    Returns:
        A variable [N, queries, value width].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    for var, name in ((queries, "queries"), (keys, "keys"), (values, "values")):
        check_variable(var, name, "scaled_dot_product_attention")
        if len(var.shape) != 3:
            raise ValueError(f"'{name}' must have 3 dimensions, got shape {list(var.shape)}")
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(
            f"queries and keys must be of one width, got {queries.shape[-1]} and {keys.shape[-1]}"
        )
    if keys.shape[1] != values.shape[1]:
        raise ValueError(f"keys and values must be as many, got {keys.shape[1]} and {values.shape[1]}")
    if num_heads < 1 or keys.shape[-1] % num_heads or values.shape[-1] % num_heads:
        raise ValueError(
            f"num_heads must divide the widths {keys.shape[-1]} and {values.shape[-1]}, got {num_heads}"
        )
    head_width = queries.shape[-1] // num_heads
    if num_heads > 1:
        queries, keys, values = (fc(v, v.shape[-1], num_flatten_dims=2) for v in (queries, keys, values))
        queries, keys, values = (_split_heads(v, num_heads) for v in (queries, keys, values))
    scaled = run_op(
        "scale",
        {"X": queries},
        attrs={"scale": float(head_width ** (-0.5)), "bias": 0.0, "bias_after_scale": True},
    )
    scores = _matmul(scaled, keys, transpose_y=True)
    weights = _reshaped(_reshaped(scores, [-1, scores.shape[-1]], act="softmax"), list(scores.shape))
    if dropout_rate:
        weights = dropout(weights, dropout_prob=dropout_rate, is_test=False)
    context = _matmul(weights, values)
    if num_heads == 1:
        return context
    joined = _transposed(context)
    return _reshaped(joined, [*joined.shape[:2], joined.shape[2] * joined.shape[3]])


def _free(sizes: Sequence[int]) -> list[int]:
    """Leading sizes as a reshape takes them: 0 (as it is) for those that are not known."""
    return [0 if n < 0 else n for n in sizes]


def _split_heads(x: Variable, heads: int) -> Variable:
    """[N, items, width] to [N, heads, items, width / heads]."""
    return _transposed(_reshaped(x, [*x.shape[:2], heads, x.shape[-1] // heads]))


def _reshaped(x: Variable, shape: list[int], act: str | None = None) -> Variable:
    if shape.count(-1) > 1:
        shape = _free(shape)
    helper = LayerHelper("reshape2", act=act)
    out, _ = helper.run("reshape2", {"X": x}, ("Out", "XShape"), attrs={"shape": shape})
    return helper.append_activation(out)


def _transposed(x: Variable) -> Variable:
    out: Variable
    helper = LayerHelper("transpose")
    out, _ = helper.run("transpose2", {"X": x}, ("Out", "XShape"), attrs={"axis": [0, 2, 1, 3]})
    return out


def _matmul(x: Variable, y: Variable, transpose_y: bool = False) -> Variable:
    attrs = {"transpose_X": False, "transpose_Y": transpose_y, "alpha": 1.0}
    return run_op("matmul", {"X": x, "Y": y}, attrs=attrs)
