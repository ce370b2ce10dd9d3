"""Shape rules that many operators share."""

from __future__ import annotations

from collections.abc import Callable

from ..base.dtypes import VarType
from ..base.sizes.shapes import product as product
from .registry import GRAD, OpView


def same_as(slot: str = "X", out: str = "Out") -> Callable[[OpView], None]:
    """`out` has the shape and dtype of `slot`."""

    def infer(op: OpView) -> None:
        op.set(out, op.shape(slot), op.dtype(slot))

    return infer


def same_shapes(slot: str, *others: str) -> Callable[[OpView], None]:
    """An infer rule for operators that go through inputs of one shape element by element: `Out` is like `slot`."""
    whole = same_as(slot)

    def infer(op: OpView) -> None:
        shape = op.shape(slot)
        for other in others:
            found = op.shape(other)
            if len(found) != len(shape) or any(
                m != n and min(m, n) >= 0 for m, n in zip(found, shape, strict=True)
            ):
                raise op.fail(f"{other} must have the shape of {slot}, {list(shape)}, got {list(found)}")
        whole(op)

    return infer


def grads_like(**stand_ins: str) -> Callable[[OpView], None]:
    """An infer rule for gradients: each output `X@GRAD` has the shape and dtype of its variable.

    That is input `X` if the operator has it. If it has not, or a run has not kept it, as no operator reads it, it is
    input `stand_ins[X]`, by default the first gradient among the inputs. While a program is built, it is the variable
    in the gradient's name; a run cannot use names, as a variable may have values of several shapes.
    """

    def infer(op: OpView) -> None:
        for slot, names in op.outputs.items():
            source = slot[: -len(GRAD)]
            for index, name in enumerate(names):
                if not name:
                    continue
                given = op.inputs.get(source)
                base = given[index] if given else name.replace("grad/", "").split(GRAD)[0]
                if not op.has_meta(base) or (op.exact and not given):
                    arriving = next(other for other in op.inputs if other.endswith(GRAD))
                    base = op.name(stand_ins.get(source, arriving))
                op.set(slot, op.meta.shape(base), op.meta.dtype(base), index)

    return infer


grads_like_inputs = grads_like()
"""`grads_like` where each input that the gradient operator does not have looks like the output."""


def normalize_axis(op: OpView, axis: int, rank: int, what: str = "axis") -> int:
    """A non-negative axis; raises the operator's error if it is out of range."""
    if not -rank <= axis < rank:
        raise op.fail(f"{what} must be in [{-rank}, {rank}), got {axis}")
    return axis + rank if axis < 0 else axis


def require_same_dtype(op: OpView, *slots: str) -> VarType:
    """The dtype of the first of the named slots; raises the operator's error if the others differ from it.

    While a program is built they may differ, as in Fluid: the operator may be pruned before anything runs.
    """
    first = op.dtype(slots[0])
    for slot in slots[1:]:
        if op.has(slot) and op.dtype(slot) != first:
            op.refuse(
                f"{slot} must have the dtype of {slots[0]} ({first}), got {op.dtype(slot)}; cast one of them"
            )
    return first
