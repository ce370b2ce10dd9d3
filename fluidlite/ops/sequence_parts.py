"""Operators that take sequences apart: pieces, rows of another width, windows, and updates scattered by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..backend import to_host
from .native import typed
from .pairs import register_pair
from .registry import Call, LodArray, OpDef, OperatorError, OpView, register
from .sequence import Lods, Segments, given, offsets_of, one_level, ranges, segments_of, set_rows, single


def _chosen(op_type: str, Offset: Any, Length: Any, lod: Lods) -> tuple[np.ndarray, np.ndarray]:
    """Which rows a slice of each sequence has, and how many."""
    segments = Segments(one_level(op_type, lod, "X"))
    begin, count = (np.asarray(to_host(value), np.int64).reshape(-1) for value in (Offset, Length))
    if not len(begin) == len(count) == len(segments):
        raise OperatorError(
            f"operator {op_type}: X has {len(segments)} sequences, but Offset has {len(begin)} and Length "
            f"{len(count)} elements"
        )
    wrong = np.flatnonzero((begin < 0) | (count < 0) | (begin + count > segments.lengths))
    if len(wrong):
        k = wrong[0]
        raise OperatorError(
            f"operator {op_type}: sequence {k} has {segments.lengths[k]} rows, but Offset is {begin[k]} and Length "
            f"{count[k]}"
        )
    return ranges(segments.starts + begin, count), count


def _slice(xp: Any, X: Any, Offset: Any, Length: Any, lod: Lods) -> Any:
    rows, count = _chosen("sequence_slice", Offset, Length, lod)
    return LodArray(X[xp.asarray(rows)], [offsets_of(count)])


def _slice_grad(xp: Any, X: Any, Offset: Any, Length: Any, Out_grad: Any, lod: Lods) -> Any:
    rows, _ = _chosen("sequence_slice_grad", Offset, Length, lod)
    dx = xp.zeros_like(X)
    dx[xp.asarray(rows)] = Out_grad
    return LodArray(dx, lod["X"][0])


def _slice_infer(op: OpView) -> None:
    for slot in ("Offset", "Length"):
        if len(op.shape(slot)) != 2:
            raise op.fail(f"{slot} must have shape [sequences, 1], got {list(op.shape(slot))}")
    op.set("Out", (-1, *op.shape("X")[1:]), op.dtype("X"))


register_pair(
    "sequence_slice",
    ("X", "Offset", "Length"),
    _slice,
    _slice_grad,
    _slice_infer,
    "Of each sequence Length rows from Offset on.",
    gradable=("X",),
    lod=True,
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
    op.set("Out", (-1, op.attr("new_dim")), op.dtype("X"))


register_pair(
    "sequence_reshape",
    ("X",),
    _reshape,
    _reshape_grad,
    _reshape_infer,
    "The elements of each sequence in rows of new_dim.",
    attrs={"new_dim": 1},
    lod=True,
)


def _places(op_type: str, X: Any, Ids: Any, Updates: Any, lod: Lods) -> tuple[np.ndarray, np.ndarray]:
    """For each id the row and column of X that it means."""
    segments = Segments(one_level(op_type, lod, "Ids"))
    columns = np.asarray(to_host(Ids), np.int64).reshape(-1)
    if len(segments) > len(X) or len(columns) > Updates.size:
        raise OperatorError(
            f"operator {op_type}: {len(segments)} sequences of {len(columns)} ids for {len(X)} rows and "
            f"{Updates.size} updates"
        )
    wrong = columns[(columns < 0) | (columns >= X.shape[1])]
    if len(wrong):
        raise OperatorError(f"operator {op_type}: ids must be in [0, {X.shape[1]}), got {wrong[0]}")
    return segments.of_row, columns


def _scatter(xp: Any, X: Any, Ids: Any, Updates: Any, lod: Lods) -> Any:
    rows, columns = _places("sequence_scatter", X, Ids, Updates, lod)
    out = X.copy()
    xp.add.at(out, (xp.asarray(rows), xp.asarray(columns)), Updates.reshape(-1)[: len(columns)])
    return LodArray(out, given(lod, "X"))


def _scatter_grad(xp: Any, X: Any, Ids: Any, Updates: Any, Out_grad: Any, lod: Lods) -> Any:
    rows, columns = _places("sequence_scatter_grad", X, Ids, Updates, lod)
    dupdates = xp.zeros_like(Updates)
    dupdates.reshape(-1)[: len(columns)] = Out_grad[xp.asarray(rows), xp.asarray(columns)]
    return LodArray(Out_grad.copy(), given(lod, "X")), LodArray(dupdates, [])


def _scatter_infer(op: OpView) -> None:
    if len(op.shape("X")) != 2:
        raise op.fail(f"X must have 2 dimensions, got {list(op.shape('X'))}")
    op.set("Out", op.shape("X"), op.dtype("X"))


register_pair(
    "sequence_scatter",
    ("X", "Ids", "Updates"),
    _scatter,
    _scatter_grad,
    _scatter_infer,
    "X with updates added: each sequence of ids names columns of the row in its place.",
    gradable=("X", "Updates"),
    lod=True,
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
    OpDef(
        "sequence_enumerate",
        inputs=("X",),
        attrs={"win_size": 2, "pad_value": 0},
        infer=_enumerate_infer,
        kernel=_enumerate,
        native=_enumerate_native,
        frozen=("Out",),
        lod=True,
        doc="For each id the window of win_size ids that begins there, pad_value beyond the end of the sequence.",
    )
)
