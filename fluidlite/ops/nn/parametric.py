"""Elementwise functions with a second input or a shape of their own: `pow`, `prelu`, `maxout`, codes of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend.functions import constant
from ..grad_pairs import or_zeros, register_pair
from ..infer import normalize_axis, same_as
from ..native import numel, split_at, typed, typed_call
from ..registry import Call, Effects, Levels, LodArray, OpView, Planning, Sequences, Shape, grad_name
from ..sequence import Lods, deep, input_lod, levels, ranges

DOUT, DX = grad_name("Out"), grad_name("X")


def _exponent(factor: float, tensor: Any) -> Any:
    return factor if tensor is None else tensor.reshape(-1)[0]


def _pow(xp: Any, X: Any, FactorTensor: Any, factor: float) -> Any:
    return xp.power(X, _exponent(factor, FactorTensor)).astype(X.dtype)


def _pow_grad(xp: Any, X: Any, FactorTensor: Any, Out_grad: Any, factor: float) -> Any:
    exponent = _exponent(factor, FactorTensor)
    return (Out_grad * exponent * xp.power(X, exponent - 1)).astype(X.dtype)


def _pow_call(op: OpView, kernel: str, slots: tuple[str, ...], operands: list[str | None]) -> Call | None:
    factor = float(op.attr("factor"))
    if op.has("FactorTensor"):
        known = op.value("FactorTensor")
        if known is None:
            return None
        factor = float(known.reshape(-1)[0])
    if factor == 2:
        name, factors = typed(op, kernel.replace("pow", "square"), slots), []
    else:
        name, factors = typed(op, kernel, slots), [factor]
    return Call(name, operands, [numel(op, "X")], factors) if name else None


def _pow_grad_native(op: OpView) -> Call | None:
    if not op.has(DX):
        return None
    return _pow_call(op, "pow_grad", ("X", DOUT), [op.name("X"), None, op.name(DOUT), op.name(DX)])


def _pow_double_grad(xp: Any, X: Any, FactorTensor: Any, DOut: Any, DDX: Any, factor: float) -> Any:
    exponent = _exponent(factor, FactorTensor)
    # Where the exponent is 1 the second derivative is 0, also at X = 0.
    bend = 0 if exponent == 1 else exponent * (exponent - 1) * xp.power(X, exponent - 2)
    return (DOut * DDX * bend).astype(X.dtype), (DDX * exponent * xp.power(X, exponent - 1)).astype(X.dtype)


register_pair(
    "pow",
    ("X", "FactorTensor?"),
    _pow,
    _pow_grad,
    same_as("X"),
    "x to the power of `factor`, or of the one element of FactorTensor.",
    attrs={"factor": 1.0},
    no_grad=("FactorTensor",),
    effects=Effects(numbered=False),
    planning=Planning(inplace=(("Out", "X"),)),
    planning_back=Planning(inplace=((DX, DOUT),)),
    second=(_pow_double_grad, ("X",)),
    native=(lambda op: _pow_call(op, "pow", ("X",), [op.name("X"), op.name("Out")]), _pow_grad_native),
    cuda=("elementwise.power", "elementwise.power_grad"),
)


def _alpha_shape(mode: str, x: Shape) -> Shape:
    """The shape of prelu's Alpha that broadcasts with X."""
    if mode == "all":
        return (1,) * len(x)
    if mode == "channel":
        return (1, x[1]) + (1,) * (len(x) - 2)
    return (1,) + tuple(x[1:])


def _infer_prelu(op: OpView) -> None:
    x, alpha, mode = op.shape("X"), op.shape("Alpha"), op.attr("mode")
    wanted = 1
    for n in _alpha_shape(mode, x):
        wanted = -1 if n < 0 else wanted * n
    got = 1
    for n in alpha:
        got *= n
    if 0 <= wanted != got:
        raise op.fail(f"mode {mode!r} needs {wanted} elements in Alpha for X of shape {list(x)}, got {got}")
    op.set("Out", x, op.dtype("X"))


def _prelu(xp: Any, X: Any, Alpha: Any, mode: str) -> Any:
    return xp.where(X > 0, X, X * Alpha.reshape(_alpha_shape(mode, X.shape)))


def _prelu_grad(xp: Any, X: Any, Alpha: Any, Out_grad: Any, mode: str) -> Any:
    alpha = Alpha.reshape(_alpha_shape(mode, X.shape))
    dx = xp.where(X > 0, Out_grad, Out_grad * alpha)
    axes = tuple(axis for axis, n in enumerate(alpha.shape) if n == 1)
    dalpha = xp.where(X > 0, 0, Out_grad * X).sum(axis=axes, dtype=X.dtype)
    return dx, dalpha.reshape(Alpha.shape)


def _prelu_double_grad(xp: Any, X: Any, Alpha: Any, DOut: Any, DDX: Any, DDAlpha: Any, mode: str) -> Any:
    shape = _alpha_shape(mode, X.shape)
    alpha, seen = Alpha.reshape(shape), or_zeros(xp, DDAlpha, Alpha).reshape(shape)
    ddx = or_zeros(xp, DDX, X)
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    dalpha = xp.where(X > 0, 0, DOut * ddx).sum(axis=axes, dtype=X.dtype).reshape(Alpha.shape)
    return xp.where(X > 0, 0, DOut * seen), dalpha, xp.where(X > 0, ddx, alpha * ddx + X * seen)


register_pair(
    "prelu",
    ("X", "Alpha"),
    _prelu,
    _prelu_grad,
    _infer_prelu,
    "x where positive, Alpha x elsewhere; one Alpha for all, for each channel or for each element.",
    attrs={"mode": "all"},
    second=(_prelu_double_grad, ("X", "Alpha")),
)


def _groups(shape: Shape, groups: int, axis: int) -> Shape:
    axis %= len(shape)
    return (*shape[:axis], shape[axis] // groups, groups, *shape[axis + 1 :])


def _infer_maxout(op: OpView) -> None:
    x, groups = op.shape("X"), op.attr("groups")
    axis = normalize_axis(op, op.attr("axis"), len(x))
    if groups < 2 or x[axis] % groups:
        raise op.fail(f"groups must be greater than 1 and divide the {x[axis]} channels, got {groups}")
    op.set("Out", (*x[:axis], x[axis] // groups, *x[axis + 1 :]), op.dtype("X"))


def _maxout(xp: Any, X: Any, groups: int, axis: int) -> Any:
    largest = X.reshape(_groups(X.shape, groups, axis)).max(axis=axis % X.ndim + 1)
    return xp.maximum(largest, xp.finfo(X.dtype).min)  # as in Fluid at least the lowest finite number


def _maxout_grad(xp: Any, X: Any, Out: Any, Out_grad: Any, groups: int, axis: int) -> Any:
    where = axis % X.ndim + 1
    grouped = X.reshape(_groups(X.shape, groups, axis))
    largest = grouped == xp.expand_dims(Out, where)
    first = largest & (xp.cumsum(largest, axis=where) == 1)
    return xp.where(first, xp.expand_dims(Out_grad, where), 0).reshape(X.shape)


def _maxout_call(op: OpView, part: str, slots: Sequence[str]) -> Call | None:
    """The call of pooling in windows of one group of channels, or of its gradient."""
    x, groups = op.shape("X"), op.attr("groups")
    pre, channels, post = split_at(x, op.attr("axis") % len(x))
    window = [1, 1, groups]
    ints = [pre * (channels // groups), *window, post, *window, *window, 0, 0, 0, 1, 1, 1, 1]
    return typed_call(op, f"pool3d_max{part}", slots, (), ints)


def _maxout_double_grad(xp: Any, X: Any, Out: Any, DDX: Any, groups: int, axis: int) -> Any:
    chosen = _maxout_grad(xp, X, Out, xp.ones_like(Out), groups, axis)
    return (DDX * chosen).reshape(_groups(X.shape, groups, axis)).sum(axis=axis % X.ndim + 1, dtype=X.dtype)


register_pair(
    "maxout",
    ("X",),
    _maxout,
    _maxout_grad,
    _infer_maxout,
    "The largest of each `groups` neighbouring channels; the first such gets the gradient.",
    attrs={"groups": 2, "axis": 1},
    keep_out=("Out",),
    sequences=Sequences(source=None),
    effects=Effects(numbered=False),
    second=(_maxout_double_grad, ()),
    native=(
        lambda op: _maxout_call(op, "", ("X", "Out")),
        lambda op: _maxout_call(op, "_grad", ("X", "Out", DOUT, DX)) if op.has(DX) else None,
    ),
)


def _padded(steps: int, width: int) -> Any:
    """The encoding of positions 0 to `steps` - 1."""
    return _encoded(np.arange(steps), width)


def _encoded(places: Any, width: int) -> Any:
    """[places, width]: sines in the first half, cosines in the second, from wavelength 2 pi to 20,000 pi."""
    half = width // 2
    waves = 10000.0 ** (np.arange(half) / (half - 1) if half > 1 else np.ones(half))
    angles = places[:, None] / waves
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def _add(xp: Any, X: Any, alpha: float, beta: float, lod: Lods) -> Any:
    if X.ndim == 3:
        encoded = constant(xp, _padded, *X.shape[1:])
    else:
        offsets = levels("add_position_encoding", lod, "X")[-1]
        places = ranges(np.zeros(len(offsets) - 1, np.int64), np.diff(offsets))
        encoded = xp.asarray(_encoded(places, X.shape[-1]))
    return LodArray(X * alpha + (beta * encoded).astype(X.dtype), input_lod(lod, "X"))


def _add_grad(xp: Any, Out_grad: Any, alpha: float, lod: Lods) -> Any:
    return LodArray(Out_grad * alpha, input_lod(lod, DOUT))


def _infer(op: OpView) -> None:
    shape = op.shape("X")
    if len(shape) not in (2, 3):
        raise op.fail(f"X must be [batch, time, width] or [rows, width] with sequences, got {list(shape)}")
    if shape[-1] % 2 and shape[-1] >= 0:
        raise op.fail(f"the last dimension of X must be even, got shape {list(shape)}")
    if len(shape) == 2:
        deep(op, "X")
    op.set("Out", shape, op.dtype("X"))
    op.carry("Out", op.lod("X"))


def _infer_back(op: OpView) -> None:
    op.set(DX, op.shape(DOUT), op.dtype(DOUT))
    op.carry(DX, op.lod(DOUT))


register_pair(
    "add_position_encoding",
    ("X",),
    _add,
    _add_grad,
    _infer,
    "alpha times X, and beta times sines and cosines of the place in the sequence.",
    attrs={"alpha": 1.0, "beta": 1.0},
    keep=(),
    sequences=Sequences(levels=Levels("X"), takes_lod=True, inferred=True),
    infer_back=_infer_back,
)
