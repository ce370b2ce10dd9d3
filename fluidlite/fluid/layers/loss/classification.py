"""Losses of classes and numbers (`fluid.layers.loss`, and those that Fluid keeps among `fluid.layers.nn`)."""

from __future__ import annotations

from typing import Any

from ....base.dtypes import VarType
from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variable, check_variables
from ...layer_helper_base import is_eager
from ...op_functions import run_layer
from ..checks import INTEGERS, check_choice, check_dtype, check_dtypes
from ..nn.activations import one_hot
from ..ops import square
from ..tensor.arithmetic import equal, reduce_mean, reduce_sum
from ..tensor.joining import expand
from ..tensor.matrix import matmul
from ..tensor.shapes import reshape, transpose

__all__ = [
    "bpr_loss",
    "center_loss",
    "cross_entropy",
    "dice_loss",
    "huber_loss",
    "kldiv_loss",
    "label_smooth",
    "log_loss",
    "margin_rank_loss",
    "mse_loss",
    "npair_loss",
    "rank_loss",
    "sigmoid_cross_entropy_with_logits",
    "smooth_l1",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "teacher_student_sigmoid_loss",
]

kIgnoreIndex = -100
"""The label that costs nothing unless another one is said."""


def cross_entropy(
    input: Variable, label: Variable, soft_label: bool = False, ignore_index: int = -100
) -> Variable:
    """The cross entropy of probabilities and labels (`fluid.layers.cross_entropy`).

    Args:
        input: float probabilities [..., classes], as softmax gives them.
        label: int64 class numbers [..., 1] (or [...]), or with `soft_label` a weight for each class.
        soft_label: what `label` is.
        ignore_index: a label that costs nothing.

    Returns:
        The cost of each row, [..., 1].

    Raises:
        TypeError: unless both are Variables. A label that is no class raises an error when the program runs.

    Example:
        >>> import numpy as np
        >>> import paddle.fluid as fluid

        >>> p, label = fluid.data("p", [1, 2], "float32"), fluid.data("label", [1, 1], "int64")
        >>> cost = fluid.layers.cross_entropy(p, label)
        >>> feed = {"p": np.array([[0.5, 0.5]], "float32"), "label": np.array([[1]])}
        >>> fluid.Executor(fluid.CPUPlace()).run(feed=feed, fetch_list=[cost])
        [array([[0.6931472]], dtype=float32)]
    """
    if soft_label:
        return run_layer("cross_entropy", locals(), X="input")
    return cross_entropy2(input, label, ignore_index)


def cross_entropy2(input: Variable, label: Variable, ignore_index: int = kIgnoreIndex) -> Variable:
    """The cross entropy of probabilities and class numbers, what `cross_entropy` calls for hard labels
    (`fluid.layers.loss.cross_entropy2`); arguments as there.
    """
    return run_layer("cross_entropy2", locals(), X="input")[0]


def softmax_with_cross_entropy(
    logits: Variable,
    label: Variable,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Variable | tuple[Variable, Variable]:
    """The cross entropy of softmax(logits) and labels (`fluid.layers.softmax_with_cross_entropy`).

    Args:
        logits: floats, with the classes along `axis`.
        label: int64 class numbers, of the shape of `logits` with 1 along `axis`; with `soft_label` a weight
            for each class, of the shape of `logits`.
        ignore_index: a label that costs nothing.
        numeric_stable_mode: accepted; the computation is always the stable one.
        return_softmax: return the probabilities too.

    Returns:
        The loss, with 1 along `axis`; or the pair (loss, softmax).
    """
    softmax, loss = run_layer("softmax_with_cross_entropy", locals(), without=("return_softmax",))
    return (loss, softmax) if return_softmax else loss


def square_error_cost(input: Variable, label: Variable) -> Variable:
    """(input - label) squared, element by element (`fluid.layers.square_error_cost`)."""
    check_variables("square_error_cost", input=input, label=label)
    helper = LayerHelper("square_error_cost")
    difference = helper.run("elementwise_sub", {"X": input, "Y": label})
    return helper.run("square", {"X": difference})


def mse_loss(input: Variable, label: Variable) -> Variable:
    """The mean of `square_error_cost`, of shape [1] (`fluid.layers.mse_loss`)."""
    cost = square_error_cost(input, label)
    return reduce_mean(cost)


def sigmoid_cross_entropy_with_logits(
    x: Variable, label: Variable, ignore_index: int = -100, name: str | None = None, normalize: bool = False
) -> Variable:
    """The cross entropy of sigmoid(x) and labels in [0, 1]
    (`fluid.layers.sigmoid_cross_entropy_with_logits`).

    `x` and `label` are floats of one shape, which the result has too. Elements whose label is `ignore_index`
    cost nothing; `normalize` divides by how many do.
    """
    return run_layer("sigmoid_cross_entropy_with_logits", locals())


def huber_loss(input: Variable, label: Variable, delta: float) -> Variable:
    """Half the squared difference, linear where it is beyond `delta` (`fluid.layers.huber_loss`)."""
    return run_layer("huber_loss", locals(), X="input", Y="label")[1]


def kldiv_loss(x: Variable, target: Variable, reduction: str = "mean", name: str | None = None) -> Variable:
    """target * (log(target) - x), the Kullback-Leibler divergence (`fluid.layers.kldiv_loss`).

    `x` holds logarithms of probabilities. `reduction`: 'none' keeps the shape; 'mean', 'sum' and 'batchmean'
    (the sum divided by the number of samples) give [1].
    """
    check_choice(reduction, "reduction", ("none", "batchmean", "mean", "sum"), "kldiv_loss")
    return run_layer("kldiv_loss", locals())


def bpr_loss(input: Variable, label: Variable, name: str | None = None) -> Variable:
    """Bayesian personalised ranking (`fluid.layers.bpr_loss`).

    The mean over all other classes of log(1 + exp(score - score of the label)): `input` [N, classes], `label`
    int64 [N, 1], result [N, 1].
    """
    return run_layer("bpr_loss", locals(), X="input")


def rank_loss(label: Variable, left: Variable, right: Variable, name: str | None = None) -> Variable:
    """RankNet's loss of pairs of scores [N, 1]; `label` 1: left ranks above right
    (`fluid.layers.rank_loss`).
    """
    return run_layer("rank_loss", locals())


def margin_rank_loss(
    label: Variable, left: Variable, right: Variable, margin: float = 0.1, name: str | None = None
) -> Variable:
    """max(0, -label * (left - right) + margin), for labels 1 or -1 (`fluid.layers.margin_rank_loss`)."""
    return run_layer("margin_rank_loss", locals(), ("Out", "Activated"), X1="left", X2="right")[0]


def teacher_student_sigmoid_loss(
    input: Variable, label: Variable, soft_max_up_bound: float = 15.0, soft_max_lower_bound: float = -15.0
) -> Variable:
    """Click prediction that also learns from a teacher's score (`fluid.layers.teacher_student_sigmoid_loss`).

    `input` and `label` are [N, 1]. Labels: -2 no click, -1 click, without a score; s no click, 1 + s click,
    with score s.
    """
    check_dtype(input, "input", "teacher_student_sigmoid_loss", (VarType.FP32, VarType.FP64))
    # Fluid gives this result a name that does not mention the layer.
    made = LayerHelper("teacher_student_sigmoid_loss").create_variable(dtype=input.dtype, like=input)
    return run_layer("teacher_student_sigmoid_loss", locals(), without=("made",), into={"Y": made}, X="input")


def npair_loss(anchor: Variable, positive: Variable, labels: Variable, l2_reg: float = 0.002) -> Variable:
    """The N-pair loss of embeddings (`fluid.layers.npair_loss`), of shape [1].

    `anchor` and `positive` are floats [N, width], `labels` floats or int64 [N]; `l2_reg` weighs the embeddings' mean
    squared length. Unlike Fluid's, it leaves `labels` as they are.
    """
    check_dtypes("npair_loss", anchor=anchor, positive=positive)
    check_dtypes("npair_loss", VarType.FP32, VarType.FP64, VarType.INT64, labels=labels)
    rows = labels.shape[0]
    grid = expand(reshape(labels, [rows, 1]), [1, rows])
    same = equal(grid, transpose(grid, [1, 0])).astype("float32")
    weights = same / reduce_sum(same, 1, keep_dim=True)
    lengths = [reduce_mean(reduce_sum(square(var), 1)) for var in (anchor, positive)]
    penalty = (lengths[0] + lengths[1]) * 0.25 * l2_reg
    cost = softmax_with_cross_entropy(matmul(anchor, positive, transpose_y=True), weights, soft_label=True)
    return penalty + reduce_mean(reduce_sum(weights * cost, 0))


def center_loss(
    input: Variable,
    label: Variable,
    num_classes: int,
    alpha: float | Variable,
    param_attr: Any,
    update_center: bool = True,
) -> Variable:
    """Half the squared distance of each row from the centre of its class (`fluid.layers.center_loss`).

    Follows Wen et al. (2016). The centres are moved towards the rows by each run, not by an optimizer.

    Args:
        input: floats [batch, width].
        label: integers [batch, 1].
        num_classes: how many classes there are.
        alpha: how fast the centres move, a number or a Variable [1].
        param_attr: a ParamAttr, a name or an initializer of the centres [classes, width].
        update_center: whether they move.

    Returns:
        [batch, 1].

    Raises:
        TypeError, ValueError: for arguments that do not fit.
    """
    check_dtype(input, "input", "center_loss")
    check_variable(label, "label", "center_loss")
    helper = LayerHelper("center_loss", param_attr=param_attr)
    shape = [num_classes, input.shape[1]]
    centers = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype=input.dtype)
    centers.stop_gradient = True
    if isinstance(alpha, Variable):
        rate = alpha
    else:
        rate = helper.create_variable(
            name="centerloss_alpha", shape=[1], dtype="float32", persistable=True, stop_gradient=True
        )
        attrs = {"shape": [1], "dtype": int(rate.dtype), "value": float(alpha)}
        # At the beginning of the block, as Fluid: of several layers the first decides.
        block = helper.main_program.current_block()
        block._prepend_op(type="fill_constant", outputs={"Out": [rate]}, attrs=attrs)
    inputs = {"X": input, "Label": label, "Centers": centers, "CenterUpdateRate": rate}
    outputs, attrs = ("SampleCenterDiff", "Loss", "CentersOut"), {"cluster_num": num_classes}
    attrs["need_update"] = update_center
    return helper.run("center_loss", inputs, outputs, attrs, into={"CentersOut": centers})[1]


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
