"""Activations with arguments of their own, logarithms, limits of values; softmax, dropout, one-hot vectors, codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....base import callsite
from ....base.dtypes import VarType, to_vartype
from ....base.errors import ArgumentAssertion, ArgumentNotMet
from ....eager import Tensor, as_numbers
from ....framework import Variable, mode, tracing
from ...initializer import Constant
from ...layer_helper import LayerHelper, check_variable
from ...op_functions import run_layer, unary
from ..checks import alone, check_choice, check_dtype
from ..tensor.variables import assign

__all__ = [
    "add_position_encoding",
    "brelu",
    "clip",
    "clip_by_norm",
    "dropout",
    "elu",
    "hard_sigmoid",
    "hard_swish",
    "leaky_relu",
    "log",
    "log1p",
    "log_softmax",
    "maxout",
    "mean_iou",
    "mish",
    "one_hot",
    "pow",
    "prelu",
    "relu",
    "relu6",
    "selu",
    "sign",
    "soft_relu",
    "softmax",
    "stanh",
    "swish",
    "topk",
]

relu = unary("relu")


def relu6(x: Variable, threshold: float = 6.0, name: str | None = None) -> Variable:
    """min(max(x, 0), threshold) (`fluid.layers.relu6`)."""
    return run_layer("relu6", locals())


def leaky_relu(x: Variable, alpha: float = 0.02, name: str | None = None) -> Variable:
    """x where it is positive, alpha * x elsewhere (`fluid.layers.leaky_relu`)."""
    return run_layer("leaky_relu", locals())


def elu(x: Variable, alpha: float = 1.0, name: str | None = None) -> Variable:
    """x where it is positive, alpha * (exp(x) - 1) elsewhere (`fluid.layers.elu`)."""
    return run_layer("elu", locals())


def selu(
    x: Variable, scale: float | None = None, alpha: float | None = None, name: str | None = None
) -> Variable:
    """scale * x where it is positive, scale * alpha * (exp(x) - 1) elsewhere (`fluid.layers.selu`).

    The defaults, 1.0507 and 1.6733, keep mean 0 and variance 1 (Klambauer et al. 2017).
    """
    return run_layer("selu", locals())


def brelu(x: Variable, t_min: float = 0.0, t_max: float = 24.0, name: str | None = None) -> Variable:
    """x cut to the range from t_min to t_max (`fluid.layers.brelu`)."""
    return run_layer("brelu", locals())


def soft_relu(x: Variable, threshold: float = 40.0, name: str | None = None) -> Variable:
    """log(1 + exp(x)) of x cut to the range from -threshold to threshold (`fluid.layers.soft_relu`)."""
    return run_layer("soft_relu", locals())


def stanh(x: Variable, scale_a: float = 0.67, scale_b: float = 1.7159, name: str | None = None) -> Variable:
    """scale_b * tanh(scale_a * x) (`fluid.layers.stanh`)."""
    return run_layer("stanh", locals())


def hard_sigmoid(x: Variable, slope: float = 0.2, offset: float = 0.5, name: str | None = None) -> Variable:
    """slope * x + offset, cut to the range from 0 to 1 (`fluid.layers.hard_sigmoid`)."""
    return run_layer("hard_sigmoid", locals())


def hard_swish(
    x: Variable, threshold: float = 6.0, scale: float = 6.0, offset: float = 3.0, name: str | None = None
) -> Variable:
    """x * min(max(x + offset, 0), threshold) / scale (`fluid.layers.hard_swish`)."""
    return run_layer("hard_swish", locals())


def swish(x: Variable, beta: float = 1.0, name: str | None = None) -> Variable:
    """x * sigmoid(x) (`fluid.layers.swish`).

    As in Fluid 1.8, whose models rely on it, `beta` has no effect; a UserWarning says so if it is not 1.
    """
    if beta != 1.0:
        callsite.warn(f"swish computes with beta 1 as Fluid 1.8 does, not with {beta}")
    return run_layer("swish", locals(), without=("beta",))


def mish(x: Variable, threshold: float = 20.0, name: str | None = None) -> Variable:
    """x * tanh(softplus(x)) (`fluid.layers.mish`); `threshold` has no effect on the value."""
    return run_layer("mish", locals())


log = unary("log")


def log1p(x: Variable, out: Variable | None = None, name: str | None = None) -> Variable:
    """The natural logarithm of 1 + x, exact for small x, into `out` if given (`fluid.layers.log1p`)."""
    return run_layer("log1p", locals())


def pow(x: Variable, factor: float | Variable = 1.0, name: str | None = None) -> Variable:
    """x to the power of `factor`, a number or a Variable of one element (`fluid.layers.pow`)."""
    if isinstance(factor, Variable):
        factor.stop_gradient = True
    return run_layer("pow", locals(), FactorTensor="factor")


def prelu(x: Variable, mode: str, param_attr: Any = None, name: str | None = None) -> Variable:
    """x where it is positive, alpha * x elsewhere, with a trained alpha (`fluid.layers.prelu`).

    Args:
        x: a float tensor [N, ...]; its sizes but the first are known where alpha depends on them.
        mode: `all`: one alpha; `channel`: one for each entry of dimension 1; `element`: one for each element
            of a sample.
        param_attr: the ParamAttr of alpha, which begins at 0.25 unless this says otherwise.
        name: the prefix of the variables' names.

    Raises:
        ValueError: `mode` is something else.
        AssertionError: `x` has one dimension, and `mode` is `channel`.
        TypeError: `x` is not a float Variable.
    """
    check_choice(mode, "mode", ("all", "channel", "element"), "prelu")
    check_dtype(x, "x", "prelu")
    helper = LayerHelper("prelu", name=name, param_attr=param_attr)
    shape = [1]
    if mode == "channel":
        if len(x.shape) < 2:
            raise ArgumentAssertion(f"'x' of prelu has no channels, as its shape is {list(x.shape)}")
        shape = [1, x.shape[1], 1, 1]
    elif mode == "element":
        shape = [1, *x.shape[1:]]
    alpha = helper.create_parameter(helper.param_attr, shape, "float32", default_initializer=Constant(0.25))
    return helper.run("prelu", {"X": x, "Alpha": alpha}, attrs={"mode": mode})


def maxout(x: Variable, groups: int, name: str | None = None, axis: int = 1) -> Variable:
    """The largest of each `groups` neighbouring channels (`fluid.layers.maxout`).

    Args:
        x: images [N, C, H, W], or [N, H, W, C] with axis 3 or -1; `groups` divides C.
        groups: how many channels make one.
        name: the name of the result.
        axis: the dimension of the channels: 1, 3 or -1.

    Raises:
        ValueError: `axis` is another.
    """
    check_choice(axis, "axis", (1, -1, 3), "maxout")
    axis = 3 if axis == -1 else axis
    return run_layer("maxout", locals())


def clip(x: Variable, min: float, max: float, name: str | None = None) -> Variable:
    """`x`, raised to `min` and lowered to `max` where it is beyond them (`fluid.layers.clip`).

    `name` becomes the name of the result.
    """
    return _clip("clip", x, {"min": float(as_numbers(min)), "max": float(as_numbers(max))}, name)


def clip_by_norm(x: Variable, max_norm: float, name: str | None = None) -> Variable:
    """`x`, shortened to the Euclidean norm `max_norm` if it is longer (`fluid.layers.clip_by_norm`).

    `name` becomes the name of the result.
    """
    return _clip("clip_by_norm", x, {"max_norm": float(as_numbers(max_norm))}, name)


def _clip(op_type: str, x: Variable, attrs: dict[str, Any], name: str | None) -> Variable:
    check_variable(x, "x", op_type)
    helper = LayerHelper(op_type, name=name)
    out = None if name is None else helper.create_variable(name=name, dtype=x.dtype, like=x)
    return helper.run(op_type, {"X": x}, attrs=attrs, into={"Out": out})


def sign(x: Variable | np.ndarray) -> Variable:
    """-1, 0 or 1, as the element of `x` is negative, zero or positive (`fluid.layers.sign`)."""
    if isinstance(x, np.ndarray):
        x = assign(x)
    return run_layer("sign", locals())


def softmax(input: Variable, use_cudnn: bool = False, name: str | None = None, axis: int = -1) -> Variable:
    """Exponentials divided by their sum along `axis` (`fluid.layers.softmax`); `use_cudnn` has no effect."""
    return run_layer("softmax", locals(), X="input")


def log_softmax(
    input: Variable, axis: int | None = None, dtype: Any = None, name: str | None = None
) -> Variable:
    """The logarithm of `softmax` along `axis`, by default the last (`fluid.layers.log_softmax`).

    With `dtype`, 'float32' or 'float64', the input is converted first.
    """
    check_dtype(input, "input", "log_softmax")
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        kind = to_vartype(dtype)
        check_choice(kind, "dtype", (VarType.FP32, VarType.FP64), "log_softmax")
        attrs = {"in_dtype": int(input.dtype), "out_dtype": int(kind)}
        input = helper.run("cast", {"X": input}, attrs=attrs)
    shares = helper.run("softmax", {"X": input}, attrs={"axis": -1 if axis is None else axis})
    return helper.run("log", {"X": shares})


DROPOUTS = ("downgrade_in_infer", "upscale_in_train")
"""The valid values of `dropout_implementation`."""


def dropout(
    x: Variable,
    dropout_prob: float,
    is_test: bool = False,
    seed: int | None = None,
    name: str | None = None,
    dropout_implementation: str | None = "downgrade_in_infer",
) -> Variable:
    """Sets elements to zero at random in training (`fluid.layers.dropout`).

    Args:
        x: a float variable.
        dropout_prob: the probability of zero, in [0, 1].
        is_test: do what programs cloned `for_test` do. Under `fluid.dygraph.guard` it has no effect, as in Fluid: the
            last `eval()` or `train()` of a layer decides, as it does for declarative functions if `is_test` is false.
        seed: draw the same mask in every run; by default the program's `random_seed`, or anew each run if
            that is 0.
        name: the name of the result.
        dropout_implementation: 'downgrade_in_infer' multiplies with 1 - dropout_prob in tests;
            'upscale_in_train' divides by it in training.

    Returns:
        A tensor of the shape and type of `x`.

    Raises:
        TypeError, ValueError: for arguments that do not fit.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> y = fluid.layers.dropout(fluid.data("x", [None], "float32"), dropout_prob=0.5)
        >>> exe, rows = fluid.Executor(fluid.CPUPlace()), np.ones(1000, "float32")
        >>> 400 < int(exe.run(feed={"x": rows}, fetch_list=[y])[0].sum()) < 600
        True
        >>> test = fluid.default_main_program().clone(for_test=True)
        >>> exe.run(test, feed={"x": rows[:2]}, fetch_list=[y])
        [array([0.5, 0.5], dtype=float32)]
    """
    check_dtype(x, "x", "dropout")
    if dropout_implementation is not None or isinstance(
        x, Tensor
    ):  # in programs, None is the operator's default
        check_choice(dropout_implementation, "dropout_implementation", DROPOUTS, "dropout")
    if not 0 <= dropout_prob <= 1:
        raise ArgumentNotMet(f"'dropout_prob' of dropout must be in [0, 1], got {dropout_prob}")
    if mode.in_dygraph_mode() and isinstance(x, Tensor):
        is_test = not mode.is_training()
    elif tracing.current() is not None:  # traced code behaves as in dygraph mode
        is_test = is_test or not mode.is_training()
    helper = LayerHelper("dropout", name=name)
    if not seed and helper.main_program.random_seed:
        seed = helper.main_program.random_seed
    attrs = dropout_attrs(dropout_prob, is_test, seed, dropout_implementation)
    return helper.run("dropout", {"X": x}, ("Out", "Mask"), attrs, stop_gradient=("Mask",))[0]


def dropout_attrs(
    probability: float, is_test: bool, seed: int | None, implementation: str | None
) -> dict[str, Any]:
    """The attributes of `dropout`; `seed`: None draws another mask each time."""
    return {
        "dropout_prob": probability,
        "is_test": is_test,
        "fix_seed": seed is not None,
        "seed": seed or 0,
        "dropout_implementation": implementation,
    }


def one_hot(input: Variable, depth: int | Variable, allow_out_of_range: bool = False) -> Variable:
    """A float32 vector of length `depth` with a single 1 for each class number (`fluid.layers.one_hot`).

    Args:
        input: int64 or int32 class numbers of shape [..., 1]; `fluid.one_hot` takes any shape.
        depth: the number of classes, or an int32 variable holding it.
        allow_out_of_range: give zeros for numbers outside of [0, depth) instead of an error.

    Returns:
        A variable of shape `input.shape[:-1] + [depth]` without gradient.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> with fluid.dygraph.guard():
        ...     print(fluid.layers.one_hot(fluid.dygraph.to_variable(np.array([[1], [0]])), depth=3).numpy())
        [[0. 1. 0.]
         [1. 0. 0.]]
    """
    out = encoded("one_hot", input, depth, allow_out_of_range)
    out.stop_gradient = True
    return out


def encoded(op_type: str, input: Variable, depth: int | Variable, allow_out_of_range: bool) -> Variable:
    """The implementation of both forms of `one_hot`."""
    given = {"input": alone(input), "depth": depth, "allow_out_of_range": allow_out_of_range}
    return run_layer(op_type, given, X="input", depth_tensor="depth")


def topk(input: Variable, k: int | Variable, name: str | None = None) -> tuple[Variable, Variable]:
    """The `k` largest elements of each row, largest first, and where they stand (`fluid.layers.topk`).

    `k` is an integer or an int32 variable of one element. Of equal elements the first wins. Neither result
    (the second is int64) has a gradient.
    """
    return run_layer(
        "top_k", locals(), stop_gradient=True, X="input"
    )  # the layer stops gradients, not the operator


def mean_iou(input: Variable, label: Variable, num_classes: int) -> tuple[Variable, Variable, Variable]:
    """How much predicted and true segments overlap, averaged over the classes (`fluid.layers.mean_iou`).

    `input` and `label` hold class numbers of one shape. Returns the mean (float32 [1]) and, for each class,
    the numbers of wrong and of correct elements (int32 [num_classes]).
    """
    return run_layer("mean_iou", locals(), Predictions="input", Labels="label")


def add_position_encoding(input: Variable, alpha: float, beta: float, name: str | None = None) -> Variable:
    """alpha times `input`, and beta times sines and cosines of the place (`fluid.layers.add_position_encoding`).

    Follows Vaswani et al. (2017): sines in the first half of a row, cosines in the second.

    Args:
        input: floats [batch, time, width], or [rows, width] with sequences; the width is even.
        alpha, beta: what both parts are multiplied by.

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    return run_layer("add_position_encoding", locals(), X="input")
