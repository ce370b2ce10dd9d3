"""Losses (`fluid.layers.loss`)."""

from __future__ import annotations

from ...base import missing
from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variables
from ...op_functions import run_layer
from ..checks import check_choice, check_dtype, check_dtypes
from ..ops import square
from ..tensor.comparison import equal
from ..tensor.manipulation import expand
from ..tensor.matrix import matmul
from ..tensor.reductions import reduce_mean, reduce_sum
from ..tensor.shapes import reshape, transpose

__all__ = [
    "bpr_loss",
    "cross_entropy",
    "huber_loss",
    "kldiv_loss",
    "margin_rank_loss",
    "mse_loss",
    "npair_loss",
    "rank_loss",
    "sigmoid_cross_entropy_with_logits",
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


__getattr__ = missing.reporter(__name__)
