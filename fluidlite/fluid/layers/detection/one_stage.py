"""Detectors in one stage: YOLO v3 (Redmon and Farhadi 2018), RetinaNet (Lin et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....framework import Variable
from ...op_functions import run_layer
from ..checks import check_lists
from .proposals import TARGETS, targets

__all__ = [
    "retinanet_detection_output",
    "retinanet_target_assign",
    "sigmoid_focal_loss",
    "yolo_box",
    "yolov3_loss",
]


def _check(layer: str, kinds: type | tuple[type, ...], what: str, **given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, kinds) or (isinstance(value, bool) and kinds is not bool):
            raise TypeError(f"'{name}' of {layer} must be {what}, got {value!r}")


def yolov3_loss(
    x: Variable,
    gt_box: Variable,
    gt_label: Variable,
    anchors: Sequence[int],
    anchor_mask: Sequence[int],
    class_num: int,
    ignore_thresh: float,
    downsample_ratio: int,
    gt_score: Variable | None = None,
    use_label_smooth: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> Variable:
    """The loss of one feature map of YOLO v3 (`fluid.layers.yolov3_loss`).

    Args:
        x: floats [N, A (5 + class_num), H, H]: for each of A anchors x, y, width, height, confidence and classes.
        gt_box: floats [N, B, 4]: x and y of the middle, width and height, from 0 to 1; boxes of width or height 0
            are none.
        gt_label: int32 classes [N, B].
        anchors: width and height of all anchors, in pixels.
        anchor_mask: which of them this map is for; A of them.
        class_num: how many classes there are.
        ignore_thresh: predicted boxes that overlap a box by more than this, intersection over union, cost nothing
            for not being one.
        downsample_ratio: pixels between two places of the map.
        gt_score: floats [N, B]: how much each box counts; 1 by default.
        use_label_smooth: whether classes are 1 / 40 (1 / class_num if that is less) and 1 less that.
        name: the name of the result.
        scale_x_y: by how much middles may lie outside of their place.

    Returns:
        The cost of each image [N].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    _check("yolov3_loss", (list, tuple), "a list", anchors=anchors, anchor_mask=anchor_mask)
    _check("yolov3_loss", int, "an integer", class_num=class_num)
    _check("yolov3_loss", float, "a float", ignore_thresh=ignore_thresh)
    _check("yolov3_loss", bool, "True or False", use_label_smooth=use_label_smooth)
    return run_layer("yolov3_loss", locals())[0]


def yolo_box(
    x: Variable,
    img_size: Variable,
    anchors: Sequence[int],
    class_num: int,
    conf_thresh: float,
    downsample_ratio: int,
    clip_bbox: bool = True,
    name: str | None = None,
    scale_x_y: float = 1.0,
) -> tuple[Variable, Variable]:
    """The boxes of a map of YOLO v3 (`fluid.layers.yolo_box`).

    Args:
        x: floats [N, A (5 + class_num), H, W], as for `yolov3_loss`.
        img_size: int32 or int64 [N, 2]: height and width of each image in pixels.
        anchors: width and height of the map's A anchors, in pixels.
        class_num: how many classes there are.
        conf_thresh: boxes of less confidence are zeros.
        downsample_ratio: pixels between two places of the map.
        clip_bbox: whether boxes end at the edges of the image.
        name: the prefix of the results' names.
        scale_x_y: by how much middles may lie outside of their place.

    Returns:
        Boxes [N, A H W, 4], x and y of two corners in pixels, and the scores of all classes [N, A H W, class_num].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    _check("yolo_box", (list, tuple), "a list", anchors=anchors)
    _check("yolo_box", int, "an integer", class_num=class_num)
    _check("yolo_box", float, "a float", conf_thresh=conf_thresh)
    return run_layer("yolo_box", locals())


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
