"""Helpers of sequence operators: LoD as reference kernels get it, and as plans have it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.lod import Lod, as_lod, from_lengths
from .infer import grads_like_inputs, product
from .registry import GRAD, OperatorError, OpView

Lods = dict[str, list[Any]]

_NONE = "has no LoD information: feed sequences made with fluid.create_lod_tensor"


def input_lod(lod: Lods, slot: str, index: int = 0) -> Lod:
    """The levels of detail of an input; () if it has none."""
    found = lod.get(slot) or []
    return as_lod((found[index] if index < len(found) else None) or ())


def levels(op_type: str, lod: Lods, slot: str, index: int = 0) -> Lod:
    """The levels of detail of an input; raises OperatorError if it has none."""
    result = input_lod(lod, slot, index)
    if not result:
        raise OperatorError(f"operator {op_type}: {slot} {_NONE}")
    return result


def one_level(op_type: str, lod: Lods, slot: str) -> np.ndarray:
    """The offsets of an input with one level of sequences; OperatorError for any other."""
    deep = levels(op_type, lod, slot)
    if len(deep) != 1:
        raise OperatorError(f"operator {op_type}: {slot} must have one level of sequences, got {len(deep)}")
    return deep[0]


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """The offsets of sequences of these lengths."""
    return from_lengths(lengths)


def ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers of all ranges [start, start + length), one after the other."""
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return np.repeat(starts, lengths) + np.arange(int(lengths.sum())) - before


class Segments:
    """The sequences of one level: offsets, lengths, and the sequence of each row."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.starts = offsets[:-1]
        self.ends = offsets[1:]
        self.lengths = self.ends - self.starts
        self.of_row = np.repeat(np.arange(len(self.lengths)), self.lengths)

    def __len__(self) -> int:
        return len(self.lengths)


class Padded:
    """Sequences of either form as [batch, time, ...]: given as rows with offsets, or padded already, with lengths."""

    def __init__(self, lengths: np.ndarray, steps: int, as_rows: bool) -> None:
        self.lengths = lengths
        self.inside = np.arange(steps) < lengths[:, None]
        self._as_rows = as_rows

    @classmethod
    def of(cls, op_type: str, x: Any, lengths: Any, lod: Lods, slot: str, time: int = 1) -> Padded:
        """The sequences of `x`: padded with `lengths`, or, with None, by the offsets of `slot`. `time`: the time axis.

        Raises OperatorError for lengths beyond the number of steps.
        """
        if lengths is None:
            own = np.diff(levels(op_type, lod, slot)[-1])
            return cls(own, int(own.max(initial=0)), True)
        own, steps = np.asarray(lengths).reshape(-1), x.shape[time]
        wrong = np.flatnonzero((own < 0) | (own > steps))
        if len(wrong):
            raise OperatorError(
                f"operator {op_type}: sequence {wrong[0]} has {own[wrong[0]]} rows, which does not fit the "
                f"{steps} that there are"
            )
        return cls(own, steps, False)

    def pad(self, rows: Any) -> Any:
        """Rows as [batch, time, ...] with zeros after each sequence; padded ones are returned unchanged."""
        if not self._as_rows:
            return rows
        whole = np.zeros((*self.inside.shape, *rows.shape[1:]), rows.dtype)
        whole[self.inside] = rows
        return whole

    def back(self, whole: Any) -> Any:
        """The inverse of `pad`."""
        return whole[self.inside] if self._as_rows else whole


def deep(op: OpView, slot: str, index: int = 0) -> tuple[str, ...] | None:
    """For `infer`: the arrays of offsets of an input that must have LoD, outermost level first; None while a program is
    built. Raises the operator's error if the input has none in a run.
    """
    if not has_lod(op):
        return None
    result = op.lod(slot, index)
    if not result:
        raise op.fail(f"{slot} {_NONE}")
    return result


def single(op: OpView, slot: str, index: int = 0) -> tuple[str, ...] | None:
    """`deep` for an input that must have one level of sequences."""
    found = deep(op, slot, index)
    if found is not None and len(found) != 1:
        raise op.fail(f"{slot} must have one level of sequences, got {len(found)}")
    return found


def has_lod(op: OpView) -> bool:
    """Whether the LoD of inputs is available: in a run, but not while a program is built."""
    return op.exact and hasattr(op.meta, "lod")


def set_rows(op: OpView, out: str, shape: Sequence[int], dtype: Any, levels: tuple[str, ...] | None) -> None:
    """For `infer`: shape and dtype of an output and its arrays of offsets; with levels of None the number of rows is
    that declared, which a run without knowledge of sequences cannot rely on.
    """
    rows = shape[0] if levels is not None or not op.exact else -1
    op.set(out, (rows, *shape[1:]), dtype)
    op.carry(out, levels or ())


def shorter(op: OpView, slot: str, out: str, shape: Sequence[int], dtype: Any) -> None:
    """For `infer`: an output with as many sequences as an input, and a data-dependent number of rows."""
    outer = deep(op, slot)
    op.set(out, (-1, *shape[1:]), dtype)
    if outer is not None:
        op.carry(out, (*outer[:-1], op.offsets(out, op.sequences(slot), len(outer) - 1)))


def grads_keep_sequences(op: OpView) -> None:
    """`grads_like_inputs`; each gradient has the LoD of its variable."""
    grads_like_inputs(op)
    for slot, names in op.outputs.items():
        source = slot.removesuffix(GRAD)
        for index, name in enumerate(names):
            if name:
                op.carry(slot, op.lod(source, index) if op.inputs.get(source) else (), index)


def segments_of(op: OpView, slot: str, index: int = 0) -> tuple[str, int, int] | None:
    """For `native`: the array of offsets of the last level, how many sequences there are, and how many rows; None
    without sequences, which is for the reference kernel to complain about.
    """
    found = op.lod(slot, index)
    return (found[-1], op.sequences(slot, index), op.shape(slot, index)[0]) if found else None


def batch_operands(op: OpView, slot: str, lengths: str) -> tuple[str | None, str | None, int] | None:
    """For `native`: the array of offsets of `slot` or else the lengths of padded sequences, and their number.

    None if there is neither.
    """
    if op.has(lengths):
        return None, op.name(lengths), product(op.shape(lengths))
    found = op.lod(slot)
    return (found[-1], None, op.sequences(slot)) if found else None
