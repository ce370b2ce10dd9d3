"""Non-maximum suppression of a detector's boxes for each class (`multiclass_nms` and its kin)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..registry import Levels, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, input_lod, offsets_of
from .boxes import areas, overlaps, polygon_overlaps


def pairwise(boxes: np.ndarray, normalized: bool) -> np.ndarray:
    """The intersection over the union of boxes [n, 4], or polygons [n, 2 corners], with one another: [n, n]."""
    if boxes.shape[1] != 4:
        return polygon_overlaps(boxes)
    similar = overlaps(np, boxes, boxes, normalized)
    if not normalized:  # neighbouring pixels are not shared
        a, b = boxes[:, None], boxes[None]
        similar[((a[..., :2] > b[..., 2:]) | (b[..., :2] > a[..., 2:])).any(axis=-1)] = 0
    return similar


def best_first(scores: np.ndarray, threshold: float, top_k: int) -> np.ndarray:
    """The places of the scores above the threshold, greatest first; no more than `top_k` of them unless it is -1."""
    above = np.flatnonzero(scores > np.float32(threshold))
    order = above[np.argsort(-scores[above], kind="stable")]
    return order[:top_k] if top_k > -1 else order


def suppressed(
    boxes: np.ndarray, threshold: float, eta: float, normalized: bool, most: int = -1
) -> np.ndarray:
    """The places of those boxes, given best first, that do not overlap one kept before by more than `threshold`.

    With `eta` below 1 the threshold is multiplied by it after each box that is kept, as long as it is above 0.5.
    `most`: how many are kept at most, unless it is -1.
    """
    if boxes.shape[1] == 4 and boxes.dtype.kind == "f" and boxes.itemsize > 2 and np.isfinite(boxes).all():
        from ..._ext import kernels  # brings SciPy

        n = len(boxes)
        places, found = np.empty(n, np.int64), np.empty(1, np.int64)
        operands = [np.ascontiguousarray(boxes), areas(np, boxes, normalized), places, found]
        numbers = [n, 4, int(not normalized), n if most == -1 else most]
        kernels.call(f"suppress.f{8 * boxes.itemsize}", operands, numbers, [threshold, eta])
        return places[: found[0]]
    return _by_pairs(boxes, threshold, eta, normalized, most)


def _by_pairs(boxes: np.ndarray, threshold: float, eta: float, normalized: bool, most: int) -> np.ndarray:
    """`suppressed` for polygons, and for numbers that are not finite."""
    similar = pairwise(boxes, normalized)
    limit = np.float32(threshold)
    kept: list[int] = []
    adaptive = eta < 1 and limit > 0.5
    if not adaptive:
        left = np.ones(len(boxes), bool)
        for place in range(len(boxes)):
            if len(kept) == most:
                break
            if left[place]:
                kept.append(place)
                left &= similar[place] <= limit
        return np.array(kept, np.int64)
    for place in range(len(boxes)):
        if len(kept) == most:
            break
        if (similar[place, kept] <= limit).all():
            kept.append(place)
            if limit > 0.5:
                limit = np.float32(limit * eta)
    return np.array(kept, np.int64)


_COMMON: dict[str, Any] = {
    "background_label": 0,
    "score_threshold": 0.0,
    "nms_top_k": 0,
    "keep_top_k": 0,
    "normalized": True,
}
_SUPPRESSION: dict[str, Any] = {**_COMMON, "nms_threshold": 0.3, "nms_eta": 1.0}


def _images(
    op_type: str, BBoxes: np.ndarray, Scores: np.ndarray, lod: Lods
) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """For each image the boxes [classes or 1, boxes, width], scores [classes, boxes], and the first box's index."""
    if Scores.ndim == 3:
        for image, (boxes, scores) in enumerate(zip(BBoxes, Scores, strict=True)):
            yield boxes[None], scores, image * Scores.shape[2]
        return
    known = input_lod(lod, "BBoxes") or input_lod(lod, "Scores")
    if not known:
        raise OperatorError(f"operator {op_type}: BBoxes must have sequences if Scores has two dimensions")
    for begin, end in zip(known[-1][:-1], known[-1][1:], strict=True):
        yield BBoxes[begin:end].swapaxes(0, 1), Scores[begin:end].T, int(begin)


class _Found:
    """Boxes of one image: class, score and place of each."""

    def __init__(self, classes: list[int], scores: list[np.ndarray], places: list[np.ndarray]) -> None:
        counts = [len(part) for part in places]
        self.label = np.repeat(np.array(classes, np.int64), counts)
        self.score = np.concatenate([*scores, np.zeros(0, np.float32)])
        self.place = np.concatenate([*places, np.zeros(0, np.int64)])

    def by_place(self) -> None:
        """Sort the boxes of each class by place."""
        self.pick(np.lexsort((self.place, self.label)))

    def pick(self, order: np.ndarray) -> None:
        self.label, self.score, self.place = self.label[order], self.score[order], self.place[order]

    def rows(self, boxes: np.ndarray) -> np.ndarray:
        """[found, 2 + width]: label, score and box of each."""
        own = boxes[self.label if len(boxes) > 1 else 0, self.place]
        return np.concatenate([self.label[:, None], self.score[:, None], own], axis=1).astype(boxes.dtype)


def _keep_best(found: _Found, most: int) -> None:
    """Only the `most` best of all classes, unless it is -1; they stay in the order of their classes."""
    if -1 < most < len(found.score):
        order = np.argsort(-found.score, kind="stable")[:most]
        found.pick(order[np.argsort(found.label[order], kind="stable")])


def _by_class(boxes: np.ndarray, scores: np.ndarray, attrs: dict[str, Any]) -> _Found:
    """Suppress the boxes of one image class by class; the background has none."""
    classes = [k for k in range(len(scores)) if k != attrs["background_label"]]
    places, values = [], []
    for k in classes:
        order = best_first(scores[k], attrs["score_threshold"], attrs["nms_top_k"])
        own = boxes[k if len(boxes) > 1 else 0][order]
        order = order[suppressed(own, attrs["nms_threshold"], attrs["nms_eta"], attrs["normalized"])]
        places.append(order)
        values.append(scores[k][order])
    return _Found(classes, values, places)


def _detected(
    op_type: str, BBoxes: Any, Scores: Any, lod: Lods, choose: Callable[[Any, Any], _Found]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of all images, the index of each row's box among those of all images, and the offsets of images."""
    rows, places, counts = [], [], []
    for boxes, scores, first in _images(op_type, BBoxes, Scores, lod):
        found = choose(boxes, scores)
        rows.append(found.rows(boxes))
        ragged = Scores.ndim == 2
        places.append((first + found.place) * len(scores) + found.label if ragged else first + found.place)
        counts.append(len(found.score))
    out = np.concatenate([*rows, np.zeros((0, 2 + BBoxes.shape[-1]), BBoxes.dtype)])
    return out, np.concatenate([*places, np.zeros(0, np.int64)]), offsets_of(np.array(counts, np.int64))


def _all_classes(op_type: str, BBoxes: Any, Scores: Any, lod: Lods, attrs: dict[str, Any]) -> Any:
    def choose(boxes: np.ndarray, scores: np.ndarray) -> _Found:
        result = _by_class(boxes, scores, attrs)
        _keep_best(result, attrs["keep_top_k"])
        if Scores.ndim == 2:
            result.by_place()
        return result

    return _detected(op_type, BBoxes, Scores, lod, choose)


def _or_nothing(out: np.ndarray, offsets: np.ndarray) -> LodArray:
    """The boxes found; if there are none, [[-1]]."""
    return LodArray(out, (offsets,)) if len(out) else LodArray(np.full((1, 1), -1, out.dtype), ([0, 1],))


@hosted
def _multiclass_nms(xp: Any, BBoxes: Any, Scores: Any, lod: Lods, **attrs: Any) -> Any:
    out, _, offsets = _all_classes("multiclass_nms", BBoxes, Scores, lod, attrs)
    return _or_nothing(out, offsets)


@hosted
def _multiclass_nms2(xp: Any, BBoxes: Any, Scores: Any, lod: Lods, **attrs: Any) -> Any:
    out, places, offsets = _all_classes("multiclass_nms2", BBoxes, Scores, lod, attrs)
    return LodArray(out, (offsets,)), LodArray(places.astype(np.int32).reshape(-1, 1), (offsets,))


def _faded(
    boxes: np.ndarray, scores: np.ndarray, normalized: bool, use_gaussian: bool, gaussian_sigma: float
) -> np.ndarray:
    """The scores of boxes, given best first, less by how much better ones overlap them (Wang et al. 2020)."""
    if not len(boxes):
        return scores
    similar = np.tril(pairwise(boxes, normalized), -1)
    most = similar.max(axis=1)
    if use_gaussian:
        decay = np.exp((most[None] ** 2 - similar**2) * gaussian_sigma)
    else:
        decay = (1 - similar) / (1 - most[None])
    better = np.tril(np.ones(similar.shape, bool), -1)
    return (scores * np.where(better, decay, 1).min(axis=1)).astype(scores.dtype)


@hosted
def _matrix_nms(
    xp: Any,
    BBoxes: Any,
    Scores: Any,
    background_label: int,
    score_threshold: float,
    post_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    normalized: bool,
    use_gaussian: bool,
    gaussian_sigma: float,
    lod: Lods,
) -> Any:
    def choose(boxes: np.ndarray, scores: np.ndarray) -> _Found:
        classes = [k for k in range(len(scores)) if k != background_label]
        places, values = [], []
        for k in classes:
            order = best_first(scores[k], score_threshold, nms_top_k)
            faded = _faded(boxes[0][order], scores[k][order], normalized, use_gaussian, gaussian_sigma)
            left = faded > np.float32(post_threshold)
            places.append(order[left])
            values.append(faded[left])
        result = _Found(classes, values, places)
        order = np.argsort(-result.score, kind="stable")
        result.pick(order[:keep_top_k] if keep_top_k > -1 else order)
        return result

    out, places, offsets = _detected("matrix_nms", BBoxes, Scores, lod, choose)
    return LodArray(out, (offsets,)), LodArray(places.astype(np.int32).reshape(-1, 1), (offsets,))


def _merged(
    boxes: np.ndarray, scores: np.ndarray, threshold: float, normalized: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Boxes that overlap the one before put together, weighted by scores, which add up (Zhou et al. 2017)."""
    made: list[np.ndarray] = []
    sums: list[Any] = []
    for box, score in zip(boxes, scores, strict=True):
        if made and pairwise(np.stack([box, made[-1]]), normalized)[0, 1] > np.float32(threshold):
            made[-1] = (box * score + made[-1] * sums[-1]) / (score + sums[-1])
            sums[-1] = score + sums[-1]
        else:
            made.append(box)
            sums.append(score)
    return np.array(made, boxes.dtype).reshape(-1, boxes.shape[1]), np.array(sums, scores.dtype)


@hosted
def _locality_aware_nms(xp: Any, BBoxes: Any, Scores: Any, lod: Lods, **attrs: Any) -> Any:
    rows = []
    for boxes, scores in zip(BBoxes, Scores, strict=True):
        merged = _merged(boxes, scores[0], attrs["nms_threshold"], attrs["normalized"])
        found = _by_class(merged[0][None], merged[1][None], attrs)
        _keep_best(found, attrs["keep_top_k"])
        rows.append(found.rows(merged[0][None]))
    offsets = offsets_of(np.array([len(part) for part in rows], np.int64))
    return _or_nothing(np.concatenate([*rows, np.zeros((0, 2 + BBoxes.shape[2]), BBoxes.dtype)]), offsets)


def _infer(op: OpView) -> None:
    boxes, scores = op.shape("BBoxes"), op.shape("Scores")
    if len(boxes) != 3 or len(scores) not in (2, 3):
        raise op.fail(
            f"BBoxes must have 3 dimensions and Scores 2 or 3, got {list(boxes)} and {list(scores)}"
        )
    corners = boxes[2]
    if corners not in (4, 8, 16, 24, 32, -1) or (len(scores) == 2 and corners not in (4, -1)):
        raise op.fail(f"BBoxes must have 4 numbers for boxes, or 8, 16, 24 or 32 for polygons, got {corners}")
    pairs = [(boxes[1], scores[-1])] if len(scores) == 3 else [(boxes[1], scores[1])]
    if any(min(pair) >= 0 and pair[0] != pair[1] for pair in pairs):
        raise op.fail(f"BBoxes and Scores must have matching shapes, got {list(boxes)} and {list(scores)}")
    # Fluid declares as many rows as boxes; without any there is one row of one number, or none.
    rows = boxes[1] if len(scores) == 3 and op.building else -1
    wide = -1 if corners < 0 or not (op.building or op.has("Index")) else 2 + corners
    op.set("Out", (rows, wide), op.dtype("BBoxes"))
    op.set("Index", (rows, 1), VarType.INT64 if op.building else VarType.INT32)


for _type, _outputs, _attrs, _kernel, _doc in (
    (
        "multiclass_nms",
        ("Out",),
        _SUPPRESSION,
        _multiclass_nms,
        "The boxes that no better one of their class overlaps.",
    ),
    (
        "multiclass_nms2",
        ("Out", "Index"),
        _SUPPRESSION,
        _multiclass_nms2,
        "The boxes that no better one of their class overlaps, and which of all boxes they are.",
    ),
    (
        "matrix_nms",
        ("Out", "Index"),
        {**_COMMON, "post_threshold": 0.0, "use_gaussian": False, "gaussian_sigma": 2.0},
        _matrix_nms,
        "Boxes by scores that are less where better ones of their class overlap them.",
    ),
    (
        "locality_aware_nms",
        ("Out",),
        {**_SUPPRESSION, "background_label": -1},
        _locality_aware_nms,
        "Neighbouring boxes that overlap put together, then those that no better one overlaps.",
    ),
):
    register(
        _type,
        inputs=("BBoxes", "Scores"),
        outputs=_outputs,
        attrs=_attrs,
        infer=_infer,
        kernel=_kernel,
        no_grad=_outputs,
        sequences=Sequences(
            takes_lod=True, levels=None if _type == "locality_aware_nms" else Levels(least=1)
        ),
        doc=_doc,
    )
