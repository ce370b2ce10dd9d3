"""The boxes that a detector found: non-maximum suppression, masks, and how good they are."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any

from ....base.errors import ArgumentError
from ....framework import Variable
from ...layer_helper import LayerHelper, check_variables
from ...op_functions import of_kind, run_layer

__all__ = ["generate_mask_labels", "locality_aware_nms", "matrix_nms", "multiclass_nms"]


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
