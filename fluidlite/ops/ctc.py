"""Connectionist temporal classification (Graves et al. 2006): the cost of labels without known places."""

from __future__ import annotations

from typing import Any

import numpy as np

from .hosting import hosted
from .pairs import register_pair
from .registry import LodArray, OperatorError, OpView
from .sequence import Lods, levels


class _Batch:
    """Logits padded to [time, batch, classes] and labels to [batch, longest], with their lengths."""

    def __init__(
        self, Logits: Any, Label: Any, LogitsLength: Any, LabelLength: Any, lod: Lods, blank: int
    ) -> None:
        if LogitsLength is None:
            offsets = [levels("warpctc", lod, slot)[-1] for slot in ("Logits", "Label")]
            self.times, self.sizes = (np.diff(given) for given in offsets)
            if len(self.times) != len(self.sizes):
                raise OperatorError(
                    f"operator warpctc: Logits has {len(self.times)} sequences and Label {len(self.sizes)}"
                )
            self.logits = _padded(Logits, self.times).swapaxes(0, 1)
            self.labels = _padded(Label.reshape(-1), self.sizes)
        else:
            self.times, self.sizes = (np.asarray(given).reshape(-1) for given in (LogitsLength, LabelLength))
            self.logits, self.labels = np.asarray(Logits), np.asarray(Label).reshape(len(self.sizes), -1)
        steps, batch, classes = self.logits.shape
        if self.times.max(initial=0) > steps or self.sizes.max(initial=0) > self.labels.shape[1]:
            raise OperatorError("operator warpctc: a length is greater than the sequences are")
        counts = np.arange(self.labels.shape[1]) < self.sizes[:, None]
        self.labels = np.where(counts, self.labels, blank)
        if batch and counts.any() and not 0 <= self.labels.min() <= self.labels.max() < classes:
            raise OperatorError(
                f"operator warpctc: Label must be in [0, {classes}), as there are {classes} classes"
            )


def _padded(rows: Any, lengths: Any) -> Any:
    """Rows of sequences as [batch, longest, ...], with zeros behind each."""
    inside = np.arange(lengths.max(initial=0)) < lengths[:, None]
    whole = np.zeros((*inside.shape, *rows.shape[1:]), rows.dtype)
    whole[inside] = rows
    return whole


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
    possible = np.isfinite(total)  # too short sequences cost nothing, as in Fluid
    shares = np.exp(before + after - np.where(possible, total, 0)[:, None])
    gradient = np.exp(logs)
    where = (np.arange(steps)[:, None, None], np.arange(count)[:, None], states)
    np.subtract.at(gradient, where, shares)
    inside = (np.arange(steps)[:, None] < batch.times) & possible
    return np.where(possible, -total, 0), gradient * inside[..., None]


@hosted
def _warpctc(
    xp: Any, Logits: Any, Label: Any, LogitsLength: Any, LabelLength: Any, blank: int, lod: Lods
) -> Any:
    batch = _Batch(Logits, Label, LogitsLength, LabelLength, lod, blank)
    costs, gradient = _costs(batch, blank)
    if LogitsLength is None:
        turned = gradient.swapaxes(0, 1)
        gradient = turned[np.arange(turned.shape[1]) < batch.times[:, None]]
    # The costs are one row a sequence and have no LoD, which an empty one says.
    return (
        xp.asarray(gradient, dtype=Logits.dtype),
        LodArray(xp.asarray(costs.reshape(-1, 1), dtype=Logits.dtype), []),
    )


def _warpctc_grad(
    xp: Any, Logits: Any, LogitsLength: Any, WarpCTCGrad: Any, Loss_grad: Any, norm_by_times: bool, lod: Lods
) -> Any:
    scale = Loss_grad.reshape(-1)
    if LogitsLength is None:
        deep = levels("warpctc_grad", lod, "Logits")
        times = np.diff(deep[-1])
        per_sequence = scale / xp.asarray(times, dtype=scale.dtype) if norm_by_times else scale
        of_row = np.repeat(np.arange(len(times)), times)
        return LodArray(WarpCTCGrad * per_sequence[xp.asarray(of_row)][:, None], deep)
    if norm_by_times:
        scale = scale / LogitsLength.reshape(-1).astype(scale.dtype)
    return WarpCTCGrad * scale[:, None]


def _infer(op: OpView) -> None:
    shape, label = op.shape("Logits"), op.shape("Label")
    padded = op.has("LogitsLength")
    if padded != op.has("LabelLength"):
        raise op.fail("LogitsLength and LabelLength come together")
    if len(shape) != (3 if padded else 2):
        wanted = "[time, batch, classes] with lengths" if padded else "[rows, classes] with sequences"
        raise op.fail(f"Logits must be {wanted}, got shape {list(shape)} and labels {list(label)}")
    if shape[-1] >= 0 and not 0 <= op.attr("blank") < shape[-1]:
        raise op.fail(f"blank must be in [0, {shape[-1]}), got {op.attr('blank')}")
    op.set("WarpCTCGrad", shape, op.dtype("Logits"))
    op.set("Loss", (shape[1] if padded else -1, 1), op.dtype("Logits"))


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
    keep=("Logits", "LogitsLength"),
    keep_out=("WarpCTCGrad",),
    gradable=("Logits",),
    frozen=("WarpCTCGrad",),
    lod=True,
)
