"""detection_map: the mean average precision of found boxes (Everingham et al. 2010)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import Effects, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, input_lod

Scored = dict[int, list[tuple[float, float]]]
"""Class -> pairs of a score and 1 or 0."""


def _overlaps(box: Any, boxes: Any) -> Any:
    """The common area of `box`, cut off at the border of the image, and each of `boxes`, over that of both together."""
    box = np.clip(box, 0, 1)
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    areas = [np.prod(np.maximum(b[..., 2:] - b[..., :2], 0), axis=-1) for b in (box, boxes)]
    together = areas[0] + areas[1] - common
    return np.divide(common, together, out=np.zeros_like(common), where=together > 0)


def _match(found: Any, wanted: Any, threshold: float, all_count: bool) -> list[tuple[float, bool]]:
    """The score of each of the `found` boxes, best first, and whether it is the first to match its `wanted` box.

    Boxes that match a difficult one are left out unless `all_count`.
    """
    if not len(wanted):
        return [(float(score), False) for score in found[:, 1]]
    result, met = [], np.zeros(len(wanted), bool)
    for row in found[np.argsort(-found[:, 1], kind="stable")]:
        overlaps = _overlaps(row[2:], wanted[:, -4:])
        best = int(overlaps.argmax())
        if overlaps[best] <= threshold:
            result.append((float(row[1]), False))
        elif all_count or not wanted[best, 1]:
            result.append((float(row[1]), not met[best]))
            met[best] = True
    return result


def _average_precision(true: Any, false: Any, count: int, ap_type: str) -> float:
    hits, misses = (
        np.cumsum(np.asarray(p)[np.argsort([-s for s, _ in p], kind="stable")][:, 1]) for p in (true, false)
    )
    precision, recall = hits / (hits + misses), hits / count
    if ap_type == "11point":
        # recall increases: the best precision from where it reaches j / 10
        first = np.searchsorted(recall.astype("float32"), np.arange(11, dtype="float32") / np.float32(10))
        best = [precision[k:].max(initial=0) for k in first]
        return float(sum(best) / 11)
    steps = np.diff(recall, prepend=0)
    return float((precision * np.where(steps > 1e-6, steps, 0)).sum())


def _of_state(points: Any, offsets: Any) -> Scored:
    rows = [(float(score), float(hit)) for score, hit in points]
    return {k: rows[a:b] for k, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False)) if b > a}


def _as_state(scored: Scored, classes: int) -> LodArray:
    rows = [row for k in range(classes) for row in scored.get(k, [])]
    offsets = np.cumsum([0, *(len(scored.get(k, [])) for k in range(classes))])
    return LodArray(np.array(rows, "float32").reshape(-1, 2), [offsets])


@hosted
def _detection_map(
    xp: Any,
    DetectRes: Any,
    Label: Any,
    HasState: Any,
    PosCount: Any,
    TruePos: Any,
    FalsePos: Any,
    class_num: int,
    overlap_threshold: float,
    evaluate_difficult: bool,
    ap_type: str,
    lod: Lods,
) -> Any:
    found_of, wanted_of = (input_lod(lod, slot) for slot in ("DetectRes", "Label"))
    if not found_of or not wanted_of or len(found_of[-1]) != len(wanted_of[-1]):
        raise OperatorError(
            "operator detection_map: DetectRes and Label must have a sequence for each image, got "
            f"{[len(levels[-1]) - 1 if levels else None for levels in (found_of, wanted_of)]}"
        )
    counts: dict[int, int] = {}
    true: Scored = {}
    false: Scored = {}
    if HasState is not None and HasState.any():
        if PosCount is None or TruePos is None or FalsePos is None:
            raise OperatorError("operator detection_map: HasState is set, but there is no state yet")
        counts = {k: int(n) for k, n in enumerate(PosCount.reshape(-1)) if n}
        true = _of_state(TruePos, input_lod(lod, "TruePos")[0])
        false = _of_state(FalsePos, input_lod(lod, "FalsePos")[0])
    for image in range(len(found_of[-1]) - 1):
        found, wanted = (
            rows[offsets[-1][image] : offsets[-1][image + 1]]
            for rows, offsets in ((DetectRes, found_of), (Label, wanted_of))
        )
        if wanted.shape[1] == 5:
            wanted = np.insert(wanted, 1, 0, axis=1)
        classes = wanted[:, 0].astype(int)
        for k in classes[evaluate_difficult | (wanted[:, 1] == 0)].tolist():
            counts[k] = counts.get(k, 0) + 1
        for k in dict.fromkeys(found[:, 0].astype(int).tolist()):
            of_class = found[found[:, 0].astype(int) == k]
            for score, hit in _match(of_class, wanted[classes == k], overlap_threshold, evaluate_difficult):
                true.setdefault(k, []).append((score, float(hit)))
                false.setdefault(k, []).append((score, float(not hit)))
    precisions = [
        _average_precision(true[k], false[k], n, ap_type) if k in true else 0.0 for k, n in counts.items()
    ]
    mean = np.array([np.mean(precisions) if precisions else 0.0], "float32")
    by_class = np.array([[counts.get(k, 0)] for k in range(class_num)], "int32")
    return by_class, _as_state(true, class_num), _as_state(false, class_num), mean


def _infer(op: OpView) -> None:
    found, wanted = op.shape("DetectRes"), op.shape("Label")
    if len(found) != 2 or found[1] not in (6, -1):
        raise op.fail(f"DetectRes must be [boxes, 6]: class, score, corners; got {list(found)}")
    if len(wanted) != 2 or wanted[1] not in (5, 6, -1):
        raise op.fail(
            f"Label must be [boxes, 5] or [boxes, 6]: class, perhaps difficult, corners; got {list(wanted)}"
        )
    if op.attr("class_num") < 1:
        raise op.fail(f"class_num must be positive, got {op.attr('class_num')}")
    if op.attr("ap_type") not in ("integral", "11point"):
        raise op.fail(f"ap_type must be 'integral' or '11point', got {op.attr('ap_type')!r}")
    op.set("MAP", (1,), VarType.FP32)
    if op.building:  # as in Fluid, the sizes of the others are unknown
        return
    op.set("AccumPosCount", (op.attr("class_num"), 1), VarType.INT32)
    for slot in ("AccumTruePos", "AccumFalsePos"):
        op.set(slot, (-1, 2), VarType.FP32)


register(
    "detection_map",
    ("DetectRes", "Label", "HasState?", "PosCount?", "TruePos?", "FalsePos?"),
    ("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"),
    {
        "class_num": 0,
        "background_label": 0,
        "overlap_threshold": 0.5,
        "evaluate_difficult": True,
        "ap_type": "integral",
    },
    infer=_infer,
    kernel=_detection_map,
    no_grad=("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP"),
    sequences=Sequences(takes_lod=True),
    effects=Effects(uninitialized=("PosCount", "TruePos", "FalsePos")),
    doc="The mean over all classes of the average precision of boxes, and what it was computed from.",
)
