"""Products of vectors and matrices beyond `matmul`, functions of pairs of rows, inverses and triangular factors."""

from __future__ import annotations

from typing import Any

from ..._ext.forks import library_call
from ...backend.functions import matmul
from ..grad_pairs import bilinear_double_grad, register_pair
from ..host_fallback import hosted
from ..infer import may_equal, normalize_axis, reduced, require_same_dtype
from ..native import typed
from ..registry import Call, OperatorError, OpView, Sequences, grad_name
from .matmul import batched

DOUT, DX, DY = (grad_name(slot) for slot in ("Out", "X", "Y"))


def _bmm(xp: Any, X: Any, Y: Any) -> Any:
    return matmul(xp, X, Y)


def _bmm_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    return matmul(xp, Out_grad, Y.swapaxes(1, 2)), matmul(xp, X.swapaxes(1, 2), Out_grad)


def _infer_bmm(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 3 or len(y) != 3:
        raise op.fail(f"X and Y must have 3 dimensions, got {list(x)} and {list(y)}")
    if (x[2] != y[1] and min(x[2], y[1]) >= 0) or (x[0] != y[0] and min(x[0], y[0]) >= 0):
        raise op.fail(f"X [batch, m, k] and Y [batch, k, n] must fit, got {list(x)} and {list(y)}")
    op.set("Out", (max(x[0], y[0]), x[1], y[2]), require_same_dtype(op, "X", "Y"))


def _bmm_native(op: OpView) -> Call | None:
    name, (batch, m, k), n = typed(op, "gemm", ("X", "Y")), op.shape("X"), op.shape("Y")[2]
    if name is None:
        return None
    strides = (m * k, k * n, m * n)
    return batched(
        name, op.name("X"), op.name("Y"), op.name("Out"), (m, n, k), (False, False), 1.0, batch, strides
    )


def _bmm_grad_native(op: OpView) -> list[Call] | None:
    name, (batch, m, k), n = typed(op, "gemm", ("X", "Y", DOUT)), op.shape("X"), op.shape("Y")[2]
    if name is None:
        return None
    x, y, g = m * k, k * n, m * n
    calls = []
    if op.has(DX):
        of_x = (op.name(DOUT), op.name("Y"), op.name(DX), (m, k, n), (False, True))
        calls.append(batched(name, *of_x, 1.0, batch, (g, y, x)))
    if op.has(DY):
        of_y = (op.name("X"), op.name(DOUT), op.name(DY), (k, n, m), (True, False))
        calls.append(batched(name, *of_y, 1.0, batch, (x, g, y)))
    return calls


register_pair(
    "bmm",
    ("X", "Y"),
    _bmm,
    _bmm_grad,
    _infer_bmm,
    "The products of the matrices of two batches.",
    native=(_bmm_native, _bmm_grad_native),
    second=(bilinear_double_grad(_bmm, _bmm_grad), ("X", "Y")),
)


def _dot(xp: Any, X: Any, Y: Any) -> Any:
    return (X * Y).sum(axis=-1, keepdims=True, dtype=X.dtype)


def _dot_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    return Out_grad * Y, Out_grad * X


def _infer_dot(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) not in (1, 2) or not may_equal(x, y):
        raise op.fail(
            f"X and Y must be vectors or batches of them, of one shape, got {list(x)} and {list(y)}"
        )
    op.set("Out", (*x[:-1], 1), require_same_dtype(op, "X", "Y"))


register_pair(
    "dot",
    ("X", "Y"),
    _dot,
    _dot_grad,
    _infer_dot,
    "The scalar product of two vectors, or of each pair of two batches.",
    second=(bilinear_double_grad(_dot, _dot_grad), ("X", "Y")),
    sequences=Sequences(source=None),
)


def _addmm(xp: Any, Input: Any, X: Any, Y: Any, Alpha: float, Beta: float) -> Any:
    return X.dtype.type(Beta) * Input + X.dtype.type(Alpha) * matmul(xp, X, Y)


def _addmm_grad(xp: Any, Input: Any, X: Any, Y: Any, Out_grad: Any, Alpha: float, Beta: float) -> Any:
    scaled = X.dtype.type(Alpha) * Out_grad
    given = reduced(xp, X.dtype.type(Beta) * Out_grad, Input.shape, Out_grad.shape, -1)
    return given, matmul(xp, scaled, Y.T), matmul(xp, X.T, scaled)


def _infer_addmm(op: OpView) -> None:
    given, x, y = op.shape("Input"), op.shape("X"), op.shape("Y")
    if len(x) != 2 or len(y) != 2 or (x[1] != y[0] and min(x[1], y[0]) >= 0):
        raise op.fail(f"X [m, k] and Y [k, n] must be matrices that fit, got {list(x)} and {list(y)}")
    out = (x[0], y[1])
    if len(given) != 2 or any(n not in (1, m) and min(m, n) >= 0 for m, n in zip(out, given, strict=True)):
        raise op.fail(f"Input must fit a result of shape {list(out)}, got {list(given)}")
    op.set("Out", out, require_same_dtype(op, "Input", "X", "Y"))


register_pair(
    "addmm",
    ("Input", "X", "Y"),
    _addmm,
    _addmm_grad,
    _infer_addmm,
    "Beta times Input plus Alpha times the product of the matrices X and Y.",
    attrs={"Alpha": 1.0, "Beta": 1.0},
)

_ANY = 9
"""The value of `dim` that means the first dimension of size 3."""


def _cross_axis(shape: Any, dim: int) -> int | None:
    if dim == _ANY:
        return next((axis for axis, n in enumerate(shape) if n == 3), None)
    return dim % len(shape)


def _infer_cross(op: OpView) -> None:
    x, y, dim = op.shape("X"), op.shape("Y"), op.attr("dim")
    if not may_equal(x, y):
        raise op.fail(f"X and Y must be of one shape, got {list(x)} and {list(y)}")
    if dim != _ANY:
        normalize_axis(op, dim, len(x), "dim")
    axis = _cross_axis(x, dim)
    if not (-1 in x if axis is None else x[axis] in (3, -1)):
        raise op.fail(f"the dimension of the vectors must be of size 3, got shape {list(x)} and dim {dim}")
    op.set("Out", x, require_same_dtype(op, "X", "Y"))


def _cross(xp: Any, X: Any, Y: Any, dim: int) -> Any:
    axis = _cross_axis(X.shape, dim)
    x, y = (xp.moveaxis(v, axis, 0) for v in (X, Y))
    parts = [x[(k + 1) % 3] * y[(k + 2) % 3] - x[(k + 2) % 3] * y[(k + 1) % 3] for k in range(3)]
    return xp.stack(parts, axis=axis)


register_pair(
    "cross",
    ("X", "Y"),
    _cross,
    lambda xp, X, Y, Out_grad, dim: (_cross(xp, Y, Out_grad, dim), _cross(xp, Out_grad, X, dim)),
    _infer_cross,
    "The vector products along the dimension `dim`, or along the first of size 3.",
    attrs={"dim": _ANY},
)


def _padded(X: Any, rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(X)) + tuple(X)


def _kron_parts(X: Any, Y: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """X and Y so that their product, reshaped to the last result, is the Kronecker product."""
    rank = max(X.ndim, Y.ndim)
    x, y = _padded(X.shape, rank), _padded(Y.shape, rank)
    spread_x = tuple(n for size in x for n in (size, 1))
    spread_y = tuple(n for size in y for n in (1, size))
    return X.reshape(spread_x), Y.reshape(spread_y), tuple(m * n for m, n in zip(x, y, strict=True))


def _kron(xp: Any, X: Any, Y: Any) -> Any:
    x, y, shape = _kron_parts(X, Y)
    return (x * y).reshape(shape)


def _kron_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    x, y, _ = _kron_parts(X, Y)
    both = tuple(m * n for m, n in zip(x.shape, y.shape, strict=True))
    dout = Out_grad.reshape(both)
    dx = (dout * y).sum(axis=tuple(range(1, len(both), 2)), dtype=X.dtype)
    dy = (dout * x).sum(axis=tuple(range(0, len(both), 2)), dtype=X.dtype)
    return dx.reshape(X.shape), dy.reshape(Y.shape)


def _infer_kron(op: OpView) -> None:
    rank = max(len(op.shape("X")), len(op.shape("Y")))
    x, y = _padded(op.shape("X"), rank), _padded(op.shape("Y"), rank)
    shape = [m * n if m >= 0 and n >= 0 else -1 for m, n in zip(x, y, strict=True)]
    op.set("Out", shape, require_same_dtype(op, "X", "Y"))


register_pair(
    "kron",
    ("X", "Y"),
    _kron,
    _kron_grad,
    _infer_kron,
    "The Kronecker product: Y once for each element of X, multiplied by it.",
    second=(bilinear_double_grad(_kron, _kron_grad), ("X", "Y")),
    sequences=Sequences(source=None),
)


def _square(slot: str, out: str) -> Any:
    def infer(op: OpView) -> None:
        shape = op.shape(slot)
        if len(shape) < 2 or (shape[-1] != shape[-2] and min(shape[-2:]) >= 0):
            raise op.fail(f"{slot} must be a square matrix or a batch of them, got shape {list(shape)}")
        op.set(out, shape, op.dtype(slot))

    return infer


@hosted
def _inverse(xp: Any, Input: Any) -> Any:
    try:
        return library_call(xp.linalg.inv, Input)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator inverse: Input has no inverse: it is singular") from None


def _inverse_grad(xp: Any, Output: Any, Output_grad: Any) -> Any:
    transposed = Output.swapaxes(-1, -2)
    return -matmul(xp, matmul(xp, transposed, Output_grad), transposed)


register_pair(
    "inverse",
    ("Input",),
    _inverse,
    _inverse_grad,
    _square("Input", "Output"),
    "The inverse of a matrix, or of each of a batch.",
    outputs=("Output",),
    keep=(),
    keep_out=("Output",),
)


@hosted
def _cholesky(xp: Any, X: Any, upper: bool) -> Any:
    # Only the selected triangle is read.
    low = X.swapaxes(-1, -2) if upper else X
    try:
        factor = library_call(xp.linalg.cholesky, low)
    except xp.linalg.LinAlgError:
        raise OperatorError("operator cholesky: X must be symmetric and positive definite") from None
    return xp.ascontiguousarray(factor.swapaxes(-1, -2)) if upper else factor


@hosted
def _cholesky_grad(xp: Any, Out: Any, Out_grad: Any, upper: bool) -> Any:
    """The symmetric gradient, by Murray (2016)."""
    low, dlow = (a.swapaxes(-1, -2) if upper else a for a in (Out, Out_grad))
    transposed = low.swapaxes(-1, -2)
    half = xp.tril(matmul(xp, transposed, dlow))
    half = half - 0.5 * half * xp.eye(half.shape[-1], dtype=half.dtype)
    inverse = library_call(xp.linalg.inv, low)
    found = matmul(xp, matmul(xp, inverse.swapaxes(-1, -2), half), inverse)
    return 0.5 * (found + found.swapaxes(-1, -2))


register_pair(
    "cholesky",
    ("X",),
    _cholesky,
    _cholesky_grad,
    _square("X", "Out"),
    "The triangular factor L (or its transpose) of a symmetric positive definite matrix L L^T.",
    attrs={"upper": False},
    keep=(),
    keep_out=("Out",),
)


def _flat(x: Any) -> Any:
    return x.reshape(len(x), -1)


def _distance(xp: Any, X: Any, Y: Any) -> Any:
    difference = _flat(X) - _flat(Y)
    return difference, (difference * difference).sum(axis=1, keepdims=True)


def _distance_grad(xp: Any, X: Any, Y: Any, sub_result: Any, Out_grad: Any) -> Any:
    dx = 2 * Out_grad * sub_result
    dy = -dx if len(X) == len(Y) else -dx.sum(axis=0, keepdims=True)
    return dx.reshape(X.shape), dy.reshape(Y.shape)


def _infer_distance(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) < 2 or x[1:] != y[1:] or (y[0] not in (1, x[0]) and min(x[0], y[0]) >= 0):
        raise op.fail(f"Y must have the shape of X, or its first dimension be 1, got {list(x)} and {list(y)}")
    width = 1
    for n in x[1:]:
        width = width * n
    op.set("sub_result", (x[0], width), op.dtype("X"))
    op.set("Out", (x[0], 1), op.dtype("X"))


register_pair(
    "squared_l2_distance",
    ("X", "Y"),
    _distance,
    _distance_grad,
    _infer_distance,
    "The squared distance of each row of X from that of Y, or from its only row.",
    outputs=("sub_result", "Out"),
    keep=("X#", "Y#"),
    keep_out=("sub_result",),
    no_grad=("sub_result",),
    sequences=Sequences(source={"Out": "X"}),
)


def _windows(xp: Any, width: int, window: int) -> Any:
    """[width, window]: which columns the window around each column sees; beyond the ends it begins anew."""
    return (xp.arange(width)[:, None] + xp.arange(window) - (window - 1) // 2) % width


def _shift(xp: Any, X: Any, Y: Any) -> Any:
    return (X[:, _windows(xp, X.shape[1], Y.shape[1])] * Y[:, None, :]).sum(axis=2)


def _shift_grad(xp: Any, X: Any, Y: Any, Out_grad: Any) -> Any:
    windows = _windows(xp, X.shape[1], Y.shape[1])
    dy = (X[:, windows] * Out_grad[:, :, None]).sum(axis=1)
    dx = xp.zeros_like(X)
    for k in range(Y.shape[1]):
        dx[:, windows[:, k]] += Out_grad * Y[:, k : k + 1]
    return dx, dy


def _infer_shift(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    if len(x) != 2 or len(y) != 2 or (x[0] != y[0] and min(x[0], y[0]) >= 0):
        raise op.fail(f"X and Y must be matrices with as many rows, got {list(x)} and {list(y)}")
    if y[1] >= 0 and (y[1] % 2 == 0 or 0 <= x[1] < y[1]):
        raise op.fail(f"the width of Y must be odd and at most that of X, got {y[1]} and {x[1]}")
    op.set("Out", x, op.dtype("X"))


register_pair(
    "conv_shift",
    ("X", "Y"),
    _shift,
    _shift_grad,
    _infer_shift,
    "The circular convolution of each row of X with that of Y (Graves et al. 2014).",
)
