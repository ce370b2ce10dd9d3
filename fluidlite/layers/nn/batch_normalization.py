"""Batch normalisation, on its own and written over its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.errors import ArgumentAssertion
from ...framework import Variable
from ...initializer import ConstantInitializer
from ...layer_helper import LayerHelper
from ...param_attr import ParamAttr
from ..checks import FORMATS, check_choice, check_dtype
from .normalization import create_scale_and_bias

__all__ = ["batch_norm", "inplace_abn"]


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
