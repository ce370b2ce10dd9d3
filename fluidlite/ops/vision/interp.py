"""Images of another size: interpolation by the nearest element, linear in one to three dimensions, and cubic.

Each is a weighted sum of old elements (the taps) along one axis after another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...backend.functions import constant, matmul
from ...base.dtypes import VarType
from ...base.windows import channels_last
from ..grad_pairs import linear_double_grad, register_pair
from ..infer import given_numbers, known_numbers, product
from ..native import typed_call
from ..registry import Call, OpSpec, OpView, Sequences, grad_name

DOUT, DX = grad_name("Out"), grad_name("X")
_METHODS = ("nearest", "linear", "bicubic")

CUBIC = -0.75
"""The slope of the cubic's outer parts (Keys 1981)."""

_SIZES = ("out_d", "out_h", "out_w")

How = tuple[str, int, int, bool, int]
"""The resizing of an axis: method, old size, new size, align_corners, align_mode."""


def _ratio(size: int, out: int, align_corners: bool) -> np.float32:
    if out <= 1:
        return np.float32(0)
    return np.float32(size - 1) / np.float32(out - 1) if align_corners else np.float32(size) / np.float32(out)


def _sample_positions(
    size: int, out: int, align_corners: bool, align_mode: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each new element the old one before it, and the distance from that."""
    ratio, steps = _ratio(size, out, align_corners), np.arange(out)
    if align_mode == 0 and not align_corners:
        at = np.maximum(ratio * (steps + 0.5) - 0.5, 0)
    else:
        at = (ratio * steps.astype(np.float32)).astype(np.float64)
    low = np.minimum(at.astype(np.int64), size - 1)
    return low, at - low


def _cubic(x: np.ndarray) -> np.ndarray:
    """The cubic convolution kernel at distance `x`."""
    x = np.abs(x)
    near = ((CUBIC + 2) * x - (CUBIC + 3)) * x * x + 1
    far = ((CUBIC * x - 5 * CUBIC) * x + 8 * CUBIC) * x - 4 * CUBIC
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


def _taps(
    method: str, size: int, out: int, align_corners: bool, align_mode: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each tap along an axis, the indices and the weights of old elements for all new ones."""
    steps = np.arange(out)
    if method == "nearest":
        at = _ratio(size, out, align_corners) * steps.astype(np.float32)
        place = np.minimum((at + (0.5 if align_corners else 0.0)).astype(np.int64), size - 1)
        return [(place, np.ones(out))]
    if method == "bicubic":
        ratio = float(_ratio(size, out, align_corners))
        at = ratio * steps if align_corners else ratio * (steps + 0.5) - 0.5
        first = np.floor(at).astype(np.int64)
        return [(np.clip(first + k, 0, size - 1), _cubic(at - first - k)) for k in range(-1, 3)]
    low, share = _sample_positions(size, out, align_corners, align_mode)
    return [(low, 1 - share), (np.minimum(low + 1, size - 1), share)]


def _along(weights: Any, axis: int, rank: int) -> Any:
    return weights.reshape((-1,) + (1,) * (rank - axis - 1))


def _table(how: How, dtype: Any) -> tuple[np.ndarray, ...]:
    """The taps of an axis one after the other: places, shares, places, shares, ..."""
    return tuple(array for place, share in _taps(*how) for array in (place, share.astype(dtype)))


def _resized(xp: Any, x: Any, hows: Sequence[How], first: int) -> Any:
    """Resize the axes from `first` on; integers are summed in float32 and truncated."""
    if x.dtype.kind in "iu":
        return _resized_integers(xp, x, hows, first).astype(x.dtype)
    for axis, how in enumerate(hows, first):
        table = constant(xp, _table, how, x.dtype)
        parts = [xp.take(x, place, axis=axis) for place in table[::2]]
        if len(parts) == 1:
            x = parts[0]
            continue
        weights = [_along(share, axis, x.ndim) for share in table[1::2]]
        x = sum(part * weight for part, weight in zip(parts, weights, strict=True))
    return x


def _resized_integers(xp: Any, x: Any, hows: Sequence[How], first: int) -> Any:
    """As `_resized`, but a single sum of all products in Fluid's order, as truncation depends on rounding."""
    total: Any = np.float32(0)
    tables = [constant(xp, _table, how, np.dtype("float32")) for how in hows]
    for taps in itertools.product(*(range(0, len(table), 2) for table in reversed(tables))):
        part = x
        for axis, (table, tap) in enumerate(zip(tables, reversed(taps), strict=True), first):
            part = xp.take(part, table[tap], axis=axis)
        part = part.astype("float32")
        for axis, (table, tap) in enumerate(zip(tables, reversed(taps), strict=True), first):
            part = part * _along(table[tap + 1], axis, x.ndim)
        total = total + part
    return total


def _matrix(how: How, dtype: Any) -> np.ndarray:
    """The matrix that makes the old elements of an axis of the gradients of the new ones."""
    _, size, out, *_ = how
    matrix = np.zeros((size, out))
    for place, share in _taps(*how):
        np.add.at(matrix, (place, np.arange(out)), share)
    return matrix.astype(dtype)


def _spread(xp: Any, dout: Any, hows: Sequence[How], first: int) -> Any:
    """The adjoint of `_resized`: one product with a matrix for each axis."""
    for axis, how in enumerate(hows, first):
        last = xp.moveaxis(dout, axis, -1)
        flat = matmul(xp, last.reshape(-1, last.shape[-1]), constant(xp, _matrix, how, dout.dtype).T)
        dout = xp.moveaxis(flat.reshape(*last.shape[:-1], flat.shape[-1]), -1, axis)
    return xp.ascontiguousarray(dout)


def _first_axis(data_layout: str) -> int:
    return 1 if channels_last(data_layout) else 2


def _scaled(sizes: Sequence[int], scale: float) -> list[int]:
    return [int(size * scale) if size >= 0 else -1 for size in sizes]


def _out_sizes(
    sizes: Sequence[int], OutSize: Any, SizeTensor: Any, Scale: Any, scale: float, given: Sequence[int]
) -> list[int]:
    """The new sizes: tensors take precedence over attributes."""
    if SizeTensor or OutSize is not None:
        return given_numbers((), SizeTensor, OutSize)
    if Scale is not None:
        scale = float(Scale.reshape(-1)[0])
    return _scaled(sizes, scale) if scale > 0 else list(given)


def _register(op_type: str, dims: int, doc: str) -> None:
    method = op_type.removesuffix("_interp").replace("bilinear", "linear").replace("trilinear", "linear")
    attrs = {
        "data_layout": "NCHW",
        "out_d": -1,
        "out_h": -1,
        "out_w": -1,
        "scale": 0.0,
        "interp_method": op_type.removesuffix("_interp"),
        "align_corners": True,
        "align_mode": 1,
    }
    sizes_given = _SIZES[-dims:]

    def hows(sizes: Sequence[int], outs: Sequence[int], align_corners: bool, align_mode: int) -> list[How]:
        if min(outs) < 1:
            raise ValueError(f"{op_type}: the new sizes must be positive, got {list(outs)}")
        pairs = zip(sizes, outs, strict=True)
        return [(method, size, out, align_corners, align_mode) for size, out in pairs]

    def kernel(
        xp: Any, X: Any, OutSize: Any, SizeTensor: Any, Scale: Any, data_layout: str, out_d: int, out_h: int,
        out_w: int, scale: float, align_corners: bool, align_mode: int,
    ) -> Any:  # fmt: skip
        first = _first_axis(data_layout)
        sizes, given = X.shape[first : first + dims], (out_d, out_h, out_w)[-dims:]
        outs = _out_sizes(sizes, OutSize, SizeTensor, Scale, scale, given)
        return _resized(xp, X, hows(sizes, outs, align_corners, align_mode), first)

    def grad_kernel(
        xp: Any, X: Any, Out_grad: Any, data_layout: str, align_corners: bool, align_mode: int
    ) -> Any:
        first = _first_axis(data_layout)
        sizes, outs = (shape[first : first + dims] for shape in (X.shape, Out_grad.shape))
        return _spread(xp, Out_grad, hows(sizes, outs, align_corners, align_mode), first)

    def infer(op: OpView) -> None:
        shape = op.shape("X")
        if len(shape) != dims + 2:
            raise op.fail(f"X must have {dims + 2} dimensions, got shape {list(shape)}")
        if op.dtype("X") == VarType.BOOL and method != "nearest":
            op.refuse("X must be floats or integers, got bool: cast it, or take the nearest elements")
        first = _first_axis(op.attr("data_layout"))
        sizes = shape[first : first + dims]
        outs: list[int] | None = [op.attr(name) for name in sizes_given]
        if op.has("SizeTensor") or op.has("OutSize"):
            known = known_numbers(op, "SizeTensor" if op.has("SizeTensor") else "OutSize")
            if known is not None or not op.building:
                outs = [-1] * dims if known is None else known
        elif op.has("Scale"):
            value = op.value("Scale")
            outs = [-1] * dims if value is None else _scaled(sizes, float(value.reshape(-1)[0]))
        elif op.attr("scale") > 0:
            outs = _scaled(sizes, op.attr("scale"))
        if outs is None or len(outs) != dims or any(n == 0 or n < -1 for n in outs):
            raise op.fail(f"there must be {dims} new sizes, all positive, got {outs}")
        op.set("Out", (*shape[:first], *outs, *shape[first + dims :]), op.dtype("X"))

    def native(op: OpView, large: str, source: str, target: str, kernel: str) -> Call | None:
        if not op.has(target):
            return None
        shape = op.shape("X")
        first = _first_axis(op.attr("data_layout"))
        outs = op.shape(large)[first : first + dims]
        how = [_METHODS.index(method), int(op.attr("align_corners")), int(op.attr("align_mode") == 0)]
        images, inner = product(shape[:first]), product(shape[first + dims :])
        ints = [*how, images, inner, dims, *shape[first : first + dims], *outs]
        return typed_call(op, kernel, (source,), (target,), ints)

    linear = linear_double_grad(op_type)

    def double_grad(op: OpView) -> list[OpSpec]:
        """Interpolating is linear: the gradient of the gradient interpolates."""
        first = _first_axis(op.attr("data_layout"))
        outs = op.shape(DOUT)[first : first + dims]
        sizes = {"scale": 0.0, **dict(zip(sizes_given, outs, strict=True))}
        return [replace(spec, attrs={**spec.attrs, **sizes}) for spec in linear(op)]

    register_pair(
        op_type,
        ("X", "OutSize?", "SizeTensor*?", "Scale?"),
        kernel,
        grad_kernel,
        infer,
        doc,
        attrs=attrs,
        keep=("X#", "OutSize#", "SizeTensor#", "Scale#"),
        no_grad=("OutSize", "SizeTensor", "Scale"),
        grad_grad=double_grad,
        sequences=Sequences(
            source=lambda op: "X" if op.has("OutSize") and not op.has("SizeTensor") else None
        ),
        native=(
            lambda op: native(op, "Out", "X", "Out", "resize"),
            lambda op: native(op, DOUT, DOUT, DX, "resize_grad"),
        ),
    )


_register("nearest_interp", 2, "X with images of another size, each element that of the nearest old one.")
_register("linear_interp", 1, "X with rows of another length, by linear interpolation.")
_register("bilinear_interp", 2, "X with images of another size, by linear interpolation along both axes.")
_register("trilinear_interp", 3, "X with volumes of another size, by linear interpolation along three axes.")
_register("bicubic_interp", 2, "X with images of another size, by cubic convolution along both axes.")
