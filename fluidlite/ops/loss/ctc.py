"""Connectionist temporal classification (Graves et al. 2006): the cost of labels without alignment."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import product
from ..native import element, itemsize, typed
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import Lods, Padded, batch_operands, deep, grads_keep_sequences, levels, set_rows

DLOGITS, DLOSS = grad_name("Logits"), grad_name("Loss")


class _Batch:
    """Logits as [time, batch, classes] and labels as [batch, longest], with their lengths."""

    def __init__(
        self, Logits: Any, Label: Any, LogitsLength: Any, LabelLength: Any, lod: Lods, blank: int
    ) -> None:
        self.frames = Padded.of("warpctc", Logits, LogitsLength, lod, "Logits", time=0)
        wide = Label if LabelLength is None else np.asarray(Label).reshape(len(self.frames.lengths), -1)
        labels = Padded.of("warpctc", wide, LabelLength, lod, "Label")
        self.times, self.sizes = self.frames.lengths, labels.lengths
        if len(self.times) != len(self.sizes):
            raise OperatorError(
                f"operator warpctc: Logits has {len(self.times)} sequences and Label {len(self.sizes)}"
            )
        self.logits = Logits if LogitsLength is not None else self.frames.pad(Logits).swapaxes(0, 1)
        classes = self.logits.shape[2]
        self.labels = labels.pad(wide if LabelLength is not None else Label.reshape(-1))
        found = self.labels[labels.inside]
        if len(found) and not 0 <= found.min() <= found.max() < classes:
            raise OperatorError(
                f"operator warpctc: Label must be in [0, {classes}), as there are {classes} classes; "
                f"got {found[(found < 0) | (found >= classes)][0]}"
            )
        self.labels = np.where(labels.inside, self.labels, blank)
        repeated = (self.labels[:, 1:] == self.labels[:, :-1]) & labels.inside[:, 1:]
        self.least = self.sizes + repeated.sum(axis=1)


def _shifted(scores: Any, by: int) -> Any:
    """Scores of the states `by` places before (or after, if negative) each state; minus infinity beyond the ends."""
    moved = np.full_like(scores, -np.inf)
    if by > 0:
        moved[:, by:] = scores[:, :-by]
    else:
        moved[:, :by] = scores[:, -by:]
    return moved


def _costs(batch: _Batch, blank: int) -> tuple[Any, Any]:
    """The cost of each sequence, and the gradients for the logits, by the forward-backward algorithm."""
    logits = batch.logits.astype(np.float64)
    steps, count, _ = logits.shape
    logs = logits - logits.max(axis=2, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=2, keepdims=True))
    states = np.full((count, 2 * batch.labels.shape[1] + 1), blank, np.int64)
    states[:, 1::2] = batch.labels
    # Between different labels the blank may be left out.
    skips = np.zeros(states.shape, bool)
    skips[:, 2:] = (states[:, 2:] != blank) & (states[:, 2:] != states[:, :-2])
    exists = np.arange(states.shape[1]) <= 2 * batch.sizes[:, None]
    emitted = np.where(
        exists, np.take_along_axis(logs, np.broadcast_to(states, (steps, *states.shape)), 2), -np.inf
    )
    ends = exists & (np.arange(states.shape[1]) >= 2 * batch.sizes[:, None] - 1)

    before = np.full(emitted.shape, -np.inf)
    after = np.full(emitted.shape, -np.inf)
    reached = np.where(np.arange(states.shape[1]) < 2, 0.0, -np.inf) + np.zeros(states.shape)
    for t in range(steps):
        if t:
            last = before[t - 1]
            skipped = np.where(skips, _shifted(last, 2), -np.inf)
            reached = np.logaddexp(np.logaddexp(last, _shifted(last, 1)), skipped)
        before[t] = reached + emitted[t]
    for t in range(steps - 1, -1, -1):
        if t + 1 < steps:
            coming = after[t + 1] + emitted[t + 1]
            skipped = _shifted(np.where(skips, coming, -np.inf), -2)
            after[t] = np.logaddexp(np.logaddexp(coming, _shifted(coming, -1)), skipped)
        final = batch.times[:, None] - 1 == t
        after[t] = np.where(final, np.where(ends, 0.0, -np.inf), after[t])

    total = np.logaddexp.reduce(before[0] + after[0], axis=1) if steps else np.zeros(count)
    # Too short sequences cost nothing, as in Fluid, where nothing at all is impossible.
    possible = (batch.times >= batch.least) & (batch.times > 0)
    total = np.where(possible, total, np.where(batch.times >= batch.least, -np.inf, 0))
    possible &= ~np.isneginf(total)
    shares = np.exp(before + after - np.where(possible, total, 0)[:, None])
    gradient = np.exp(logs)
    where = (np.arange(steps)[:, None, None], np.arange(count)[:, None], states)
    np.subtract.at(gradient, where, shares)
    inside = (np.arange(steps)[:, None] < batch.times) & possible
    return -total, gradient * inside[..., None]


@hosted
def _warpctc(
    xp: Any, Logits: Any, Label: Any, LogitsLength: Any, LabelLength: Any, blank: int, lod: Lods
) -> Any:
    batch = _Batch(Logits, Label, LogitsLength, LabelLength, lod, blank)
    costs, gradient = _costs(batch, blank)
    if LogitsLength is None:
        by_batch = gradient.swapaxes(0, 1)
        gradient = by_batch[batch.frames.inside]
    return xp.asarray(gradient, dtype=Logits.dtype), xp.asarray(costs.reshape(-1, 1), dtype=Logits.dtype)


def _warpctc_grad(
    xp: Any, Logits: Any, LogitsLength: Any, WarpCTCGrad: Any, Loss_grad: Any, norm_by_times: bool, lod: Lods
) -> Any:
    scale = Loss_grad.reshape(-1)
    if LogitsLength is None:
        deep = levels("warpctc_grad", lod, "Logits")
        times = np.diff(deep[-1])
        divisors = xp.asarray(np.maximum(times, 1), dtype=scale.dtype)
        per_sequence = scale / divisors if norm_by_times else scale
        of_row = np.repeat(np.arange(len(times)), times)
        return LodArray(WarpCTCGrad * per_sequence[xp.asarray(of_row)][:, None], deep)
    if norm_by_times:
        scale = scale / xp.maximum(LogitsLength.reshape(-1), 1).astype(scale.dtype)
    return WarpCTCGrad * scale[:, None]


def _infer(op: OpView) -> None:
    shape, label = op.shape("Logits"), op.shape("Label")
    padded = op.has("LogitsLength")
    if padded != op.has("LabelLength"):
        raise op.fail("LogitsLength and LabelLength must be given together")
    if len(shape) != (3 if padded else 2):
        wanted = "[time, batch, classes] with lengths" if padded else "[rows, classes] with sequences"
        raise op.fail(f"Logits must be {wanted}, got shape {list(shape)} and labels {list(label)}")
    if shape[-1] >= 0 and not 0 <= op.attr("blank") < shape[-1]:
        raise op.fail(f"blank must be in [0, {shape[-1]}), got {op.attr('blank')}")
    _sizes(op, padded)


def _sizes(op: OpView, padded: bool) -> None:
    shape, kind = op.shape("Logits"), op.dtype("Logits")
    found = () if padded else deep(op, "Logits")
    if padded:
        for slot in ("LogitsLength", "LabelLength"):
            if min(product(op.shape(slot)), shape[1]) >= 0 and product(op.shape(slot)) != shape[1]:
                raise op.fail(f"{slot} must have {shape[1]} elements, got {product(op.shape(slot))}")
    elif found and deep(op, "Label") and op.sequences("Logits") != op.sequences("Label"):
        raise op.fail(f"Logits has {op.sequences('Logits')} sequences and Label {op.sequences('Label')}")
    count = shape[1] if padded else op.sequences("Logits") if found else -1
    set_rows(op, "WarpCTCGrad", shape, kind, found)
    set_rows(op, "Loss", (count, 1), kind, () if found is not None else None)


def _steps(op: OpView, slot: str, padded: bool) -> tuple[int, int]:
    """Rows of logits, and the steps of a padded sequence (0 for sequences with offsets)."""
    shape = op.shape(slot)
    return (shape[0] * shape[1], shape[0]) if padded else (shape[0], 0)


def _native(op: OpView) -> Call | None:
    name, frames = typed(op, "warpctc", ("Logits",)), batch_operands(op, "Logits", "LogitsLength")
    labels, kind = batch_operands(op, "Label", "LabelLength"), element(op, "Label")
    lengths = [slot for slot in ("LogitsLength", "LabelLength") if op.has(slot)]
    whole = kind in ("i32", "i64") and all(op.dtype(slot) == VarType.INT64 for slot in lengths)
    if name is None or frames is None or labels is None or not whole:
        return None
    count, classes = frames[2], op.shape("Logits")[-1]
    rows, steps = _steps(op, "Logits", bool(lengths))
    size = product(op.shape("Label"))
    longest = product(op.shape("Label")[1:]) if lengths else 0
    operands = [op.name("Logits"), *frames[:2], op.name("Label"), *labels[:2]]
    operands += [op.name("WarpCTCGrad"), op.name("Loss")]
    return Call(
        name, operands, [count, rows, classes, steps, op.attr("blank"), size, longest, itemsize(op, "Label")]
    )


def _native_grad(op: OpView) -> Call | None:
    name = typed(op, "warpctc_grad", ("WarpCTCGrad", DLOSS))
    frames = batch_operands(op, "Logits", "LogitsLength")
    lengths = op.has("LogitsLength")
    if name is None or frames is None or (lengths and op.dtype("LogitsLength") != VarType.INT64):
        return None
    rows, steps = _steps(op, "Logits", lengths)
    operands = [*frames[:2], op.name("WarpCTCGrad"), op.name(DLOSS), op.name(DLOGITS)]
    ints = [frames[2], rows, op.shape("Logits")[-1], steps, int(op.attr("norm_by_times"))]
    return Call(name, operands, ints)


_ATTRS = {"blank": 0, "norm_by_times": False}

register_pair(
    "warpctc",
    ("Logits", "Label", "LogitsLength?", "LabelLength?"),
    _warpctc,
    _warpctc_grad,
    _infer,
    "The cost of labels for sequences of logits, over all ways to place them among blanks.",
    outputs=("WarpCTCGrad", "Loss"),
    attrs=_ATTRS,
    keep=("Logits#", "LogitsLength"),
    keep_out=("WarpCTCGrad",),
    no_grad=("Label", "LogitsLength", "LabelLength", "WarpCTCGrad"),
    sequences=Sequences(takes_lod=True, source={"WarpCTCGrad": "Logits"}),
    infer_back=grads_keep_sequences,
    native=(_native, _native_grad),
)


def _collapsed(tokens: Any, first: Any, blank: int, merge_repeated: bool) -> Any:
    """The mask of tokens of a path [..., time] that remain; `first`: those that begin a sequence."""
    repeated = np.zeros(tokens.shape, bool)
    repeated[..., 1:] = tokens[..., 1:] == tokens[..., :-1]
    return (tokens != blank) & ~(repeated & ~first & merge_repeated)


@hosted
def _align(
    xp: Any, Input: Any, InputLength: Any, blank: int, merge_repeated: bool, padding_value: int, lod: Lods
) -> Any:
    if InputLength is None:
        offsets = levels("ctc_align", lod, "Input")[-1]
        tokens = Input.reshape(-1)
        first = np.zeros(len(tokens) + 1, bool)
        first[offsets[:-1]] = True
        kept = _collapsed(tokens, first[:-1], blank, merge_repeated)
        before = np.concatenate([[0], np.cumsum(kept)])
        # As in Fluid, an empty result is one row of -1.
        rows = tokens[kept] if kept.any() else np.full(1, -1, Input.dtype)
        return LodArray(xp.asarray(rows.reshape(-1, 1)), [before[offsets]]), None
    form = Padded.of("ctc_align", Input, InputLength, lod, "Input")
    kept = _collapsed(Input, np.zeros(Input.shape, bool), blank, merge_repeated) & form.inside
    out = np.full(Input.shape, padding_value, Input.dtype)
    counts = kept.sum(axis=1)
    out[np.arange(Input.shape[1]) < counts[:, None]] = Input[kept]
    return xp.asarray(out), xp.asarray(counts.reshape(-1, 1), dtype=Input.dtype)


def _align_infer(op: OpView) -> None:
    shape, kind = op.shape("Input"), op.dtype("Input")
    if kind not in (VarType.INT32, VarType.INT64):
        raise op.fail(f"Input must be int32 or int64, got {kind}")
    if len(shape) != 2:
        raise op.fail(f"Input must be [rows, 1] with sequences or [batch, time], got {list(shape)}")
    if op.has("InputLength"):
        op.set("Output", shape, kind)
        op.carry("Output", ())
        if op.has("OutputLength"):
            op.set("OutputLength", (shape[0], 1), kind)
            op.carry("OutputLength", ())
    else:
        if deep(op, "Input"):
            op.carry("Output", (op.offsets("Output", op.sequences("Input")),))
        op.set("Output", (-1, 1), kind)


def _align_native(op: OpView) -> Call | None:
    name = typed(op, "ctc_align", ("Input",), ("i32", "i64"))
    if name is None or not op.has("InputLength") or op.dtype("InputLength") != VarType.INT64:
        return None
    shape = op.shape("Input")
    operands = [op.name("Input"), op.name("InputLength"), op.name("Output"), op.name_or_none("OutputLength")]
    ints = [shape[0], shape[1], op.attr("blank"), int(op.attr("merge_repeated")), op.attr("padding_value")]
    return Call(name, operands, ints)


register(
    "ctc_align",
    inputs=("Input", "InputLength?"),
    outputs=("Output", "OutputLength?"),
    attrs={"blank": 0, "merge_repeated": True, "padding_value": 0},
    infer=_align_infer,
    kernel=_align,
    no_grad=("Output", "OutputLength"),
    native=_align_native,
    sequences=Sequences(takes_lod=True, source=None),
    doc="The tokens of each path without repetitions and blanks.",
)
