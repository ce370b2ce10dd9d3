"""RetinaNet (Lin et al. 2017): the sigmoid focal loss, and detections from its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..registry import LodArray, OpDef, OpView, Sequences, register
from ..sequence import Lods, offsets_of
from .boxes import clipped
from .proposals import decoded
from .suppression import best_first, suppressed

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
    OpDef(
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
)
