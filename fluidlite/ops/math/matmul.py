"""Matrix products: `mul`, `matmul` and `bilinear_tensor_product`, with their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...backend.functions import matmul as dot
from ...base.sizes import current, is_fixed
from .. import planning_rules
from ..grad_pairs import Kernel, bilinear_double_grad, register_pair
from ..infer import may_equal, product, require_same_dtype
from ..native import typed
from ..registry import Call, OpView, Planning, Shape, grad_name


def gemm(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float
) -> Call:
    """C[m, n] = alpha op(A) op(B) for sizes (m, n, k)."""
    return Call(name, [a, b, c, None], [*sizes, int(trans[0]), int(trans[1]), 0], [alpha, 0.0])


def batched(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float,
    batch: int, strides: tuple[int, int, int],
) -> Call:  # fmt: skip
    """As `gemm`, for `batch` matrices; `strides`: the elements from one to the next, 0 for a shared one."""
    if batch == 1:
        return gemm(name, a, b, c, sizes, trans, alpha)
    flags = [int(trans[0]), int(trans[1])]
    kernel = name.replace("gemm", "gemm_batched")
    return Call(kernel, [a, b, c], [*sizes, *flags, batch, *strides], [alpha, 0.0])


class Matrix(NamedTuple):
    """The second operand of products, `depth` x `columns` or stored transposed, of the type of `suffix`."""

    name: str
    suffix: str
    depth: int
    columns: int
    transposed: bool

    @property
    def packed_elements(self) -> int:
        """Room for it, packed, with any instruction set."""
        return self.depth * (self.columns + 32)


PRODUCTS = ("gemm.f32", "gemm.f64")
"""The kernels of products that may have a prepacked matrix."""

_LEAST, _MOST_ROWS = 1 << 11, 128
"""The least elements of a matrix that is prepacked, and the most rows of its products."""


def shared_matrix(call: Call) -> Matrix | None:
    """The second operand of a product that is worth prepacking, to share it with other products; else None.

    With many rows packing takes little of the time, and a BLAS is as fast.
    """
    if call.kernel not in PRODUCTS:
        return None
    (_, b, _, _), (m, n, k, trans_a, trans_b, *_), (alpha, beta) = call.operands, call.ints, call.floats
    if b is None or not is_fixed((n, k)) or n * k < _LEAST or current(m) > _MOST_ROWS:
        return None
    return None if trans_a or alpha != 1 or beta not in (0, 1) else Matrix(b, call.type, k, n, bool(trans_b))


def by_packed(call: Call, packed: str) -> Call:
    """A product by its second operand as `packed` has it."""
    a, _, c, bias = call.operands
    m, n, k, _, _, *act = call.ints
    return Call(f"gemm_packed.{call.type}", [a, packed, c, bias], [m, n, k, *act], call.floats[1:])


def packing(matrix: Matrix, packed: str) -> Call:
    """The call that packs a matrix."""
    sizes = [matrix.depth, matrix.columns, int(matrix.transposed)]
    return Call(f"gemm_pack.{matrix.suffix}", [matrix.name, packed], sizes)


DOUT, DX, DY = grad_name("Out"), grad_name("X"), grad_name("Y")
MUL_ATTRS = {"x_num_col_dims": 1, "y_num_col_dims": 1}


def flat(shape: Shape, columns: int) -> tuple[int, int]:
    """`shape` as that of a matrix whose rows are its first `columns` dimensions."""
    return product(shape[:columns]), product(shape[columns:])


def _infer_mul(op: OpView) -> None:
    x, y = op.shape("X"), op.shape("Y")
    split_x, split_y = op.attr("x_num_col_dims"), op.attr("y_num_col_dims")
    for slot, shape, split, name in (
        ("X", x, split_x, "x_num_col_dims"),
        ("Y", y, split_y, "y_num_col_dims"),
    ):
        if not 0 < split < len(shape):
            raise op.fail(
                f"{name} must be between 1 and the {len(shape)} dimensions of {slot} less one, got {split}"
            )
    width, height = flat(x, split_x)[1], flat(y, split_y)[0]
    if width != height and min(width, height) >= 0:
        raise op.fail(
            f"X of shape {list(x)} is a matrix {width} wide (x_num_col_dims={split_x}) and "
            f"Y of shape {list(y)} one {height} high (y_num_col_dims={split_y}); they must be equal"
        )
    op.set("Out", (*x[:split_x], *y[split_y:]), require_same_dtype(op, "X", "Y"))


def _mul(xp: Any, X: Any, Y: Any, x_num_col_dims: int, y_num_col_dims: int) -> Any:
    product_ = dot(xp, X.reshape(flat(X.shape, x_num_col_dims)), Y.reshape(flat(Y.shape, y_num_col_dims)))
    return product_.reshape((*X.shape[:x_num_col_dims], *Y.shape[y_num_col_dims:]))


def _mul_grad(xp: Any, X: Any, Y: Any, Out_grad: Any, x_num_col_dims: int, y_num_col_dims: int) -> Any:
    x, y = X.reshape(flat(X.shape, x_num_col_dims)), Y.reshape(flat(Y.shape, y_num_col_dims))
    dout = Out_grad.reshape(x.shape[0], y.shape[1])
    return dot(xp, dout, y.T).reshape(X.shape), dot(xp, x.T, dout).reshape(Y.shape)


def _mul_sizes(op: OpView) -> tuple[int, int, int]:
    m, k = flat(op.shape("X"), op.attr("x_num_col_dims"))
    return m, flat(op.shape("Y"), op.attr("y_num_col_dims"))[1], k


def _mul_native(op: OpView) -> Call | None:
    name = typed(op, "gemm", ("X", "Y"))
    return (
        gemm(name, op.name("X"), op.name("Y"), op.name("Out"), _mul_sizes(op), (False, False), 1.0)
        if name
        else None
    )


def _mul_grad_native(op: OpView) -> list[Call] | None:
    name = typed(op, "gemm", ("X", "Y", DOUT))
    if name is None:
        return None
    m, n, k = _mul_sizes(op)
    calls = []
    if op.has(DX):
        calls.append(gemm(name, op.name(DOUT), op.name("Y"), op.name(DX), (m, k, n), (False, True), 1.0))
    if op.has(DY):
        calls.append(gemm(name, op.name("X"), op.name(DOUT), op.name(DY), (k, n, m), (True, False), 1.0))
    return calls


def _register(
    op_type: str,
    attrs: dict[str, Any],
    infer: Callable[[OpView], None],
    kernels: tuple[Kernel, Kernel],
    native: Callable[[OpView], Call | None],
    native_grad: Callable[[OpView], list[Call] | None],
    doc: str,
) -> None:
    """Declare a product, its gradient and the gradient of that, which both `kernels` together compute."""

    register_pair(
        op_type,
        ("X", "Y"),
        kernels[0],
        kernels[1],
        infer,
        doc,
        attrs=attrs,
        planning=Planning(batchable=planning_rules.by_matrix, pattern="product"),
        planning_back=Planning(batchable=planning_rules.by_matrix),
        second=(bilinear_double_grad(*kernels), ("X", "Y")),
        native=(native, native_grad),
        cuda=(f"products.{op_type}", f"products.{op_type}_grad"),
    )


_register(
    "mul",
    MUL_ATTRS,
    _infer_mul,
    (_mul, _mul_grad),
    _mul_native,
    _mul_grad_native,
    "The product of X and Y, each flattened to a matrix after its `num_col_dims` first dimensions.",
)

MATMUL_ATTRS = {"transpose_X": False, "transpose_Y": False, "alpha": 1.0}


def _matrices(op: OpView) -> tuple[Shape, Shape]:
    """Shapes of the two factors after their transposes; a vector X is a row, a vector Y a column."""
    x, y = op.shape("X"), op.shape("Y")
    if not x or not y:
        raise op.fail("X and Y must have at least one dimension")
    x = x if len(x) > 1 else (1, x[0])
    y = y if len(y) > 1 else (y[0], 1)
    if op.attr("transpose_X"):
        x = (*x[:-2], x[-1], x[-2])
    if op.attr("transpose_Y"):
        y = (*y[:-2], y[-1], y[-2])
    return x, y


def _infer_matmul(op: OpView) -> None:
    if op.attrs.get("head_number", 1) > 1:
        raise op.fail("head_number must be 1: products of parts of matrices are those of reshaped ones here")
    x, y = _matrices(op)
    given_x, given_y = list(op.shape("X")), list(op.shape("Y"))
    if x[-1] != y[-2] and min(x[-1], y[-2]) >= 0:
        raise op.fail(
            f"the width of X and the height of Y must be equal, got {x[-1]} and {y[-2]} for shapes "
            f"{given_x} and {given_y} "
            f"(transpose_X={op.attr('transpose_X')}, transpose_Y={op.attr('transpose_Y')})"
        )
    batch = x[:-2] or y[:-2]
    if x[:-2] and y[:-2]:
        if may_equal(x[:-2], y[:-2]):
            batch = tuple(max(m, n) for m, n in zip(x[:-2], y[:-2], strict=True))
        elif not may_equal((product(x[:-2]),), (product(y[:-2]),)):
            raise op.fail(f"X {given_x} and Y {given_y} must be batches of as many matrices")
    rows = () if len(given_x) == 1 and x[-2] == 1 else (x[-2],)
    columns = () if len(given_y) == 1 and y[-1] == 1 else (y[-1],)
    op.set("Out", (*batch, *rows, *columns) or (1,), require_same_dtype(op, "X", "Y"))


def _factors(X: Any, Y: Any, transpose_X: bool, transpose_Y: bool) -> tuple[Any, Any]:
    """The two factors as (batches of) matrices, transposed; batches have the dimensions of those of X."""
    x = X.reshape(1, -1) if X.ndim == 1 else X
    y = Y.reshape(-1, 1) if Y.ndim == 1 else Y
    y = y.reshape(*x.shape[:-2], *y.shape[-2:]) if min(x.ndim, y.ndim) > 2 else y
    return x.swapaxes(-1, -2) if transpose_X else x, y.swapaxes(-1, -2) if transpose_Y else y


def _matmul(xp: Any, X: Any, Y: Any, transpose_X: bool, transpose_Y: bool, alpha: float) -> Any:
    x, y = _factors(X, Y, transpose_X, transpose_Y)
    out = dot(xp, x, y)
    out = out if alpha == 1 else out * alpha
    # The one row of a vector X, and the one column of a vector Y, are no dimensions.
    if X.ndim == 1 == out.shape[-2]:
        out = out[..., 0, :]
    if Y.ndim == 1 == out.shape[-1]:
        out = out[..., 0]
    return out if out.ndim else out.reshape(1)


def _summed(gradient: Any, like: Any) -> Any:
    """`gradient` summed over the batch dimensions that `like` has not."""
    extra = gradient.ndim - like.ndim
    return gradient.sum(axis=tuple(range(extra)), dtype=gradient.dtype) if extra else gradient


def _matmul_grad(
    xp: Any, X: Any, Y: Any, Out_grad: Any, transpose_X: bool, transpose_Y: bool, alpha: float
) -> Any:
    x, y = _factors(X, Y, transpose_X, transpose_Y)
    batch = x.shape[:-2] or y.shape[:-2]
    dout = Out_grad.reshape(*batch, x.shape[-2], y.shape[-1]) * alpha
    dx = _summed(dot(xp, dout, y.swapaxes(-1, -2)), x)
    if y.ndim == 2 < x.ndim:
        dy = dot(xp, x.reshape(-1, x.shape[-1]).T, dout.reshape(-1, dout.shape[-1]))
    else:
        dy = _summed(dot(xp, x.swapaxes(-1, -2), dout), y)
    dx = dx.swapaxes(-1, -2) if transpose_X else dx
    dy = dy.swapaxes(-1, -2) if transpose_Y else dy
    return dx.reshape(X.shape), dy.reshape(Y.shape)


def _matmul_layout(op: OpView) -> tuple[tuple[int, int, int], int, int, int] | None:
    """((m, n, k), batch, stride of X, stride of Y) of the product, or None if there is no kernel for it.

    Batches of X times one matrix Y are one product with more rows.
    """
    x, y = _matrices(op)
    m, k, n = x[-2], x[-1], y[-1]
    if len(y) == 2 and (len(x) == 2 or not op.attr("transpose_X")):
        return (product(x[:-1]), n, k), 1, 0, 0
    batch = product(x[:-2] or y[:-2])
    return (m, n, k), batch, m * k if len(x) > 2 else 0, k * n if len(y) > 2 else 0


def _matmul_native(op: OpView) -> Call | None:
    name, layout = typed(op, "gemm", ("X", "Y")), _matmul_layout(op)
    if name is None or layout is None:
        return None
    (m, n, k), batch, stride_x, stride_y = layout
    trans = (op.attr("transpose_X"), op.attr("transpose_Y"))
    names = (op.name("X"), op.name("Y"), op.name("Out"))
    return batched(name, *names, (m, n, k), trans, op.attr("alpha"), batch, (stride_x, stride_y, m * n))


def _matmul_grad_native(op: OpView) -> list[Call] | None:
    name, layout = typed(op, "gemm", ("X", "Y", DOUT)), _matmul_layout(op)
    if name is None or layout is None:
        return None
    (m, n, k), batch, sx, sy = layout
    if batch != 1 and not (sx and sy):
        return None  # One gradient is a sum over the batch.
    sg, alpha = m * n, op.attr("alpha")
    tx, ty = bool(op.attr("transpose_X")), bool(op.attr("transpose_Y"))
    x, y, g = op.name("X"), op.name("Y"), op.name(DOUT)
    calls = []
    if op.has(DX) and tx:
        calls.append(batched(name, y, g, op.name(DX), (k, m, n), (ty, True), alpha, batch, (sy, sg, sx)))
    elif op.has(DX):
        calls.append(batched(name, g, y, op.name(DX), (m, k, n), (False, not ty), alpha, batch, (sg, sy, sx)))
    if op.has(DY) and ty:
        calls.append(batched(name, g, x, op.name(DY), (n, k, m), (True, tx), alpha, batch, (sg, sx, sy)))
    elif op.has(DY):
        calls.append(batched(name, x, g, op.name(DY), (k, n, m), (not tx, False), alpha, batch, (sx, sg, sy)))
    return calls


_register(
    "matmul",
    MATMUL_ATTRS,
    _infer_matmul,
    (_matmul, _matmul_grad),
    _matmul_native,
    _matmul_grad_native,
    "alpha times the product of X and Y, each transposed on demand; also batches and vectors.",
)


def _infer_bilinear(op: OpView) -> None:
    x, y, weight = op.shape("X"), op.shape("Y"), op.shape("Weight")
    if len(x) != 2 or len(y) != 2 or len(weight) != 3:
        raise op.fail(
            f"X and Y must be matrices and Weight [size, X's width, Y's width], got {x}, {y} and {weight}"
        )
    if (x[1], y[1]) != weight[1:]:
        raise op.fail(f"Weight must be [size, {x[1]}, {y[1]}], got {list(weight)}")
    op.set("Out", (max(x[0], y[0]), weight[0]), require_same_dtype(op, "X", "Y", "Weight"))


def _bilinear(xp: Any, X: Any, Y: Any, Weight: Any, Bias: Any) -> Any:
    out = (dot(xp, X, Weight) * Y).sum(axis=2, dtype=X.dtype).T
    return out if Bias is None else out + Bias.reshape(1, -1)


def _bilinear_grad(xp: Any, X: Any, Y: Any, Weight: Any, Out_grad: Any) -> Any:
    back = Out_grad.T[:, :, None]
    dx = (back * dot(xp, Y, Weight.swapaxes(1, 2))).sum(axis=0, dtype=X.dtype)
    dy = (back * dot(xp, X, Weight)).sum(axis=0, dtype=X.dtype)
    dweight = dot(xp, (X * back).swapaxes(1, 2), Y)
    return dx, dy, dweight, Out_grad.sum(axis=0, keepdims=True, dtype=X.dtype)


def _infer_bilinear_grad(op: OpView) -> None:
    for slot in ("X", "Y", "Weight"):
        op.set(grad_name(slot), op.shape(slot), op.dtype(slot))
    op.set(grad_name("Bias"), (1, op.shape(DOUT)[1]), op.dtype(DOUT))


register_pair(
    "bilinear_tensor_product",
    ("X", "Y", "Weight", "Bias?"),
    _bilinear,
    _bilinear_grad,
    _infer_bilinear,
    "Out[:, i] = X Weight[i] Y (plus Bias), row by row.",
    keep=("X", "Y", "Weight"),
    infer_back=_infer_bilinear_grad,
)
