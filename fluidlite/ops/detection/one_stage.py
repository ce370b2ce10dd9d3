"""Detectors in one stage: YOLO v3 (Redmon and Farhadi 2018), its loss and boxes; RetinaNet (Lin et al. 2017), the
sigmoid focal loss and detections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.errors import OperatorError
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import LodArray, OpView, Sequences, register
from ..sequence import Lods, offsets_of
from .boxes import clipped
from .nms import best_first, suppressed
from .proposals import decoded

_LEAST = 1e-6
"""Boxes that are not wider and higher than this are none."""


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _cross_entropy(x: Any, label: Any) -> Any:
    """The cross entropy of sigmoid(x) and a label from 0 to 1."""
    return np.maximum(x, 0) - x * label + np.log1p(np.exp(-abs(x)))


def _predicted(maps: Any, anchors: Any, size: int, scale: float) -> tuple[Any, Any]:
    """Middles and extents (x, y) of the boxes of maps [N, A, 5 + classes, H, W], in parts of the image.

    A column and a row of the map are both counted in parts of its height.
    """
    high, wide = maps.shape[3:]
    shift = -0.5 * (scale - 1)
    middle = _sigmoid(maps[:, :, :2]) * maps.dtype.type(scale) + maps.dtype.type(shift)
    middle[:, :, 0] += np.arange(wide, dtype=maps.dtype)
    middle[:, :, 1] += np.arange(high, dtype=maps.dtype)[:, None]
    extent = np.exp(maps[:, :, 2:4]) * np.asarray(anchors, maps.dtype).reshape(1, -1, 2, 1, 1)
    return middle / high, extent / size


@hosted
def _yolo_box(
    xp: Any,
    X: Any,
    ImgSize: Any,
    class_num: int,
    anchors: Any,
    downsample_ratio: int,
    conf_thresh: float,
    clip_bbox: bool,
    scale_x_y: float,
) -> Any:
    maps = X.reshape(len(X), len(anchors) // 2, 5 + class_num, *X.shape[2:])
    middle, extent = _predicted(maps, anchors, downsample_ratio * X.shape[2], scale_x_y)
    image = ImgSize[:, None, ::-1, None, None].astype(X.dtype)
    low, top = (middle - extent / 2) * image, (middle + extent / 2) * image
    if clip_bbox:
        low, top = np.maximum(low, 0), np.minimum(top, image - 1)
    sure = _sigmoid(maps[:, :, 4:5])
    seen = sure >= X.dtype.type(conf_thresh)
    boxes = np.where(seen, np.concatenate([low, top], axis=2), X.dtype.type(0))
    scores = np.where(seen, sure * _sigmoid(maps[:, :, 5:]), X.dtype.type(0))
    flat = (part.transpose(0, 1, 3, 4, 2).reshape(len(X), -1, part.shape[2]) for part in (boxes, scores))
    return tuple(np.ascontiguousarray(part, X.dtype) for part in flat)


def _check_maps(op: OpView, count: int) -> None:
    shape, anchors = op.shape("X"), op.attr("anchors")
    if not anchors or len(anchors) % 2 or min(anchors) <= 0:
        raise op.fail(f"anchors must be pairs of positive numbers, got {list(anchors)}")
    if op.attr("class_num") <= 0:
        raise op.fail(f"class_num must be positive, got {op.attr('class_num')}")
    channels = count * (5 + op.attr("class_num"))
    if len(shape) != 4 or shape[1] not in (channels, -1):
        raise op.fail(f"X must be [batch, {channels}, height, width] for {count} anchors, got {list(shape)}")


def _infer_box(op: OpView) -> None:
    count = len(op.attr("anchors")) // 2
    _check_maps(op, count)
    batch, _, high, wide = op.shape("X")
    if len(op.shape("ImgSize")) != 2 or op.shape("ImgSize")[1] not in (2, -1):
        raise op.fail(f"ImgSize must be [batch, 2], got {list(op.shape('ImgSize'))}")
    boxes = high * wide * count  # Fluid declares 3 for 3 times two open sizes
    op.set("Boxes", (batch, boxes, 4), op.dtype("X"))
    op.set("Scores", (batch, boxes, op.attr("class_num")), op.dtype("X"))


register(
    "yolo_box",
    inputs=("X", "ImgSize"),
    outputs=("Boxes", "Scores"),
    attrs={
        "class_num": 1,
        "anchors": [],
        "downsample_ratio": 32,
        "conf_thresh": 0.01,
        "clip_bbox": True,
        "scale_x_y": 1.0,
    },
    infer=_infer_box,
    kernel=_yolo_box,
    no_grad=("Boxes", "Scores"),
    sequences=Sequences(source=None),
    doc="The boxes of a map in pixels, and what each class scores there; zeros where there is hardly anything.",
)


class _Boxes:
    """The boxes of all images that a map has an anchor for, and where in the map these are."""

    def __init__(self, maps: Any, GTBox: Any, attrs: dict[str, Any]) -> None:
        high, wide = maps.shape[3:]
        size = attrs["downsample_ratio"] * high
        anchors = np.asarray(attrs["anchors"], maps.dtype).reshape(-1, 2) / size
        extent = GTBox[..., 2:]
        self.there = (extent > _LEAST).all(axis=-1)
        shared = np.minimum(extent[..., None, :], anchors).prod(axis=-1)
        union = extent.prod(axis=-1)[..., None] + anchors.prod(axis=-1) - shared
        best = (shared / union).argmax(axis=-1)
        mask = np.full(len(anchors), -1, np.int32)
        for place, anchor in reversed(list(enumerate(attrs["anchor_mask"]))):
            mask[anchor] = place
        self.match = np.where(self.there, mask[best], -1).astype(np.int32)
        self.image, self.number = np.nonzero(self.match >= 0)
        own = GTBox[self.image, self.number]
        self.anchor = self.match[self.image, self.number]
        self.column, self.row = (own[:, k] * n for k, n in ((0, wide), (1, high)))
        column, row = self.column.astype(np.int64), self.row.astype(np.int64)
        outside = (column < 0) | (column >= wide) | (row < 0) | (row >= high)
        if outside.any():
            raise OperatorError(
                "operator yolov3_loss: GTBox must be middles, widths and heights in parts of the image, "
                f"middles in [0, 1); got {own[outside][0].tolist()}"
            )
        self.at = self.image, self.anchor, slice(None), row, column
        self.cell = self.image, self.anchor, row, column
        # The middle is counted in parts of the map's height, whatever its width is.
        self.target = np.stack([own[:, 0] * high - column, own[:, 1] * high - row], axis=1)
        self.sides = np.log(own[:, 2:] / anchors[best[self.image, self.number]])
        self.weight = 2 - own[:, 2] * own[:, 3]


def _maps(X: Any, attrs: dict[str, Any]) -> Any:
    return X.reshape(len(X), len(attrs["anchor_mask"]), 5 + attrs["class_num"], *X.shape[2:])


def _best_overlaps(maps: Any, GTBox: Any, there: Any, attrs: dict[str, Any]) -> Any:
    """[N, A, H, W]: how much, intersection over union, each predicted box overlaps the box that it overlaps most."""
    anchors = np.asarray(attrs["anchors"]).reshape(-1, 2)[attrs["anchor_mask"]]
    size = attrs["downsample_ratio"] * maps.shape[3]
    middle, extent = _predicted(maps, anchors, size, attrs["scale_x_y"])
    low, top, area = middle - extent / 2, middle + extent / 2, extent[:, :, 0] * extent[:, :, 1]
    best = np.zeros(area.shape, maps.dtype)
    for image, number in zip(*np.nonzero(there), strict=True):
        x, y, wide, high = GTBox[image, number]
        sides = [
            np.minimum(top[image, :, k], centre + side / 2) - np.maximum(low[image, :, k], centre - side / 2)
            for k, (centre, side) in enumerate(((x, wide), (y, high)))
        ]
        shared = np.maximum(sides[0], 0) * np.maximum(sides[1], 0)
        np.maximum(best[image], shared / (area[image] + wide * high - shared), out=best[image])
    return best


def _labels(attrs: dict[str, Any], GTLabel: Any, boxes: _Boxes, dtype: Any) -> Any:
    """[boxes, classes]: nearly 1 for the class of each box and nearly 0 for the others."""
    classes = attrs["class_num"]
    smooth = min(1 / classes, 1 / 40) if attrs["use_label_smooth"] else 0.0
    own = GTLabel[boxes.image, boxes.number][:, None] == np.arange(classes)
    return np.where(own, 1 - smooth, smooth).astype(dtype)


def _scores(GTScore: Any, boxes: _Boxes, dtype: Any) -> Any:
    return np.ones(len(boxes.image), dtype) if GTScore is None else GTScore[boxes.image, boxes.number]


@hosted
def _loss(xp: Any, X: Any, GTBox: Any, GTLabel: Any, GTScore: Any, **attrs: Any) -> Any:
    maps = _maps(X, attrs)
    boxes = _Boxes(maps, GTBox, attrs)
    scores = _scores(GTScore, boxes, X.dtype)
    found = maps[boxes.at]
    weight = (boxes.weight * scores)[:, None]
    labels = _labels(attrs, GTLabel, boxes, X.dtype)
    costs = (_cross_entropy(found[:, :2], boxes.target) * weight).sum(axis=1)
    costs += (abs(found[:, 2:4] - boxes.sides) * weight).sum(axis=1)
    costs += (_cross_entropy(found[:, 5:], labels) * scores[:, None]).sum(axis=1)
    best = _best_overlaps(maps, GTBox, boxes.there, attrs)
    mask = np.where(best > np.float32(attrs["ignore_thresh"]), X.dtype.type(-1), X.dtype.type(0))
    mask[boxes.cell] = scores
    sure = maps[:, :, 4]
    is_box = mask > 1e-5
    each = np.where(is_box, _cross_entropy(sure, 1) * mask, np.where(mask > -0.5, _cross_entropy(sure, 0), 0))
    loss = each.sum(axis=(1, 2, 3))
    np.add.at(loss, boxes.image, costs)
    return loss.astype(X.dtype), mask, boxes.match


@hosted
def _loss_grad(
    xp: Any,
    X: Any,
    GTBox: Any,
    GTLabel: Any,
    GTScore: Any,
    ObjectnessMask: Any,
    Loss_grad: Any,
    **attrs: Any,
) -> Any:
    maps = _maps(X, attrs)
    boxes = _Boxes(maps, GTBox, attrs)
    scores = _scores(GTScore, boxes, X.dtype)
    arrived = Loss_grad[boxes.image][:, None]
    found = maps[boxes.at]
    made = np.zeros_like(found)
    weight = (boxes.weight * scores)[:, None] * arrived
    made[:, :2] = (_sigmoid(found[:, :2]) - boxes.target) * weight
    made[:, 2:4] = np.where(found[:, 2:4] > boxes.sides, weight, -weight)
    labels = _labels(attrs, GTLabel, boxes, X.dtype)
    made[:, 5:] = (_sigmoid(found[:, 5:]) - labels) * scores[:, None] * arrived
    dx = np.zeros_like(maps)
    dx[boxes.at] = made  # of several boxes in one place the last one counts
    sure, mask = _sigmoid(maps[:, :, 4]), ObjectnessMask
    each = np.where(mask > 1e-5, (sure - 1) * mask, np.where(mask > -0.5, sure, 0))
    dx[:, :, 4] = each * Loss_grad[:, None, None, None]
    return dx.reshape(X.shape).astype(X.dtype)


_LOSS: dict[str, Any] = {
    "class_num": 1,
    "anchors": [],
    "anchor_mask": [],
    "downsample_ratio": 32,
    "ignore_thresh": 0.7,
    "use_label_smooth": True,
    "scale_x_y": 1.0,
}


def _infer_loss(op: OpView) -> None:
    mask, anchors = op.attr("anchor_mask"), len(op.attr("anchors")) // 2
    if any(not 0 <= place < anchors for place in mask):
        raise op.fail(f"anchor_mask must name anchors below {anchors}, got {list(mask)}")
    _check_maps(op, len(mask))
    batch, _, high, wide = op.shape("X")
    box = op.shape("GTBox")
    if len(box) != 3 or box[2] not in (4, -1):
        raise op.fail(f"GTBox must be [batch, boxes, 4], got {list(box)}")
    for slot in ("GTLabel", "GTScore"):
        if op.has(slot) and len(op.shape(slot)) != 2:
            raise op.fail(f"{slot} must be [batch, boxes], got {list(op.shape(slot))}")
    if high != wide:
        op.refuse(f"X must be as high as it is wide, got {high} and {wide}")
    op.set("Loss", (batch,), op.dtype("X"))
    op.set("ObjectnessMask", (batch, len(mask), high, wide), VarType.INT32 if op.building else op.dtype("X"))
    op.set("GTMatchMask", (batch, box[1]), VarType.INT32)


register_pair(
    "yolov3_loss",
    ("X", "GTBox", "GTLabel", "GTScore?"),
    _loss,
    _loss_grad,
    _infer_loss,
    "What the boxes, classes and scores of a map cost, for each image.",
    outputs=("Loss", "ObjectnessMask", "GTMatchMask"),
    attrs=_LOSS,
    keep_out=("ObjectnessMask", "GTMatchMask"),
    no_grad=("GTBox", "GTLabel", "GTScore", "ObjectnessMask", "GTMatchMask"),
    sequences=Sequences(source=None),
    sequences_back=Sequences(source=None),
)

Array = np.ndarray


def _kinds(xp: Any, X: Any, Label: Any, FgNum: Any, alpha: float) -> tuple[Any, Any]:
    """The weights of each element for being of its class, and for not being of it."""
    label = Label.reshape(-1, 1)
    own = label == xp.arange(1, X.shape[1] + 1, dtype=label.dtype)
    count = xp.maximum(FgNum.reshape(()), 1).astype(X.dtype)
    return own * alpha / count, (~own & (label != -1)) * (1 - alpha) / count


def _logs(xp: Any, X: Any) -> tuple[Any, Any]:
    """The logarithms of sigmoid(X) and of 1 less that."""
    tail = xp.log1p(xp.exp(-abs(X)))
    return xp.minimum(X, 0) - tail, -xp.maximum(X, 0) - tail


def _focal(xp: Any, X: Any, Label: Any, FgNum: Any, gamma: float, alpha: float) -> Any:
    yes, no = _kinds(xp, X, Label, FgNum, alpha)
    log_p, log_q = _logs(xp, X)
    return (-yes * xp.exp(gamma * log_q) * log_p - no * xp.exp(gamma * log_p) * log_q).astype(X.dtype)


def _focal_grad(xp: Any, X: Any, Label: Any, FgNum: Any, Out_grad: Any, gamma: float, alpha: float) -> Any:
    yes, no = _kinds(xp, X, Label, FgNum, alpha)
    log_p, log_q = _logs(xp, X)
    p, q = xp.exp(log_p), xp.exp(log_q)
    slope = yes * q**gamma * (gamma * p * log_p - q) + no * p**gamma * (p - gamma * q * log_q)
    return (slope * Out_grad).astype(X.dtype)


def _infer_focal(op: OpView) -> None:
    shape, label = op.shape("X"), op.shape("Label")
    if len(shape) != 2 or len(label) != 2 or label[1] not in (1, -1):
        raise op.fail(f"X must be [rows, classes] and Label [rows, 1], got {list(shape)} and {list(label)}")
    op.set("Out", shape, op.dtype("X"))


register_pair(
    "sigmoid_focal_loss",
    ("X", "Label", "FgNum"),
    _focal,
    _focal_grad,
    _infer_focal,
    "The cross entropy of sigmoid(X), less where it is small already, of classes counted from 1.",
    attrs={"gamma": 2.0, "alpha": 0.25},
    no_grad=("Label", "FgNum"),
)


def _of_level(
    boxes: Array, scores: Array, anchors: Array, info: Array, threshold: float, top_k: int
) -> tuple[Array, Array, Array]:
    """Boxes, scores and classes of one feature map that are looked at."""
    order = best_first(scores.reshape(-1), threshold, top_k)
    place, label = np.divmod(order, scores.shape[1])
    edges = np.tile(np.floor(info[1::-1] / info[2] + 0.5) - 1, 2).astype(boxes.dtype)
    found = clipped(decoded(anchors[place], boxes[place]) / info[2], edges)
    return found.astype(boxes.dtype), scores.reshape(-1)[order], label


@hosted
def _detected(xp: Any, BBoxes: Any, Scores: Any, Anchors: Any, ImInfo: Any, lod: Lods, **attrs: Any) -> Any:
    rows = []
    for image, info in enumerate(ImInfo):
        parts = [
            # Of the last feature map everything counts.
            _of_level(
                BBoxes[k][image],
                Scores[k][image],
                Anchors[k].reshape(-1, 4),
                info,
                attrs["score_threshold"] if k < len(BBoxes) - 1 else 0.0,
                attrs["nms_top_k"],
            )
            for k in range(len(BBoxes))
        ]
        boxes, scores, labels = (np.concatenate([part[k] for part in parts]) for k in range(3))
        found = []
        for label in np.unique(labels):
            own = np.flatnonzero(labels == label)
            own = own[np.argsort(-scores[own], kind="stable")]
            # As in Fluid 1.8, nms_eta is ignored.
            found.append(own[suppressed(boxes[own], attrs["nms_threshold"], 1.0, False)])
        kept = np.concatenate([*found, np.zeros(0, np.int64)]).astype(np.int64)
        kept = kept[np.argsort(-scores[kept], kind="stable")]
        kept = kept[: attrs["keep_top_k"]] if attrs["keep_top_k"] > -1 else kept
        rows.append(np.concatenate([labels[kept, None] + 1, scores[kept, None], boxes[kept]], axis=1))
    out = np.concatenate([*rows, np.zeros((0, 6))]).astype(BBoxes[0].dtype)
    if not len(out):
        return LodArray(np.full((1, 1), -1, out.dtype), ([0, 1],))
    return LodArray(out, (offsets_of(np.array([len(part) for part in rows], np.int64)),))


def _infer_detected(op: OpView) -> None:
    counts = [op.count(slot) for slot in ("BBoxes", "Scores", "Anchors")]
    if len(set(counts)) != 1:
        raise op.fail(f"there must be as many BBoxes, Scores and Anchors, got {counts}")
    rows = op.shape("BBoxes")[1] if op.building else -1
    op.set("Out", (rows, 6 if op.building else -1), op.dtype("BBoxes"))


register(
    "retinanet_detection_output",
    inputs=("BBoxes*", "Scores*", "Anchors*", "ImInfo"),
    outputs=("Out",),
    attrs={
        "score_threshold": 0.05,
        "nms_top_k": 1000,
        "nms_threshold": 0.3,
        "nms_eta": 1.0,
        "keep_top_k": 100,
    },
    infer=_infer_detected,
    kernel=_detected,
    no_grad=("Out",),
    sequences=Sequences(takes_lod=True),
    doc="The boxes of several feature maps that no better one of their class overlaps.",
)
