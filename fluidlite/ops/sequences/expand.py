"""Operators that repeat rows or sequences by the lengths of other sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..grad_pairs import register_pair
from ..infer import product
from ..native import bytes_of_row, typed
from ..registry import Call, Levels, LodArray, OperatorError, OpView, Sequences, grad_name
from ..sequence import (
    Lods,
    deep,
    grads_keep_sequences,
    input_lod,
    levels,
    offsets_of,
    one_level,
    ranges,
    set_rows,
    single,
)

DX, DOUT = grad_name("X"), grad_name("Out")


def _level(ref_level: int, count: int) -> int:
    """The index of level `ref_level` among `count`, -1 being the last; ValueError if out of range."""
    if not -1 <= ref_level < count:
        raise ValueError(f"ref_level must be in [-1, {count}), got {ref_level}")
    return ref_level % count


def _counted(own: int, has_sequences: bool, level: int, times: int) -> str | None:
    """The message if the parts of X are not as many as the repetitions of Y; else None."""
    if own == times:
        return None
    return f"X has {own} {'sequences' if has_sequences else 'rows'} but level {level} of Y has {times}"


def _expansion(op_type: str, rows: int, lod: Lods, ref_level: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The row of X for each row of the output, and the LoD of the output."""
    reference, own = levels(op_type, lod, "Y"), input_lod(lod, "X")
    try:
        times = np.diff(reference[_level(ref_level, len(reference))])
    except ValueError as error:
        raise OperatorError(f"operator {op_type}: {error}") from None
    if len(own) > 1:
        raise OperatorError(f"operator {op_type}: X may have one level of sequences at most, got {len(own)}")
    offsets = own[0] if own else np.arange(rows + 1)
    starts, lengths = offsets[:-1], np.diff(offsets)
    wrong = _counted(len(lengths), bool(own), ref_level, len(times))
    if wrong is not None:
        raise OperatorError(f"operator {op_type}: {wrong}")
    if not own:
        return np.repeat(starts, times), []
    repeated = np.repeat(lengths, times)
    return ranges(np.repeat(starts, times), repeated), [offsets_of(repeated)]


def _expand(xp: Any, X: Any, ref_level: int, lod: Lods) -> Any:
    rows, made = _expansion("sequence_expand", len(X), lod, ref_level)
    return LodArray(X[xp.asarray(rows)], made)


def _expand_grad(xp: Any, X: Any, Out_grad: Any, ref_level: int, lod: Lods) -> Any:
    return _summed(xp, X, Out_grad, _expansion("sequence_expand_grad", len(X), lod, ref_level)[0], lod)


def _summed(xp: Any, X: Any, Out_grad: Any, rows: np.ndarray, lod: Lods) -> LodArray:
    dx = xp.zeros_like(X)
    xp.add.at(dx, xp.asarray(rows), Out_grad)
    return LodArray(dx, input_lod(lod, "X"))


def _expand_infer(op: OpView) -> None:
    """The rows of a plain X have as many copies as the referred level has parts; of sequences only the data know it."""
    row, dtype = op.shape("X")[1:], op.dtype("X")
    reference = deep(op, "Y")
    if reference is None:
        op.set("Out", (-1, *row), dtype)
        return
    own = op.lod("X")
    try:
        level = _level(op.attr("ref_level"), len(reference))
    except ValueError as error:
        raise op.fail(str(error)) from None
    if len(own) > 1:
        raise op.fail(f"X may have one level of sequences at most, got {len(own)}")
    parts = op.sequences("X") if own else op.shape("X")[0]
    wrong = _counted(parts, bool(own), op.attr("ref_level"), op.sequences("Y", level=level))
    if wrong is not None:
        raise op.fail(wrong)
    if own:
        op.set("Out", (-1, *row), dtype)
    else:
        below = op.sequences("Y", level=level + 1) if level + 1 < len(reference) else op.shape("Y")[0]
        set_rows(op, "Out", (below, *row), dtype, ())


def _repeat_call(op: OpView, times: str) -> Call:
    """The call that repeats rows of X as often as the sequences with the offsets `times` have parts."""
    ints = [op.shape("X")[0], op.shape("Out")[0], bytes_of_row(op, "X")]
    return Call("sequence_expand", [op.name("X"), times, op.name("Out")], ints)


def _sum_call(op: OpView, times: str, own: str | None = None) -> Call | None:
    """The call that sums the gradients of repeated rows, or sequences with the offsets `own`."""
    name, x = typed(op, "sequence_expand_grad", ("X", DOUT)), op.shape("X")
    parts = op.sequences("X") if own else x[0]
    ints = [parts, op.shape(DOUT)[0], x[0], product(x[1:])]
    return Call(name, [op.name(DOUT), own, times, op.name(DX)], ints) if name else None


def _expand_native(op: OpView) -> Call | None:
    reference = op.lod("Y")
    return _repeat_call(op, reference[op.attr("ref_level")]) if reference and not op.lod("X") else None


def _expand_grad_native(op: OpView) -> Call | None:
    reference, own = op.lod("Y"), op.lod("X")
    return _sum_call(op, reference[op.attr("ref_level")], own[0] if own else None) if reference else None


register_pair(
    "sequence_expand",
    ("X", "Y#"),
    _expand,
    _expand_grad,
    _expand_infer,
    "Repeats each row (or sequence) of X as often as the sequence of Y in its place has parts.",
    attrs={"ref_level": -1},
    keep=("X#", "Y#"),
    no_grad=("Y",),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    infer_back=grads_keep_sequences,
    native=(_expand_native, _expand_grad_native),
)


def _repeats(op_type: str, X: Any, lod: Lods) -> tuple[np.ndarray, np.ndarray]:
    """The row of X for each row of the output, and the offsets of Y."""
    offsets = one_level(op_type, lod, "Y")
    if len(X) != len(offsets) - 1:
        raise OperatorError(f"operator {op_type}: X has {len(X)} rows but Y has {len(offsets) - 1} sequences")
    return np.repeat(np.arange(len(X)), np.diff(offsets)), offsets


def _expand_as(xp: Any, X: Any, lod: Lods) -> Any:
    rows, offsets = _repeats("sequence_expand_as", X, lod)
    return LodArray(X[xp.asarray(rows)], [offsets])


def _expand_as_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return _summed(xp, X, Out_grad, _repeats("sequence_expand_as_grad", X, lod)[0], lod)


def _expand_as_infer(op: OpView) -> None:
    x, found = op.shape("X"), single(op, "Y")
    if found is None:
        op.set("Out", (-1, *x[1:]), op.dtype("X"))
        return
    if x[0] != op.sequences("Y"):
        raise op.fail(f"X has {x[0]} rows but Y has {op.sequences('Y')} sequences")
    set_rows(op, "Out", (op.shape("Y")[0], *x[1:]), op.dtype("X"), found)


register_pair(
    "sequence_expand_as",
    ("X", "Y#"),
    _expand_as,
    _expand_as_grad,
    _expand_as_infer,
    "Repeats each row of X as often as the sequence of Y in its place has rows.",
    keep=("X#", "Y#"),
    no_grad=("Y",),
    sequences=Sequences(levels=Levels("X", least=1), takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(
        lambda op: _repeat_call(op, op.lod("Y")[-1]) if op.lod("Y") else None,
        lambda op: _sum_call(op, op.lod("Y")[-1]) if op.lod("Y") else None,
    ),
)
