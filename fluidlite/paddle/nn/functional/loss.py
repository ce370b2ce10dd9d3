"""Losses. `reduction` is 'mean' (the default), 'sum' or 'none'."""

from __future__ import annotations

from typing import Any

from ....base.dtypes import VarType
from ....fluid import layers
from ....fluid.layers.checks import check_choice
from ...modes import by_arguments, run
from ...tensor import stat
from ...tensor.manipulation import gather, moveaxis, reshape, squeeze, unsqueeze
from ...tensor.math import abs, clip, exp, log, log1p, pow, sigmoid, sqrt, square
from .activation import relu
from .common import one_hot

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "dice_loss",
    "hinge_embedding_loss",
    "kl_div",
    "l1_loss",
    "log_loss",
    "margin_ranking_loss",
    "mse_loss",
    "nll_loss",
    "npair_loss",
    "sigmoid_focal_loss",
    "smooth_l1_loss",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "triplet_margin_loss",
]


def reduced(loss: Any, reduction: str, who: str, name: str | None = None) -> Any:
    """The mean or sum of `loss`, or itself. Raises ValueError for another `reduction`, naming `who`."""
    check_choice(reduction, "reduction", ("mean", "sum", "none"), who)
    if reduction == "none":
        return loss
    return stat.mean(loss, name=name) if reduction == "mean" else stat.sum(loss, name=name)


def _weighted(loss: Any, weight: Any) -> Any:
    return loss if weight is None else loss * weight


def square_error_cost(input: Any, label: Any) -> Any:
    """(input - label) squared, element by element (`paddle.nn.functional.square_error_cost`). Shapes broadcast."""
    return square(input - label)


def mse_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Any:
    """The mean of the squared differences (`paddle.nn.functional.mse_loss`)."""
    return reduced(square(input - label), reduction, "mse_loss", name)


def l1_loss(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Any:
    """The mean of the magnitudes of the differences (`paddle.nn.functional.l1_loss`)."""
    return reduced(abs(input - label), reduction, "l1_loss", name)


def smooth_l1_loss(
    input: Any, label: Any, reduction: str = "mean", delta: float = 1.0, name: str | None = None
) -> Any:
    """Half the squared difference d up to `delta`, delta * (|d| - delta / 2) beyond
    (`paddle.nn.functional.smooth_l1_loss`)."""
    _, loss = run("huber_loss", {"X": input, "Y": label}, ("Residual", "Out"), {"delta": float(delta)})
    return reduced(loss, reduction, "smooth_l1_loss", name)


def _labels(label: Any, input: Any, axis: int) -> tuple[Any, bool]:
    """Class numbers with an axis of size 1 at `axis`, and whether it had to be put there."""
    if label.dtype not in (VarType.INT64, VarType.INT32):
        label = label.astype(VarType.INT64)
    if len(label.shape) == len(input.shape) - 1:
        return unsqueeze(label, axis), True
    return label, False


def softmax_with_cross_entropy(
    logits: Any,
    label: Any,
    soft_label: bool = False,
    ignore_index: int = -100,
    numeric_stable_mode: bool = True,
    return_softmax: bool = False,
    axis: int = -1,
) -> Any:
    """Cross entropy of the softmax of `logits`, one number for each row, whose axis stays with size 1
    (`paddle.nn.functional.softmax_with_cross_entropy`).

    `label` holds class numbers or, if `soft_label`, probabilities. With `return_softmax` also the softmax.
    """
    if not soft_label:
        label, _ = _labels(label, logits, axis)
    attrs = {"soft_label": soft_label, "ignore_index": ignore_index, "axis": axis}
    softmax, loss = run(
        "softmax_with_cross_entropy", {"Logits": logits, "Label": label}, ("Softmax", "Loss"), attrs
    )
    return (loss, softmax) if return_softmax else loss


def cross_entropy(
    input: Any,
    label: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    soft_label: bool = False,
    axis: int = -1,
    use_softmax: bool = True,
    name: str | None = None,
) -> Any:
    """Cross entropy of the softmax of `input` (`paddle.nn.functional.cross_entropy`).

    Args:
        input: scores with the classes along `axis`, such as [N, C]; probabilities if not `use_softmax`.
        label: class numbers, [N] or [N, 1]; with `soft_label` probabilities shaped as `input`.
        weight: how much each class counts, [C]; the mean is then divided by the sum of the weights used.
        ignore_index: a class that does not count, not in the mean either.
        reduction: 'mean', 'sum' or 'none'.
        soft_label: see `label`.
        axis: that of the classes.
        use_softmax: see `input`.
        name: the name of the result in a program.

    Returns:
        A number of shape [1]; with 'none' one for each label, shaped as `label`.
    """
    check_choice(reduction, "reduction", ("mean", "sum", "none"), "cross_entropy")
    added = False
    if not soft_label:
        label, added = _labels(label, input, axis)
    if use_softmax:
        loss = softmax_with_cross_entropy(input, label, soft_label, ignore_index, axis=axis)
    elif soft_label:
        loss = -stat.sum(label * log(input), axis, keepdim=True)
    else:
        chosen = moveaxis(one_hot(squeeze(label, axis), input.shape[axis]), -1, axis)
        loss = -stat.sum(chosen * log(clip(input, 1e-20)), axis, keepdim=True)
        loss = loss * (label != ignore_index).astype(loss.dtype)
    share = _shares(loss, label, weight, ignore_index, soft_label, axis)
    if share is not None and weight is not None:
        loss = loss * share
    if reduction == "mean":
        return stat.mean(loss, name=name) if share is None else _divided(stat.sum(loss), stat.sum(share))
    if reduction == "sum":
        return stat.sum(loss, name=name)
    return squeeze(loss, axis) if added else loss


def _shares(loss: Any, label: Any, weight: Any, ignore_index: int, soft_label: bool, axis: int) -> Any:
    """The weight of each element of `loss`; None if all are 1."""
    if soft_label:
        if weight is None:
            return None
        lone = [1] * len(label.shape)
        lone[axis] = -1
        return stat.sum(label * reshape(weight, lone), axis, keepdim=True)
    if weight is None and ignore_index < 0:
        return None
    counts = (label != ignore_index).astype(loss.dtype)
    if weight is None:
        return counts
    known = label * counts.astype(label.dtype)
    return reshape(gather(weight, reshape(known, [-1])), list(label.shape)) * counts


def _divided(total: Any, count: Any) -> Any:
    """total / count, and 0 where nothing counts."""
    return total / (count + (count == 0).astype(count.dtype))


def nll_loss(
    input: Any,
    label: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    name: str | None = None,
) -> Any:
    """Minus the `input`, log-probabilities [N, C, ...], of the classes in `label` [N, ...]
    (`paddle.nn.functional.nll_loss`). Other arguments as in `cross_entropy`."""
    check_choice(reduction, "reduction", ("mean", "sum", "none"), "nll_loss")
    counts = (label != ignore_index).astype(label.dtype)
    chosen = moveaxis(one_hot(label * counts, input.shape[1]), -1, 1).astype(input.dtype)
    loss = -stat.sum(chosen * input, 1)
    share = counts.astype(input.dtype)
    if weight is not None:
        share = share * reshape(gather(weight, reshape(label * counts, [-1])), list(label.shape))
    loss = loss * share
    if reduction == "mean":
        return _divided(stat.sum(loss), stat.sum(share))
    return stat.sum(loss) if reduction == "sum" else loss


_TINY = 1e-12


def binary_cross_entropy(
    input: Any, label: Any, weight: Any = None, reduction: str = "mean", name: str | None = None
) -> Any:
    """Cross entropy of the probabilities `input` and the zeros and ones `label`
    (`paddle.nn.functional.binary_cross_entropy`). `weight` multiplies the elements."""
    positive, negative = log(clip(input, _TINY, 1.0)), log(clip(1.0 - input, _TINY, 1.0))
    loss = -(label * positive + (1.0 - label) * negative)
    return reduced(_weighted(loss, weight), reduction, "binary_cross_entropy", name)


def binary_cross_entropy_with_logits(
    logit: Any,
    label: Any,
    weight: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
    name: str | None = None,
) -> Any:
    """`binary_cross_entropy` of sigmoid(logit) (`paddle.nn.functional.binary_cross_entropy_with_logits`).

    `pos_weight`: how much more positives count, for each class.
    """
    if pos_weight is None:
        loss = run("sigmoid_cross_entropy_with_logits", {"X": logit, "Label": label})
    else:
        heavy = label * (pos_weight - 1.0) + 1.0
        loss = (1.0 - label) * logit + heavy * (log1p(exp(-abs(logit))) + relu(-logit))
    return reduced(_weighted(loss, weight), reduction, "binary_cross_entropy_with_logits", name)


def kl_div(input: Any, label: Any, reduction: str = "mean", name: str | None = None) -> Any:
    """label * (log(label) - input), `input` being log-probabilities (`paddle.nn.functional.kl_div`).

    `reduction` may also be 'batchmean': the sum divided by the first size.
    """
    check_choice(reduction, "reduction", ("mean", "sum", "none", "batchmean"), "kl_div")
    return run("kldiv_loss", {"X": input, "Target": label}, ("Loss",), {"reduction": reduction}, name)


def log_loss(input: Any, label: Any, epsilon: float = 0.0001, name: str | None = None) -> Any:
    """Cross entropy of probabilities [N, 1] and zeros and ones, logarithms of `epsilon` more
    (`paddle.nn.functional.log_loss`)."""
    return by_arguments(layers.log_loss)(input, label, epsilon, name)


def margin_ranking_loss(
    input: Any, other: Any, label: Any, margin: float = 0.0, reduction: str = "mean", name: str | None = None
) -> Any:
    """max(0, label * (other - input) + margin), `label` being 1 or -1
    (`paddle.nn.functional.margin_ranking_loss`)."""
    return reduced(relu(label * (other - input) + float(margin)), reduction, "margin_ranking_loss", name)


def hinge_embedding_loss(
    input: Any, label: Any, margin: float = 1.0, reduction: str = "mean", name: str | None = None
) -> Any:
    """`input` where `label` is 1, max(0, margin - input) where it is -1
    (`paddle.nn.functional.hinge_embedding_loss`)."""
    positive = (label == 1.0).astype(input.dtype)
    loss = positive * input + (1.0 - positive) * relu(float(margin) - input)
    return reduced(loss, reduction, "hinge_embedding_loss", name)


def cosine_embedding_loss(
    input1: Any, input2: Any, label: Any, margin: float = 0, reduction: str = "mean", name: str | None = None
) -> Any:
    """1 - cos of rows whose `label` is 1, max(0, cos - margin) of those where it is -1
    (`paddle.nn.functional.cosine_embedding_loss`)."""
    tiny = 1e-12
    lengths = sqrt((stat.sum(square(input1), -1) + tiny) * (stat.sum(square(input2), -1) + tiny))
    cosine = stat.sum(input1 * input2, -1) / lengths
    positive = (label == 1).astype(cosine.dtype)
    loss = positive * (1.0 - cosine) + (1.0 - positive) * relu(cosine - float(margin))
    return reduced(loss, reduction, "cosine_embedding_loss", name)


def triplet_margin_loss(
    input: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    epsilon: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
    name: str | None = None,
) -> Any:
    """max(0, distance to `positive` - distance to `negative` + margin) by rows
    (`paddle.nn.functional.triplet_margin_loss`).

    `swap`: take the distance between positive and negative where that is smaller.
    """

    def distance(a: Any, b: Any) -> Any:
        return pow(stat.sum(pow(abs(a - b + float(epsilon)), p), -1), 1.0 / p)

    near, far = distance(input, positive), distance(input, negative)
    if swap:
        far = run("elementwise_min", {"X": far, "Y": distance(positive, negative)}, attrs={"axis": -1})
    return reduced(relu(near - far + float(margin)), reduction, "triplet_margin_loss", name)


def sigmoid_focal_loss(
    logit: Any,
    label: Any,
    normalizer: Any = None,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "sum",
    name: str | None = None,
) -> Any:
    """Binary cross entropy that counts what is right already less (`paddle.nn.functional.sigmoid_focal_loss`).

    `normalizer`: a tensor of one element that divides the loss; `alpha`: how much positives count; `gamma`: how fast
    the share of easy elements falls.
    """
    plain = run("sigmoid_cross_entropy_with_logits", {"X": logit, "Label": label})
    chance = sigmoid(logit)
    right = chance * label + (1.0 - chance) * (1.0 - label)
    loss = (label * alpha + (1.0 - label) * (1.0 - alpha)) * pow(1.0 - right, gamma) * plain
    return reduced(loss if normalizer is None else loss / normalizer, reduction, "sigmoid_focal_loss", name)


def dice_loss(input: Any, label: Any, epsilon: float = 1e-05, name: str | None = None) -> Any:
    """1 - twice the overlap of probabilities [N, ..., C] and class numbers [N, ..., 1], divided by the sum of both
    (`paddle.nn.functional.dice_loss`)."""
    return by_arguments(layers.dice_loss)(input, label, epsilon)


def npair_loss(anchor: Any, positive: Any, labels: Any, l2_reg: float = 0.002) -> Any:
    """The N-pair loss of rows and their matches (`paddle.nn.functional.npair_loss`)."""
    return by_arguments(layers.npair_loss)(anchor, positive, labels, l2_reg)
