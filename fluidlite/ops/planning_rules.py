"""Rules for `Planning`: `batchable`, whether many iterations of a loop may run at once, and `identity`, outputs with
just the values of an input.
"""

from __future__ import annotations

from collections.abc import Callable

from ..base.sizes import reduced_axes, same_shape
from .registry import OpView, grad_name

# Rules for `Planning.batchable`: whether many iterations of a loop may be one call along axis 0.
#
# Such an operator computes each row of its results from the same row of its operands; gradients of operands that are
# not batched, as of weights, are sums over the rows. A rule gets the operator and `batched(name)`: whether the rows
# of a variable belong to the iterations, one after another.

Batched = Callable[[str], bool]


def all_batched(op: OpView, batched: Batched) -> bool:
    """All inputs are batched."""
    return all(batched(name) for names in op.inputs.values() for name in names)


def scaled(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and the factor is no tensor."""
    return not op.has("ScaleTensor") and all_batched(op, batched)


def joined(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and joined along another axis than 0."""
    return all_batched(op, batched) and 0 < op.attr("axis") < len(op.shape("X"))


def along_other_axis(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and `axis` is not 0."""
    rank = max(len(op.shape(slot)) for slot in op.inputs if op.has(slot))
    return all_batched(op, batched) and rank > 1 and op.attr("axis") % rank != 0


def unless_normalized(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and results are not divided by the number of rows."""
    return not op.attr("normalize") and all_batched(op, batched)


def along_last_axis(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and the last axis is not axis 0."""
    return all_batched(op, batched) and max(len(op.shape(slot)) for slot in op.inputs if op.has(slot)) > 1


def only_x(op: OpView, batched: Batched) -> bool:
    """X is batched and the only input: no attribute is a tensor; the last axis is not axis 0."""
    return [slot for slot in op.inputs if op.has(slot)] == ["X"] and along_last_axis(op, batched)


def sliced(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and axis 0 is not sliced."""
    slots = [slot for slot in op.inputs if op.has(slot)]
    return (
        {*slots} <= {"Input", grad_name("Out")}
        and all_batched(op, batched)
        and all(axis > 0 for axis in op.attr("axes"))
    )


def filled_like(op: OpView, batched: Batched) -> bool:
    """All inputs are batched, and the output has as many rows."""
    return all_batched(op, batched) and op.attr("input_dim_idx") == 0 == op.attr("output_dim_idx")


def lookup(op: OpView, batched: Batched) -> bool:
    """Ids are batched, and their table W is not."""
    slots = ("Ids", grad_name("Out"))
    moving = all(batched(op.name(slot)) for slot in slots if slot in op.inputs)
    return moving and not batched(op.name("W")) and not (op.attr("is_sparse") or op.attr("remote_prefetch"))


def layer_norm(op: OpView, batched: Batched) -> bool:
    """Each row of X is normalised by itself; Scale and Bias are not batched."""
    unbatched = {name for slot in ("Scale", "Bias") if op.has(slot) for name in op.names(slot)}
    rows = (name for names in op.inputs.values() for name in names if name not in unbatched)
    return op.attr("begin_norm_axis") == 1 and all(map(batched, rows)) and not any(map(batched, unbatched))


def reduced(op: OpView, batched: Batched) -> bool:
    """X is batched, and axis 0 is not reduced."""
    rank = len(op.shape("X"))
    return (
        all_batched(op, batched)
        and rank > 1
        and 0 not in reduced_axes(rank, op.attr("dim"), op.attr("reduce_all"))
    )


def with_operand(op: OpView, batched: Batched) -> bool:
    """X is batched; Y is batched with it, broadcast along later axes at most, or not batched and lined up with later
    axes of X.
    """
    if not _follows_x(op, batched):
        return False
    x, y = op.shape("X"), op.shape("Y")
    if batched(op.name("Y")):
        later = zip(x[1:], y[1:], strict=False)
        lined_up = len(x) == len(y) or (len(y) < len(x) and op.attr("axis") == 0)
        alike = x[:1] == y[:1] and all(m == 1 or m == n >= 0 for n, m in later)
        return (lined_up and alike) or same_shape(x, y)
    return len(y) < len(x) and op.attr("axis") != 0


def by_matrix(op: OpView, batched: Batched) -> bool:
    """X is batched and not transposed; the matrix Y is not batched."""
    if not _follows_x(op, batched) or batched(op.name("Y")):
        return False
    return "transpose_X" not in op.attrs or (
        not op.attr("transpose_X") and len(op.shape("X")) == 2 == len(op.shape("Y"))
    )


def _follows_x(op: OpView, batched: Batched) -> bool:
    """Whether X, Out and Out@GRAD, where they are read, are batched."""
    slots = ("X", "Out", grad_name("Out"))
    return all(batched(op.name(slot)) for slot in slots if slot in op.inputs and op.has(slot))


Copied = tuple[str, str]
_DX, _DOUT = grad_name("X"), grad_name("Out")


def always(out: str = "Out", source: str = "X") -> Callable[[OpView], Copied]:
    """Output `out` always has the values of input `source`."""
    return lambda op: (out, source)


def scaled_by_one(op: OpView) -> Copied | None:
    """Out has the values of X if the factor is 1 and the summand 0."""
    if op.has("ScaleTensor") or op.attr("scale") != 1 or op.attr("bias") != 0:
        return None
    return "Out", "X"


def of_a_sum(op: OpView) -> Copied | None:
    """The gradient of X has the values of Out@GRAD if the other summand is broadcast along leading axes."""
    if not op.name_or_none(_DX):
        return None
    x = op.shape("X")
    smaller = len(op.shape("Y")) < len(x) and op.attr("axis") != 0
    return (_DX, _DOUT) if smaller and same_shape(x, op.shape(_DOUT)) and -1 not in x[1:] else None
