"""Detectors in two stages (Ren et al. 2015), and feature pyramids (Lin et al. 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....framework import Variable
from ...layer_helper import check_variables, run_op
from ...op_functions import run_layer
from ..checks import check_lists
from ..tensor.indexing import gather
from ..tensor.shapes import reshape

__all__ = [
    "collect_fpn_proposals",
    "distribute_fpn_proposals",
    "generate_proposal_labels",
    "generate_proposals",
    "rpn_target_assign",
]

TARGETS = ("LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight")


def generate_proposals(
    scores: Variable,
    bbox_deltas: Variable,
    im_info: Variable,
    anchors: Variable,
    variances: Variable,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000,
    nms_thresh: float = 0.5,
    min_size: float = 0.1,
    eta: float = 1.0,
    name: str | None = None,
    return_rois_num: bool = False,
) -> tuple[Variable, ...]:
    """The boxes of a feature map that may hold something (`fluid.layers.generate_proposals`; Ren et al. 2015).

    Args:
        scores: floats [N, A, H, W].
        bbox_deltas: offsets to the anchors [N, 4 A, H, W].
        im_info: [N, 3]: height, width and scale of each image.
        anchors, variances: [H, W, A, 4], what `anchor_generator` gives.
        pre_nms_top_n: how many boxes of an image are considered; 0 or less: all.
        post_nms_top_n: how many are kept; 0 or less: all.
        nms_thresh: how much, intersection over union, boxes may overlap.
        min_size: how wide and high boxes must be, in pixels before scaling.
        eta: see `nms_eta` of `multiclass_nms`.
        name: the prefix of the results' names.
        return_rois_num: also where the boxes of each image end, int64 [N].

    Returns:
        Boxes in pixels [R, 4] and scores [R, 1], a sequence for each image, best first.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    made: tuple[Variable, ...] = run_layer(
        "generate_proposals", locals(), without=("return_rois_num",), stop_gradient=True
    )
    return made if return_rois_num else made[:2]


def rpn_target_assign(
    bbox_pred: Variable,
    cls_logits: Variable,
    anchor_box: Variable,
    anchor_var: Variable,
    gt_boxes: Variable,
    is_crowd: Variable,
    im_info: Variable,
    rpn_batch_size_per_im: int = 256,
    rpn_straddle_thresh: float = 0.0,
    rpn_fg_fraction: float = 0.5,
    rpn_positive_overlap: float = 0.7,
    rpn_negative_overlap: float = 0.3,
    use_random: bool = True,
) -> tuple[Variable, Variable, Variable, Variable, Variable]:
    """Sample the anchors that train a region proposal network (`fluid.layers.rpn_target_assign`; Ren et al. 2015).

    Args:
        bbox_pred: predicted offsets [N, M, 4].
        cls_logits: predicted scores [N, M, 1].
        anchor_box: anchors in pixels [M, 4].
        anchor_var: has no effect.
        gt_boxes: boxes [B, 4], a sequence for each of N images.
        is_crowd: int32 [B, 1], with the same sequences: boxes with 1 do not count.
        im_info: [N, 3]: height, width and scale of each image.
        rpn_batch_size_per_im: how many anchors of an image there are at most.
        rpn_straddle_thresh: how far anchors may reach beyond the image; negative: as far as they like.
        rpn_fg_fraction: how many of them have a box.
        rpn_positive_overlap: anchors that overlap a box by this have it, and those that overlap it most.
        rpn_negative_overlap: anchors that overlap no box by this have none.
        use_random: whether anchors are chosen at random, or the first ones.

    Returns:
        Predicted scores [S, 1] and offsets [L, 4] of these anchors, labels int32 [S, 1], offsets of the boxes [L, 4]
        and how much these count [L, 4].

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    found = targets("rpn_target_assign", locals(), TARGETS)
    return found[0], found[1], found[2], found[3], found[4]


def targets(layer: str, arguments: dict[str, Any], outputs: tuple[str, ...]) -> list[Variable]:
    """Predicted scores and offsets where there are targets, then the targets; `arguments`: those of `layer`."""
    predicted = {"bbox_pred": arguments["bbox_pred"], "cls_logits": arguments["cls_logits"]}
    check_variables(layer, **predicted)
    others = (*predicted, "anchor_var", "num_classes")
    location, score, *targets = run_layer(
        layer, arguments, outputs, without=others, stop_gradient=True, Anchor="anchor_box"
    )
    logits = reshape(predicted["cls_logits"], shape=(-1, arguments.get("num_classes", 1)))
    offsets = reshape(predicted["bbox_pred"], shape=(-1, 4))
    return [gather(logits, score), gather(offsets, location), *targets]


def generate_proposal_labels(
    rpn_rois: Variable,
    gt_classes: Variable,
    is_crowd: Variable,
    gt_boxes: Variable,
    im_info: Variable,
    batch_size_per_im: int = 256,
    fg_fraction: float = 0.25,
    fg_thresh: float = 0.25,
    bg_thresh_hi: float = 0.5,
    bg_thresh_lo: float = 0.0,
    bbox_reg_weights: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    class_nums: int | None = None,
    use_random: bool = True,
    is_cls_agnostic: bool = False,
    is_cascade_rcnn: bool = False,
) -> tuple[Variable, ...]:
    """Sample the regions that train a detector (`fluid.layers.generate_proposal_labels`; Ren et al. 2015).

    Args:
        rpn_rois: regions [R, 4] in pixels, a sequence for each of N images.
        gt_classes: int32 classes of the boxes [B, 1], with sequences.
        is_crowd: int32 [B, 1], with sequences: boxes with 1 are no regions.
        gt_boxes: boxes [B, 4], with sequences, in pixels before scaling.
        im_info: [N, 3]: height, width and scale of each image.
        batch_size_per_im: how many regions of an image there are at most.
        fg_fraction: how many of them have a box.
        fg_thresh: regions that overlap a box by more than this have it.
        bg_thresh_hi, bg_thresh_lo: those that overlap none by the first, but some by the second, have none.
        bbox_reg_weights: what the offsets are divided by.
        class_nums: how many classes there are, with the background.
        use_random: whether regions are chosen at random, or the first ones.
        is_cls_agnostic: whether the offsets of all classes stand in the same columns.
        is_cascade_rcnn: whether all regions are taken, and no boxes besides.

    Returns:
        Regions [S, 4], int32 labels [S, 1], offsets [S, 4 class_nums] and twice how much these count, all with
        sequences.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    if not isinstance(class_nums, int):
        raise TypeError(f"'class_nums' of generate_proposal_labels must be an integer, got {class_nums!r}")
    bbox_reg_weights = [float(w) for w in bbox_reg_weights]
    return run_layer("generate_proposal_labels", locals(), stop_gradient=True)


def distribute_fpn_proposals(
    fpn_rois: Variable,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    name: str | None = None,
) -> tuple[list[Variable], Variable]:
    """Regions for each map of a feature pyramid, by their size (`fluid.layers.distribute_fpn_proposals`).

    Args:
        fpn_rois: regions [R, 4] in pixels, a sequence for each image.
        min_level, max_level: the first and the last map.
        refer_level: the map for regions of side `refer_scale`; those of half the side go to the map before.
        refer_scale: see there.
        name: the prefix of the results' names.

    Returns:
        A list of regions [R', 4] for each map, with sequences; and int32 [R, 1]: where, in all of them one after the
        other, each region has gone. Follows Lin et al. (2017).

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    outputs = (("MultiFpnRois", max_level - min_level + 1), "RestoreIndex")
    *made, restore = run_layer("distribute_fpn_proposals", locals(), outputs, without=("outputs",))
    return made, restore


def collect_fpn_proposals(
    multi_rois: Sequence[Variable],
    multi_scores: Sequence[Variable],
    min_level: int,
    max_level: int,
    post_nms_top_n: int,
    name: str | None = None,
) -> Variable:
    """The best regions of all maps of a feature pyramid (`fluid.layers.collect_fpn_proposals`; Lin et al. 2017).

    Args:
        multi_rois: for each map regions [R, 4], a sequence for each image.
        multi_scores: for each map their scores [R, 1].
        min_level, max_level: the first and the last map.
        post_nms_top_n: how many regions of all images are kept.
        name: the name of the result.

    Returns:
        Regions [R', 4], a sequence for each image.

    Raises:
        TypeError, OperatorError: for arguments that do not fit.
    """
    check_lists("collect_fpn_proposals", "Variables", multi_rois=multi_rois, multi_scores=multi_scores)
    count = max_level - min_level + 1
    return run_op(
        "collect_fpn_proposals",
        {"MultiLevelRois": list(multi_rois[:count]), "MultiLevelScores": list(multi_scores[:count])},
        ("FpnRois",),
        attrs={"post_nms_topN": post_nms_top_n},
        stop_gradient=True,
        name=name,
    )
