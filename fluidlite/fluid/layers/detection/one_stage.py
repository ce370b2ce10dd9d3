"""Detectors in one stage - YOLO v3 (Redmon and Farhadi 2018), RetinaNet (Lin et al. 2017) - and suppression of
boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variables
from ...op_functions import of_kind, run_layer
from ..checks import check_lists
from .proposals import TARGETS, targets

__all__ = [
    "generate_mask_labels",
    "locality_aware_nms",
    "matrix_nms",
    "multiclass_nms",
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


def detected(
    op_type: str, arguments: dict[str, Any], layer: str | None = None, without: tuple[str, ...] = ()
) -> Any:
    """The boxes that `op_type` chooses for the `arguments` of a layer; with `return_index` also which these are.

    No gradient goes through either. `layer`: the prefix of the results' names; by default the operator.
    `without`: as of `run_layer`.
    """
    _check_numbers(op_type, arguments, int, float, NoneType)
    helper = LayerHelper(layer or op_type, name=arguments.get("name"))
    made = run_layer(
        op_type, arguments, without=("return_index", *without), stop_gradient=True, helper=helper
    )
    results = made if isinstance(made, tuple) else (made,)
    return results if arguments.get("return_index") else results[0]


def _check_numbers(op_type: str, arguments: dict[str, Any], *kinds: type) -> None:
    for number in ("score_threshold", "nms_threshold", "nms_eta"):
        if number in arguments and not isinstance(arguments[number], kinds):
            raise TypeError(f"'{number}' of {op_type} must be a number, got {arguments[number]!r}")


def _suppressed(
    kind: str,
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    name: str | None = None,
) -> Variable:
    if kind == "locality_aware_nms" and (len(scores.shape) != 3 or scores.shape[1] != 1):
        raise ArgumentError(f"'scores' of locality_aware_nms must be [N, 1, M], got {list(scores.shape)}")
    _check_numbers(kind, locals(), int, float)
    return detected(kind, locals(), without=("kind",))


multiclass_nms = of_kind(
    _suppressed,
    "multiclass_nms",
    """Of the boxes of each class those that no better one overlaps (`fluid.layers.multiclass_nms`).

    Args:
        bboxes: floats [N, M, 4], x and y of two corners, or [N, M, 8], [N, M, 16], ... for convex polygons; boxes of
            their own for each class: [rows, classes, 4] with sequences.
        scores: [N, classes, M], or for boxes of their own [rows, classes].
        score_threshold: scores that are not greater do not count.
        nms_top_k: how many boxes of a class are considered; -1: all.
        keep_top_k: how many boxes of an image are kept; -1: all.
        nms_threshold: how much, intersection over union, boxes may overlap.
        normalized: false for pixels, of which the last one belongs to the box.
        nms_eta: below 1 the threshold is multiplied by it after each box, as long as it is above 0.5.
        background_label: the class that is left out; -1: none.
        name: the name of the result.

    Returns:
        [found, 2 + width]: class, score and box of each, a sequence for each image. If there are none at all, [1, 1]
        with -1.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """,
)
locality_aware_nms = of_kind(
    _suppressed,
    "locality_aware_nms",
    """Neighbouring boxes that overlap put together, then as `multiclass_nms` (`fluid.layers.locality_aware_nms`).

    `bboxes` is [1, M, 4], or [1, M, 8] and so on for convex polygons, `scores` [1, 1, M]; the other arguments and the
    result are those of `multiclass_nms`. Follows Zhou et al. (2017).
    """,
    background_label=-1,
)


def multiclass_nms2(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """`multiclass_nms` that gives [0, 2 + width] for no boxes (`fluid.contrib.layers.multiclass_nms2`).

    With `return_index` also, as [found, 1], which of the boxes of all images each one is; of boxes of their own for
    each class, row times classes plus class.
    """
    return detected("multiclass_nms2", locals())


def matrix_nms(
    bboxes: Variable,
    scores: Variable,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    use_gaussian: bool = False,
    gaussian_sigma: float = 2.0,
    background_label: int = 0,
    normalized: bool = True,
    return_index: bool = False,
    name: str | None = None,
) -> Variable | tuple[Variable, Variable]:
    """Boxes by scores that are less where better ones overlap them (`fluid.layers.matrix_nms`; Wang et al. 2020).

    Args:
        bboxes: floats [N, M, 4].
        scores: [N, classes, M].
        score_threshold: scores that are not greater do not count.
        post_threshold: nor do those that are not greater when they have been made less.
        use_gaussian: scores are made less by a Gaussian of `gaussian_sigma`, and linearly otherwise.
        return_index: also which of the boxes of all images each one is, as [found, 1].
        nms_top_k, keep_top_k, background_label, normalized, name: as those of `multiclass_nms`.

    Returns:
        [found, 6]: class, score and box of each, best first, a sequence for each image.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return detected("matrix_nms", locals())


def detection_map(
    detect_res: Variable,
    label: Variable,
    class_num: int,
    background_label: int = 0,
    overlap_threshold: float = 0.3,
    evaluate_difficult: bool = True,
    has_state: Variable | None = None,
    input_states: Sequence[Variable] | None = None,
    out_states: Sequence[Variable] | None = None,
    ap_version: str = "integral",
) -> Variable:
    """The mean average precision of found boxes (`fluid.layers.detection.detection_map`; Everingham et al. 2010).

    Args:
        detect_res: float32 [boxes, 6] with a sequence for each image: class, score, xmin, ymin, xmax, ymax; parts of
            the size of the image.
        label: float32 [boxes, 6], class, difficult (1 or 0), corners, or [boxes, 5] without `difficult`; sequences too.
        class_num: how many classes there are.
        background_label: has no effect, as in Fluid.
        overlap_threshold: a box is right if it overlaps one of `label` of its class by more; the common area over that
            of both. Only the best box counts as such.
        evaluate_difficult: whether difficult boxes count.
        has_state: int32 [1], whether `input_states` are added to this batch.
        input_states, out_states: three Variables each: boxes of each class, int32 [class_num, 1], right boxes and wrong
            ones, [n, 2] of a score and 1 or 0 with a sequence for each class.
        ap_version: "integral": the area under the curve of precision over recall; "11point": the mean of the best
            precision at 11 recalls.

    Returns:
        float32 [1].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_variables("detection_map", detect_res=detect_res, label=label)
    counts = (("PosCount", "AccumPosCount"), ("TruePos", "AccumTruePos"), ("FalsePos", "AccumFalsePos"))
    inputs = {"DetectRes": detect_res, "Label": label, "HasState": has_state}
    if input_states is not None:
        inputs.update(zip([slot for slot, _ in counts], input_states, strict=True))
    attrs = {
        "overlap_threshold": overlap_threshold,
        "evaluate_difficult": evaluate_difficult,
        "ap_type": ap_version,
        "class_num": class_num,
    }
    outputs = [slot for _, slot in counts]
    into = {} if out_states is None else dict(zip(outputs, out_states, strict=True))
    return LayerHelper("detection_map").run("detection_map", inputs, ("MAP", *outputs), attrs, into=into)[0]


def generate_mask_labels(
    im_info: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_segms: Variable,
    rois: Variable,
    labels_int32: Variable,
    num_classes: int,
    resolution: int,
) -> tuple[Variable, Variable, Variable]:
    """Target masks for a mask branch: the part of an object in each region (`fluid.layers.generate_mask_labels`).

    Args:
        im_info: floats [N, 3]: height, width and scale of each image.
        gt_classes: int32 [objects, 1] with sequences: the classes, from 1 on.
        is_crowd: int32 [objects, 1] with sequences: 1 for objects that do not count.
        gt_segms: floats [points, 2] with three levels of sequences, those of images, objects and outlines: the corners
            of the outlines, in pixels of the image before it was scaled.
        rois: floats [regions, 4] with sequences, of images as scaled.
        labels_int32: int32 [regions, 1] with sequences: the class of each region, 0 for none.
        num_classes: how many classes there are, with that of no object.
        resolution: the side of the square masks in pixels.

    Returns:
        The regions with an object [M, 4], their places among the regions of their image, int32 [M, 1], and their masks,
        int32 [M, num_classes resolution resolution]: 1 inside of the object that overlaps the region most, 0 outside,
        and -1 for all classes but that of the region. All have sequences. An image without any gives its first region
        without an object, and -1 alone.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    return run_layer("generate_mask_labels", locals(), stop_gradient=True)
