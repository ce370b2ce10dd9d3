"""Operators that move elements about: transpose, expand, reverse, stack, unstack, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grad_pairs import gradient_by, linear_double_grad, register_pair
from ..infer import declared_numbers, given_numbers, normalize_axis, product, shape_of_all
from ..native import itemsize, typed
from ..registry import FIRST, Call, Effects, LodFrom, OpView, Sequences, grad_name, register
from .views import infer_from_xshape, infer_xshape, no_elements

DOUT, DX, DY = grad_name("Out"), grad_name("X"), grad_name("Y")
TRANSPOSE_ATTRS = {"axis": [], "data_format": "AnyLayout"}
RANK_LIMIT = 8
"""The most dimensions the C kernels that walk over strides can have."""


def _infer_transpose(op: OpView) -> None:
    x, perm = op.shape("X"), list(op.attr("axis"))
    if sorted(perm) != list(range(len(x))):
        raise op.fail(f"axis must be a permutation of 0 to {len(x) - 1}, got {perm}")
    op.set("Out", [x[axis] for axis in perm], op.dtype("X"))
    if op.has("XShape"):
        infer_xshape(op)


def _transpose_call(op: OpView, source: str, target: str, perm: Sequence[int]) -> Call | None:
    shape = op.shape(source)
    if len(shape) > RANK_LIMIT:
        return None
    return Call(
        "transpose", [op.name(source), op.name(target)], [itemsize(op, source), len(shape), *shape, *perm]
    )


def _inverse(perm: Sequence[int]) -> list[int]:
    return [perm.index(axis) for axis in range(len(perm))]


register_pair(
    "transpose2",
    ("X",),
    lambda xp, X, axis: (xp.ascontiguousarray(X.transpose(axis)), no_elements(xp, X)),
    lambda xp, Out_grad, axis: xp.ascontiguousarray(Out_grad.transpose(_inverse(axis))),
    _infer_transpose,
    "X with its dimensions in the order `axis`.",
    outputs=("Out", "XShape"),
    attrs=TRANSPOSE_ATTRS,
    keep=(),
    keep_out=("XShape",),
    no_grad=("XShape",),
    sequences=Sequences(source={"XShape": "X"}),
    infer_back=infer_from_xshape,
    grad_grad=gradient_by(
        "transpose",
        {"X": grad_name(DX)},
        {"Out": grad_name(DOUT)},
        lambda op: {"axis": list(op.attr("axis"))},
    ),
    native=(
        lambda op: _transpose_call(op, "X", "Out", op.attr("axis")),
        lambda op: _transpose_call(op, DOUT, DX, _inverse(op.attr("axis"))) if op.has(DX) else None,
    ),
)

register_pair(
    "transpose",
    ("X",),
    lambda xp, X, axis: xp.ascontiguousarray(X.transpose(axis)),
    lambda xp, Out_grad, axis: xp.ascontiguousarray(Out_grad.transpose(_inverse(axis))),
    _infer_transpose,
    "transpose2 without XShape.",
    attrs=TRANSPOSE_ATTRS,
    keep_out=("Out",),
    sequences=Sequences(source=None),
    native=(
        lambda op: _transpose_call(op, "X", "Out", op.attr("axis")),
        lambda op: _transpose_call(op, DOUT, DX, _inverse(op.attr("axis"))),
    ),
)


def _infer_expand(op: OpView) -> None:
    x = op.shape("X")
    times = declared_numbers(op, "expand_times", "ExpandTimes", "expand_times_tensor")
    if times is None:
        times = op.attr("expand_times") or [-1] * len(x)
    if len(times) != len(x):
        raise op.fail(
            f"expand_times must have one number for each of the {len(x)} dimensions of X, got {list(times)}"
        )
    op.set("Out", [n * t if n >= 0 and t >= 0 else -1 for n, t in zip(x, times, strict=True)], op.dtype("X"))


def _expand(xp: Any, X: Any, ExpandTimes: Any, expand_times_tensor: Any, expand_times: Any) -> Any:
    return xp.tile(X, tuple(given_numbers(expand_times, ExpandTimes, expand_times_tensor)))


def _fold(Out_grad: Any, x: Sequence[int], times: Sequence[int]) -> Any:
    """The sum of the copies that expanding made."""
    pairs = [size for n, t in zip(x, times, strict=True) for size in (t, n)]
    return Out_grad.reshape(pairs).sum(axis=tuple(range(0, len(pairs), 2)), dtype=Out_grad.dtype)


def _expand_grad(
    xp: Any, X: Any, ExpandTimes: Any, expand_times_tensor: Any, Out_grad: Any, expand_times: Any
) -> Any:
    return _fold(Out_grad, X.shape, given_numbers(expand_times, ExpandTimes, expand_times_tensor))


def _expand_call(op: OpView, kernel: str, source: str, target: str, leading: list[int]) -> Call | None:
    x, out = op.shape("X"), op.shape("Out" if op.has("Out") else DOUT)
    if len(x) > RANK_LIMIT or 0 in x or not op.has(target):
        return None
    times = [whole // part for whole, part in zip(out, x, strict=True)]
    return Call(kernel, [op.name(source), op.name(target)], [*leading, len(x), *x, *times])


def _expand_native(op: OpView) -> Call | None:
    return _expand_call(op, "expand", "X", "Out", [itemsize(op, "X")])


def _expand_grad_native(op: OpView) -> Call | None:
    name = typed(op, "expand_grad", (DOUT,))
    return _expand_call(op, name, DOUT, DX, []) if name else None


EXPAND_INPUTS = ("X", "ExpandTimes?", "expand_times_tensor*?")

register_pair(
    "expand",
    EXPAND_INPUTS,
    _expand,
    _expand_grad,
    _infer_expand,
    "X repeated `expand_times` times along each dimension.",
    attrs={"expand_times": []},
    keep=("X#", "ExpandTimes", "expand_times_tensor"),
    no_grad=("ExpandTimes", "expand_times_tensor"),
    grad_grad=linear_double_grad("expand"),
    native=(_expand_native, _expand_grad_native),
)


def _infer_expand_as(op: OpView) -> None:
    x, target = op.shape("X"), op.shape("target_tensor")
    if len(x) != len(target) or any(t % n for n, t in zip(x, target, strict=True) if n > 0 and t >= 0):
        raise op.fail(
            f"each dimension of target_tensor {list(target)} must be a multiple of that of X {list(x)}"
        )
    op.set("Out", target, op.dtype("X"))


def _ratio(x: Sequence[int], target: Sequence[int]) -> list[int]:
    return [whole // part for part, whole in zip(x, target, strict=True)]


register_pair(
    "expand_as",
    ("X", "target_tensor"),
    lambda xp, X, target_tensor: xp.tile(X, tuple(_ratio(X.shape, target_tensor.shape))),
    lambda xp, X, target_tensor, Out_grad: _fold(Out_grad, X.shape, _ratio(X.shape, target_tensor.shape)),
    _infer_expand_as,
    "X repeated until it has the shape of target_tensor.",
    keep=("X#", "target_tensor#"),
    no_grad=("target_tensor",),
    sequences=Sequences(source=None),
    grad_grad=linear_double_grad("expand_as"),
    native=(_expand_native, _expand_grad_native),
)


def _register_flip(op_type: str, attr: str, kernel: Any, doc: str, source: LodFrom = FIRST) -> None:
    def infer(op: OpView) -> None:
        for axis in op.attr(attr):
            normalize_axis(op, axis, len(op.shape("X")), attr)
        op.set("Out", op.shape("X"), op.dtype("X"))

    register(
        op_type,
        inputs=("X",),
        attrs={attr: []},
        infer=infer,
        kernel=kernel,
        grad=gradient_by(op_type, attrs=lambda op: {attr: op.attr(attr)}),
        sequences=Sequences(source=source),
        doc=doc,
    )


_register_flip(
    "reverse",
    "axis",
    lambda xp, X, axis: xp.ascontiguousarray(xp.flip(X, tuple(axis))),
    "X with the order along the dimensions `axis` reversed.",
    source=None,
)
_register_flip(
    "flip",
    "dims",
    lambda xp, X, dims: xp.ascontiguousarray(xp.flip(X, tuple(dims))),
    "X with the order along the dimensions `dims` reversed.",
)


def _infer_stack(op: OpView) -> None:
    dims = shape_of_all(op, "X")
    dims.insert(normalize_axis(op, op.attr("axis"), len(dims) + 1), op.count("X"))
    op.set("Y", dims, op.dtype("X"))


def _row_call(op: OpView, kernel: str, whole: str, parts: str) -> Call | None:
    """stack or unstack: `whole` has as many entries along `axis` as there are variables in `parts`."""
    shape = op.shape(whole)
    axis = op.attr("axis") % len(shape)
    row = product(shape[axis + 1 :]) * itemsize(op, whole)
    names = [name or None for name in op.names(parts)]
    operands = [*names, op.name(whole)] if kernel == "concat" else [op.name(whole), *names]
    return Call(kernel, operands, [product(shape[:axis]), *[row] * len(names)])


def _infer_stack_grad(op: OpView) -> None:
    shape = list(op.shape(DY))
    del shape[op.attr("axis")]
    for index in range(op.count(DX)):
        op.set(DX, shape, op.dtype(DY), index)


def unstacked(xp: Any, X: Any, axis: int) -> list[Any]:
    """The entries of X along an axis."""
    moved = xp.moveaxis(X, axis, 0)
    return [moved[k, ...].copy() for k in range(moved.shape[0])]


register_pair(
    "stack",
    ("X*",),
    lambda xp, X, axis: xp.stack(X, axis=axis),
    lambda xp, Y_grad, axis: unstacked(xp, Y_grad, axis),
    _infer_stack,
    "The X, all of one shape, side by side along a new dimension `axis`.",
    outputs=("Y",),
    attrs={"axis": 0},
    keep=(),
    effects=Effects(numbered=False),
    infer_back=_infer_stack_grad,
    grad_grad=linear_double_grad("stack", out="Y"),
    native=(lambda op: _row_call(op, "concat", "Y", "X"), lambda op: _row_call(op, "split", DY, DX)),
    cuda=("moves.stack", "moves.stack_grad"),
)


def _infer_unstack(op: OpView) -> None:
    x, num = op.shape("X"), op.attr("num")
    axis = normalize_axis(op, op.attr("axis"), len(x))
    if x[axis] >= 0 and (num and num != x[axis] or op.count("Y") != x[axis]):
        raise op.fail(
            f"dimension {axis} of X has {x[axis]} entries, got num={num} and {op.count('Y')} outputs"
        )
    for index in range(op.count("Y")):
        op.set("Y", x[:axis] + x[axis + 1 :], op.dtype("X"), index)


def _infer_unstack_grad(op: OpView) -> None:
    shape = list(op.shape(DY))
    axis = normalize_axis(op, op.attr("axis"), len(shape) + 1)
    op.set(DX, [*shape[:axis], op.count(DY), *shape[axis:]], op.dtype(DY))


register_pair(
    "unstack",
    ("X",),
    unstacked,
    lambda xp, Y_grad, axis: xp.stack(Y_grad, axis=axis),
    _infer_unstack,
    "X split into its entries along dimension `axis`.",
    outputs=("Y*",),
    attrs={"axis": 0, "num": 0},
    keep=(),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
    infer_back=_infer_unstack_grad,
    grad_grad=linear_double_grad("unstack", out="Y"),
    native=(lambda op: _row_call(op, "split", "X", "Y"), lambda op: _row_call(op, "concat", DX, DY)),
    cuda=("moves.unstack", "moves.unstack_grad"),
)
