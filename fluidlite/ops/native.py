"""Helpers for `native=` selectors - element types, sizes, the commonest calls - and exceptions for the error codes of
native kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..base.dtypes import VarType, to_numpy
from ..base.errors import EnforceNotMet, OperatorError
from .infer import product
from .registry import Call, OpView, Shape, grad_name

Selector = Callable[[OpView], Call | list[Call] | None]

_SUFFIX = {
    VarType.FP32: "f32",
    VarType.FP64: "f64",
    VarType.INT32: "i32",
    VarType.INT64: "i64",
    VarType.UINT8: "u8",
    VarType.BOOL: "u8",
}
REAL = ("f32", "f64")
INTEGERS = ("i32", "i64")
NUMERIC = (*REAL, *INTEGERS)
BYTES = ("u8",)


def element(op: OpView, *slots: str) -> str | None:
    """The kernel suffix of the element type that all variables in `slots` have; None if they differ."""
    dtype = op.meta.dtype
    found = {dtype(name) for slot in slots for name in op.names(slot)}
    return _SUFFIX.get(found.pop()) if len(found) == 1 else None


def typed(op: OpView, kernel: str, slots: Sequence[str], types: Sequence[str] = REAL) -> str | None:
    """`kernel.SUFFIX` for the common element type of `slots`, or None if there is none among `types`."""
    suffix = element(op, *slots)
    return f"{kernel}.{suffix}" if suffix in types else None


def typed_call(
    op: OpView,
    kernel: str,
    takes: Sequence[str],
    gives: Sequence[str],
    ints: Sequence[int],
    floats: Sequence[float] = (),
    types: Sequence[str] = REAL,
) -> Call | None:
    """The call of `kernel` on the variables of slots, for the common element type of those in `takes`.

    Operands are `takes`, then `gives`; missing ones are left out. None if there is no common type among `types`.
    """
    name = typed(op, kernel, takes, types)
    return None if name is None else Call(name, [op.name_or_none(s) for s in (*takes, *gives)], ints, floats)


def numel(op: OpView, slot: str, index: int = 0) -> int:
    """How many elements a variable has."""
    return product(op.shape(slot, index))


def itemsize(op: OpView, slot: str, index: int = 0) -> int:
    """The bytes of one element of a variable."""
    return to_numpy(op.dtype(slot, index)).itemsize


def bytes_of_row(op: OpView, slot: str, index: int = 0) -> int:
    """The bytes of one row of a variable: all dimensions but the first."""
    return product(op.shape(slot, index)[1:]) * itemsize(op, slot, index)


def split_at(shape: Shape, axis: int) -> tuple[int, int, int]:
    """`shape` seen as (pre, n, post) around `axis`, which must not be negative."""
    return product(shape[:axis]), shape[axis], product(shape[axis + 1 :])


def copy(source: str, target: str) -> Selector:
    """Copy the bytes of `source` to `target`, which has as many elements of the same type."""

    def select(op: OpView) -> Call:
        return Call("copy", [op.name(source), op.name(target)], [numel(op, source) * itemsize(op, source)])

    return select


def unary(kernel: str, floats: Sequence[str] = ()) -> Selector:
    """`Out = kernel(X)` element by element; `floats` names the attributes the kernel takes."""

    def select(op: OpView) -> Call | None:
        return typed_call(op, kernel, ("X",), ("Out",), [numel(op, "X")], [float(op.attr(f)) for f in floats])

    return select


def unary_grad(kernel: str, floats: Sequence[str] = (), out_as_x: bool = False) -> Selector:
    """`X@GRAD` of an elementwise operator from those of X and Out that the gradient operator has.

    `out_as_x`: the gradient operator keeps Out, but the kernel looks at the sign of X, which is that of Out.
    """

    def select(op: OpView) -> Call | None:
        dout, dx = grad_name("Out"), grad_name("X")
        name = typed(op, f"{kernel}_grad", ("X", "Out", dout))
        if name is None or not op.has(dx):
            return None
        x = op.name_or_none("Out" if out_as_x else "X")
        operands = [x, op.name_or_none("Out"), op.name(dout), op.name(dx)]
        return Call(name, operands, [numel(op, dout)], [float(op.attr(f)) for f in floats])

    return select


_OUT_OF_RANGE, _NO_MEMORY, _TOO_LARGE, _UNEVEN, _ZERO = 1, 2, 5, 7, 8

_UNEVEN_TEXTS = {
    "chunk_eval": "sequence {0} has {1} rows, not {2}; Inference and Label must have the same sequences",
    "lod_reset": "the offsets must go up from 0 to the {2} rows of X, got {1} at position {0}",
    "merge_lod_tensor": "part {0} (0: InTrue, 1: InFalse) must have {2} rows, as many as Mask chooses, got {1}",
    "sequence_pad": "padded_length must be -1 or at least {1}, the length of the longest sequence, got {2}",
    "sequence_reshape": "sequence {0} has {1} elements, which rows of {2} do not divide",
}
"""Messages for sequences of a wrong size: {0} which one, {1} its size, {2} the size required."""

_EMPTY_TEXTS = {
    "edit_distance": "sequence {0} of Refs is empty, so that nothing can be divided by its length"
}
"""Messages for sequences that must not be empty."""


def division_by_zero(op_type: str) -> str:
    """The message for a division of integers by zero."""
    return f"operator {op_type}: integer division by zero: Y must not hold 0"


def native_error(op_type: str, inputs: Mapping[str, object], code: int, err: Sequence[int]) -> Exception:
    """The exception for an error code of a kernel of operator `op_type`.

    Args:
        op_type: the operator.
        inputs: a description of each input slot that is given.
        code: the kernel's error code, one of `_ext/abi.h`.
        err: the details that belong to the code.
    """
    if code == _OUT_OF_RANGE:
        slot = next((name for name in ("PathTable", "Label", "Ids", "Index") if name in inputs), None)
        if "Inference" in inputs and not err[3]:
            slot = "Inference"
        what = "an input" if slot is None else f"{slot}{inputs[slot]}"
        return OperatorError(
            f"operator {op_type}: {what} must be in [0, {err[2]}); got {err[0]} at position {err[1]}"
        )
    if code == _NO_MEMORY:
        return MemoryError(f"operator {op_type} could not get {err[0]} bytes of memory")
    if code == _TOO_LARGE:
        return EnforceNotMet(
            f"operator {op_type} failed: one of its sizes is {err[0]}, and the library that computes it can take "
            f"{err[1]} at most"
        )
    if code == _UNEVEN:
        which = "the sequences together have" if err[0] < 0 else "sequence {0} has"
        plain = which + " {1} rows, which does not fit the {2} that there are"
        text = (_EMPTY_TEXTS if err[1] == 0 else {}).get(op_type) or _UNEVEN_TEXTS.get(op_type, plain)
        return OperatorError(f"operator {op_type}: {text.format(*err)}")
    if code == _ZERO:
        return OperatorError(division_by_zero(op_type))
    return EnforceNotMet(f"operator {op_type} failed with code {code} (status {err[0]})")
