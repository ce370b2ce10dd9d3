"""Operators whose output is the input's memory with another shape: reshape, squeeze, unsqueeze and flatten.

Each keeps the input's shape for its gradient in XShape, which has no elements and is shaped (0, *X's shape).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..grad_pairs import gradient_by, register_pair
from ..infer import declared_numbers, given_numbers, known_numbers, product
from ..native import copy
from ..registry import Effects, OpView, Planning, Shape, Slot, grad_name

DOUT, DX = grad_name("Out"), grad_name("X")
Fail = Callable[[str], Exception]


def infer_xshape(op: OpView) -> None:
    """XShape remembers the shape of X."""
    op.set("XShape", (0, *op.shape("X")), op.dtype("X"))


def infer_from_xshape(op: OpView) -> None:
    """X@GRAD has the shape that XShape remembers."""
    op.set(DX, op.shape("XShape")[1:], op.dtype(DOUT))


def no_elements(xp: Any, X: Any) -> Any:
    """The value of XShape."""
    return xp.empty((0, *X.shape), dtype=X.dtype)


def _register_view(
    op_type: str,
    inputs: tuple[str, ...],
    attrs: dict[str, Any],
    infer: Callable[[OpView], Shape],
    kernel: Callable[..., Any],
    doc: str,
    effects: Effects = Effects(),
) -> None:
    """Declare `op_type`, whose Out has the shape `infer(op)`, and its gradient."""

    def infer_both(op: OpView) -> None:
        # XShape first: a reshape in place changes X.
        shape, dtype = infer(op), op.dtype("X")
        infer_xshape(op)
        op.set("Out", shape, dtype)

    register_pair(
        op_type,
        inputs,
        kernel,
        lambda xp, XShape, Out_grad: Out_grad.reshape(XShape.shape[1:]),
        infer_both,
        doc,
        outputs=("Out", "XShape"),
        attrs=attrs,
        keep=(),
        keep_out=("XShape",),
        no_grad=(*(Slot.parse(text).name for text in inputs[1:]), "XShape"),
        effects=effects,
        planning=Planning(view=("Out", "X")),
        planning_back=Planning(view=(DX, DOUT)),
        infer_back=infer_from_xshape,
        # The gradient of a reshape back is a reshape to the shape of Out@GRAD.
        grad_grad=gradient_by(
            "reshape",
            {"X": grad_name(DX)},
            {"Out": grad_name(DOUT)},
            lambda op: {"shape": list(op.shape(DOUT))},
        ),
        native=(copy("X", "Out"), copy(DOUT, DX)),
    )


def _register_plain(
    op_type: str,
    inputs: tuple[str, ...],
    attrs: dict[str, Any],
    infer: Callable[[OpView], Shape],
    kernel: Callable[..., Any],
    outputs_too: bool = False,
) -> None:
    """Declare the older form of an operator, without XShape: its gradient takes X (and Out, if `outputs_too`)."""
    register_pair(
        op_type,
        inputs,
        kernel,
        lambda xp, X, Out_grad: Out_grad.reshape(X.shape),
        lambda op: op.set("Out", infer(op), op.dtype("X")),
        f"{op_type}2 without XShape, which older programs have.",
        attrs=attrs,
        keep=("X",),
        keep_out=("Out",) if outputs_too else (),
        no_grad=tuple(Slot.parse(text).name for text in inputs[1:]),
        planning=Planning(view=("Out", "X")),
        planning_back=Planning(view=(DX, DOUT)),
        native=(copy("X", "Out"), copy(DOUT, DX)),
    )


def _resolve(fail: Fail, x: Shape, target: Sequence[int]) -> Shape:
    """`target` with its 0 taken from `x` and its -1 computed; -1 stays if sizes of `x` are unknown."""
    if len([n for n in target if n == -1]) > 1 or any(n < -1 for n in target):
        raise fail(f"shape may hold one -1 and no other negative number, got {list(target)}")
    for axis, n in enumerate(target):
        if n == 0 and axis >= len(x):
            raise fail(f"shape {list(target)} keeps dimension {axis}, but X has only {len(x)} dimensions")
    dims = [x[axis] if n == 0 else n for axis, n in enumerate(target)]
    size = product(x)
    if -1 not in target:
        if size >= 0 and product(tuple(dims)) not in (size, -1):
            raise fail(
                f"X of shape {list(x)} has {size} elements, shape {list(target)} has {product(tuple(dims))}"
            )
        return tuple(dims)
    free = list(target).index(-1)
    rest = product(tuple(dims[:free] + dims[free + 1 :]))
    if size < 0 or rest < 0:
        return tuple(dims)
    if rest == 0 or size % rest:
        raise fail(
            f"X of shape {list(x)} has {size} elements, which {list(target)} cannot divide: "
            f"its other sizes make {rest}"
        )
    dims[free] = size // rest
    return tuple(dims)


def _infer_reshape(op: OpView) -> Shape:
    slot = "ShapeTensor" if op.has("ShapeTensor") else "Shape" if op.has("Shape") else None
    target = known_numbers(op, slot) if slot else None
    if target is not None or slot is None:
        return _resolve(op.fail, op.shape("X"), target if target is not None else op.attr("shape"))
    given = tuple(op.attr("shape")) or (-1,) * product(op.shape("Shape"))
    if op.exact:
        return (-1,) * len(given)  # `Shape` takes precedence over the attribute
    x = op.shape("X")
    if given.count(-1) < 2 and slot == "Shape":
        return _resolve(op.fail, x, given)
    return tuple(x[axis] if n == 0 and axis < len(x) else n for axis, n in enumerate(given))


def _reshape_target(X: Any, Shape: Any, ShapeTensor: Any, shape: Sequence[int]) -> Shape:
    return _resolve(ValueError, X.shape, given_numbers(shape, ShapeTensor, Shape))


_register_view(
    "reshape2",
    ("X", "Shape?", "ShapeTensor*?"),
    {"shape": []},
    _infer_reshape,
    lambda xp, X, Shape, ShapeTensor, shape: (
        X.reshape(_reshape_target(X, Shape, ShapeTensor, shape)),
        no_elements(xp, X),
    ),
    "X with another shape of as many elements; 0 keeps a dimension, one -1 is worked out.",
)


_register_plain(
    "reshape",
    ("X", "Shape?", "ShapeTensor*?"),
    {"shape": []},
    _infer_reshape,
    lambda xp, X, Shape, ShapeTensor, shape: X.reshape(_reshape_target(X, Shape, ShapeTensor, shape)),
    outputs_too=True,
)


def _squeezed(fail: Fail, x: Shape, axes: Sequence[int]) -> Shape:
    if not axes:
        return tuple(n for n in x if n != 1)
    chosen = set()
    for axis in axes:
        if not -len(x) <= axis < len(x):
            raise fail(f"axes must be in [-{len(x)}, {len(x)}), got {axis}")
        if x[axis] not in (1, -1):
            raise fail(
                f"only a dimension of size 1 can be squeezed, but dimension {axis} of {list(x)} is {x[axis]}"
            )
        chosen.add(axis % len(x))
    return tuple(n for axis, n in enumerate(x) if axis not in chosen)


_register_view(
    "squeeze2",
    ("X",),
    {"axes": []},
    lambda op: _squeezed(op.fail, op.shape("X"), op.attr("axes")),
    lambda xp, X, axes: (X.reshape(_squeezed(ValueError, X.shape, axes)), no_elements(xp, X)),
    "X without the dimensions of size 1 at `axes`, or without any if `axes` is empty.",
    effects=Effects(numbered=False),
)


_register_plain(
    "squeeze",
    ("X",),
    {"axes": []},
    lambda op: _squeezed(op.fail, op.shape("X"), op.attr("axes")),
    lambda xp, X, axes: X.reshape(_squeezed(ValueError, X.shape, axes)),
)


def _unsqueezed(fail: Fail, x: Shape, axes: Sequence[int]) -> Shape:
    """`x` with a 1 put in at each of `axes`, one after another."""
    dims = list(x)
    for axis in axes:
        at = axis + len(dims) + 1 if axis < 0 else axis
        if not 0 <= at <= len(dims):
            raise fail(f"axes must be in [-{len(dims) + 1}, {len(dims)}], got {axis}")
        dims.insert(at, 1)
    return tuple(dims)


def _infer_unsqueeze(op: OpView) -> Shape:
    axes = declared_numbers(op, "axes", "AxesTensorList", "AxesTensor")
    if axes is None:
        added = op.count("AxesTensorList") or product(op.shape("AxesTensor"))
        return (-1,) * (len(op.shape("X")) + added)
    return _unsqueezed(op.fail, op.shape("X"), axes)


_register_view(
    "unsqueeze2",
    ("X", "AxesTensor?", "AxesTensorList*?"),
    {"axes": []},
    _infer_unsqueeze,
    lambda xp, X, AxesTensor, AxesTensorList, axes: (
        X.reshape(_unsqueezed(ValueError, X.shape, given_numbers(axes, AxesTensorList, AxesTensor))),
        no_elements(xp, X),
    ),
    "X with dimensions of size 1 put in at `axes`, one after another.",
    effects=Effects(numbered=False),
)


_register_plain(
    "unsqueeze",
    ("X", "AxesTensor?", "AxesTensorList*?"),
    {"axes": []},
    _infer_unsqueeze,
    lambda xp, X, AxesTensor, AxesTensorList, axes: X.reshape(
        _unsqueezed(ValueError, X.shape, given_numbers(axes, AxesTensorList, AxesTensor))
    ),
)


def _infer_flatten(op: OpView) -> Shape:
    x, axis = op.shape("X"), op.attr("axis")
    if not 0 <= axis <= len(x):
        raise op.fail(f"axis must be in [0, {len(x)}], got {axis}")
    count = math.prod if op.building else product  # Fluid declares -4 for 4 times an open size
    return count(x[:axis]), count(x[axis:])


_register_view(
    "flatten2",
    ("X",),
    {"axis": 1},
    _infer_flatten,
    lambda xp, X, axis: (X.reshape(product(X.shape[:axis]), product(X.shape[axis:])), no_elements(xp, X)),
    "X as a matrix whose rows are its first `axis` dimensions.",
    effects=Effects(numbered=False),
)
_register_plain(
    "flatten",
    ("X",),
    {"axis": 1},
    _infer_flatten,
    lambda xp, X, axis: X.reshape(product(X.shape[:axis]), product(X.shape[axis:])),
)
