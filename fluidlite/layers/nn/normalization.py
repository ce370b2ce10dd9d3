"""Normalisation of each sample: over its features, over groups of channels, to length one, by singular values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import ArgumentAssertion, ArgumentError
from ...framework import Variable
from ...initializer import ConstantInitializer, NormalInitializer
from ...layer_helper import LayerHelper
from ...op_functions import run_layer
from ..checks import check_choice, check_dtype

__all__ = [
    "group_norm",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "spectral_norm",
]


def create_scale_and_bias(
    create_parameter: Callable[..., Any], size: int, param_attr: Any, bias_attr: Any, dtype: Any
) -> tuple[Any, Any]:
    """Parameters [size] that start as ones and zeros, of any normalisation; None for those whose attribute is False."""
    ones = ConstantInitializer(1.0)
    scale = create_parameter(attr=param_attr, shape=[size], dtype=dtype, default_initializer=ones)
    return scale, create_parameter(attr=bias_attr, shape=[size], dtype=dtype, is_bias=True)


_STATISTICS = {
    "layer_norm": ("Mean", "Variance"),
    "group_norm": ("Mean", "Variance"),
    "instance_norm": ("SavedMean", "SavedVariance"),
}


def normalized(
    run: Callable[..., Any],
    op_type: str,
    x: Any,
    scale: Any,
    bias: Any,
    attrs: dict[str, Any],
    **options: Any,
) -> Any:
    """`x` after the normalisation `op_type`, scaled and shifted by parameters unless these are None.

    `run` runs operators: `run_op`, or the method of a helper; it gets `options`.
    """
    inputs, saved = {"X": x, "Scale": scale, "Bias": bias}, _STATISTICS[op_type]
    return run(op_type, inputs, (*saved, "Y"), attrs, stop_gradient=saved, **options)[2]


def create_singular_vectors(
    create_parameter: Callable[..., Any], shape: Sequence[int], dim: int, dtype: Any
) -> list[Any]:
    """The two vectors that a spectral normalisation of weights of `shape` keeps, with `dim` as rows of the matrix."""
    rows, start = shape[dim], NormalInitializer(0.0, 1.0)
    made = []
    for size in (rows, math.prod(shape) // rows):
        made.append(create_parameter(attr=None, shape=[size], dtype=dtype, default_initializer=start))
        made[-1].stop_gradient = True
    return made


def normalized_from(shape: Sequence[int], normalized_shape: Sequence[int]) -> int:
    """The first of the axes that a layer normalisation over `normalized_shape` goes over; ValueError if `shape` does
    not end so."""
    begin = len(shape) - len(normalized_shape)
    if begin < 0 or list(shape[begin:]) != list(normalized_shape):
        sizes = ", ".join(map(str, normalized_shape))
        raise ValueError(
            f"Given normalized_shape is {list(normalized_shape)}, expected input with shape [*, {sizes}], but got "
            f"input shape {list(shape)}"
        )
    return begin


def layer_norm(
    input: Variable,
    scale: bool = True,
    shift: bool = True,
    begin_norm_axis: int = 1,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    name: str | None = None,
) -> Variable:
    """Normalises each sample over its axes from `begin_norm_axis` on (`fluid.layers.layer_norm`).

    Args:
        input: floats of two or more dimensions; those to normalise must be known.
        scale, shift: whether to scale and shift each element afterwards, by trainable parameters.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of those parameters.
        act: the name of an activation.

    Raises:
        ValueError: if `begin_norm_axis` is not an axis after the first, or parameters are described but not
            wanted.
    """
    check_dtype(input, "input", "layer_norm")
    if not 1 <= begin_norm_axis < len(input.shape):
        raise ArgumentError(
            f"'begin_norm_axis' of layer_norm must be in [1, {len(input.shape)}) for shape {list(input.shape)}, got "
            f"{begin_norm_axis}"
        )
    helper = LayerHelper("layer_norm", param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    if scale and param_attr is False:
        raise ArgumentError("'param_attr' of layer_norm must not be False with 'scale'")
    if shift and bias_attr is False:
        raise ArgumentError("'bias_attr' of layer_norm must not be False with 'shift'")
    size = math.prod(input.shape[begin_norm_axis:])
    attrs = (helper.param_attr if scale else False, helper.bias_attr if shift else False)
    weight, bias = create_scale_and_bias(helper.create_parameter, size, *attrs, input.dtype)
    numbers = {"epsilon": epsilon, "begin_norm_axis": begin_norm_axis}
    return helper.append_activation(normalized(helper.run, "layer_norm", input, weight, bias, numbers))


def group_norm(
    input: Variable,
    groups: int,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    act: str | None = None,
    data_layout: str = "NCHW",
    name: str | None = None,
) -> Variable:
    """Normalises each of `groups` groups of channels of each sample (`fluid.layers.group_norm`).

    `param_attr` and `bias_attr` describe scale and shift of each channel; those left at None or set to False do not
    exist, as in Fluid, so that saved models fit. Raises ValueError if `groups` does not divide the channels.
    """
    check_dtype(input, "input", "group_norm")
    check_choice(data_layout, "data_layout", ("NCHW", "NHWC"), "group_norm")
    helper = LayerHelper(
        "group_norm", param_attr=param_attr or False, bias_attr=bias_attr or False, act=act, name=name
    )
    channels = input.shape[1 if data_layout == "NCHW" else -1]
    scale, bias = create_scale_and_bias(
        helper.create_parameter, channels, helper.param_attr, helper.bias_attr, input.dtype
    )
    attrs = {"epsilon": epsilon, "groups": groups, "data_layout": data_layout}
    # Fluid gives these temporaries names that do not mention the layer.
    made = {slot: helper.create_variable(dtype=input.dtype, like=input) for slot in ("Mean", "Variance", "Y")}
    out = normalized(helper.run, "group_norm", input, scale, bias, attrs, into=made)
    return helper.append_activation(out)


def instance_norm(
    input: Variable,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    name: str | None = None,
) -> Variable:
    """Normalises each channel of each sample on its own (`fluid.layers.instance_norm`).

    `input` is [N, C, ...]; `param_attr` and `bias_attr` describe scale and shift of each channel.
    """
    check_dtype(input, "input", "instance_norm")
    if param_attr is False or bias_attr is False:
        raise ArgumentAssertion("'param_attr' and 'bias_attr' of instance_norm must not be False")
    helper = LayerHelper("instance_norm", param_attr=param_attr, bias_attr=bias_attr, name=name)
    attrs = (helper.param_attr, helper.bias_attr)
    scale, bias = create_scale_and_bias(helper.create_parameter, input.shape[1], *attrs, input.dtype)
    return normalized(helper.run, "instance_norm", input, scale, bias, {"epsilon": epsilon})


def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """`x` divided by its length along `axis`: sqrt(sum of squares + epsilon) (`fluid.layers.l2_normalize`).

    `axis` None means 1; for vectors it is always 0.
    """
    check_dtype(x, "x", "l2_normalize")
    axis = 0 if len(x.shape) == 1 else 1 if axis is None else axis
    helper = LayerHelper("l2_normalize", name=name)
    return run_layer("norm", locals(), ("Out", "Norm"), without=("helper",), helper=helper)[0]


def spectral_norm(
    weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12, name: str | None = None
) -> Variable:
    """`weight` divided by its largest singular value, estimated (`fluid.layers.spectral_norm`).

    Follows Miyato et al. (2018); two random vectors that are kept with the model start the estimate.

    Args:
        weight: floats of two or more dimensions, all known; seen as a matrix whose rows are dimension `dim`.
        power_iters: how many steps of the power method are made each time.
        eps: added to the vectors' lengths.
    """
    check_dtype(weight, "weight", "spectral_norm")
    helper = LayerHelper("spectral_norm", name=name)
    u, v = create_singular_vectors(helper.create_parameter, weight.shape, dim, weight.dtype)
    # Fluid gives this result a name that does not mention the layer.
    out = helper.create_variable(dtype=weight.dtype, like=weight)
    attrs = {"dim": dim, "power_iters": power_iters, "eps": eps}
    inputs = {"Weight": weight, "U": u, "V": v}
    return helper.run("spectral_norm", inputs, attrs=attrs, into={"Out": out})
