"""Normalisation of batches, and of each sample: over its features, over groups of channels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentAssertion, ArgumentError
from ....framework import Variable
from ...initializer import ConstantInitializer, NormalInitializer
from ...layer_helper import LayerHelper
from ...op_functions import run_layer
from ...param_attr import ParamAttr
from ..checks import FORMATS, check_choice, check_dtype

__all__ = [
    "batch_norm",
    "group_norm",
    "inplace_abn",
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


def batch_norm(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
) -> Variable:
    """Normalises each channel over the batch, then scales and shifts it (`fluid.layers.batch_norm`).

    Training keeps moving averages of mean and variance: `moving = moving * momentum + batch * (1 -
    momentum)`; programs cloned `for_test` use those.

    Args:
        input: floats [N, C, ...] (or [N, ..., C] with `data_layout='NHWC'`), 2 to 5 dimensions.
        act: the name of an activation.
        is_test: use the moving averages; there is no gradient then.
        momentum: a number, or a float32 variable of one element.
        epsilon: added to the variance.
        param_attr, bias_attr: a ParamAttr, a name or an initializer of scale (ones) and shift (zeros).
        data_layout: 'NCHW' or 'NHWC': which dimension has the channels.
        in_place: accepted and without effect: memory is planned for all operators.
        name: the prefix of the names of parameters and results.
        moving_mean_name, moving_variance_name: names of the moving averages.
        do_model_average_for_mean_and_var: whether ModelAverage averages them as well.
        use_global_stats: use the moving averages in training too.

    Returns:
        A tensor of the shape and type of `input`.

    Raises:
        TypeError, ValueError: for arguments that do not fit.

    Example:
        >>> import paddle.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 32], "float32")
        >>> fluid.layers.batch_norm(images, act="relu").shape
        (-1, 3, 32, 32)
        >>> sorted(one.name for one in fluid.default_main_program().all_parameters())
        ['batch_norm_0.b_0', 'batch_norm_0.w_0', 'batch_norm_0.w_1', 'batch_norm_0.w_2']
    """
    return _batch_norm("batch_norm", locals())


def inplace_abn(
    input: Variable,
    act: str | None = None,
    is_test: bool = False,
    momentum: Any = 0.9,
    epsilon: float = 1e-05,
    param_attr: Any = None,
    bias_attr: Any = None,
    data_layout: str = "NCHW",
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    use_global_stats: bool = False,
    act_alpha: float = 1.0,
) -> Variable:
    """`batch_norm` and an activation that are written over `input`, which is returned (`fluid.layers.inplace_abn`).

    Follows Rota Bulo et al. (2018): the gradient is computed from the result alone.

    Args:
        input: as of `batch_norm`; no temporary that an operator before needs for its gradient.
        act: None, "identity", "leaky_relu" or "elu": those that can be undone.
        act_alpha: the slope of leaky_relu below zero, or the factor of elu. Not 0: that could not be undone.

    The other arguments are those of `batch_norm`.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    if act not in (None, "identity", "leaky_relu", "elu"):
        raise ArgumentAssertion(
            f"inplace_abn only support act as None, 'identity', 'leaky_relu', 'elu' currently, got {act!r}"
        )
    given = {**locals(), "act": None, "activation": act or "", "alpha": act_alpha}
    return _batch_norm("inplace_abn", given, out=input)


_ATTRS = ("epsilon", "is_test", "data_layout", "use_global_stats", "activation", "alpha")


def _batch_norm(op_type: str, given: dict[str, Any], out: Variable | None = None) -> Variable:
    """Create the parameters of `batch_norm` or `inplace_abn` and append the operator. `given`: the arguments."""
    input, data_layout = given["input"], given["data_layout"]
    check_dtype(input, "input", op_type)
    check_choice(data_layout, "data_layout", (*FORMATS[2], *FORMATS[3]), op_type)
    if given["bias_attr"] is False or given["param_attr"] is False:
        raise ArgumentAssertion(f"'param_attr' and 'bias_attr' of {op_type} must not be False")
    helper = LayerHelper(op_type, **given)
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    channels = input.shape[1 if data_layout.startswith("NC") else -1]
    create = helper.create_parameter
    scale, bias = create_scale_and_bias(create, channels, helper.param_attr, helper.bias_attr, dtype)
    names = (given["moving_mean_name"], given["moving_variance_name"])
    averaged = given["do_model_average_for_mean_and_var"]
    mean, variance = create_moving_averages(create, channels, names, averaged, dtype)
    parameters = {"Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    attrs = {name: given[name] for name in _ATTRS if name in given}
    made = batch_normalized(helper.run, op_type, input, parameters, given["momentum"], attrs, out)
    return helper.append_activation(made)


def batch_normalized(
    run: Callable[..., Any],
    op_type: str,
    x: Any,
    parameters: dict[str, Any],
    momentum: Any,
    attrs: dict[str, Any],
    out: Any = None,
    **options: Any,
) -> Any:
    """`x`, or `out`, after the batch normalisation `op_type`, which moves the averages among its `parameters`.

    `run` runs operators: `run_op`, or the method of a helper; it gets `options`. `momentum`: a number or a Variable.
    """
    inputs = {"X": x, **parameters}
    if isinstance(momentum, Variable):
        inputs["MomentumTensor"] = momentum
    else:
        attrs["momentum"] = momentum
    moved = {"MeanOut": parameters["Mean"], "VarianceOut": parameters["Variance"]}
    saved = ("SavedMean", "SavedVariance")
    outputs, into = (*saved, "Y", *moved), {**moved, "Y": out}
    return run(op_type, inputs, outputs, attrs, stop_gradient=saved, into=into, **options)[2]


def create_moving_averages(
    create_parameter: Callable[..., Any], size: int, names: Sequence[str | None], averaged: bool, dtype: Any
) -> list[Any]:
    """The moving mean [size] and variance of a batch normalisation, which start as zeros and ones and are not trained.

    `averaged`: whether ModelAverage averages them as well.
    """
    made = []
    for name, start in zip(names, (0.0, 1.0), strict=True):
        attr = ParamAttr(name, ConstantInitializer(start), trainable=False, do_model_average=averaged)
        made.append(create_parameter(attr=attr, shape=[size], dtype=dtype))
        made[-1].stop_gradient = True
    return made
