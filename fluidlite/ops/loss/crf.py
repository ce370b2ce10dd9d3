"""Linear-chain conditional random fields (Lafferty et al. 2001): the cost of tags, and the best ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.dtypes import FLOATS, VarType
from ..grad_pairs import register_pair
from ..host_fallback import hosted
from ..infer import may_equal, product
from ..native import typed
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import Lods, Padded, batch_operands, grads_keep_sequences, set_rows, single

DEMISSION, DTRANSITION, DCOST = (grad_name(slot) for slot in ("Emission", "Transition", "LogLikelihood"))


def _log_sum(scores: Any, axis: int) -> Any:
    """The logarithm of the sum of exponentials."""
    best = scores.max(axis=axis, keepdims=True)
    best = np.where(np.isneginf(best), 0, best)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(scores - best).sum(axis=axis)) + best.squeeze(axis)


class _Field:
    """Scores in float64, padded: of tags in rows [batch, time, tags], of the first tag, the last, and of pairs."""

    def __init__(
        self, op_type: str, Emission: Any, Transition: Any, Label: Any, Length: Any, lod: Lods
    ) -> None:
        slot = "Emission" if op_type == "crf_decoding" else "Label"
        self.form = Padded.of(op_type, Emission, Length, lod, slot)
        self.whole = self.form.pad(Emission)
        self.x = np.where(self.form.inside[..., None], self.whole, 0).astype(np.float64)
        self.first, self.last, self.moves = (
            part.astype(np.float64) for part in (Transition[0], Transition[1], Transition[2:])
        )
        self.inside = self.form.inside
        if Label is None or op_type == "crf_decoding":
            return
        label = Label.reshape(Emission.shape[:-1])
        tags = Emission.shape[-1]
        wrong = np.flatnonzero(self.form.pad(((label < 0) | (label >= tags)).astype(int)) * self.inside)
        if len(wrong):
            raise OperatorError(
                f"operator {op_type}: Label must be in [0, {tags}); got {self.form.pad(label).flat[wrong[0]]}"
            )
        self.label = np.where(self.inside, self.form.pad(label), 0)

    def forward(self) -> tuple[Any, Any]:
        """The scores of all that leads to each tag, [batch, time, tags], and the total of each sequence."""
        scores = np.zeros_like(self.x)
        for t in range(self.x.shape[1]):
            before = scores[:, t - 1, :, None] + self.moves
            scores[:, t] = self.x[:, t] + (_log_sum(before, 1) if t else self.first)
        ends = np.maximum(self.form.lengths - 1, 0)
        if not self.x.shape[1]:
            return scores, np.zeros(len(ends))
        return scores, _log_sum(scores[np.arange(len(ends)), ends] + self.last, 1)

    def backward(self) -> Any:
        """The scores of all that follows each tag."""
        scores = np.zeros_like(self.x) + self.last
        for t in range(self.x.shape[1] - 2, -1, -1):
            after = self.moves + (self.x[:, t + 1] + scores[:, t + 1])[:, None, :]
            goes_on = (self.form.lengths > t + 1)[:, None]
            scores[:, t] = np.where(goes_on, _log_sum(after, 2), self.last)
        return scores

    def one_hot_labels(self) -> tuple[Any, Any, Any]:
        """One-hot labels [batch, time, tags], zero after the end; those of the first and of the last row."""
        hot = np.eye(self.x.shape[2])[self.label] * self.inside[..., None]
        last = self.inside & (np.arange(self.x.shape[1]) == self.form.lengths[:, None] - 1)
        return hot, hot[:, :1].sum(axis=1), (hot * last[..., None]).sum(axis=1)


@hosted
def _crf(xp: Any, Emission: Any, Transition: Any, Label: Any, Length: Any, lod: Lods) -> Any:
    field = _Field("linear_chain_crf", Emission, Transition, Label, Length, lod)
    scores, total = field.forward()
    hot, first, last = field.one_hot_labels()
    own = (hot * field.x).sum(axis=(1, 2)) + first @ field.first + last @ field.last
    own += np.einsum("bti,ij,btj->b", hot[:, :-1], field.moves, hot[:, 1:])
    cost = np.where(field.form.lengths > 0, total - own, 0).reshape(-1, 1)
    shares = np.exp(scores - _log_sum(scores, 2)[..., None]) * field.inside[..., None]
    rows = np.exp(Emission - Emission.max(axis=-1, keepdims=True))
    made = field.form.back(shares), rows, np.exp(Transition), cost
    return tuple(xp.asarray(array, dtype=Emission.dtype) for array in made)


@hosted
def _crf_grad(
    xp: Any, Emission: Any, Transition: Any, Label: Any, Length: Any, LogLikelihood_grad: Any, lod: Lods
) -> Any:
    field = _Field("linear_chain_crf_grad", Emission, Transition, Label, Length, lod)
    before, total = field.forward()
    after = field.backward()
    hot, first, last = field.one_hot_labels()
    weight = LogLikelihood_grad.reshape(-1).astype(np.float64)
    total = total[:, None, None]
    likely = np.exp(np.where(field.inside[..., None], before + after - total, -np.inf))
    pairs = before[:, :-1, :, None] + field.moves + (field.x + after)[:, 1:, None, :] - total[..., None]
    pairs = np.exp(np.where(field.inside[:, 1:, None, None], pairs, -np.inf))
    moves = np.einsum("b,btij->ij", weight, pairs)
    moves -= np.einsum("b,bti,btj->ij", weight, hot[:, :-1], hot[:, 1:])
    ends = np.maximum(field.form.lengths - 1, 0)
    of_last = likely[np.arange(len(ends)), ends] if likely.shape[1] else last
    edges = [weight @ (likely[:, :1].sum(axis=1) - first), weight @ (of_last - last)]
    d_x = field.form.back((likely - hot) * weight[:, None, None])
    emission = xp.asarray(d_x, dtype=Emission.dtype)
    levels = lod.get("Emission") or [None]
    return (
        LodArray(emission, levels[0]) if levels[0] else emission,
        xp.asarray(np.concatenate([edges, moves]), dtype=Emission.dtype),
    )


@hosted
def _decode(xp: Any, Emission: Any, Transition: Any, Label: Any, Length: Any, lod: Lods) -> Any:
    field = _Field("crf_decoding", Emission, Transition, None, Length, lod)
    first, last, moves = Transition[0], Transition[1], Transition[2:]
    x = field.whole  # in its own type, as in Fluid: that may decide between tags
    count, steps, _ = x.shape
    path = np.zeros((count, steps), np.int64)
    best = np.zeros_like(x)
    back = np.zeros(x.shape, np.int64)
    for t in range(steps):
        before = best[:, t - 1, :, None] + moves
        back[:, t] = before.argmax(axis=1)
        best[:, t] = (before.max(axis=1) if t else first) + x[:, t]
    for t in range(steps - 1, -1, -1):
        follows = np.take_along_axis(back[:, t + 1], path[:, t + 1, None], 1)[:, 0] if t + 1 < steps else 0
        path[:, t] = np.where(field.form.lengths - 1 == t, (best[:, t] + last).argmax(axis=1), follows)
    path = field.form.back(np.where(field.inside, path, 0))
    if Label is not None:
        same = (path == Label.reshape(path.shape)).astype(np.int64)
        path = field.form.back(field.form.pad(same) * field.inside)
    made = xp.asarray(path if Length is not None else path.reshape(-1, 1))
    return made if Length is not None else LodArray(made, lod["Emission"][0])


def _check(op: OpView) -> bool:
    """Refuses shapes that do not fit; returns whether the sequences are padded."""
    x, moves, padded = op.shape("Emission"), op.shape("Transition"), op.has("Length")
    if len(x) != 2 + padded:
        wanted = "[batch, time, tags] with a Length" if padded else "[rows, tags] with sequences"
        raise op.fail(f"Emission must be {wanted}, got shape {list(x)}")
    if op.dtype("Emission") not in FLOATS or op.dtype("Transition") != op.dtype("Emission"):
        kinds = f"{op.dtype('Emission')} and {op.dtype('Transition')}"
        raise op.fail(f"Emission and Transition must be of the same float type, got {kinds}")
    tags = x[-1]
    if len(moves) != 2 or (moves[0] != moves[1] + 2 and moves[0] >= 0) or (moves[1] != tags and tags >= 0):
        wide = str([tags + 2, tags]) if tags >= 0 else "[tags + 2, tags]"
        raise op.fail(f"Transition must be of shape {wide} for {tags} tags, got {list(moves)}")
    if padded and product(op.shape("Length")) != x[0] and min(product(op.shape("Length")), x[0]) >= 0:
        raise op.fail(
            f"Length must have {x[0]} elements, one for each sequence, got {product(op.shape('Length'))}"
        )
    if op.has("Label"):
        label = op.shape("Label")
        plain = label[: len(x) - 1]
        fits = len(plain) == len(x) - 1 and label[len(x) - 1 :] in ((), (1,), (-1,))
        if not fits or not may_equal(plain, x[:-1]):
            raise op.fail(f"Label must be of shape {[*x[:-1], 1]}, got {list(label)}")
    return padded


def _infer(op: OpView) -> None:
    x, kind = op.shape("Emission"), op.dtype("Emission")
    padded = _check(op)
    found = () if padded else single(op, "Label")
    set_rows(op, "Alpha", x, kind, ())
    set_rows(op, "EmissionExps", x, kind, ())
    op.set("TransitionExps", op.shape("Transition"), kind)
    op.carry("TransitionExps", ())
    count = x[0] if padded else op.sequences("Label") if found else -1
    set_rows(op, "LogLikelihood", (count, 1), kind, () if found is not None else None)


def _decode_infer(op: OpView) -> None:
    x = op.shape("Emission")
    if _check(op):
        op.set("ViterbiPath", x[:2], VarType.INT64)
        op.carry("ViterbiPath", ())
    else:
        set_rows(op, "ViterbiPath", (x[0], 1), VarType.INT64, single(op, "Emission"))


def _call(op: OpView, kernel: str, slot: str, operands: list[str | None]) -> Call | None:
    """A kernel on Emission, its offsets or lengths, Transition and Label, then `operands`."""
    name, form = typed(op, kernel, ("Emission", "Transition")), batch_operands(op, slot, "Length")
    whole = all(op.dtype(given) == VarType.INT64 for given in ("Label", "Length") if op.has(given))
    if name is None or form is None or not whole:
        return None
    shape = op.shape("Emission")
    offsets, lengths, count = form
    rows, steps = (count * shape[1], shape[1]) if lengths else (shape[0], 0)
    takes = [op.name("Emission"), offsets, lengths, op.name("Transition"), op.name_or_none("Label")]
    return Call(name, [*takes, *operands], [count, rows, shape[-1], steps])


def _native(op: OpView) -> Call | None:
    slots = ("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood")
    return _call(op, "linear_chain_crf", "Label", [op.name(slot) for slot in slots])


def _native_grad(op: OpView) -> Call | None:
    slots = (op.name(DCOST), op.name_or_none(DEMISSION), op.name_or_none(DTRANSITION))
    return _call(op, "linear_chain_crf_grad", "Label", list(slots))


register_pair(
    "linear_chain_crf",
    ("Emission", "Transition", "Label", "Length?"),
    _crf,
    _crf_grad,
    _infer,
    "The cost of the tags of each sequence: the logarithm of what all tags together score, less their own score.",
    outputs=("Alpha", "EmissionExps", "TransitionExps", "LogLikelihood"),
    keep_out=("Alpha#", "EmissionExps#", "TransitionExps#"),
    no_grad=("Label", "Length", "Alpha", "EmissionExps", "TransitionExps"),
    sequences=Sequences(takes_lod=True, source=None),
    infer_back=grads_keep_sequences,
    native=(_native, _native_grad),
)
register(
    "crf_decoding",
    inputs=("Emission", "Transition", "Label?", "Length?"),
    outputs=("ViterbiPath",),
    attrs={},
    infer=_decode_infer,
    kernel=_decode,
    no_grad=("ViterbiPath",),
    native=lambda op: _call(op, "crf_decoding", "Emission", [op.name("ViterbiPath")]),
    sequences=Sequences(takes_lod=True, source=None),
    doc="The tags that score most together; with a Label 1 where they are the same, 0 elsewhere.",
)
