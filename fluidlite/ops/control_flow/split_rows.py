"""`split_lod_tensor`, `merge_lod_tensor`: rows (or sequences) are split in two by a mask, and merged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.lod import Lod, as_lists
from ..grad_pairs import gradient_by
from ..host_fallback import hosted
from ..infer import product
from ..native import bytes_of_row
from ..op_view import RESOLVE_SIZES
from ..registry import Call, LodArray, OperatorError, OpView, Sequences, register
from ..sequence import Lods, input_lod, offsets_of, ranges


def _starts(lod: Lod, rows: int) -> np.ndarray:
    """The rows where the sequences of the first level begin, and the end of the last; every row is one without lod."""
    if not lod:
        return np.arange(rows + 1)
    starts = lod[0]
    for level in lod[1:]:
        starts = level[starts]
    return starts


def _pick(array: np.ndarray, lod: Lod, chosen: np.ndarray) -> LodArray:
    """The sequences (or rows) numbered `chosen`, in that order."""
    levels = []
    for offsets in lod:
        lengths = np.diff(offsets)[chosen]
        levels.append(offsets_of(lengths))
        chosen = ranges(offsets[:-1][chosen], lengths)
    return LodArray(array[chosen], levels)


def _truth(op_type: str, mask: np.ndarray) -> np.ndarray:
    """The mask as one bool for each sequence or row."""
    if mask.dtype != bool:
        raise OperatorError(f"operator {op_type}: Mask must be bool, got {mask.dtype}")
    return mask.reshape(-1)


@hosted
def _split(xp: Any, X: Any, Mask: Any, level: int, lod: Lods) -> Any:
    deep = input_lod(lod, "X")[level:]
    mask = _truth("split_lod_tensor", Mask)
    count = len(_starts(deep, len(X))) - 1
    if len(mask) != count:
        raise OperatorError(
            f"operator split_lod_tensor: Mask must have an element for each of the {count} "
            f"{'sequences' if deep else 'rows'} of X, got shape {list(Mask.shape)}"
        )
    return _pick(X, deep, np.flatnonzero(mask)), _pick(X, deep, np.flatnonzero(~mask))


def _sequences(part: np.ndarray, own: Lod, whole: Lod, mask: np.ndarray) -> Lod:
    """The LoD of one part: its own, or else that of its rows in X, if they are as many."""
    if own or not whole or len(whole[0]) - 1 != len(mask):
        return own
    from_x = _pick(np.arange(whole[-1][-1]), whole, np.flatnonzero(mask))
    return from_x.lod if len(from_x.array) == len(part) else ()


@hosted
def _merge(xp: Any, X: Any, Mask: Any, InTrue: Any, InFalse: Any, level: int, lod: Lods) -> Any:
    mask = _truth("merge_lod_tensor", Mask)
    outer = input_lod(lod, "X")
    slots, parts, chosen = ("InTrue", "InFalse"), (InTrue, InFalse), (mask, ~mask)
    lods = [
        _sequences(part, input_lod(lod, slot), outer[level:], here)
        for slot, part, here in zip(slots, parts, chosen, strict=True)
    ]
    for side, other in ((0, 1), (1, 0)):
        if not lods[side] and not len(parts[side]):
            # Its block has not run, because nothing was there.
            lods[side] = tuple(
                offsets_of(np.zeros(chosen[side].sum() if depth == 0 else 0, np.int64))
                for depth in range(len(lods[other]))
            )
    for slot, part, deep, here in zip(slots, parts, lods, chosen, strict=True):
        if len(_starts(deep, len(part))) - 1 != here.sum():
            raise OperatorError(
                f"operator merge_lod_tensor: {slot} must have {here.sum()} {'sequences' if deep else 'rows'}, as many "
                f"as Mask chooses, got shape {list(part.shape)} with lod {as_lists(deep)}"
            )
    both, joined = _joined(parts, lods)
    order = np.empty(len(mask), np.int64)
    order[mask] = np.arange(mask.sum())
    order[~mask] = np.arange(mask.sum(), len(mask))
    made = _pick(both, joined, order)
    return LodArray(made.array, (*outer[:level], *made.lod))


def _joined(parts: tuple[np.ndarray, np.ndarray], lods: list[Lod]) -> tuple[np.ndarray, Lod]:
    """The sequences of both parts, one after the other."""
    yes, no = lods
    if len(yes) != len(no):
        raise OperatorError(
            f"operator merge_lod_tensor: InTrue has {len(yes)} levels of sequences and InFalse {len(no)}"
        )
    full = [part for part in parts if len(part)] or [parts[0]]
    if any(part.shape[1:] != full[0].shape[1:] or part.dtype != full[0].dtype for part in full):
        rows = [f"{part.dtype} {list(part.shape[1:])}" for part in parts]
        raise OperatorError(
            f"operator merge_lod_tensor: the rows of InTrue are {rows[0]}, those of InFalse {rows[1]}"
        )
    lod = tuple(
        np.concatenate([first, second[1:] + first[-1]]) for first, second in zip(yes, no, strict=True)
    )
    return np.concatenate(full), lod


def _infer_split(op: OpView) -> None:
    if op.dtype("Mask") != VarType.BOOL:
        raise op.fail(f"Mask must be bool, got {op.dtype('Mask')}")
    counts = _found_counts(op) or (-1, -1)
    for slot, count in zip(("OutTrue", "OutFalse"), counts, strict=True):
        op.set(slot, (count, *op.shape("X")[1:]), op.dtype("X"))


def _found_counts(op: OpView) -> Sequence[int] | None:
    """The rows of both sides, which the native kernel finds in a step; None if only the reference kernel can."""
    whole = op.exact and op.has("OutTrue") and op.has("OutFalse") and not op.lod("X") and bool(op.shape("X"))
    if not whole or op.shape("X")[0] != product(op.shape("Mask")):
        return None
    # A gradient splits by the mask of its operator: then the sizes are known.
    counts: dict[str, tuple[str, Sequence[int]]] = op.meta.rows_by_mask  # type: ignore[attr-defined]
    mask = op.name("Mask")
    if mask in counts:
        return counts[mask][1]
    result = op.data_dependent_sizes("OutTrue", (2, 2))
    if result is not None:
        counts[mask] = op.name("OutTrue"), result
    return result


def _split_native(op: OpView) -> list[Call] | None:
    if op.lod("X"):
        return None
    counts = [op.shape(slot)[0] for slot in ("OutTrue", "OutFalse")]
    operands = [op.name(slot) for slot in ("Mask", "X", "OutTrue", "OutFalse")]
    rows = op.shape("X")[0]
    split = Call("split_rows", operands, [rows, *counts, bytes_of_row(op, "X")])
    if op.meta.rows_by_mask[op.name("Mask")][0] != op.name("OutTrue"):  # type: ignore[attr-defined]
        return [split]
    found = op.scratch("OutTrue", "FOUND", (2,), VarType.INT64)
    return [
        Call("count_rows", [op.name("Mask"), found], [rows]),
        Call(RESOLVE_SIZES, [found], [0, counts[0], 1, counts[1]]),
        split,
    ]


def _infer_merge(op: OpView) -> None:
    if op.dtype("Mask") != VarType.BOOL:
        raise op.fail(f"Mask must be bool, got {op.dtype('Mask')}")
    if not op.exact or any(op.lod(slot) for slot in ("X", "InTrue", "InFalse")):
        op.set("Out", (-1, *op.shape("InTrue")[1:]), op.dtype("InTrue"))
        return
    # A side that nothing went through may not have the width of the rows.
    full = "InTrue" if op.shape("InTrue")[0] != 0 else "InFalse"
    op.set("Out", (product(op.shape("Mask")), *op.shape(full)[1:]), op.dtype(full))


def _merge_native(op: OpView) -> Call | None:
    rows = [op.shape(slot)[0] for slot in ("InTrue", "InFalse")]
    for slot, count in zip(("InTrue", "InFalse"), rows, strict=True):
        if count != 0 and (op.shape(slot)[1:], op.dtype(slot)) != (op.shape("Out")[1:], op.dtype("Out")):
            return None  # which the reference kernel refuses
    operands = [op.name(slot) for slot in ("Mask", "InTrue", "InFalse", "Out")]
    return Call("merge_rows", operands, [product(op.shape("Mask")), *rows, bytes_of_row(op, "Out")])


register(
    "split_lod_tensor",
    inputs=("X", "Mask"),
    outputs=("OutTrue?", "OutFalse?"),
    attrs={"level": 0},
    infer=_infer_split,
    kernel=_split,
    grad=gradient_by(
        "merge_lod_tensor",
        {"X": "X", "Mask": "Mask", "InTrue": "OutTrue@GRAD", "InFalse": "OutFalse@GRAD"},
        attrs=lambda op: {"level": op.attr("level")},
    ),
    no_grad=("Mask",),
    native=_split_native,
    sequences=Sequences(takes_lod=True),
    doc="The rows, or sequences of a level, of X where Mask is true and those where it is not.",
)
_merge_grad = gradient_by(
    "split_lod_tensor",
    {"X": "Out@GRAD", "Mask": "Mask"},
    {"OutTrue": "InTrue@GRAD", "OutFalse": "InFalse@GRAD"},
    lambda op: {"level": op.attr("level")},
)
for _type, _grad in (("merge_lod_tensor", _merge_grad), ("merge_lod_tensor_infer", None)):
    register(
        _type,
        inputs=("X", "Mask", "InTrue", "InFalse"),
        attrs={"level": 0},
        infer=_infer_merge,
        kernel=_merge,
        grad=_grad,
        no_grad=("X", "Mask") if _grad else ("X", "Mask", "Out"),
        native=_merge_native,
        sequences=Sequences(takes_lod=True),
        doc="The rows, or sequences, of InTrue and InFalse in the order that Mask says.",
    )
