"""Operators that run blocks - `conditional_block`, `while`, `recurrent` -, select between branches, and split rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.dtypes import VarType
from ...base.lod import Lod, as_lists
from .. import planning_rules
from ..grad_pairs import gradient_by, register_pair
from ..host_fallback import hosted
from ..infer import product, same_as
from ..native import bytes_of_row, copy
from ..op_view import RESOLVE_SIZES
from ..registry import (
    EMPTY,
    GRAD,
    Call,
    Control,
    Effects,
    LodArray,
    OperatorError,
    OpView,
    Planning,
    Sequences,
    grad_name,
    register,
)
from ..sequence import Lods, input_lod, offsets_of, ranges

DX, DOUT = grad_name("X"), grad_name("Out")

_BLOCK: dict[str, Any] = {"sub_block": None, "is_scalar_condition": False, "skip_eager_deletion_vars": []}


def _infer_block(op: OpView) -> None:
    if op.attr("is_scalar_condition") and op.dtype("Cond") != VarType.BOOL:
        op.refuse(f"its condition {op.name('Cond')!r} must be bool, got {op.dtype('Cond')}")


def _infer_block_grad(op: OpView) -> None:
    """Gradients computed by `minimize` inside of a branch have no outer variables."""
    declares = getattr(op.meta, "declares", lambda name: True)
    for index, (name, gradient) in enumerate(zip(op.names("Input"), op.names("Input@GRAD"), strict=True)):
        if gradient != EMPTY and declares(gradient):
            op.set("Input@GRAD", op.meta.shape(name), op.meta.dtype(name), index)


def _check_mask(op: OpView) -> None:
    if op.dtype("Mask") != VarType.INT32:
        raise op.fail(f"Mask must be int32, got {op.dtype('Mask')}")


def _infer_select(op: OpView) -> None:
    _check_mask(op)
    op.set("Out", op.shape("X"), op.dtype("X"))


def _infer_output(op: OpView) -> None:
    """A gradient has the shape of its variable: the inputs of `select_input` may differ."""
    _check_mask(op)
    for index, name in enumerate(op.names("Out")):
        if GRAD in name:
            source = name.replace("grad/", "").split(GRAD)[0]
            op.set("Out", op.meta.shape(source), op.meta.dtype(source), index)
        else:
            op.set("Out", op.shape("X"), op.dtype("X"), index)


for _type in ("conditional_block", "conditional_block_infer"):
    register(
        _type,
        inputs=("Cond*", "Input*?"),
        outputs=("Out*?", "Scope"),
        attrs=dict(_BLOCK),
        infer=_infer_block,
        no_grad=("Out", "Scope") if _type.endswith("_infer") else (),
        sequences=Sequences(source=None),
        effects=Effects(control=Control("branch", predicate="Cond", reads="Input", scopes="Scope")),
        doc="Runs sub_block if Cond is true; without is_scalar_condition if no Input is empty. Input: what the "
        "block reads from outside; Out: what it writes there.",
    )
register(
    "conditional_block_grad",
    inputs=("Cond*", "Input*?", "Out*?", "Out@GRAD*?", "Scope"),
    outputs=("Input@GRAD*?",),
    attrs={"sub_block": None, "is_scalar_condition": False},
    infer=_infer_block_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("branch", True, predicate="Cond", reads="Input", scopes="Scope")),
    doc="Gradient of conditional_block: runs sub_block where its block has run, and gives zeros where it has not.",
)
register(
    "select_input",
    inputs=("X*", "Mask"),
    infer=_infer_select,
    grad=gradient_by("select_output", {"X": DOUT, "Mask": "Mask"}),
    no_grad=("Mask",),
    effects=Effects(control=Control()),
    doc="The one of X that Mask numbers; the others need no value.",
)
register(
    "select_output",
    inputs=("X", "Mask"),
    outputs=("Out*",),
    infer=_infer_output,
    grad=gradient_by("select_input", {"X": DOUT, "Mask": "Mask"}),
    no_grad=("Mask",),
    effects=Effects(control=Control()),
    doc="X as the one of Out that Mask numbers; the others get no value.",
)
register(
    "keep_value",
    inputs=("X",),
    infer=same_as("X"),
    no_grad=("Out",),
    effects=Effects(control=Control()),
    doc="A copy of X for a gradient, none if X has no value yet: what it would be for has not run then.",
)

_ATTRS = {"is_test": False, "skip_eager_deletion_vars": []}


def _infer(op: OpView) -> None:
    """Infer nothing: the variables that a block writes are outer ones, with shapes of their own."""
    if op.dtype("Condition") != VarType.BOOL:
        raise op.fail(f"Condition must be bool, got {op.dtype('Condition')}")


def _infer_grad(op: OpView) -> None:
    for index, (name, gradient) in enumerate(zip(op.names("X"), op.names("X@GRAD"), strict=True)):
        if gradient != EMPTY:
            op.set("X@GRAD", op.meta.shape(name), op.meta.dtype(name), index)


register(
    "while",
    inputs=("X*?", "Condition"),
    outputs=("Out*?", "StepScopes?"),
    attrs=dict(_ATTRS),
    infer=_infer,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("loop", predicate="Condition", reads="X", scopes="StepScopes")),
    doc="Runs `sub_block` while Condition, which the block writes, is true. X: the outer variables that it reads; "
    "Out: those that it writes; StepScopes: values of its iterations stashed for the gradient.",
)
register(
    "while_grad",
    inputs=("X*?", "Out*?", "Out@GRAD*?", "StepScopes"),
    outputs=("X@GRAD*?",),
    attrs=dict(_ATTRS),
    infer=_infer_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("loop", True, reads="X", scopes="StepScopes")),
    doc="Runs `sub_block`, the gradient of a loop's block, for each of its iterations, the last one first.",
)


def _shaped_by_the_layer(op: OpView) -> None:
    """Infer nothing: the layer sets the shapes of outputs, those of the block with the time axis in front."""


def _recurrent_infer_grad(op: OpView) -> None:
    for slot in ("inputs", "initial_states", "parameters"):
        for index, (name, gradient) in enumerate(zip(op.names(slot), op.names(grad_name(slot)), strict=True)):
            if gradient != EMPTY:
                op.set(grad_name(slot), op.meta.shape(name), op.meta.dtype(name), index)


_RECURRENT_ATTRS: dict[str, Any] = {
    "has_states": False,
    "ex_states": [],
    "states": [],
    "sub_block": None,
    "reverse": False,
    "is_train": True,
    "skip_eager_deletion_vars": [],
}

register(
    "recurrent",
    inputs=("inputs*", "initial_states*?", "parameters*?"),
    outputs=("outputs*?", "step_scopes?"),
    attrs=_RECURRENT_ATTRS,
    infer=_shaped_by_the_layer,
    no_grad=("step_scopes",),
    sequences=Sequences(source=None),
    effects=Effects(control=Control("recurrent", scopes="step_scopes")),
    doc="Runs a block for each step of inputs, which are stacked along their first axis, and stacks what it makes.",
)
register(
    "recurrent_grad",
    inputs=(
        "inputs*",
        "initial_states*?",
        "parameters*?",
        "outputs*?",
        "step_scopes",
        "outputs@GRAD*?",
        "step_scopes@GRAD?",
    ),
    outputs=("inputs@GRAD*?", "initial_states@GRAD*?", "parameters@GRAD*?"),
    attrs=_RECURRENT_ATTRS,
    infer=_recurrent_infer_grad,
    sequences=Sequences(source=None),
    effects=Effects(control=Control("recurrent", True, scopes="step_scopes")),
    doc="The gradient of recurrent: runs a block for each step, the last one first.",
)

register_pair(
    "rnn_memory_helper",
    ("X",),
    lambda xp, X: X,
    lambda xp, X, Out_grad: Out_grad,
    same_as("X"),
    "X under another name: what a step leaves to the next one, or as a result.",
    attrs={"dtype": 5},
    keep_out=("Out",),
    planning=Planning(
        view=("Out", "X"), batchable=planning_rules.all_batched, identity=planning_rules.always()
    ),
    planning_back=Planning(
        view=(DX, DOUT), batchable=planning_rules.all_batched, identity=planning_rules.always(DX, DOUT)
    ),
    native=(copy("X", "Out"), copy(DOUT, DX)),
)


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
