"""The single shot detector (Liu et al. 2016): its head over feature maps, its loss, and its output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper
from ..loss.classification import smooth_l1, softmax_with_cross_entropy
from ..nn.activations import softmax
from ..nn.convolution import conv2d
from ..tensor.arithmetic import reduce_sum
from ..tensor.indexing import slice
from ..tensor.joining import concat
from ..tensor.shapes import flatten, reshape, shape, transpose
from ..tensor.variables import cast
from .anchors import bipartite_match, box_coder, iou_similarity, prior_box, target_assign
from .one_stage import detected

__all__ = ["detection_output", "multi_box_head", "ssd_loss"]


def detection_output(
    loc: Variable,
    scores: Variable,
    prior_box: Variable,
    prior_box_var: Variable,
    background_label: int = 0,
    nms_threshold: float = 0.3,
    nms_top_k: int = 400,
    keep_top_k: int = 200,
    score_threshold: float = 0.01,
    nms_eta: float = 1.0,
    return_index: bool = False,
) -> Variable | tuple[Variable, Variable]:
    """The boxes that a single shot detector has found (`fluid.layers.detection_output`).

    Args:
        loc: offsets of boxes [N, M, 4] to the prior boxes.
        scores: [N, M, classes], before softmax.
        prior_box, prior_box_var: [M, 4], what `multi_box_head` gives.
        return_index: also which of the boxes of all images each one is, as [found, 1].
        background_label, nms_threshold, nms_top_k, keep_top_k, score_threshold, nms_eta: see `multiclass_nms`.

    Returns:
        [found, 6]: class, score and box of each, a sequence for each image; [1, 1] with -1 if there are none at all,
        with `return_index` [0, 6].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    bboxes = box_coder(prior_box, prior_box_var, loc, code_type="decode_center_size")
    scores = transpose(softmax(scores), perm=[0, 2, 1])
    scores.stop_gradient = True
    op_type = "multiclass_nms2" if return_index else "multiclass_nms"
    return detected(op_type, locals(), "detection_output", ("op_type", "prior_box", "prior_box_var", "loc"))


def ssd_loss(
    location: Variable,
    confidence: Variable,
    gt_box: Variable,
    gt_label: Variable,
    prior_box: Variable,
    prior_box_var: Variable | None = None,
    background_label: int = 0,
    overlap_threshold: float = 0.5,
    neg_pos_ratio: float = 3.0,
    neg_overlap: float = 0.5,
    loc_loss_weight: float = 1.0,
    conf_loss_weight: float = 1.0,
    match_type: str = "per_prediction",
    mining_type: str = "max_negative",
    normalize: bool = True,
    sample_size: int | None = None,
) -> Variable:
    """The loss of the boxes and classes of a single shot detector (`fluid.layers.ssd_loss`).

    Args:
        location: offsets of boxes [N, M, 4] to the prior boxes.
        confidence: scores [N, M, classes], before softmax.
        gt_box: the boxes of the images [boxes, 4], a sequence for each of N.
        gt_label: int32 classes [boxes, 1] with the same sequences.
        prior_box, prior_box_var: [M, 4], what `multi_box_head` gives; the variances, too, are needed.
        background_label: the class of unmatched prior boxes.
        overlap_threshold: how much, intersection over union, a prior box has to overlap a box to stand for it
            (`match_type` 'per_prediction'; see `bipartite_match`).
        neg_pos_ratio: how many prior boxes without a box count for each with one: those that cost most.
        neg_overlap: of those only that overlap no box as much as this.
        loc_loss_weight, conf_loss_weight: how much boxes and classes count.
        match_type: see `bipartite_match`.
        mining_type: 'max_negative'.
        normalize: whether the cost is divided by the number of prior boxes matched with a box.
        sample_size: accepted; has no effect with 'max_negative'.

    Returns:
        The cost of each image [N, 1].

    Raises:
        TypeError, ValueError, OperatorError: for arguments that do not fit.
    """
    helper = LayerHelper("ssd_loss")
    if mining_type != "max_negative":
        raise ArgumentError(f"'mining_type' of ssd_loss must be 'max_negative', got {mining_type!r}")
    sizes = shape(confidence)

    indices, similarity = bipartite_match(iou_similarity(gt_box, prior_box), match_type, overlap_threshold)
    labels = reshape(gt_label, shape=(*[0] * (len(gt_label.shape) - 1), -1, 1))
    labels.stop_gradient = True
    wanted, _ = target_assign(labels, indices, mismatch_value=background_label)
    logits = flatten(confidence, axis=2)
    wanted = flatten(cast(wanted, "int64"), axis=2)
    wanted.stop_gradient = True
    cost = softmax_with_cross_entropy(logits, wanted)
    images = slice(sizes, axes=[0], starts=[0], ends=[2])
    images.stop_gradient = True
    cost = reshape(cost, shape=(-1, 0), actual_shape=images)  # type: ignore[arg-type]
    cost.stop_gradient = True
    negatives, indices = helper.run(
        "mine_hard_examples",
        {"ClsLoss": cost, "MatchIndices": indices, "MatchDist": similarity},
        ("NegIndices", "UpdatedMatchIndices"),
        attrs={
            "neg_pos_ratio": neg_pos_ratio,
            "neg_dist_threshold": neg_overlap,
            "mining_type": mining_type,
            "sample_size": sample_size or 0,
        },
    )

    offsets = box_coder(prior_box, prior_box_var, gt_box, code_type="encode_center_size")  # type: ignore[arg-type]
    wanted_box, box_weight = target_assign(offsets, indices, mismatch_value=background_label)
    wanted, weight = target_assign(labels, indices, negatives, mismatch_value=background_label)
    wanted = cast(flatten(wanted, axis=2), "int64")
    wanted.stop_gradient = True
    class_cost = softmax_with_cross_entropy(logits, wanted)
    weight = flatten(weight, axis=2)
    weight.stop_gradient = True
    class_cost = class_cost * weight

    places = flatten(location, axis=2)
    wanted_box = flatten(wanted_box, axis=2)
    wanted_box.stop_gradient = True
    box_cost = smooth_l1(places, wanted_box)
    box_weight = flatten(box_weight, axis=2)
    box_weight.stop_gradient = True
    box_cost = box_cost * box_weight

    loss = conf_loss_weight * class_cost + loc_loss_weight * box_cost
    loss = reduce_sum(reshape(loss, shape=(-1, 0), actual_shape=images), dim=1, keep_dim=True)
    return loss / reduce_sum(box_weight) if normalize else loss


def _sizes_between(
    base_size: float, min_ratio: int, max_ratio: int, layers: int
) -> tuple[list[float], list[float]]:
    """The least and the greatest size of the boxes of each feature map, for ratios in percent of the image's size."""
    step = math.floor((max_ratio - min_ratio) / (layers - 2))
    ratios = range(min_ratio, max_ratio + 1, step)
    least = [base_size * 0.1, *(base_size * ratio / 100.0 for ratio in ratios)]
    most = [base_size * 0.2, *(base_size * (ratio + step) / 100.0 for ratio in ratios)]
    return least, most


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _one_each(values: Any, name: str, count: int) -> list[Any]:
    """A list with an element for each of `count` feature maps; ValueError for anything else."""
    if not isinstance(values, (list, tuple)) or len(values) != count:
        raise ArgumentError(
            f"'{name}' of multi_box_head must be a list of {count}, one for each input, got {values!r}"
        )
    return list(values)


def _first_sizes(sizes: Any, name: str, count: int) -> list[Any]:
    """The sizes of `count` feature maps. Of three maps or more, sizes of further ones are ignored, as in Fluid."""
    needed = (
        f"multi_box_head needs {name} for each of its {count} inputs, or min_ratio and max_ratio for three "
        f"inputs or more; got {sizes!r:.80}"
    )
    if count <= 2 and (sizes is None or len(sizes) != count):
        raise AssertionError(needed)
    if not isinstance(sizes, (list, tuple)):
        raise TypeError(needed)
    if len(sizes) < count:
        raise IndexError(needed)
    return list(sizes[:count])


def multi_box_head(
    inputs: Sequence[Variable],
    image: Variable,
    base_size: float,
    num_classes: int,
    aspect_ratios: Sequence[Any],
    min_ratio: int | None = None,
    max_ratio: int | None = None,
    min_sizes: Sequence[Any] | None = None,
    max_sizes: Sequence[Any] | None = None,
    steps: Sequence[Any] | None = None,
    step_w: Sequence[float] | None = None,
    step_h: Sequence[float] | None = None,
    offset: float = 0.5,
    variance: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    flip: bool = True,
    clip: bool = False,
    kernel_size: int = 1,
    pad: int = 0,
    stride: int = 1,
    name: str | None = None,
    min_max_aspect_ratios_order: bool = False,
) -> tuple[Variable, Variable, Variable, Variable]:
    """Prior boxes of several feature maps, and a convolution's predictions for each (`fluid.layers.multi_box_head`).

    Args:
        inputs: feature maps [N, C, H, W].
        image: the images [N, C, height, width].
        base_size: the size of images that the ratios are percent of.
        num_classes: how many classes there are, with the background.
        aspect_ratios: for each feature map a ratio or a list of them; see `prior_box`.
        min_ratio, max_ratio: percent of `base_size` that boxes of the second and of the last of three or more feature
            maps have at least; those of the first have 10 to 20 percent.
        min_sizes, max_sizes: instead of it, for each feature map a size or a list of them.
        steps: for each feature map the pixels between two places; or `step_w` and `step_h`.
        offset, variance, flip, clip, min_max_aspect_ratios_order: see `prior_box`.
        kernel_size, pad, stride: of the convolutions.
        name: has no effect.

    Returns:
        Offsets [N, M, 4], scores [N, M, classes], prior boxes [M, 4] and their variances [M, 4]. Of a single feature
        map: offsets [N, 4 M] and scores [N, classes * M], and what `prior_box` gives.

    Raises:
        AssertionError, IndexError, TypeError, ValueError: for arguments that do not fit.
    """
    if not isinstance(inputs, (list, tuple)):
        raise ArgumentError(f"'inputs' of multi_box_head must be a list of Variables, got {inputs!r:.80}")
    count = len(inputs)
    if (
        min_sizes is None
        and max_sizes is None
        and count > 2
        and min_ratio is not None
        and max_ratio is not None
    ):
        min_sizes, max_sizes = _sizes_between(base_size, min_ratio, max_ratio, count)
    smallest = _first_sizes(min_sizes, "min_sizes", count)
    largest = _first_sizes(max_sizes, "max_sizes", count)
    ratios = _one_each(aspect_ratios, "aspect_ratios", count)
    across = _one_each(step_w, "step_w", count) if step_w else [0.0] * count
    down = _one_each(step_h, "step_h", count) if step_h else [0.0] * count
    if steps:
        across = down = _one_each(steps, "steps", count)

    offsets: list[Variable] = []
    scores: list[Variable] = []
    priors = []
    for k, map_ in enumerate(inputs):
        boxes = prior_box(
            map_,
            image,
            _listed(smallest[k]),
            _listed(largest[k]),
            _listed(ratios[k]),
            variance,
            flip,
            clip,
            [across[k], down[k]],
            offset,
            None,
            min_max_aspect_ratios_order,
        )
        priors.append(boxes)
        for made, width in ((offsets, 4), (scores, num_classes)):
            said = conv2d(map_, boxes[0].shape[2] * width, kernel_size, stride, pad)
            made.append(flatten(transpose(said, perm=[0, 2, 3, 1]), axis=1))
    if count == 1:
        return offsets[0], scores[0], *priors[0]
    flat = [tuple(flatten(part, axis=3) for part in boxes) for boxes in priors]
    box, spread = (concat([pair[k] for pair in flat]) for k in range(2))
    box.stop_gradient = spread.stop_gradient = True
    location = reshape(concat(offsets, axis=1), shape=[0, -1, 4])
    return location, reshape(concat(scores, axis=1), shape=[0, -1, num_classes]), box, spread
