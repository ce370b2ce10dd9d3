"""RetinaNet (Lin et al. 2017): its loss, which anchors it learns from, and the boxes that it finds."""

from __future__ import annotations

from collections.abc import Sequence

from ...framework import Variable
from ...op_functions import run_layer
from ..checks import check_lists
from .proposals import TARGETS, targets

__all__ = ["retinanet_detection_output", "retinanet_target_assign", "sigmoid_focal_loss"]


def sigmoid_focal_loss(
    x: Variable, label: Variable, fg_num: Variable, gamma: float = 2.0, alpha: float = 0.25
) -> Variable:
    """The focal loss (`fluid.layers.sigmoid_focal_loss`; Lin et al. 2017).

    Args:
        x: floats [N, classes], before sigmoid.
        label: int32 [N, 1]: classes counted from 1, 0 for the background, -1 for what does not count.
        fg_num: int32 [1]: what the loss is divided by, unless it is less than 1.
        gamma: how much less what is easy counts.
        alpha: how much being of a class counts; not being of it counts 1 less that.

    Returns:
        [N, classes].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return run_layer("sigmoid_focal_loss", locals())


def retinanet_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    gt_labels: Variable,
    is_crowd: Variable,
    im_info: Variable,
    num_classes: int = 1,
    positive_overlap: float = 0.5,
    negative_overlap: float = 0.4,
) -> tuple[Variable, ...]:
    """Assign the anchors that train RetinaNet (`fluid.layers.retinanet_target_assign`; Lin et al. 2017).

    Args:
        cls_logits: predicted scores [N, M, num_classes].
        gt_labels: int32 classes [B, 1], counted from 1.
        num_classes: how many classes there are.
        positive_overlap, negative_overlap: as those of `rpn_target_assign`.
        bbox_pred, anchor_box, anchor_var, gt_boxes, is_crowd, im_info: as those of `rpn_target_assign`.

    Returns:
        What `rpn_target_assign` does, with classes as labels, and int32 [N, 1]: one more than the anchors that have
        a box.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return tuple(targets("retinanet_target_assign", locals(), (*TARGETS, "ForegroundNumber")))


def retinanet_detection_output(
    bboxes: Sequence[Variable],
    scores: Sequence[Variable],
    anchors: Sequence[Variable],
    im_info: Variable,
    score_threshold: float = 0.05,
    nms_top_k: int = 1000,
    keep_top_k: int = 100,
    nms_threshold: float = 0.3,
    nms_eta: float = 1.0,
) -> Variable:
    """The boxes that RetinaNet has found (`fluid.layers.retinanet_detection_output`; Lin et al. 2017).

    Args:
        bboxes: for each feature map offsets [N, M, 4].
        scores: for each feature map scores [N, M, classes].
        anchors: for each feature map anchors in pixels [M, 4].
        im_info: [N, 3]: height, width and scale of each image.
        score_threshold: scores that are not greater do not count, but for those of the last feature map.
        nms_top_k: how many boxes of each feature map are considered.
        keep_top_k, nms_threshold: see `multiclass_nms`.
        nms_eta: has no effect, as in Fluid 1.8.

    Returns:
        [found, 6]: class, counted from 1, score and box of each, a sequence for each image; [1, 1] with -1
        for none at all.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_lists("retinanet_detection_output", "Variables", bboxes=bboxes, scores=scores, anchors=anchors)
    return run_layer("retinanet_detection_output", locals(), stop_gradient=True)
