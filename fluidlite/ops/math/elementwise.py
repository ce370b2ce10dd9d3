"""`elementwise_*`: arithmetic of two arrays, with their gradients; operators that limit values and norms.

Y is lined up with X at attribute `axis`; beyond Fluid's rule any shapes that broadcast are accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.selected_rows import SelectedRows
from ...base.sizes import lacking, same_shape
from .. import native, planning_rules
from ..grad_pairs import double_grad, register_double_grad, register_pair, self_adjoint_double_grad
from ..infer import broadcast_shape, middle, operands, reduced, require_same_dtype
from ..native import INTEGERS, NUMERIC, Selector, division_by_zero, numel, typed
from ..registry import (
    Call,
    Dispatch,
    Effects,
    OpView,
    Planning,
    RowRule,
    Sequences,
    Shape,
    grad_name,
    register,
)
from ..tensor import gather as rows
from ..value_checks import forbid

DOUT, DX, DY = grad_name("Out"), grad_name("X"), grad_name("Y")
Kernel = Callable[..., Any]

_ATTRS = {"axis": -1, "use_mkldnn": False, "x_data_format": "", "y_data_format": ""}
"""All but `axis` are for real Paddle, which requires them in a saved program."""

_MOST_DIMENSIONS = 8
"""The limit of dimensions in kernels, after merging adjacent ones that Y has, or lacks."""


def _infer(op: OpView) -> None:
    dtype = require_same_dtype(op, "X", "Y")
    op.set("Out", broadcast_shape(op, op.attr("axis")), dtype)


def _native(kernel: str, types: Sequence[str] = NUMERIC) -> Selector:
    def select(op: OpView) -> Call | None:
        x, y = op.shape("X"), op.shape("Y")
        names = [op.name("X"), op.name("Y"), op.name("Out")]
        if same_shape(x, y):
            name = typed(op, kernel, ("X", "Y"), types)
            return Call(name, names, [numel(op, "X")]) if name else None
        form, layout = _layout(x, y, op.attr("axis"))
        name = typed(op, kernel + form, ("X", "Y"), types)
        return Call(name, names, layout) if name and layout else None

    return select


def _layout(x: Shape, y: Shape, axis: int) -> tuple[str, Sequence[int] | None]:
    """How Y broadcasts to X, if X has all dimensions: the suffix of the kernel's name, and its integers."""
    if found := middle(x, y, axis):
        return "_mid", found
    sizes, stands = lacking(x, y, axis) or ((), ())
    return "_dims", [len(sizes), *sizes, *stands] if 3 <= len(sizes) <= _MOST_DIMENSIONS else None


def _native_grad(kernel: str, needs_dx: str, needs_dy: str) -> Selector:
    def select(op: OpView) -> Call | None:
        needs = {*(needs_dx.split() if op.has(DX) else ()), *(needs_dy.split() if op.has(DY) else ())}
        x, y = op.shape("X"), op.shape("Y")
        same = same_shape(x, y)
        form, layout = ("", [numel(op, "X")]) if same else _layout(x, y, op.attr("axis"))
        name = typed(op, f"{kernel}{form}_grad", ("X", "Y", DOUT))
        missing = any(not op.has(slot) for slot in needs)
        if name is None or layout is None or missing or not (op.has(DX) or op.has(DY)):
            return None
        read = [op.name(slot) if slot in needs else None for slot in ("X", "Y", "Out")]
        return Call(name, [*read, op.name(DOUT), op.name_or_none(DX), op.name_or_none(DY)], layout)

    return select


def _register(
    name: str,
    function: Kernel,
    doc: str,
    grads: Kernel | None = None,
    second: Kernel | None = None,
    needs: tuple[str, str] = ("", ""),
    needs_out: bool = False,
    native: Sequence[str] = NUMERIC,
    by_rows: RowRule | None = None,
    copied: Callable[[OpView], tuple[str, str] | None] | None = None,
) -> None:
    """Declare `elementwise_NAME`, its gradient and the gradient of that.

    `function(xp, x, y)` works on operands that broadcast; `grads(xp, x, y, dout)` gives both gradients
    before they are summed down; `second`: see `_register_double_grad`. `needs`: what the C kernel reads for each;
    `by_rows`: what it does with SelectedRows; `copied`: `Planning.identity` of the gradient.
    """
    op_type = f"elementwise_{name}"

    def kernel(xp: Any, X: Any, Y: Any, axis: int) -> Any:
        return function(xp, *operands(X, Y, axis)).astype(X.dtype, copy=False)

    cuda = None if native is INTEGERS else f"elementwise.forward:{name}"
    planning = Planning(inplace=(("Out", "X"),), batchable=planning_rules.with_operand)
    if grads is None:
        register(
            op_type,
            inputs=("X", "Y"),
            attrs=_ATTRS,
            infer=_infer,
            kernel=kernel,
            native=_native(op_type, native),
            dispatch=Dispatch(cuda=cuda),
            planning=planning,
            doc=doc,
        )
        return

    def back(xp: Any, X: Any, Y: Any, Out_grad: Any, axis: int) -> Any:
        found = grads(xp, *operands(X, Y, axis), Out_grad)
        dx, dy = (each.astype(X.dtype, copy=False) for each in found)
        return reduced(xp, dx, X.shape, Y.shape, axis), reduced(xp, dy, Y.shape, X.shape, axis)

    register_pair(
        op_type,
        ("X", "Y"),
        kernel,
        back,
        _infer,
        doc,
        attrs=_ATTRS,
        keep=("X", "Y") if needs_out or any(needs) else ("X#", "Y#"),
        keep_out=("Out",) if needs_out else (),
        planning=planning,
        planning_back=Planning(inplace=((DX, DOUT),), identity=copied, batchable=planning_rules.with_operand),
        grad_grad=double_grad("Out", ("X", "Y"), ("X", "Y")) if second else None,
        native=(_native(op_type, native), _native_grad(op_type, *needs)),
        cuda=(cuda, f"elementwise.grad:{name}"),
        rows=by_rows,
    )
    if second is not None:
        _register_double_grad(op_type, second)


def _register_double_grad(op_type: str, second: Kernel) -> None:
    """`<type>_grad_grad`: `second(xp, x, y, dout, ddx, ddy)` for X, Y and Out@GRAD, summed over broadcast axes."""

    def kernel(xp: Any, X: Any, Y: Any, DOut: Any, DDX: Any, DDY: Any, axis: int) -> Any:
        x, y = operands(X, Y, axis)
        ddx = xp.zeros_like(x) if DDX is None else DDX.reshape(x.shape)
        ddy = xp.zeros_like(y) if DDY is None else DDY.reshape(y.shape)
        dx, dy, ddout = second(xp, x, y, DOut, ddx, ddy)
        return (
            reduced(xp, xp.broadcast_to(dx, DOut.shape), X.shape, Y.shape, axis),
            reduced(xp, xp.broadcast_to(dy, DOut.shape), Y.shape, X.shape, axis),
            xp.broadcast_to(ddout, DOut.shape) + xp.zeros_like(DOut),
        )

    register_double_grad(op_type, ("X", "Y"), "Out", ("X", "Y"), kernel, _ATTRS)


def _truncated(xp: Any, name: str, x: Any, y: Any) -> Any:
    """The quotient of integers rounded towards zero, for `elementwise_<name>`."""
    forbid(y == 0, division_by_zero(f"elementwise_{name}"))
    quotient = xp.floor_divide(x, y)
    return quotient + ((quotient < 0) & (quotient * y != x))


def _div(xp: Any, x: Any, y: Any) -> Any:
    return x / y if x.dtype.kind == "f" else _truncated(xp, "div", x, y)


def _floordiv(xp: Any, x: Any, y: Any) -> Any:
    return xp.floor_divide(x, y) if x.dtype.kind == "f" else _truncated(xp, "floordiv", x, y)


def _mod(xp: Any, x: Any, y: Any) -> Any:
    return xp.mod(x, y) if x.dtype.kind == "f" else x - _truncated(xp, "mod", x, y) * y


def _pow(xp: Any, x: Any, y: Any) -> Any:
    return xp.power(x, y) if x.dtype.kind == "f" else xp.power(x.astype("float64"), y)


def _pow_grads(xp: Any, x: Any, y: Any, dout: Any) -> Any:
    dx = xp.where(y == 0, 0, dout * y * xp.power(x, y - 1))
    slope = xp.power(x, y) * xp.log(xp.where(x > 0, x, 1))
    return dx, dout * xp.where(x < 0, xp.nan, slope)


def _mul_rows(xp: Any, X: SelectedRows, Y: Any) -> SelectedRows:
    if Y.size != 1:
        raise ValueError(
            f"SelectedRows can only be multiplied by one element, got Y of shape {list(Y.shape)}"
        )
    return X.with_values(X.values * Y.reshape(()))


def _mul_rows_native(op: OpView) -> list[Call] | None:
    kernel = typed(op, "elementwise_mul_mid", ("X", "Y"))
    if kernel is None or numel(op, "Y") != 1:
        return None
    count, _, width = rows.extent(op, "X")
    source, target = rows.parts(op.name("X"))[1], rows.parts(op.name("Out"))[1]
    return [
        rows.same_rows(op, "X", "Out"),
        Call(kernel, [source, op.name("Y"), target], [1, 1, count * width]),
    ]


def _pow_second(xp: Any, x: Any, y: Any, dout: Any, ddx: Any, ddy: Any) -> Any:
    logarithm = xp.log(xp.where(x > 0, x, 1))
    slope = y * x ** (y - 1)
    mixed = x ** (y - 1) * (1 + y * logarithm)
    dx = dout * (ddx * y * (y - 1) * x ** (y - 2) + ddy * mixed)
    dy = dout * (ddx * mixed + ddy * x**y * logarithm * logarithm)
    return dx, dy, ddx * slope + ddy * x**y * logarithm


_register(
    "add",
    lambda xp, x, y: x + y,
    "X + Y.",
    grads=lambda xp, x, y, dout: (dout, dout),
    second=lambda xp, x, y, dout, ddx, ddy: (x * 0, y * 0, ddx + ddy),
    copied=planning_rules.of_a_sum,
)
_register(
    "sub",
    lambda xp, x, y: x - y,
    "X - Y.",
    grads=lambda xp, x, y, dout: (dout, -dout),
    second=lambda xp, x, y, dout, ddx, ddy: (x * 0, y * 0, ddx - ddy),
    copied=planning_rules.of_a_sum,
)
_register(
    "mul",
    lambda xp, x, y: x * y,
    "X times Y.",
    grads=lambda xp, x, y, dout: (dout * y, dout * x),
    second=lambda xp, x, y, dout, ddx, ddy: (dout * ddy, dout * ddx, ddx * y + ddy * x),
    needs=("Y", "X"),
    by_rows=RowRule(_mul_rows, slots=("X",), out="Out", native=_mul_rows_native),
)
_register(
    "div",
    _div,
    "X over Y; integers are rounded towards 0.",
    grads=lambda xp, x, y, dout: (dout / y, -dout * _div(xp, x, y) / y),
    second=lambda xp, x, y, dout, ddx, ddy: (
        -dout * ddy / (y * y),
        dout * (2 * x * ddy / y - ddx) / (y * y),
        (ddx - ddy * x / y) / y,
    ),
    needs=("Y", "Y Out"),
    needs_out=True,
)
_register(
    "max",
    lambda xp, x, y: xp.where(x > y, x, y),
    "The larger of X and Y; where they are equal Y gets the gradient.",
    grads=lambda xp, x, y, dout: (xp.where(x > y, dout, 0), xp.where(x <= y, dout, 0)),
    second=lambda xp, x, y, dout, ddx, ddy: (x * 0, y * 0, (x > y) * ddx + (x <= y) * ddy),
    needs=("X Y", "X Y"),
)
_register(
    "min",
    lambda xp, x, y: xp.where(x < y, x, y),
    "The smaller of X and Y; where they are equal Y gets the gradient.",
    grads=lambda xp, x, y, dout: (xp.where(x < y, dout, 0), xp.where(x >= y, dout, 0)),
    second=lambda xp, x, y, dout, ddx, ddy: (x * 0, y * 0, (x < y) * ddx + (x >= y) * ddy),
    needs=("X Y", "X Y"),
)
_register("pow", _pow, "X to the power of Y.", grads=_pow_grads, second=_pow_second, needs=("X Y", "X Out"))
_register(
    "mod",
    _mod,
    "The remainder of X over Y: integers have the sign of X, floats that of Y.",
    native=INTEGERS,
)
_register("floordiv", _floordiv, "The quotient of the integers X and Y, rounded towards 0.", native=INTEGERS)


_LIMITS = {"min": 0.0, "max": 0.0}


def _limit(tensor: Any, number: float) -> Any:
    return number if tensor is None else tensor.reshape(())


def _clip_infer(op: OpView) -> None:
    low, high = op.attr("min"), op.attr("max")
    if not op.has("Min") and not op.has("Max") and low > high:
        raise op.fail(f"min must not be above max, got {low} and {high}")
    op.set("Out", op.shape("X"), op.dtype("X"))


def _clip(xp: Any, X: Any, Min: Any, Max: Any, min: float, max: float) -> Any:
    return xp.minimum(xp.maximum(X, _limit(Min, min)), _limit(Max, max)).astype(X.dtype)


def _clip_native(op: OpView) -> Call | list[Call] | None:
    if op.has("Min") or op.has("Max"):
        return None
    return native.unary("clip", ("min", "max"))(op)


def _clip_rows(xp: Any, X: SelectedRows, Min: Any, Max: Any, min: float, max: float) -> SelectedRows:
    merged = X.merged(xp)
    return merged.with_values(_clip(xp, merged.values, Min, Max, min, max))


def _rows_native(kernel: str, *limits: str) -> Callable[[OpView], list[Call] | None]:
    """The calls that merge the SelectedRows X and clip their values by the attributes `limits`."""

    def select(op: OpView) -> list[Call] | None:
        merge, name = rows.merge_call(op, "X", "Out"), native.typed(op, kernel, ("X",))
        if merge is None or name is None or op.has("Min") or op.has("Max"):
            return None
        count, _, width = rows.extent(op, "X")
        values = rows.parts(op.name("Out"))[1]
        return [merge, Call(name, [values, values], [count * width], [op.attr(limit) for limit in limits])]

    return select


def _clip_grad(xp: Any, X: Any, Min: Any, Max: Any, Out_grad: Any, min: float, max: float) -> Any:
    inside = (X > _limit(Min, min)) & (X < _limit(Max, max))
    return xp.where(inside, Out_grad, xp.zeros_like(Out_grad))


def _clip_grad_native(op: OpView) -> Call | list[Call] | None:
    if op.has("Min") or op.has("Max"):
        return None
    return native.unary_grad("clip", ("min", "max"))(op)


register_pair(
    "clip",
    ("X", "Min?", "Max?"),
    _clip,
    _clip_grad,
    _clip_infer,
    "X, raised to `min` and lowered to `max` where it is beyond them, or to Min and Max if given.",
    attrs=_LIMITS,
    no_grad=("Min", "Max"),
    effects=Effects(numbered=False),
    planning=Planning(inplace=(("Out", "X"),)),
    planning_back=Planning(inplace=(("X@GRAD", "Out@GRAD"),)),
    grad_grad=self_adjoint_double_grad,
    native=(_clip_native, _clip_grad_native),
    cuda=("elementwise.clip", "elementwise.clip_grad"),
    rows=RowRule(_clip_rows, slots=("X",), out="Out", native=_rows_native("clip", "min", "max")),
)


def _clip_by_norm_infer(op: OpView) -> None:
    if not op.attr("max_norm") > 0:  # nor is NaN
        raise op.fail(f"max_norm must be greater than 0, got {op.attr('max_norm')}")
    op.set("Out", op.shape("X"), op.dtype("X"))


def _clip_by_norm(xp: Any, X: Any, max_norm: float) -> Any:
    norm = xp.sqrt(xp.sum(X * X))
    return X * (max_norm / xp.maximum(norm, max_norm)).astype(X.dtype)


def _clip_by_norm_rows(xp: Any, X: SelectedRows, max_norm: float) -> SelectedRows:
    merged = X.merged(xp)
    return merged.with_values(_clip_by_norm(xp, merged.values, max_norm))


register(
    "clip_by_norm",
    inputs=("X",),
    attrs={"max_norm": 1.0},
    infer=_clip_by_norm_infer,
    kernel=_clip_by_norm,
    native=native.unary("clip_by_norm", ("max_norm",)),
    dispatch=Dispatch(
        rows=RowRule(
            _clip_by_norm_rows, slots=("X",), out="Out", native=_rows_native("clip_by_norm", "max_norm")
        )
    ),
    planning=Planning(inplace=(("Out", "X"),)),
    doc="X, shortened to the Euclidean norm `max_norm` if it is longer.",
)


def _squared_l2_norm_double_grad(xp: Any, X: Any, DOut: Any, DDX: Any) -> Any:
    return 2 * DOut.reshape(()) * DDX, 2 * (X * DDX).sum().reshape(1)


register_pair(
    "squared_l2_norm",
    ("X",),
    lambda xp, X: xp.sum(X * X).reshape(1),
    lambda xp, X, Out_grad: 2 * Out_grad.reshape(()) * X,
    lambda op: op.set("Out", (1,), op.dtype("X")),
    "The sum of the squares of X, as one element.",
    sequences=Sequences(source=None),
    second=(_squared_l2_norm_double_grad, ("X",)),
    native=(native.unary("squared_l2_norm"), None),
)
