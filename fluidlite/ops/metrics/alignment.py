"""Predictions compared with references: edit distances, chunks of tags, mean average precision of found boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import may_equal, product
from ..native import typed
from ..registry import Call, Effects, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, Padded, batch_operands, input_lod, one_level, single


@hosted
def _edit_distance(
    xp: Any, Hyps: Any, Refs: Any, HypsLength: Any, RefsLength: Any, normalized: bool, lod: Lods
) -> Any:
    found = Padded.of("edit_distance", Hyps, HypsLength, lod, "Hyps")
    wanted = Padded.of("edit_distance", Refs, RefsLength, lod, "Refs")
    if len(found.lengths) != len(wanted.lengths):
        raise OperatorError(
            f"operator edit_distance: Hyps has {len(found.lengths)} sequences and Refs {len(wanted.lengths)}"
        )
    if normalized and not wanted.lengths.all():
        empty = int(np.flatnonzero(wanted.lengths == 0)[0])
        raise OperatorError(
            f"operator edit_distance: sequence {empty} of Refs is empty, so that nothing can be divided by its length"
        )
    a, b = (form.pad(x.reshape(-1) if n is None else x) for form, x, n in (
        (found, Hyps, HypsLength), (wanted, Refs, RefsLength)
    ))  # fmt: skip
    count, steps = b.shape
    rows = np.tile(np.arange(steps + 1), (count, 1))
    for t in range(a.shape[1]):
        # Insertions: the least over all earlier columns, plus the distance from there, as a running minimum.
        inner = np.minimum(rows[:, 1:] + 1, rows[:, :-1] + (a[:, t : t + 1] != b))
        edge = np.full((count, 1), t + 1)
        ways = np.arange(steps + 1)
        new = np.minimum.accumulate(np.concatenate([edge, inner], axis=1) - ways, axis=1) + ways
        rows = np.where((found.lengths > t)[:, None], new, rows)
    out = rows[np.arange(count), wanted.lengths].astype(np.float32)
    if normalized:
        out = out / wanted.lengths.astype(np.float32)
    return xp.asarray([count], dtype="int64"), xp.asarray(out.reshape(-1, 1), dtype="float32")


def _form(op: OpView, slot: str, lengths: str) -> tuple[str, ...] | None:
    """Refuses an input that is in neither form; its offsets, () if it is padded."""
    shape = op.shape(slot)
    if op.has(lengths):
        if min(product(op.shape(lengths)), shape[0]) >= 0 and product(op.shape(lengths)) != shape[0]:
            raise op.fail(f"{lengths} must have {shape[0]} elements, got {product(op.shape(lengths))}")
        return ()
    return single(op, slot)


def _edit_infer(op: OpView) -> None:
    hyps, refs, padded = op.shape("Hyps"), op.shape("Refs"), op.has("HypsLength")
    if padded != op.has("RefsLength"):
        raise op.fail("HypsLength and RefsLength must be given together")
    for slot, shape in (("Hyps", hyps), ("Refs", refs)):
        if len(shape) != 2 or (not padded and shape[1] not in (1, -1)):
            wanted = "[batch, time] with lengths" if padded else "[rows, 1] with sequences"
            raise op.fail(f"{slot} must be {wanted}, got shape {list(shape)}")
    counts = []
    for slot in ("Hyps", "Refs"):
        found = _form(op, slot, slot + "Length")
        counts.append(op.shape(slot)[0] if padded else op.sequences(slot) if found else -1)
    if min(counts) >= 0 and counts[0] != counts[1]:
        raise op.fail(f"Hyps has {counts[0]} sequences and Refs {counts[1]}")
    # Fluid declares int64 and the shape of Hyps, but computes float32.
    op.set("Out", (counts[0], 1), VarType.FP32)
    op.set("SequenceNum", (1,), VarType.INT64)


def _edit_native(op: OpView) -> Call | None:
    name = typed(op, "edit_distance", ("Hyps", "Refs"), ("i32", "i64"))
    forms = [batch_operands(op, slot, slot + "Length") for slot in ("Hyps", "Refs")]
    lengths = [slot for slot in ("HypsLength", "RefsLength") if op.has(slot)]
    if name is None or None in forms or any(op.dtype(slot) != VarType.INT64 for slot in lengths):
        return None
    operands: list[str | None] = []
    sizes, steps, count = [], [], 0
    for slot, form in zip(("Hyps", "Refs"), forms, strict=True):
        assert form is not None
        operands += [op.name(slot), form[0], form[1]]
        sizes.append(product(op.shape(slot)))
        steps.append(op.shape(slot)[1] if lengths else 0)
        count = form[2]
    operands += [op.name("Out"), op.name("SequenceNum")]
    return Call(name, operands, [count, *sizes, *steps, int(op.attr("normalized"))])


register(
    "edit_distance",
    inputs=("Hyps", "Refs", "HypsLength?", "RefsLength?"),
    outputs=("SequenceNum", "Out"),
    attrs={"normalized": False},
    infer=_edit_infer,
    kernel=_edit_distance,
    no_grad=("SequenceNum", "Out"),
    native=_edit_native,
    sequences=Sequences(takes_lod=True, source=None),
    doc="How many tokens have to be inserted, deleted or replaced to make each sequence of Refs of that of Hyps.",
)

_SCHEMES = {"IOB": "BI", "IOE": "IE", "IOBES": "BIES", "plain": " "}
"""The tags of each scheme, in order (begin, inside, end, single). Label = type * tags + tag."""


def _tables(scheme: str) -> tuple[list[list[bool]], list[list[bool]]]:
    """`begins[before][tag]`, `ends[before][tag]`: does a chunk begin with `tag`, or end before it, within one type?"""
    tags = _SCHEMES[scheme]
    begins = [[tag in "BS" or (tag in "IE" and before in "ES") for tag in tags] for before in tags]
    ends = [[before in "ES" or (before in "BI" and tag in "BS") for tag in tags] for before in tags]
    return begins, ends


@hosted
def _chunk_eval(
    xp: Any,
    Inference: Any,
    Label: Any,
    SeqLength: Any,
    num_chunk_types: int,
    chunk_scheme: str,
    excluded_chunk_types: list[int],
    lod: Lods,
) -> Any:
    form = Padded.of("chunk_eval", Inference, SeqLength, lod, "Inference")
    if SeqLength is None and not np.array_equal(form.lengths, np.diff(one_level("chunk_eval", lod, "Label"))):
        raise OperatorError("operator chunk_eval: Inference and Label must have the same sequences")
    tags = len(_SCHEMES[chunk_scheme])
    outside = tags * num_chunk_types
    found = []
    for slot, x in (("Inference", Inference), ("Label", Label)):
        labels = form.pad(x.reshape(-1)) if SeqLength is None else x.reshape(len(x), -1)
        wrong = labels[form.inside & ((labels < 0) | (labels > outside))]
        if len(wrong):
            raise OperatorError(
                f"operator chunk_eval: {slot} must be in [0, {outside + 1}): {num_chunk_types} types of {tags} tags, "
                f"and {outside} outside of chunks; got {wrong[0]}"
            )
        found.append(_chunks(np.where(form.inside, labels, outside), tags, outside, chunk_scheme))
    for chunks in found:
        chunks.difference_update({chunk for chunk in chunks if chunk[3] in excluded_chunk_types})
    inferred, labelled = map(len, found)
    correct = len(found[0] & found[1])
    precision = np.float32(correct) / np.float32(inferred) if inferred else np.float32(0)
    recall = np.float32(correct) / np.float32(labelled) if labelled else np.float32(0)
    both = np.float32(2) * precision * recall / (precision + recall) if correct else np.float32(0)
    shares = [xp.asarray([share], dtype="float32") for share in (precision, recall, both)]
    return *shares, *(xp.asarray([n], dtype="int64") for n in (inferred, labelled, correct))


def _chunks(labels: Any, tags: int, outside: int, scheme: str) -> set[tuple[int, int, int, int]]:
    """The chunks of padded sequences: sequence, first position, position after the last, type."""
    begins, ends = _tables(scheme)
    edge = np.full((len(labels), 1), outside)
    before, after = np.concatenate([edge, labels], axis=1), np.concatenate([labels, edge], axis=1)
    changes = before // tags != after // tags
    starts = (after != outside) & (
        (before == outside) | changes | np.asarray(begins)[before % tags, after % tags]
    )
    stops = (before != outside) & (
        (after == outside) | changes | np.asarray(ends)[before % tags, after % tags]
    )
    result: set[tuple[int, int, int, int]] = set()
    for row, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        opened = np.flatnonzero(start)
        for end in np.flatnonzero(stop):
            at = np.searchsorted(opened, end) - 1  # the last beginning in front of the end
            if at >= 0 and not stop[opened[at] + 1 : end].any():
                result.add((row, int(opened[at]), int(end), int(labels[row, opened[at]] // tags)))
    return result


def _chunk_infer(op: OpView) -> None:
    shapes = [op.shape(slot) for slot in ("Inference", "Label")]
    if not may_equal(*shapes):
        raise op.fail(
            f"Inference and Label must be of one shape, got {list(shapes[0])} and {list(shapes[1])}"
        )
    if op.exact and op.attr("chunk_scheme") not in _SCHEMES:
        raise op.fail(f"chunk_scheme must be one of {', '.join(_SCHEMES)}, got {op.attr('chunk_scheme')!r}")
    if op.attr("num_chunk_types") < 1:
        raise op.fail(f"num_chunk_types must be positive, got {op.attr('num_chunk_types')}")
    found = [_form(op, slot, "SeqLength") for slot in ("Inference", "Label")]
    if all(found) and op.sequences("Inference") != op.sequences("Label"):
        counts = f"{op.sequences('Inference')} and {op.sequences('Label')}"
        raise op.fail(f"Inference and Label must have the same sequences, got {counts} of them")
    for slot in ("Precision", "Recall", "F1-Score"):
        op.set(slot, (1,), VarType.FP32)
    for slot in ("NumInferChunks", "NumLabelChunks", "NumCorrectChunks"):
        op.set(slot, (1,), VarType.INT64)


def _chunk_native(op: OpView) -> Call | None:
    form, padded = batch_operands(op, "Inference", "SeqLength"), op.has("SeqLength")
    slots = ("Inference", "Label", "SeqLength") if padded else ("Inference", "Label")
    if form is None or any(op.dtype(slot) != VarType.INT64 for slot in slots):
        return None
    scheme, size = op.attr("chunk_scheme"), product(op.shape("Inference"))
    packed = [
        sum(1 << (4 * k + j) for k, row in enumerate(table) for j, yes in enumerate(row) if yes)
        for table in _tables(scheme)
    ]
    steps = product(op.shape("Inference")[1:]) if padded else 0
    ints = [form[2], size, steps, len(_SCHEMES[scheme]), op.attr("num_chunk_types"), *packed]
    outs = ("Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks")
    offsets = None if padded else op.lod("Label")[-1]
    operands = [op.name("Inference"), op.name("Label"), form[0], offsets, form[1]]
    operands += [op.name(slot) for slot in outs]
    return Call("chunk_eval", operands, [*ints, *(op.attr("excluded_chunk_types") or [-1])])


register(
    "chunk_eval",
    inputs=("Inference", "Label", "SeqLength?"),
    outputs=("Precision", "Recall", "F1-Score", "NumInferChunks", "NumLabelChunks", "NumCorrectChunks"),
    attrs={"num_chunk_types": 1, "chunk_scheme": "IOB", "excluded_chunk_types": []},
    infer=_chunk_infer,
    kernel=_chunk_eval,
    no_grad=(
        "Precision",
        "Recall",
        "F1-Score",
        "NumInferChunks",
        "NumLabelChunks",
        "NumCorrectChunks",
    ),
    native=_chunk_native,
    sequences=Sequences(takes_lod=True, source=None),
    doc="Precision, recall and F1 of the chunks that tags describe, and how many there are.",
)


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
