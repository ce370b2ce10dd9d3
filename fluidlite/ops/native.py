"""Helpers for `native=` selectors: element types, sizes, the commonest calls (kernels: docs/kernels.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.dtypes import VarType, to_numpy
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
        name = typed(op, kernel, ("X",))
        if name is None:
            return None
        return Call(
            name, [op.name("X"), op.name("Out")], [numel(op, "X")], [float(op.attr(f)) for f in floats]
        )

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
