"""Layers that make their own parameters, for programs (`paddle.static.nn`)."""

from __future__ import annotations

from typing import Any

from ...fluid import layers
from ...fluid.layers import (
    batch_norm,
    bilinear_tensor_product,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    create_parameter,
    group_norm,
    instance_norm,
    layer_norm,
    nce,
    prelu,
    row_conv,
    spectral_norm,
)
from ...fluid.small_modules import embedding

__all__ = [
    "batch_norm",
    "bilinear_tensor_product",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "create_parameter",
    "embedding",
    "fc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "nce",
    "prelu",
    "row_conv",
    "spectral_norm",
]


def fc(
    x: Any,
    size: int,
    num_flatten_dims: int = 1,
    weight_attr: Any = None,
    bias_attr: Any = None,
    activation: str | None = None,
    name: str | None = None,
) -> Any:
    """activation(x @ W + b), axes from `num_flatten_dims` on as one (`paddle.static.nn.fc`).

    Args:
        x: a tensor, or several, each with weights of its own, whose products are added.
        size: how many columns the result has.
        num_flatten_dims: how many axes of `x` stay; negative ones count from the end.
        weight_attr, bias_attr: a ParamAttr, a name or an initializer; `bias_attr=False`: no bias.
        activation: the name of an activation.
        name: the prefix of the variables' names.
    """
    if num_flatten_dims < 0:
        first = x[0] if isinstance(x, (list, tuple)) else x
        num_flatten_dims += len(first.shape)
    return layers.fc(x, size, num_flatten_dims, weight_attr, bias_attr, activation, name)
