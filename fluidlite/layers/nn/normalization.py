"""Normalisation layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.errors import ArgumentAssertion, ArgumentError
from ...framework import Variable
from ...initializer import ConstantInitializer, NormalInitializer
from ...layer_helper import LayerHelper
from ...param_attr import ParamAttr
from ..checks import FORMATS, check_choice, check_dtype

__all__ = [
    "batch_norm",
    "data_norm",
    "group_norm",
    "inplace_abn",
    "instance_norm",
    "l2_normalize",
    "layer_norm",
    "spectral_norm",
]


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
        in_place: accepted and without effect: memory is planned for all operators.
        moving_mean_name, moving_variance_name: names of the moving averages.
        do_model_average_for_mean_and_var: whether ModelAverage averages them as well.
        use_global_stats: use the moving averages in training too.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    attrs = {"epsilon": epsilon, "is_test": is_test, "data_layout": data_layout}
    attrs["use_global_stats"] = use_global_stats
    return _batch_norm(
        "batch_norm", input, act, momentum, attrs, param_attr, bias_attr, name,
        (moving_mean_name, moving_variance_name), do_model_average_for_mean_and_var,
    )  # fmt: skip


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
    attrs = {"epsilon": epsilon, "is_test": is_test, "data_layout": data_layout}
    attrs.update(use_global_stats=use_global_stats, activation=act or "", alpha=act_alpha)
    return _batch_norm(
        "inplace_abn", input, None, momentum, attrs, param_attr, bias_attr, name,
        (moving_mean_name, moving_variance_name), do_model_average_for_mean_and_var, out=input,
    )  # fmt: skip


def _batch_norm(
    op_type: str,
    input: Variable,
    act: str | None,
    momentum: Any,
    attrs: dict[str, Any],
    param_attr: Any,
    bias_attr: Any,
    name: str | None,
    moving_names: tuple[str | None, str | None],
    averaged: bool,
    out: Variable | None = None,
) -> Variable:
    """What `batch_norm` and `inplace_abn` share: their parameters and the operator."""
    check_dtype(input, "input", op_type)
    data_layout = attrs["data_layout"]
    check_choice(data_layout, "data_layout", (*FORMATS[2], *FORMATS[3]), op_type)
    if bias_attr is False or param_attr is False:
        raise ArgumentAssertion(f"'param_attr' and 'bias_attr' of {op_type} must not be False")
    helper = LayerHelper(op_type, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = VarType.FP32 if input.dtype == VarType.FP16 else input.dtype
    channels = input.shape[1 if data_layout.startswith("NC") else -1]
    create = helper.create_parameter
    scale, bias = create_scale_and_bias(create, channels, helper.param_attr, helper.bias_attr, dtype)
    mean, variance = create_moving_averages(create, channels, moving_names, averaged, dtype)
    inputs = {"X": input, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    if isinstance(momentum, Variable):
        inputs["MomentumTensor"] = momentum
    else:
        attrs["momentum"] = momentum
    saved, moved = ("SavedMean", "SavedVariance"), {"MeanOut": mean, "VarianceOut": variance}
    outputs, into = (*saved, "Y", *moved), {**moved, "Y": out}
    out = helper.run(op_type, inputs, outputs, attrs, stop_gradient=saved, into=into)[2]
    return helper.append_activation(out)


def data_norm(
    input: Variable,
    act: str | None = None,
    epsilon: float = 1e-05,
    param_attr: dict[str, float] | None = None,
    data_layout: str = "NCHW",
    in_place: bool = False,
    name: str | None = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    do_model_average_for_mean_and_var: bool = True,
    slot_dim: int = -1,
    sync_stats: bool = False,
    summary_decay_rate: float = 0.9999999,
    enable_scale_and_shift: bool = False,
) -> Variable:
    """Normalises columns by sums over all batches so far (`fluid.layers.data_norm`).

    Count, sum and sum of squares of each column are parameters whose gradients are those of the batch; the optimizer
    adds them up. The result is (input - sum / count) * sqrt(count / squares).

    Args:
        input: floats [rows, width], the width known.
        act: the name of an activation.
        epsilon: in [0, 0.001]; the sum of squares grows by this for each row.
        param_attr: what the parameters start from: "batch_size" (1e4), "batch_sum" (0), "batch_square" (1e4),
            "scale_w" (1), "bias" (0). Anything but a dict leaves them at that.
        data_layout: "NCHW" or "NHWC", the same for matrices.
        in_place: write the result over `input`.
        name: what the names of the parameters begin with; "dn" by default, so that layers without a name share theirs.
        slot_dim: where positive, columns come in slots of so many, which begin with a count; where that is 0 the slot
            is left out, and its result is 0.
        sync_stats, summary_decay_rate: have no effect on a CPU, as in Fluid.
        enable_scale_and_shift: whether to scale and shift the columns by trainable parameters.
        moving_mean_name, moving_variance_name, do_model_average_for_mean_and_var: without effect, as in Fluid.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "data_norm")
    check_choice(data_layout, "data_layout", FORMATS[2], "data_norm")
    helper = LayerHelper("data_norm", name=name, act=act)
    starts = param_attr if isinstance(param_attr, dict) else {}
    prefix, width = "dn" if name is None else name, input.shape[1 if data_layout == "NCHW" else -1]
    parameters = {"BatchSize": ("batch_size", "batch_size", 1e4), "BatchSum": ("batch_sum", "batch_sum", 0.0)}
    parameters["BatchSquareSum"] = ("batch_square_sum", "batch_square", 1e4)
    if enable_scale_and_shift:
        parameters = {"scale_w": ("scale_w", "scale_w", 1.0), "bias": ("bias", "bias", 0.0), **parameters}
    inputs = {"X": [input]}
    for slot, (ending, key, default) in parameters.items():
        attr = ParamAttr(
            name=f"{prefix}.{ending}", initializer=ConstantInitializer(float(starts.get(key, default)))
        )
        inputs[slot] = [helper.create_parameter(attr=attr, shape=[width], dtype=input.dtype)]
    saved = ("Means", "Scales")
    made = {slot: helper.create_variable(dtype=input.dtype, like=input) for slot in saved}
    made["Y"] = input if in_place else helper.create_variable(dtype=input.dtype, like=input)
    attrs = {
        "epsilon": epsilon,
        "slot_dim": slot_dim,
        "sync_stats": sync_stats,
        "summary_decay_rate": summary_decay_rate,
        "enable_scale_and_shift": enable_scale_and_shift,
    }
    out = helper.run("data_norm", inputs, tuple(made), attrs, stop_gradient=saved, into=made)[2]
    return helper.append_activation(out)


def create_scale_and_bias(
    create_parameter: Callable[..., Any], size: int, param_attr: Any, bias_attr: Any, dtype: Any
) -> tuple[Any, Any]:
    """Parameters [size] that start as ones and zeros, of any normalisation; None for those whose attribute is False."""
    ones = ConstantInitializer(1.0)
    scale = create_parameter(attr=param_attr, shape=[size], dtype=dtype, default_initializer=ones)
    return scale, create_parameter(attr=bias_attr, shape=[size], dtype=dtype, is_bias=True)


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
            f"'begin_norm_axis' of layer_norm must be in [1, {len(input.shape)}) for shape "
            f"{list(input.shape)}, got "
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
    inputs = {"X": input, "Scale": weight, "Bias": bias}
    _, _, out = helper.run(
        "layer_norm",
        inputs,
        ("Mean", "Variance", "Y"),
        attrs={"epsilon": epsilon, "begin_norm_axis": begin_norm_axis},
        stop_gradient=("Mean", "Variance"),
    )
    return helper.append_activation(out)


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
    saved = ("Mean", "Variance")
    # Fluid gives these temporaries names that do not mention the layer.
    made = {slot: helper.create_variable(dtype=input.dtype, like=input) for slot in (*saved, "Y")}
    inputs = {"X": input, "Scale": scale, "Bias": bias}
    out = helper.run("group_norm", inputs, tuple(made), attrs, stop_gradient=saved, into=made)[2]
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
    saved = ("SavedMean", "SavedVariance")
    _, _, out = helper.run(
        "instance_norm",
        {"X": input, "Scale": scale, "Bias": bias},
        (*saved, "Y"),
        attrs={"epsilon": epsilon},
        stop_gradient=saved,
    )
    result: Variable = out
    return result


def l2_normalize(x: Variable, axis: int | None, epsilon: float = 1e-12, name: str | None = None) -> Variable:
    """`x` divided by its length along `axis`: sqrt(sum of squares + epsilon) (`fluid.layers.l2_normalize`).

    `axis` None means 1; for vectors it is always 0.
    """
    check_dtype(x, "x", "l2_normalize")
    helper = LayerHelper("l2_normalize", name=name)
    along = 0 if len(x.shape) == 1 else 1 if axis is None else axis
    out: Variable
    out, _ = helper.run("norm", {"X": x}, ("Out", "Norm"), attrs={"axis": along, "epsilon": epsilon})
    return out


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
