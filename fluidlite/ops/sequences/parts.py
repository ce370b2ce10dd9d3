"""Operators on parts of sequences: slices, rows of another width, windows, and scattered updates."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import to_host
from ...base.dtypes import VarType
from ..grad_pairs import register_pair
from ..infer import product
from ..native import NUMERIC, bytes_of_row, copy, itemsize, typed
from ..registry import Call, Levels, LodArray, OperatorError, OpView, Sequences, grad_name, register
from ..sequence import (
    Lods,
    Segments,
    grads_keep_sequences,
    levels,
    offsets_of,
    one_level,
    ranges,
    segments_of,
    set_rows,
    shorter,
    single,
)

DX, DOUT, DUPDATES = grad_name("X"), grad_name("Out"), grad_name("Updates")


def _unmatched(sequences: int, begins: int, counts: int) -> str | None:
    """The message if there is not one Offset and one Length for each sequence; else None."""
    if begins == sequences and counts == sequences:
        return None
    return f"X has {sequences} sequences, but Offset has {begins} and Length {counts} elements"


def _slice_rows(op_type: str, Offset: Any, Length: Any, lod: Lods) -> tuple[np.ndarray, np.ndarray]:
    """The rows in the slice of each sequence, and how many they are."""
    segments = Segments(one_level(op_type, lod, "X"))
    begin, count = (np.asarray(to_host(value), np.int64).reshape(-1) for value in (Offset, Length))
    text = _unmatched(len(segments), len(begin), len(count))
    if text is not None:
        raise OperatorError(f"operator {op_type}: {text}")
    wrong = np.flatnonzero(
        (begin < 0) | (count < 0) | (begin > segments.lengths) | (count > segments.lengths - begin)
    )
    if len(wrong):
        k = wrong[0]
        raise OperatorError(
            f"operator {op_type}: sequence {k} has {segments.lengths[k]} rows, but Offset is {begin[k]} and Length "
            f"{count[k]}"
        )
    return ranges(segments.starts + begin, count), count


def _slice(xp: Any, X: Any, Offset: Any, Length: Any, lod: Lods) -> Any:
    rows, count = _slice_rows("sequence_slice", Offset, Length, lod)
    return LodArray(X[xp.asarray(rows)], [offsets_of(count)])


def _slice_grad(xp: Any, X: Any, Offset: Any, Length: Any, Out_grad: Any, lod: Lods) -> Any:
    rows, _ = _slice_rows("sequence_slice_grad", Offset, Length, lod)
    dx = xp.zeros_like(X)
    dx[xp.asarray(rows)] = Out_grad
    return LodArray(dx, lod["X"][0])


def _slice_infer(op: OpView) -> None:
    for slot in ("Offset", "Length"):
        if len(op.shape(slot)) != 2:
            raise op.fail(f"{slot} must have shape [sequences, 1], got {list(op.shape(slot))}")
    if single(op, "X") is not None:
        text = _unmatched(op.sequences("X"), *(product(op.shape(slot)) for slot in ("Offset", "Length")))
        if text is not None:
            raise op.fail(text)
    shorter(op, "X", "Out", op.shape("X"), op.dtype("X"))


def _slice_grad_native(op: OpView) -> Call | None:
    found = segments_of(op, "X")
    if found is None or any(op.dtype(slot) != VarType.INT64 for slot in ("Offset", "Length")):
        return None
    offsets, count, rows = found
    operands = [op.name(DOUT), offsets, op.name("Offset"), op.name("Length"), op.name(DX)]
    return Call("sequence_slice_grad", operands, [count, op.shape(DOUT)[0], rows, bytes_of_row(op, "X")])


register_pair(
    "sequence_slice",
    ("X", "Offset", "Length"),
    _slice,
    _slice_grad,
    _slice_infer,
    "Of each sequence Length rows from Offset on.",
    keep=("X#", "Offset", "Length"),
    no_grad=("Offset", "Length"),
    sequences=Sequences(takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(None, _slice_grad_native),
)


def _reshape(xp: Any, X: Any, new_dim: int, lod: Lods) -> Any:
    elements = np.asarray(one_level("sequence_reshape", lod, "X")) * X.shape[1]
    if (elements % new_dim).any():
        k = int(np.flatnonzero(np.diff(elements) % new_dim)[0])
        raise OperatorError(
            f"operator sequence_reshape: sequence {k} has {elements[k + 1] - elements[k]} elements, which rows of "
            f"{new_dim} do not divide"
        )
    return LodArray(X.reshape(-1, new_dim), [(elements // new_dim).tolist()])


def _reshape_grad(xp: Any, X: Any, Out_grad: Any, lod: Lods) -> Any:
    return LodArray(Out_grad.reshape(X.shape), lod["X"][0])


def _reshape_infer(op: OpView) -> None:
    if len(op.shape("X")) != 2 or op.attr("new_dim") < 1:
        raise op.fail(f"X must be [rows, width] and new_dim at least 1, got {op.attr('new_dim')}")
    found, made = single(op, "X"), op.attr("new_dim")
    if found is None:
        op.set("Out", (-1, made), op.dtype("X"))
        return
    rows, width = op.shape("X")
    # The kernel checks that elements fill the rows, and names the sequence if they do not.
    carried = found if width == made else (op.offsets("Out", op.sequences("X")),)
    set_rows(op, "Out", (rows * width // made, made), op.dtype("X"), carried)


def _reshape_native(op: OpView) -> list[Call] | None:
    found = segments_of(op, "X")
    if found is None:
        return None
    (_, width), made = op.shape("X"), op.attr("new_dim")
    offsets = Call("sequence_reshape", [found[0], op.lod("Out")[0]], [found[1], width, made])
    # The first call checks sizes before the copy, as the last row may be too short.
    elements = Call("copy", [op.name("X"), op.name("Out")], [product(op.shape("Out")) * itemsize(op, "X")])
    return [elements] if width == made else [offsets, elements]


register_pair(
    "sequence_reshape",
    ("X",),
    _reshape,
    _reshape_grad,
    _reshape_infer,
    "The elements of each sequence in rows of new_dim.",
    attrs={"new_dim": 1},
    keep=("X#",),
    sequences=Sequences(levels=Levels("X", least=1), takes_lod=True),
    infer_back=grads_keep_sequences,
    native=(_reshape_native, copy(DOUT, DX)),
)


def _miscounted(sequences: int, ids: int, rows: int, updates: int) -> str | None:
    """The message if there is not one row for each sequence and one update for each id; else None."""
    if sequences <= rows and ids == updates:
        return None
    return f"{sequences} sequences of {ids} ids for {rows} rows and {updates} updates"


def _update_positions(
    op_type: str, X: Any, Ids: Any, Updates: Any, lod: Lods
) -> tuple[np.ndarray, np.ndarray]:
    """The row and the column that each id updates."""
    segments = Segments(one_level(op_type, lod, "Ids"))
    columns = np.asarray(to_host(Ids), np.int64).reshape(-1)
    text = _miscounted(len(segments), len(columns), len(X), Updates.size)
    if text is not None:
        raise OperatorError(f"operator {op_type}: {text}")
    width = product(X.shape[1:])
    wrong = columns[(columns < 0) | (columns >= width)]
    if len(wrong):
        raise OperatorError(f"operator {op_type}: ids must be in [0, {width}), got {wrong[0]}")
    return segments.of_row, columns


def _scatter(xp: Any, X: Any, Ids: Any, Updates: Any, lod: Lods) -> Any:
    rows, columns = _update_positions("sequence_scatter", X, Ids, Updates, lod)
    out = X.reshape(len(X), product(X.shape[1:])).copy()
    xp.add.at(out, (xp.asarray(rows), xp.asarray(columns)), Updates.reshape(-1))
    return LodArray(out.reshape(X.shape), [])


def _scatter_grad(xp: Any, Ids: Any, Updates: Any, Out_grad: Any, lod: Lods) -> Any:
    rows, columns = _update_positions("sequence_scatter_grad", Out_grad, Ids, Updates, lod)
    flat = Out_grad.reshape(len(Out_grad), product(Out_grad.shape[1:]))
    dupdates = flat[xp.asarray(rows), xp.asarray(columns)].reshape(Updates.shape)
    return LodArray(Out_grad.copy(), []), LodArray(dupdates, [])


def _scatter_infer(op: OpView) -> None:
    if single(op, "Ids") is not None:
        counts = op.sequences("Ids"), product(op.shape("Ids")), op.shape("X")[0], product(op.shape("Updates"))
        text = _miscounted(*counts)
        if text is not None:
            raise op.fail(text)
    op.set("Out", op.shape("X"), op.dtype("X"))
    op.carry("Out", ())


def _scatter_grad_infer(op: OpView) -> None:
    op.set(DX, op.shape(DOUT), op.dtype(DOUT))
    op.set(DUPDATES, op.shape("Updates"), op.dtype("Updates"))
    op.carry(DX, ())
    op.carry(DUPDATES, ())


def _spots(op: OpView, whole: str) -> tuple[str, list[int]] | None:
    """The offsets of Ids, and the numbers of sequences, ids, rows of `whole` and elements of a row."""
    found = segments_of(op, "Ids")
    if found is None or op.dtype("Ids") != VarType.INT64:
        return None
    shape = op.shape(whole)
    return found[0], [found[1], product(op.shape("Ids")), shape[0], product(shape[1:])]


def _scatter_native(op: OpView) -> Call | None:
    found, name = _spots(op, "X"), typed(op, "sequence_scatter", ("X", "Updates"), NUMERIC)
    if found is None or name is None:
        return None
    operands = [op.name("X"), op.name("Ids"), found[0], op.name("Updates"), op.name("Out")]
    return Call(name, operands, found[1])


def _scatter_grad_native(op: OpView) -> Call | None:
    found, name = _spots(op, DOUT), typed(op, "sequence_scatter_grad", ("Updates", DOUT))
    if found is None or name is None:
        return None
    given_back = [op.name_or_none(slot) or None for slot in (DX, DUPDATES)]
    return Call(name, [op.name("Ids"), found[0], op.name(DOUT), *given_back], found[1])


register_pair(
    "sequence_scatter",
    ("X", "Ids", "Updates"),
    _scatter,
    _scatter_grad,
    _scatter_infer,
    "X with updates added: each sequence of ids names numbers of the row in its place, counted through its axes.",
    keep=("Ids", "Updates#"),
    no_grad=("Ids",),
    sequences=Sequences(takes_lod=True),
    infer_back=_scatter_grad_infer,
    native=(_scatter_native, _scatter_grad_native),
)


def _enumerate(xp: Any, X: Any, win_size: int, pad_value: int, lod: Lods) -> Any:
    offsets = one_level("sequence_enumerate", lod, "X")
    segments = Segments(offsets)
    at = np.arange(len(X))[:, None] + np.arange(win_size)
    inside = at < segments.ends[segments.of_row][:, None]
    windows = X.reshape(-1)[xp.asarray(np.where(inside, at, 0))]
    return LodArray(xp.where(xp.asarray(inside), windows, X.dtype.type(pad_value)), [offsets])


def _enumerate_infer(op: OpView) -> None:
    shape = op.shape("X")
    if op.attr("win_size") < 2:
        raise op.fail(f"win_size must be at least 2, got {op.attr('win_size')}")
    if len(shape) != 2 or shape[1] not in (1, -1):
        raise op.fail(f"X must have shape [rows, 1], got {list(shape)}")
    set_rows(op, "Out", (shape[0], op.attr("win_size")), op.dtype("X"), single(op, "X"))


def _enumerate_native(op: OpView) -> Call | None:
    name, found = typed(op, "sequence_enumerate", ("X",), ("i32", "i64")), segments_of(op, "X")
    if name is None or found is None:
        return None
    ints = [*found[1:], op.attr("win_size"), op.attr("pad_value")]
    return Call(name, [op.name("X"), found[0], op.name("Out")], ints)


register(
    "sequence_enumerate",
    inputs=("X",),
    attrs={"win_size": 2, "pad_value": 0},
    infer=_enumerate_infer,
    kernel=_enumerate,
    no_grad=("Out",),
    native=_enumerate_native,
    sequences=Sequences(takes_lod=True, levels=Levels("X", least=1)),
    doc="For each id the window of win_size ids that begins there, pad_value beyond the end of the sequence.",
)


def _erase(xp: Any, X: Any, tokens: list[int], lod: Lods) -> Any:
    outer = levels("sequence_erase", lod, "X")
    kept = ~np.isin(to_host(X).reshape(-1), np.asarray(tokens, np.int64))
    before = np.concatenate([[0], np.cumsum(kept)])
    offsets = before[np.asarray(outer[-1], np.int64)]
    return LodArray(X[xp.asarray(np.flatnonzero(kept))], [*outer[:-1], offsets])


def _erase_infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) != 2 or shape[1] not in (1, -1):
        raise op.fail(f"X must have shape [rows, 1], got {list(shape)}")
    shorter(op, "X", "Out", shape, op.dtype("X"))


register(
    "sequence_erase",
    inputs=("X",),
    attrs={"tokens": []},
    infer=_erase_infer,
    kernel=_erase,
    no_grad=("Out",),
    sequences=Sequences(takes_lod=True, levels=Levels("X")),
    doc="The ids of each sequence without those that are among tokens.",
)
