"""The losses that Fluid keeps among `fluid.layers.nn`."""

from __future__ import annotations

from typing import Any

from ...base.errors import ArgumentError
from ...framework import Variable
from ...layer_helper import check_variable
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from ..checks import INTEGERS, check_dtype
from ..nn.probability import one_hot
from ..tensor.reductions import reduce_mean, reduce_sum

__all__ = ["dice_loss", "label_smooth", "log_loss", "smooth_l1"]


def log_loss(input: Variable, label: Variable, epsilon: float = 0.0001, name: str | None = None) -> Variable:
    """-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon) (`fluid.layers.log_loss`).

    `input` holds probabilities, `label` zeros and ones as floats, both [N, 1].
    """
    return run_layer("log_loss", locals(), Predicted="input", Labels="label")


def smooth_l1(
    x: Variable,
    y: Variable,
    inside_weight: Variable | None = None,
    outside_weight: Variable | None = None,
    sigma: float | None = None,
) -> Variable:
    """The loss of box regression, summed over each sample (`fluid.layers.smooth_l1`).

    With d = inside_weight * (x - y): 0.5 * (sigma * d)^2 where |d| < 1 / sigma^2, else |d| - 0.5 / sigma^2;
    times outside_weight. All have one shape; `outside_weight` alone counts as none; `sigma` is 1 by default. The
    result is [N, 1].
    """
    return run_layer("smooth_l1_loss", locals())[1]


def label_smooth(
    label: Variable,
    prior_dist: Variable | None = None,
    epsilon: float = 0.1,
    dtype: Any = "float32",
    name: str | None = None,
) -> Variable:
    """(1 - epsilon) * label + epsilon * prior, where the prior is uniform unless given
    (`fluid.layers.label_smooth`).

    `label` is a float variable [..., classes], whose `stop_gradient` this sets in a program as Fluid does. Raises
    ValueError unless `epsilon` is in [0, 1].
    """
    if not 0 <= epsilon <= 1:
        raise ArgumentError(f"The value of epsilon must be between 0 and 1, got {epsilon}")
    check_variable(label, "label", "label_smooth")
    if not is_eager(label):
        label.stop_gradient = True
    return run_layer("label_smooth", locals(), without=("dtype",), X="label")


def dice_loss(input: Variable, label: Variable, epsilon: float = 1e-05, name: str | None = None) -> Variable:
    """1 - 2 * overlap / (sum of both), averaged over the samples (`fluid.layers.dice_loss`), of shape [1].

    `input` holds probabilities [N, ..., classes], `label` class numbers [N, ..., 1]; `name` has no effect, as in Fluid.
    """
    check_dtype(input, "input", "dice_loss")
    check_dtype(label, "label", "dice_loss", INTEGERS)
    wanted = one_hot(label, depth=input.shape[-1])
    dims = list(range(1, len(input.shape)))

    overlap = reduce_sum(input * wanted, dims)
    both = reduce_sum(input, dims) + reduce_sum(wanted, dims)
    return reduce_mean(1 - overlap * 2 / (both + epsilon))
