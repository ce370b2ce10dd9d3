"""Shapes: rules that many operators share, broadcasting, and shapes given by attributes or variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.dtypes import VarType
from ..base.sizes import aligned, same_shape, whole
from ..base.sizes import may_equal as may_equal
from ..base.sizes import middle as middle
from ..base.sizes import product as product
from .registry import GRAD, OpView, Shape


def same_as(slot: str = "X", out: str = "Out") -> Callable[[OpView], None]:
    """`out` has the shape and dtype of `slot`."""

    def infer(op: OpView) -> None:
        op.set(out, op.shape(slot), op.dtype(slot))

    return infer


def same_shapes(slot: str, *others: str, outs: Sequence[str] = ("Out",)) -> Callable[[OpView], None]:
    """An infer rule for operators that go through inputs of one shape element by element: `outs` are like `slot`."""

    def infer(op: OpView) -> None:
        shape = op.shape(slot)
        for other in others:
            found = op.shape(other)
            if not may_equal(found, shape):
                raise op.fail(f"{other} must have the shape of {slot}, {list(shape)}, got {list(found)}")
        for out in outs:
            op.set(out, shape, op.dtype(slot))

    return infer


def shape_of_all(op: OpView, slot: str) -> list[int]:
    """The shape of the variables of a list slot; raises the operator's error if they differ in shape or dtype."""
    dims = list(op.shape(slot))
    for index in range(1, op.count(slot)):
        shape = op.shape(slot, index)
        if not may_equal(dims, shape):
            raise op.fail(f"all {slot} must have the same shape, got {dims} and {list(shape)}")
        if op.dtype(slot, index) != op.dtype(slot):
            raise op.fail(f"all {slot} must have the dtype {op.dtype(slot)}, got {op.dtype(slot, index)}")
        dims = [max(m, n) for m, n in zip(dims, shape, strict=True)]
    return dims


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


def broadcast_shape(op: OpView, axis: int) -> Shape:
    """The shape of X and Y broadcast together; raises the operator's error if they do not fit."""
    x, y = op.shape("X"), op.shape("Y")
    if same_shape(x, y):
        return x  # whatever the axis
    rank = max(len(x), len(y))
    if not -1 <= axis < max(rank, 1) and len(x) != len(y):
        raise op.fail(f"axis must be in [-1, {rank}), got {axis}")
    left, right = aligned(x, y, axis)
    if len(left) != len(right):
        raise op.fail(f"X of shape {list(x)} and Y of shape {list(y)} cannot be lined up at axis {axis}")
    dims = []
    for m, n in zip(left, right, strict=True):
        if m != n and min(m, n) > 1:
            raise op.fail(
                f"cannot broadcast X of shape {list(x)} with Y of shape {list(y)} at axis {axis}: "
                f"{m} is not {n}"
            )
        # An unknown size with 1 or another unknown one is unknown; with any other it is that one.
        known = 0 if 0 in (m, n) else max(m, n)
        dims.append(known if min(m, n) >= 0 or known > 1 else -1)
    return tuple(dims)


def operands(X: Any, Y: Any, axis: int) -> tuple[Any, Any]:
    """X and Y reshaped so that NumPy's broadcasting aligns them at `axis`."""
    if X.shape == Y.shape:
        return X, Y
    left, right = aligned(X.shape, Y.shape, axis)
    return X.reshape(left), Y.reshape(right)


def reduced(xp: Any, gradient: Any, shape: Shape, other: Shape, axis: int) -> Any:
    """`gradient` of the broadcast result summed down to `shape`, that of the operand it is for."""
    if gradient.shape == tuple(shape):
        return gradient
    mine, _ = aligned(shape, other, axis)
    axes = tuple(k for k, (n, m) in enumerate(zip(mine, gradient.shape, strict=True)) if n == 1 != m)
    return gradient.sum(axis=axes, dtype=gradient.dtype).reshape(shape)


def declared_shape(op: OpView) -> list[int]:
    """The shape that `shape`, `ShapeTensor` or `ShapeTensorList` give `op`; -1 for sizes known only in a run."""
    shape = [int(n) for n in op.attr("shape")]
    if op.has("ShapeTensor"):
        known = op.value("ShapeTensor")
        if known is not None:
            return whole(known.reshape(-1))
        rank = product(op.shape("ShapeTensor"))
        return shape if len(shape) == rank else [-1] * max(rank, 1)
    if op.has("ShapeTensorList"):
        count = op.count("ShapeTensorList")
        shape += [-1] * (count - len(shape))
        for axis in range(count):
            known = op.value("ShapeTensorList", axis)
            if known is not None:
                (shape[axis],) = whole(known.reshape(-1))
        return shape
    if any(n < 0 for n in shape):
        raise op.fail(f"every number of shape must be 0 or more, got {shape}")
    return shape


def given_numbers(attribute: Sequence[int], *given: Any) -> list[int]:
    """When the operator runs: the elements of the first of `given` that is there, a tensor or a list of tensors of one
    element; else those of the attribute.
    """
    for source in given:
        if isinstance(source, list):
            if source:
                return [int(tensor.reshape(-1)[0]) for tensor in source]
        elif source is not None:
            return [int(n) for n in source.reshape(-1).tolist()]
    return [int(n) for n in attribute]


def known_numbers(op: OpView, slot: str) -> list[int] | None:
    """The elements of a tensor slot or of a list slot's one-element tensors; None if any is not constant."""
    result: list[int] = []
    for index in range(op.count(slot)):
        value = op.value(slot, index)
        if value is None:
            return None
        result += whole(value.reshape(-1))
    return result


def declared_numbers(op: OpView, attr: str, *slots: str) -> list[int] | None:
    """`known_numbers` of the first of `slots` that the operator has; else those of the attribute."""
    slot = next(filter(op.has, slots), None)
    return list(op.attr(attr)) if slot is None else known_numbers(op, slot)
