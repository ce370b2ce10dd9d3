"""Layers about probabilities and classes - softmax, dropout, one-hot vectors - and sinusoidal position encodings."""

from __future__ import annotations

from typing import Any

from ....base.dtypes import VarType, to_vartype
from ....base.errors import ArgumentNotMet
from ....eager import Tensor
from ....framework import Variable, mode, tracing
from ...layer_helper import LayerHelper
from ...op_functions import run_layer
from ..checks import alone, check_choice, check_dtype

__all__ = ["add_position_encoding", "dropout", "log_softmax", "mean_iou", "one_hot", "softmax", "topk"]


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
