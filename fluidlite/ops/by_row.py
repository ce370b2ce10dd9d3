"""`OpDef.by_row`: which operators may work on the rows of many turns of a loop, or both sides of an `IfElse`, at once.

Such an operator makes each row of its results from the same row of what it reads; gradients of what has no such rows,
as of weights, are sums over them. A rule gets the operator and `moves(name)`: whether a variable has rows that are
others in each turn, or on each side.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.sizes.shapes import reduced_axes, same_shape
from .registry import OpView, grad_name

Moves = Callable[[str], bool]


def alone(op: OpView, moves: Moves) -> bool:
    """Everything that is read has rows."""
    return all(moves(name) for names in op.inputs.values() for name in names)


def scaled(op: OpView, moves: Moves) -> bool:
    """As `alone`, of an operator whose attributes may be tensors."""
    return not op.has("ScaleTensor") and alone(op, moves)


def joined(op: OpView, moves: Moves) -> bool:
    """What is put together has rows, and stays apart along them."""
    return alone(op, moves) and 0 < op.attr("axis") < len(op.shape("X"))


def along(op: OpView, moves: Moves) -> bool:
    """Everything that is read has rows, and is looked at along another axis."""
    rank = max(len(op.shape(slot)) for slot in op.inputs if op.has(slot))
    return alone(op, moves) and rank > 1 and op.attr("axis") % rank != 0


def unless_normalized(op: OpView, moves: Moves) -> bool:
    """As `alone`, unless results are divided by how many there are."""
    return not op.attr("normalize") and alone(op, moves)


def apart(op: OpView, moves: Moves) -> bool:
    """Everything that is read has rows, which have an axis of their own behind the first."""
    return alone(op, moves) and max(len(op.shape(slot)) for slot in op.inputs if op.has(slot)) > 1


def single(op: OpView, moves: Moves) -> bool:
    """As `apart`, of an operator whose attributes may be tensors: X is all there is."""
    return [slot for slot in op.inputs if op.has(slot)] == ["X"] and apart(op, moves)


def sliced(op: OpView, moves: Moves) -> bool:
    """Everything that is read has rows, and all of them are taken."""
    slots = [slot for slot in op.inputs if op.has(slot)]
    return (
        {*slots} <= {"Input", grad_name("Out")}
        and alone(op, moves)
        and all(axis > 0 for axis in op.attr("axes"))
    )


def like_rows(op: OpView, moves: Moves) -> bool:
    """As many rows are made as are read."""
    return alone(op, moves) and op.attr("input_dim_idx") == 0 == op.attr("output_dim_idx")


def looked_up(op: OpView, moves: Moves) -> bool:
    """Ids have rows, and their table has none."""
    slots = ("Ids", grad_name("Out"))
    moving = all(moves(op.name(slot)) for slot in slots if slot in op.inputs)
    return moving and not moves(op.name("W")) and not (op.attr("is_sparse") or op.attr("remote_prefetch"))


def normalized(op: OpView, moves: Moves) -> bool:
    """X and what belongs to it have rows, each of which is looked at whole; Scale and Bias have none."""
    beside = {name for slot in ("Scale", "Bias") if op.has(slot) for name in op.names(slot)}
    rows = (name for names in op.inputs.values() for name in names if name not in beside)
    return op.attr("begin_norm_axis") == 1 and all(map(moves, rows)) and not any(map(moves, beside))


def reduced(op: OpView, moves: Moves) -> bool:
    """X has rows, and other axes are reduced."""
    rank = len(op.shape("X"))
    return (
        alone(op, moves) and rank > 1 and 0 not in reduced_axes(rank, op.attr("dim"), op.attr("reduce_all"))
    )


def with_operand(op: OpView, moves: Moves) -> bool:
    """X has rows; Y has the same ones, perhaps one number for several of X along later axes, or none, and is lined up
    with what is behind the first dimension of X.
    """
    if not _beside(op, moves):
        return False
    x, y = op.shape("X"), op.shape("Y")
    if moves(op.name("Y")):
        later = zip(x[1:], y[1:], strict=False)
        lined_up = len(x) == len(y) or (len(y) < len(x) and op.attr("axis") == 0)
        alike = x[:1] == y[:1] and all(m == 1 or m == n >= 0 for n, m in later)
        return (lined_up and alike) or same_shape(x, y)
    return len(y) < len(x) and op.attr("axis") != 0


def by_matrix(op: OpView, moves: Moves) -> bool:
    """X has rows and is multiplied by the matrix Y, which has none; X is not transposed."""
    if not _beside(op, moves) or moves(op.name("Y")):
        return False
    return "transpose_X" not in op.attrs or (
        not op.attr("transpose_X") and len(op.shape("X")) == 2 == len(op.shape("Y"))
    )


def _beside(op: OpView, moves: Moves) -> bool:
    """Whether X, and all that belongs to the result, have rows."""
    slots = ("X", "Out", grad_name("Out"))
    return all(moves(op.name(slot)) for slot in slots if slot in op.inputs and op.has(slot))
