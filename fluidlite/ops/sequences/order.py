"""Operators that repeat rows or sequences, put them in another order, or other sequences over the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType
from ...base.lod import frozen_offsets
from ..grad_pairs import gradient_by, register_pair
from ..infer import may_equal, product
from ..native import bytes_of_row, copy, itemsize, numel, typed
from ..registry import Call, Levels, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import (
    Lods,
    Segments,
    deep,
    grads_keep_sequences,
    has_lod,
    input_lod,
    levels,
    offsets_of,
    one_level,
    ranges,
    segments_of,
    set_rows,
    single,
)

DX, DOUT = grad_name("X"), grad_name("Out")
_UNEVEN = "the inputs must have equally many sequences"


def _interleaved(op_type: str, lod: Lods, count: int) -> tuple[list[np.ndarray], np.ndarray]:
    """For each input the positions of its rows in the output; and the output's offsets."""
    offsets = [np.asarray(levels(op_type, lod, "X", k)[-1]) for k in range(count)]
    if len({len(o) for o in offsets}) != 1:
        counts = [len(o) - 1 for o in offsets]
        raise OperatorError(f"operator {op_type}: {_UNEVEN}, got {counts}")
    lengths = np.stack([np.diff(o) for o in offsets], axis=1)
    starts = (np.cumsum(lengths.reshape(-1)) - lengths.reshape(-1)).reshape(lengths.shape)
    places = [ranges(starts[:, k], lengths[:, k]) for k in range(count)]
    return places, offsets_of(lengths.sum(axis=1))


def _concat(xp: Any, X: Any, lod: Lods) -> Any:
    places, offsets = _interleaved("sequence_concat", lod, len(X))
    order = np.argsort(np.concatenate(places), kind="stable")
    return LodArray(xp.concatenate(X, axis=0)[xp.asarray(order)], [offsets])


def _concat_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    places, _ = _interleaved("sequence_concat_grad", lod, len(X))
    return [
        LodArray(Out_grad[xp.asarray(rows)], levels("sequence_concat_grad", lod, "X", k))
        for k, rows in enumerate(places)
    ]


def _concat_infer(op: OpView) -> None:
    row, inputs = op.shape("X")[1:], range(op.count("X"))
    for k in inputs:
        other = op.shape("X", k)[1:]
        if not may_equal(other, row):
            raise op.fail(f"the rows of all inputs must have shape {list(row)}, got {list(other)}")
    if not has_lod(op):
        op.set("Out", (-1, *row), op.dtype("X"))
        return
    for k in inputs:
        deep(op, "X", k)
    counts = [op.sequences("X", k) for k in inputs]
    if any(count != counts[0] for count in counts):
        raise op.fail(f"{_UNEVEN}, got {counts}")
    rows = sum(op.shape("X", k)[0] for k in inputs)
    set_rows(op, "Out", (rows, *row), op.dtype("X"), (op.offsets("Out", counts[0]),))


def _joined(op: OpView) -> tuple[list[tuple[str, str]], list[int]] | None:
    """Each input with its offsets; and the number of sequences, the bytes of a row, and the rows of each input."""
    found = [segments_of(op, "X", k) for k in range(op.count("X"))]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    pairs = [(op.name("X", k), one[0]) for k, one in enumerate(known)]
    row = product(op.shape("X")[1:]) * itemsize(op, "X")
    return pairs, [known[0][1], row, *[one[2] for one in known]]


def _concat_native(op: OpView) -> Call | None:
    found = _joined(op)
    if found is None:
        return None
    pairs, ints = found
    operands = [name for pair in pairs for name in pair]
    return Call("sequence_concat", [*operands, op.name("Out"), op.lod("Out")[0]], ints)


def _concat_grad_native(op: OpView) -> Call | None:
    found = _joined(op)
    if found is None:
        return None
    pairs, ints = found
    operands = [
        name or None for (_, offsets), dx in zip(pairs, op.names(DX), strict=True) for name in (offsets, dx)
    ]
    return Call("sequence_concat_grad", [op.name(DOUT), *operands], ints)


register_pair(
    "sequence_concat",
    ("X*",),
    _concat,
    _concat_grad,
    _concat_infer,
    "Joins the first sequences of all inputs, then the second ones, and so on.",
    sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
    infer_back=grads_keep_sequences,
    native=(_concat_native, _concat_grad_native),
)


def _reverse(xp: Any, X: Any, lod: Lods) -> Any:
    offsets = one_level("sequence_reverse", lod, "X")
    segments = Segments(offsets)
    mirror = (segments.starts + segments.ends - 1)[segments.of_row] - np.arange(len(X))
    return LodArray(X[xp.asarray(mirror)], [offsets])


def _reverse_infer(op: OpView) -> None:
    set_rows(op, "Y", op.shape("X"), op.dtype("X"), single(op, "X"))


def _reverse_native(op: OpView) -> Call | None:
    found = segments_of(op, "X")
    if found is None:
        return None
    row = product(op.shape("X")[1:]) * itemsize(op, "X")
    return Call("sequence_reverse", [op.name("X"), found[0], op.name("Y")], [*found[1:], row])


register(
    "sequence_reverse",
    inputs=("X",),
    outputs=("Y",),
    infer=_reverse_infer,
    kernel=_reverse,
    grad=gradient_by("sequence_reverse", {"X": "Y@GRAD"}, {"Y": "X@GRAD"}),
    native=_reverse_native,
    sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
    doc="The rows of each sequence in reverse order; its gradient is itself.",
)


def _wrong(offsets: np.ndarray, rows: int) -> str | None:
    """The message if the offsets of one level do not cover `rows` rows; else None."""
    if (
        len(offsets)
        and offsets[0] == 0
        and int(offsets[-1]) == rows
        and not (offsets[1:] < offsets[:-1]).any()
    ):
        return None
    return f"the offsets must go up from 0 to the {rows} rows of X, got {offsets.tolist()}"


def _reset(xp: Any, X: Any, Y: Any, target_lod: list[int], append: bool, lod: Lods) -> Any:
    theirs = input_lod(lod, "Y")
    wanted = theirs[-1] if theirs else frozen_offsets(target_lod if Y is None else to_host(Y).reshape(-1))
    wrong = _wrong(wanted, len(X))
    if wrong is not None:
        raise OperatorError(f"operator lod_reset: {wrong}")
    return LodArray(X, theirs or (*(input_lod(lod, "X") if append else ()), wanted))


def _reset_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return LodArray(Out_grad, input_lod(lod, "X"))


def _infer(op: OpView) -> None:
    set_rows(op, "Out", op.shape("X"), op.dtype("X"), _levels(op) if has_lod(op) else None)


def _levels(op: OpView) -> tuple[str, ...]:
    """The arrays of offsets of Out, in a run."""
    rows, theirs = op.shape("X")[0], op.lod("Y")
    if theirs:
        if op.shape("Y")[0] != rows:
            raise op.fail(f"the sequences of Y have {op.shape('Y')[0]} rows, but X has {rows}")
        return theirs
    if op.has("Y"):
        if op.dtype("Y") not in (VarType.INT32, VarType.INT64) or numel(op, "Y") < 1:
            raise op.fail(
                "Y must have sequences, or be int32 or int64 offsets from 0 to the number of rows of X"
            )
        sequences = numel(op, "Y") - 1
    else:
        wrong = _wrong(frozen_offsets(op.attr("target_lod")), rows)
        if wrong is not None:
            raise op.fail(wrong)
        sequences = len(op.attr("target_lod")) - 1
    outer = op.lod("X") if op.attr("append") else ()
    return (*outer, op.offsets("Out", sequences, len(outer)))


def _native(op: OpView) -> list[Call] | None:
    if not has_lod(op):
        return None
    rows = Call("copy", [op.name("X"), op.name("Out")], [numel(op, "X") * itemsize(op, "X")])
    if op.lod("Y"):
        return [rows]
    made = op.lod("Out")[-1]
    if op.has("Y"):
        name = typed(op, "lod_reset", ("Y",), ("i32", "i64"))
        assert name is not None, "Y holds integers"
        return [Call(name, [op.name("Y"), made], [numel(op, "Y") - 1, op.shape("X")[0]]), rows]
    offsets = list(op.attr("target_lod"))
    return [Call("set_offsets", [made], [len(offsets) - 1, *offsets]), rows]


register_pair(
    "lod_reset",
    ("X", "Y?"),
    _reset,
    _reset_grad,
    _infer,
    "The rows of X in the sequences of Y, or at the offsets that are Y or target_lod.",
    attrs={"target_lod": [], "append": False},
    keep=("X#",),
    no_grad=("Y",),
    sequences=Sequences(takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_native, copy(DOUT, DX)),
)


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
