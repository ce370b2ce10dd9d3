"""Predicted sequences compared with references: edit distances, and chunks of tags."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..host_fallback import hosted
from ..infer import may_equal, product
from ..native import typed
from ..registry import Call, OperatorError, OpView, Sequences, register
from ..sequence import Lods, Padded, batch_operands, one_level, single


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
