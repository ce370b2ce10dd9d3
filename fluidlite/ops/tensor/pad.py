"""Operators that put a border round an array or cut one off, with their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..grad_pairs import Rule, linear_double_grad, register_pair
from ..infer import declared_numbers, given_numbers
from ..registry import Effects, OpSpec, OpView, Sequences, Shape, grad_name

DOUT, DX = grad_name("Out"), grad_name("X")
Pairs = list[tuple[int, int]]


def _zero_pad_double_grad(op_type: str) -> Rule:
    """The gradient rule of a padding's gradient: padding with 0."""
    linear = linear_double_grad(op_type)

    def rule(op: OpView) -> list[OpSpec]:
        specs = linear(op)
        for spec in specs:
            spec.attrs["pad_value"] = 0.0
        return specs

    return rule


def _pairs(paddings: Sequence[int]) -> Pairs:
    return list(zip(paddings[::2], paddings[1::2], strict=True))


def _padded(shape: Shape, pairs: Pairs) -> list[int]:
    return [n + before + after if n >= 0 else -1 for n, (before, after) in zip(shape, pairs, strict=True)]


def _inside(array: Any, pairs: Pairs) -> Any:
    return array[
        tuple(slice(before, n - after) for n, (before, after) in zip(array.shape, pairs, strict=True))
    ]


def _infer_pad(op: OpView) -> None:
    x, paddings = op.shape("X"), op.attr("paddings")
    if len(paddings) != 2 * len(x) or any(n < 0 for n in paddings):
        raise op.fail(
            f"paddings must hold two numbers >= 0 for each of the {len(x)} dimensions, got {list(paddings)}"
        )
    op.set("Out", _padded(x, _pairs(paddings)), op.dtype("X"))


def _infer_pad_grad(op: OpView) -> None:
    paddings = _pairs(op.attr("paddings"))
    shape = [
        n - before - after if n >= 0 else -1
        for n, (before, after) in zip(op.shape(DOUT), paddings, strict=True)
    ]
    op.set(DX, shape, op.dtype(DOUT))


register_pair(
    "pad",
    ("X",),
    lambda xp, X, paddings, pad_value: xp.pad(X, _pairs(paddings), constant_values=pad_value),
    lambda xp, Out_grad, paddings: xp.ascontiguousarray(_inside(Out_grad, _pairs(paddings))),
    _infer_pad,
    "X with a border of pad_value; `paddings`: how much before and after each dimension.",
    attrs={"paddings": [], "pad_value": 0.0},
    keep=(),
    effects=Effects(numbered=False),
    infer_back=_infer_pad_grad,
    grad_grad=_zero_pad_double_grad("pad"),
)

PAD2D_ATTRS = {"paddings": [0, 0, 0, 0], "mode": "constant", "pad_value": 0.0, "data_format": "NCHW"}


def _pad2d_pairs(paddings: Sequence[int], data_format: str) -> Pairs:
    top, bottom, left, right = (int(n) for n in paddings)
    none, image = (0, 0), [(top, bottom), (left, right)]
    return [none, none, *image] if data_format == "NCHW" else [none, *image, none]


def _infer_pad2d(op: OpView) -> None:
    x, mode = op.shape("X"), op.attr("mode")
    if len(x) != 4:
        raise op.fail(f"X must have 4 dimensions, got {list(x)}")
    if mode not in ("constant", "reflect", "edge"):
        raise op.fail(f"mode must be constant, reflect or edge, got {mode!r}")
    paddings = declared_numbers(op, "paddings", "Paddings")
    if paddings is None:
        image = [-1, -1]
        shape = [*x[:2], *image] if op.attr("data_format") == "NCHW" else [x[0], *image, x[3]]
    else:
        pairs = _pad2d_pairs(paddings, op.attr("data_format"))
        if mode == "reflect" and any(0 <= n <= max(pair) > 0 for n, pair in zip(x, pairs, strict=True)):
            raise op.fail(f"reflect needs paddings less than the image {list(x)}, got {list(paddings)}")
        shape = _padded(x, pairs)
        if any(sum(pair) < 0 and 0 <= n <= -sum(pair) for n, pair in zip(x, pairs, strict=True)):
            raise op.fail(
                f"paddings {list(paddings)} leave nothing of images {list(x)}: the result would be {shape}"
            )
    op.set("Out", shape, op.dtype("X"))


def _common(shape: Shape, pairs: Pairs) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """The slices of the common elements in an array and in the padded (or cropped) one."""
    spans = [(max(0, -before), min(n, n + after)) for n, (before, after) in zip(shape, pairs, strict=True)]
    inner = tuple(slice(start, max(start, end)) for start, end in spans)
    outer = tuple(
        slice(part.start + before, part.stop + before) if part.stop > part.start else slice(0)
        for part, (before, _) in zip(inner, pairs, strict=True)
    )
    return inner, outer


def _pad2d(
    xp: Any, X: Any, Paddings: Any, paddings: Any, mode: str, pad_value: float, data_format: str
) -> Any:
    pairs = _pad2d_pairs(given_numbers(paddings, Paddings), data_format)
    if mode != "constant":
        return _continued(xp, X, pairs, mode)
    out = xp.full(_padded(X.shape, pairs), pad_value, X.dtype)
    inner, outer = _common(X.shape, pairs)
    out[outer] = X[inner]
    return out


def _continued(xp: Any, x: Any, pairs: Pairs, mode: str) -> Any:
    """An array with a border of its own elements."""
    for axis, (n, (before, after)) in enumerate(zip(x.shape, pairs, strict=True)):
        if before or after:
            at = xp.arange(-before, n + after)
            at = xp.clip(at, 0, n - 1) if mode == "edge" else xp.minimum(abs(at), 2 * n - 2 - abs(at))
            x = xp.take(x, at, axis)
    return x


def _pad2d_grad(
    xp: Any, X: Any, Paddings: Any, Out_grad: Any, paddings: Any, mode: str, data_format: str
) -> Any:
    pairs = _pad2d_pairs(given_numbers(paddings, Paddings), data_format)
    dx = xp.zeros(X.shape, dtype=X.dtype)
    if mode == "constant":
        inner, outer = _common(X.shape, pairs)
        dx[inner] = Out_grad[outer]
    else:
        source = _continued(xp, xp.arange(X.size).reshape(X.shape), pairs, mode)
        xp.add.at(dx.reshape(-1), source.reshape(-1), Out_grad.reshape(-1))
    return dx


register_pair(
    "pad2d",
    ("X", "Paddings?"),
    _pad2d,
    _pad2d_grad,
    _infer_pad2d,
    "Images with a border (top, bottom, left, right; negative ones cut off): constant, reflected or the edge "
    "repeated.",
    attrs=PAD2D_ATTRS,
    keep=("X#", "Paddings"),
    no_grad=("Paddings",),
    grad_grad=_zero_pad_double_grad("pad2d"),
)


def _infer_pad_like(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != len(y) or any(m < n and m >= 0 for m, n in zip(x, y, strict=True)):
        raise op.fail(f"Y of shape {list(y)} must not be larger than X of shape {list(x)}")
    op.set("Out", x, op.dtype("Y"))


def _pad_like(xp: Any, X: Any, Y: Any, pad_value: float) -> Any:
    pairs = [(0, m - n) for m, n in zip(X.shape, Y.shape, strict=True)]
    return xp.pad(Y, pairs, constant_values=pad_value)


register_pair(
    "pad_constant_like",
    ("X#", "Y"),
    _pad_like,
    lambda xp, Y, Out_grad: xp.ascontiguousarray(Out_grad[tuple(slice(0, n) for n in Y.shape)]),
    _infer_pad_like,
    "Y with pad_value after its end in each dimension, so that it is as large as X.",
    attrs={"pad_value": 0.0},
    keep=("Y",),
    no_grad=("X",),
)


def _window(
    fail: Any, x: Sequence[int], shape: Sequence[int], offsets: Sequence[int]
) -> list[tuple[int, int]]:
    """Offset and size in each dimension; a size of -1 reaches to the end."""
    offsets = list(offsets) or [0] * len(x)
    if len(shape) != len(x) or len(offsets) != len(x):
        raise fail(f"shape and offsets must have {len(x)} numbers, got {list(shape)} and {offsets}")
    result = []
    for n, size, offset in zip(x, shape, offsets, strict=True):
        size = n - offset if size == -1 and n >= 0 else size
        if offset < 0 or (n >= 0 and offset + size > n):
            raise fail(f"a part of {size} from {offset} on does not fit into a dimension of {n}")
        result.append((offset, size))
    return result


def _part(array: Any, window: list[tuple[int, int]]) -> Any:
    return array[tuple(slice(offset, offset + size) for offset, size in window)]


def _uncrop(xp: Any, X: Any, Out_grad: Any, tensor: Any, tensors: Any, offsets: Sequence[int]) -> Any:
    """Out_grad at its offsets, which are a tensor, tensors of one element or an attribute, among zeros."""
    dx = xp.zeros_like(X)
    where = given_numbers(offsets, tensors, tensor)
    part = _part(dx, _window(ValueError, X.shape, Out_grad.shape, where))
    part[...] = Out_grad
    return dx


CROP_ATTRS: dict[str, Any] = {"offsets": [], "shape": []}


def _infer_crop(op: OpView) -> None:
    shape = op.shape("Y") if op.has("Y") else op.attr("shape")
    offsets = declared_numbers(op, "offsets", "Offsets")
    if offsets is not None and not (op.has("Y") and any(size < 0 for size in shape)):
        shape = [size for _, size in _window(op.fail, op.shape("X"), shape, offsets)]
    op.set("Out", shape, op.dtype("X"))


def _crop_window(X: Any, Y: Any, Offsets: Any, shape: Any, offsets: Any) -> list[tuple[int, int]]:
    where = given_numbers(offsets, Offsets)
    return _window(ValueError, X.shape, shape if Y is None else Y.shape, where)


register_pair(
    "crop",
    ("X", "Y?", "Offsets?"),
    lambda xp, X, Y, Offsets, shape, offsets: xp.ascontiguousarray(
        _part(X, _crop_window(X, Y, Offsets, shape, offsets))
    ),
    lambda xp, X, Offsets, Out_grad, offsets: _uncrop(xp, X, Out_grad, Offsets, None, offsets),
    _infer_crop,
    "The part of X of `shape` (or that of Y) that begins at `offsets`.",
    attrs=CROP_ATTRS,
    keep=("X#", "Offsets"),
    no_grad=("Y", "Offsets"),
    sequences=Sequences(source=None),
    grad_grad=linear_double_grad("crop"),
)

CROP_TENSOR_SLOTS = ("X", "Shape?", "Offsets?", "ShapeTensor*?", "OffsetsTensor*?")


def _infer_crop_tensor(op: OpView) -> None:
    x = op.shape("X")
    shape = declared_numbers(op, "shape", "ShapeTensor", "Shape")
    offsets = declared_numbers(op, "offsets", "OffsetsTensor", "Offsets")
    if shape is None or offsets is None:
        declared = [n if n > 0 else -1 for n in op.attr("shape")]
        op.set("Out", declared if len(declared) == len(x) else [-1] * len(x), op.dtype("X"))
        return
    op.set("Out", [size for _, size in _window(op.fail, x, shape, offsets)], op.dtype("X"))


def _crop_tensor(
    xp: Any, X: Any, Shape: Any, Offsets: Any, ShapeTensor: Any, OffsetsTensor: Any, shape: Any, offsets: Any
) -> Any:
    sizes = given_numbers(shape, ShapeTensor, Shape)
    window = _window(ValueError, X.shape, sizes, given_numbers(offsets, OffsetsTensor, Offsets))
    return xp.ascontiguousarray(_part(X, window))


register_pair(
    "crop_tensor",
    CROP_TENSOR_SLOTS,
    _crop_tensor,
    lambda xp, X, Offsets, OffsetsTensor, Out_grad, offsets: _uncrop(
        xp, X, Out_grad, Offsets, OffsetsTensor, offsets
    ),
    _infer_crop_tensor,
    "The part of X of `shape` that begins at `offsets`; both may be tensors, -1 reaches to the end.",
    attrs=CROP_ATTRS,
    keep=("X#", "Offsets", "OffsetsTensor"),
    no_grad=("Shape", "Offsets", "ShapeTensor", "OffsetsTensor"),
    sequences=Sequences(source=None),
)
