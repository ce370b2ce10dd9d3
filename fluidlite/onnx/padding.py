"""Sequences, one after the other in rows, as ONNX has them: one column each, padded to the longest."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dtypes import VarType
from .graph import Exported


@dataclass(frozen=True)
class Sequences:
    """ONNX values that describe B sequences of N rows in all, the longest of T steps."""

    lengths: str
    """[B]"""
    starts: str
    """[B], the first row of each."""
    ends: str
    """[B], one past the last row of each."""
    rows: str
    """[T, B], the row of each step; an arbitrary valid row beyond the end of a sequence."""
    inside: str
    """[T, B], whether the step is within its sequence."""
    owner: str
    """[N], the sequence of each row."""
    place: str
    """[N], the step of each row in its sequence."""


def sequences(o: Exported, lengths: str) -> Sequences:
    """Return the values derived from `lengths`, computed once a graph."""
    graph = o.graph
    known = graph.known.get(("sequences", lengths))
    if isinstance(known, Sequences):
        return known
    zero, one = o.constant(0), o.constant(1)
    ends = o.node("CumSum", lengths, zero)
    starts = o.node("Sub", ends, lengths)
    longest = o.node("ReduceMax", lengths, keepdims=0)
    times = o.node("Unsqueeze", o.node("Range", zero, longest, one), o.ints(1))
    inside = o.node("Less", times, lengths)
    last = o.node("Max", o.node("Sub", lengths, one), zero)
    rows = o.node("Add", o.node("Min", times, last), starts)
    total = o.node("ReduceSum", lengths, keepdims=0)
    # Empty sequences at the end start past the last row: clamp to it.
    rows = o.node("Min", rows, o.node("Max", o.node("Sub", total, one), zero))
    row = o.node("Range", zero, total, one)
    past_ends = o.node("GreaterOrEqual", o.node("Unsqueeze", row, o.ints(1)), ends)
    owner = o.node("ReduceSum", o.cast(past_ends, VarType.INT64), o.ints(1), keepdims=0)
    place = o.node("Sub", row, o.node("Gather", starts, owner))
    found = Sequences(lengths, starts, ends, rows, inside, owner, place)
    graph.known["sequences", lengths] = found  # type: ignore[assignment]
    return found


def padded(o: Exported, value: str, parts: Sequences) -> str:
    """[N, ...] as [T, B, ...]; steps beyond the end of a sequence hold arbitrary rows."""
    return str(o.node("Gather", value, parts.rows))


def filled(o: Exported, value: str, rank: int, parts: Sequences, filling: str) -> str:
    """[N, ...] of this rank as [T, B, ...], with `filling` beyond the end of each sequence."""
    inside = parts.inside
    if rank > 1:
        inside = o.node("Unsqueeze", inside, o.ints(*range(2, rank + 1)))
    return str(o.node("Where", inside, padded(o, value, parts), filling))


def unpadded(o: Exported, value: str, parts: Sequences) -> str:
    """[T, B, ...] as [N, ...]."""
    columns = [o.node("Unsqueeze", part, o.ints(1)) for part in (parts.place, parts.owner)]
    return str(o.node("GatherND", value, o.node("Concat", *columns, axis=1)))
