"""Training targets of anchors and proposed regions (Ren et al. 2015, Lin et al. 2017)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import Effects, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, levels, offsets_of
from .boxes import encoded, middles, overlaps

Array = np.ndarray

_NEAR = 1e-5
"""Anchors that overlap a box by this much less than the best one are as good."""


def _offsets_to(boxes: Array, anchors: Array) -> Array:
    """The offsets of boxes in pixels to anchors, [n, 4] both."""
    return encoded(np, middles(boxes, False), *middles(anchors, False))


def _first(places: Array, most: int, random: bool, replaceable: int | None = None) -> Array:
    """`most` of the places at most: the first ones, of which, with `random`, later ones take the place of some.

    As in Fluid the i-th place (from 0) takes any of the first i places, if that is among the `replaceable` ones at the
    front; by default all that are chosen are.
    """
    if not 0 <= most < len(places):
        return places
    chosen = places[:most].copy()
    if random:
        later = np.arange(most, len(places))
        taken = (np.random.random(len(later)) * later).astype(np.int64)
        takes = taken < (most if replaceable is None else min(most, replaceable))
        chosen[taken[takes]] = places[later[takes]]
    return chosen


class _Assigned(NamedTuple):
    """The anchors of one image with a box (`unreal` of weight 0 precede them), and those without one."""

    located: Array
    unreal: int
    positive: Array
    negative: Array
    box: Array


def _assign(
    similar: Array, positive: float, negative: float, batch: int, fraction: float, random: bool
) -> _Assigned:
    """Choose anchors with a box and anchors with none, by their overlaps with boxes.

    `batch`: the limit of anchors, -1: all; `fraction`: the part of them with a box. As in Fluid, an anchor of both
    kinds counts as one with none, but leaves an entry of weight 0 among the located ones.
    """
    best, box = similar.max(axis=1, initial=0), similar.argmax(axis=1) if similar.shape[1] else None
    if box is None:
        box = np.zeros(len(similar), np.int64)
    good = (best >= np.float32(positive)) | (abs(similar - similar.max(axis=0, initial=0)) < _NEAR).any(
        axis=1
    )
    chosen = _first(np.flatnonzero(good), int(batch * fraction) if batch > 0 else -1, random)
    label = np.full(len(similar), -1)
    label[chosen] = 1
    rest = batch - len(chosen) if batch > 0 else -1
    far = _first(np.flatnonzero(best < np.float32(negative)), rest, random)
    unreal = int((label[far] == 1).sum())
    label[far] = 0
    real = np.flatnonzero(label == 1)
    located = np.concatenate([np.repeat(chosen[:1], unreal), real])
    return _Assigned(located, unreal, real, np.flatnonzero(label == 0), box)


def _joined(parts: list[Array], width: int, kind: Any) -> Array:
    return np.concatenate([*parts, np.zeros((0, width), kind)]).astype(kind)


class _Targets:
    """The targets of the images up to now, and the operator's results made from them."""

    def __init__(self) -> None:
        self.located: list[Array] = []
        self.scored: list[Array] = []
        self.labels: list[Array] = []
        self.boxes: list[Array] = []
        self.weights: list[Array] = []

    def add(
        self, found: _Assigned, inside: Array, first: int, labels: Array, boxes: Array, anchors: Array
    ) -> None:
        self.located.append(first + inside[found.located])
        self.scored.append(first + inside[np.concatenate([found.positive, found.negative])])
        self.labels.append(np.concatenate([labels, np.zeros(len(found.negative))]).reshape(-1, 1))
        own = boxes[found.box[found.located]] if len(found.located) else np.zeros((0, 4), anchors.dtype)
        self.boxes.append(_offsets_to(own, anchors[inside[found.located]]))
        weight = np.ones((len(found.located), 4), np.float32)
        weight[: found.unreal] = 0
        self.weights.append(weight)

    def results(self, kind: Any) -> list[LodArray]:
        located, scored = (
            offsets_of(np.array([len(p) for p in part], np.int64)) for part in (self.located, self.scored)
        )
        return [
            LodArray(np.concatenate([*self.located, np.zeros(0)]).astype(np.int32), (located,)),
            LodArray(np.concatenate([*self.scored, np.zeros(0)]).astype(np.int32), (scored,)),
            LodArray(_joined(self.boxes, 4, kind), (located,)),
            LodArray(_joined(self.labels, 1, np.int32), (scored,)),
            LodArray(_joined(self.weights, 4, kind), (located,)),
        ]


def parts(op_type: str, lod: Lods, slot: str, images: int) -> list[slice]:
    """The rows of each image."""
    offsets = levels(op_type, lod, slot)[-1].tolist()
    if len(offsets) - 1 != images:
        raise OperatorError(
            f"operator {op_type}: {slot} has {len(offsets) - 1} sequences for {images} images"
        )
    return [slice(*ends) for ends in zip(offsets[:-1], offsets[1:], strict=True)]


@hosted
def _rpn(
    xp: Any,
    Anchor: Any,
    GtBoxes: Any,
    IsCrowd: Any,
    ImInfo: Any,
    rpn_batch_size_per_im: int,
    rpn_straddle_thresh: float,
    rpn_positive_overlap: float,
    rpn_negative_overlap: float,
    rpn_fg_fraction: float,
    use_random: bool,
    lod: Lods,
) -> Any:
    anchors = Anchor.reshape(-1, 4)
    made = _Targets()
    for image, rows in enumerate(parts("rpn_target_assign", lod, "GtBoxes", len(ImInfo))):
        high, wide, scale = ImInfo[image]
        inside = np.ones(len(anchors), bool)
        if rpn_straddle_thresh >= 0:
            edges = np.array([wide, high]) + rpn_straddle_thresh
            inside = (anchors[:, :2] >= -rpn_straddle_thresh).all(axis=1) & (anchors[:, 2:] < edges).all(
                axis=1
            )
        places = np.flatnonzero(inside)
        boxes = (GtBoxes[rows] * scale)[IsCrowd[rows].reshape(-1) == 0].astype(anchors.dtype)
        found = _assign(
            overlaps(np, anchors[places], boxes, False),
            rpn_positive_overlap,
            rpn_negative_overlap,
            rpn_batch_size_per_im,
            rpn_fg_fraction,
            use_random,
        )
        made.add(found, places, image * len(anchors), np.ones(len(found.positive)), boxes, anchors)
    return tuple(made.results(anchors.dtype))


@hosted
def _retinanet(
    xp: Any,
    Anchor: Any,
    GtBoxes: Any,
    GtLabels: Any,
    IsCrowd: Any,
    ImInfo: Any,
    positive_overlap: float,
    negative_overlap: float,
    lod: Lods,
) -> Any:
    anchors = Anchor.reshape(-1, 4)
    places = np.arange(len(anchors))
    made, counts = _Targets(), []
    for image, rows in enumerate(parts("retinanet_target_assign", lod, "GtBoxes", len(ImInfo))):
        alone = IsCrowd[rows].reshape(-1) == 0
        boxes = (GtBoxes[rows] * ImInfo[image][2])[alone].astype(anchors.dtype)
        similar = overlaps(np, anchors, boxes, False)
        found = _assign(similar, positive_overlap, negative_overlap, -1, -1, False)
        labels = GtLabels[rows].reshape(-1)[alone][found.box[found.positive]] if len(boxes) else np.zeros(0)
        made.add(found, places, image * len(anchors), labels, boxes, anchors)
        counts.append(len(found.located) + 1)
    offsets = offsets_of(np.ones(len(counts), np.int64))
    foreground = LodArray(np.array(counts, np.int32).reshape(-1, 1), (offsets,))
    return (*made.results(anchors.dtype), foreground)


def _infer_targets(op: OpView) -> None:
    for slot in ("Anchor", "GtBoxes"):
        if op.shape(slot)[-1] not in (4, -1):
            raise op.fail(f"{slot} must be boxes of 4 numbers, got {list(op.shape(slot))}")
    if len(op.shape("ImInfo")) != 2 or op.shape("ImInfo")[1] not in (3, -1):
        raise op.fail(f"ImInfo must be [batch, 3], got {list(op.shape('ImInfo'))}")
    for slot in ("LocationIndex", "ScoreIndex"):
        op.set(slot, (-1,), VarType.INT32)
    op.set("TargetLabel", (-1, 1), VarType.INT32)
    for slot in ("TargetBBox", "BBoxInsideWeight"):
        op.set(slot, (-1, 4), op.dtype("Anchor"))
    op.set("ForegroundNumber", (-1, 1), VarType.INT32)


_FOUND = ("LocationIndex", "ScoreIndex", "TargetBBox", "TargetLabel", "BBoxInsideWeight")


def _register(
    op_type: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    attrs: dict[str, Any],
    infer: Callable[[OpView], None],
    kernel: Callable[..., Any],
    doc: str,
    random: bool = True,
) -> None:
    register(
        op_type,
        inputs=inputs,
        outputs=outputs,
        attrs=attrs,
        infer=infer,
        kernel=kernel,
        no_grad=outputs,
        sequences=Sequences(takes_lod=True),
        effects=Effects(random=random),
        doc=doc,
    )


_register(
    "rpn_target_assign",
    ("Anchor", "GtBoxes", "IsCrowd", "ImInfo"),
    _FOUND,
    {
        "rpn_batch_size_per_im": 256,
        "rpn_straddle_thresh": 0.0,
        "rpn_positive_overlap": 0.7,
        "rpn_negative_overlap": 0.3,
        "rpn_fg_fraction": 0.25,
        "use_random": True,
    },
    _infer_targets,
    _rpn,
    "Which anchors have a box and which have none, some of each, and the offsets of these boxes.",
)
_register(
    "retinanet_target_assign",
    ("Anchor", "GtBoxes", "GtLabels", "IsCrowd", "ImInfo"),
    (*_FOUND, "ForegroundNumber"),
    {"positive_overlap": 0.5, "negative_overlap": 0.4},
    _infer_targets,
    _retinanet,
    "Which anchors have a box and which have none, the offsets and classes of these boxes, and one more than how many.",
    random=False,
)


class _SampledRegions(NamedTuple):
    """The sampled regions of one image; those with a box first."""

    rois: Array
    labels: Array
    offsets: Array


def _sampled_rois(
    rois: Array, classes: Array, crowd: Array, boxes: Array, scale: float, attrs: dict[str, Any]
) -> _SampledRegions:
    if not attrs["is_cascade_rcnn"]:
        regions = np.concatenate([boxes, rois / scale])
        real = np.ones(len(regions), bool)
    else:
        # As in Fluid, the first len(boxes) regions are the boxes themselves and not scaled.
        regions = np.concatenate([rois[: len(boxes)], rois[len(boxes) :] / scale])
        real = ((regions[:, 2:] - regions[:, :2] + 1) > 0).all(axis=1)
    of_crowd = np.zeros(len(regions), bool)
    of_crowd[: len(boxes)] = crowd[: len(regions)] != 0
    regions, of_crowd = regions[real], of_crowd[real]
    similar = overlaps(np, regions, boxes, False)
    best, box = (
        similar.max(axis=1, initial=0),
        similar.argmax(axis=1) if len(boxes) else np.zeros(len(regions), int),
    )
    best[of_crowd] = -1
    good = np.flatnonzero(best > np.float32(attrs["fg_thresh"]))
    low, high = (np.float32(attrs[name]) for name in ("bg_thresh_lo", "bg_thresh_hi"))
    far = np.setdiff1d(np.flatnonzero((best >= low) & (best < high)), good)
    if not attrs["is_cascade_rcnn"]:
        batch = attrs["batch_size_per_im"]
        good = _first(good, int(np.floor(batch * attrs["fg_fraction"])), attrs["use_random"])
        # Fluid compares with the number of foreground regions here, so only that many of the others are replaced.
        far = _first(far, batch - len(good), attrs["use_random"], len(good))
    labels = np.concatenate([classes[box[good]], np.zeros(len(far), classes.dtype)])
    offsets = _offsets_to(boxes[box[good]], regions[good]) / np.asarray(
        attrs["bbox_reg_weights"], regions.dtype
    )
    whole = np.zeros((len(labels), 4), regions.dtype)
    whole[: len(good)] = offsets
    return _SampledRegions(regions[np.concatenate([good, far])] * scale, labels, whole)


@hosted
def _proposal_labels(
    xp: Any, RpnRois: Any, GtClasses: Any, IsCrowd: Any, GtBoxes: Any, ImInfo: Any, lod: Lods, **attrs: Any
) -> Any:
    op_type = "generate_proposal_labels"
    images = [
        _sampled_rois(
            RpnRois[mine],
            GtClasses[rows].reshape(-1),
            IsCrowd[rows].reshape(-1),
            GtBoxes[rows].astype(RpnRois.dtype),
            ImInfo[image][2],
            attrs,
        )
        for image, (mine, rows) in enumerate(
            zip(*(parts(op_type, lod, slot, len(ImInfo)) for slot in ("RpnRois", "GtBoxes")), strict=True)
        )
    ]
    kind = RpnRois.dtype
    rois, labels = (
        _joined([one.rois for one in images], 4, kind),
        np.concatenate([one.labels for one in images]),
    )
    # Each class has four columns of its own.
    own = np.minimum(labels, 1) if attrs["is_cls_agnostic"] else labels
    targets = np.zeros((len(labels), attrs["class_nums"], 4), kind)
    weights = np.zeros_like(targets)
    real = np.flatnonzero(labels > 0)
    targets[real, own[real]] = _joined([one.offsets for one in images], 4, kind)[real]
    weights[real, own[real]] = 1
    offsets = offsets_of(np.array([len(one.labels) for one in images], np.int64))
    flat = (
        targets.reshape(len(labels), -1),
        weights.reshape(len(labels), -1),
        weights.reshape(len(labels), -1),
    )
    results = rois, labels.astype(np.int32).reshape(-1, 1), *flat
    return tuple(LodArray(part, (offsets,)) for part in results)


def _infer_labels(op: OpView) -> None:
    wide = 4 * op.attr("class_nums")
    op.set("Rois", (-1, 4), op.dtype("RpnRois"))
    op.set("LabelsInt32", (-1, 1), VarType.INT32)
    for slot in ("BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"):
        op.set(slot, (-1, wide), op.dtype("RpnRois"))


_register(
    "generate_proposal_labels",
    ("RpnRois", "GtClasses", "IsCrowd", "GtBoxes", "ImInfo"),
    ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights"),
    {
        "batch_size_per_im": 256,
        "fg_fraction": 0.25,
        "fg_thresh": 0.25,
        "bg_thresh_hi": 0.5,
        "bg_thresh_lo": 0.0,
        "bbox_reg_weights": [0.1, 0.1, 0.2, 0.2],
        "class_nums": 81,
        "use_random": True,
        "is_cascade_rcnn": False,
        "is_cls_agnostic": False,
    },
    _infer_labels,
    _proposal_labels,
    "Some regions with a box and some with none, their classes, and for each class the offsets of the boxes.",
)
