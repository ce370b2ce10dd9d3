"""Reductions - mean, reduce_*, cumsum - with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.dtypes import VarType
from ...base.sizes import collapse
from ...base.sizes import reduced_axes as axes_of
from .. import planning_rules
from ..grad_pairs import Rule, gradient_by, linear_double_grad, or_zeros, register_pair
from ..infer import normalize_axis, same_as
from ..native import BYTES, NUMERIC, REAL, Selector, numel, typed, typed_call
from ..registry import Call, Effects, OpView, Planning, Sequences, Shape, grad_name, register

DOUT, DX = grad_name("Out"), grad_name("X")
Kernel = Callable[..., Any]
ATTRS = {"dim": [0], "keep_dim": False, "reduce_all": False, "in_dtype": -1, "out_dtype": -1}


def _infer_one(op: OpView) -> None:
    op.set("Out", (1,), op.dtype("X"))


def _mean_native(op: OpView) -> Call | None:
    n = numel(op, "X")
    return typed_call(op, "reduce_sum", ("X",), ("Out",), [1, n, 1], [1.0 / n]) if n else None


def _mean_grad_native(op: OpView) -> Call | None:
    n = numel(op, "X")
    if not n or not op.has(DX) or op.dtype("X") != op.dtype(DOUT):
        return None
    return typed_call(op, "reduce_fill", (DOUT,), (DX,), [1, n, 1], [1.0 / n])


def _mean_grad(xp: Any, X: Any, Out_grad: Any) -> Any:
    return xp.broadcast_to((Out_grad / X.size).reshape(-1), (X.size,)).reshape(X.shape) + xp.zeros_like(X)


register_pair(
    "mean",
    ("X",),
    lambda xp, X: X.mean(dtype=X.dtype).reshape(1),
    _mean_grad,
    _infer_one,
    "The mean of all elements, of shape [1].",
    keep=("X#",),
    sequences=Sequences(source=None),
    grad_grad=linear_double_grad("mean"),
    native=(_mean_native, _mean_grad_native),
    cuda=("elementwise.mean", "elementwise.mean_grad"),
)


def _infer_reduce(out_dtype: VarType | None = None) -> Callable[[OpView], None]:
    def infer(op: OpView) -> None:
        x = op.shape("X")
        if not op.attr("reduce_all"):
            dim = op.attr("dim")
            for axis in [dim] if isinstance(dim, int) else dim:
                normalize_axis(op, axis, len(x), "dim")
        axes = axes_of(len(x), op.attr("dim"), op.attr("reduce_all"))
        if op.attr("keep_dim"):
            shape: Shape = tuple(1 if axis in axes else n for axis, n in enumerate(x))
        else:
            shape = tuple(n for axis, n in enumerate(x) if axis not in axes) or (1,)
        op.set("Out", shape, out_dtype or op.dtype("X"))

    return infer


def unless_rows(op: OpView) -> str | None:
    """`Sequences.source` of reductions: the sequences of X, unless its rows are reduced."""
    rank = max(len(op.shape("X")), 1)  # 0: it is not declared
    return None if 0 in axes_of(rank, op.attr("dim"), op.attr("reduce_all")) else "X"


def _reduced(function: Kernel) -> Kernel:
    """The kernel that applies `function(xp, x, axes)` and puts the shape right."""

    def kernel(xp: Any, X: Any, dim: Any, keep_dim: bool, reduce_all: bool) -> Any:
        out = function(xp, X, axes_of(X.ndim, dim, reduce_all))
        axes = axes_of(X.ndim, dim, reduce_all)
        kept = tuple(1 if axis in axes else n for axis, n in enumerate(X.shape))
        if keep_dim:
            return out.reshape(kept)
        return out if out.ndim else out.reshape(1)

    return kernel


def _spread(Out_or_grad: Any, X: Any, dim: Any, reduce_all: bool) -> Any:
    """A reduced array with the reduced axes as ones, so that it broadcasts with X."""
    axes = axes_of(X.ndim, dim, reduce_all)
    return Out_or_grad.reshape(tuple(1 if axis in axes else n for axis, n in enumerate(X.shape)))


def _stages(op: OpView) -> list[tuple[Shape, tuple[int, int, int]]] | None:
    """The steps of reducing X, a run of adjacent axes at a time, the last ones first: the shape before each step, and
    that shape collapsed to (before, reduced, after). None if nothing is to be reduced, or X has no elements.
    """
    shape = op.shape("X")
    axes = axes_of(len(shape), op.attr("dim"), op.attr("reduce_all"))
    stages = []
    while axes:
        run = next(axes[k:] for k in range(len(axes)) if axes[-1] - axes[k] == len(axes) - k - 1)
        seen = collapse(shape, run)
        if seen is None or 0 in seen:
            return None
        stages.append((shape, seen))
        shape = tuple(1 if axis in run else n for axis, n in enumerate(shape))
        axes = axes[: -len(run)]
    return stages or None


def _native(kernel: str, types: Sequence[str], mean: bool) -> Selector:
    def select(op: OpView) -> list[Call] | None:
        name, stages = typed(op, kernel, ("X",), types), _stages(op)
        if name is None or stages is None:
            return None
        between = [
            op.scratch("Out", f"REDUCED{k}", shape, op.dtype("X")) for k, (shape, _) in enumerate(stages[1:])
        ]
        made = [op.name("X"), *between, op.name("Out")]
        calls = []
        for k, (_, seen) in enumerate(stages):
            floats = [1.0 / seen[1] if mean else 1.0] if kernel == "reduce_sum" else []
            calls.append(Call(name, made[k : k + 2], seen, floats))
        return calls

    return select


def _native_grad(kernel: str, mean: bool) -> Selector:
    def select(op: OpView) -> list[Call] | None:
        name, stages = typed(op, kernel, ("X", DOUT)), _stages(op)
        fill = typed(op, "reduce_fill", (DOUT,))
        if name is None or fill is None or stages is None or not op.has(DX):
            return None
        calls: list[Call] = []

        def spread(slot: str, scale: bool) -> str:
            """`slot`, in the shape that the first stage makes."""
            at = op.name(slot)
            for k, (shape, seen) in reversed(list(enumerate(stages))[1:]):
                larger = op.scratch(DX, f"{slot}{k}", shape, op.dtype(DOUT))
                calls.append(Call(fill, [at, larger], seen, [1.0 / seen[1] if scale else 1.0]))
                at = larger
            return at

        seen = stages[0][1]
        if kernel == "reduce_fill":
            dout = spread(DOUT, mean)
            return [*calls, Call(name, [dout, op.name(DX)], seen, [1.0 / seen[1] if mean else 1.0])]
        out, dout = spread("Out", False), spread(DOUT, False)
        return [*calls, Call(name, [op.name("X"), out, dout, op.name(DX)], seen)]

    return select


def _register_reduction(
    name: str,
    function: Kernel,
    doc: str,
    grad: Kernel,
    needs_out: bool = False,
    native_grad: str | None = None,
    types: Sequence[str] = NUMERIC,
    grad_grad: Rule | None = None,
    second: Kernel | None = None,
    effects: Effects = Effects(),
    padding_rows: str = "",
) -> None:
    """Declare `reduce_NAME` and its gradient, by kernels of that name; a mean is a sum with a factor."""
    op_type, mean = f"reduce_{name}", name == "mean"
    kernel = "reduce_sum" if mean else op_type
    register_pair(
        op_type,
        ("X",),
        _reduced(function),
        grad,
        _infer_reduce(),
        doc,
        attrs=ATTRS,
        keep=("X#",) if native_grad == "reduce_fill" else ("X",),
        keep_out=("Out",) if needs_out else (),
        sequences=Sequences(source=unless_rows),
        effects=effects,
        planning=Planning(batchable=planning_rules.reduced, padding_rows=padding_rows),
        planning_back=Planning(batchable=planning_rules.reduced),
        grad_grad=grad_grad,
        second=(second, ()) if second else None,
        native=(_native(kernel, types, mean), _native_grad(native_grad, mean) if native_grad else None),
        cuda=(
            f"elementwise.reduction:{name}",
            f"elementwise.reduction_grad:{name}" if native_grad else None,
        ),
    )


def _sum_grad(xp: Any, X: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
    return xp.ascontiguousarray(xp.broadcast_to(_spread(Out_grad, X, dim, reduce_all), X.shape))


def _rmean_grad(xp: Any, X: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
    spread = _spread(Out_grad, X, dim, reduce_all)
    part = (spread * (spread.size / max(X.size, 1))).astype(X.dtype, copy=False)
    return xp.ascontiguousarray(xp.broadcast_to(part, X.shape))


def _extreme_grad(xp: Any, X: Any, Out: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
    chosen = X == _spread(Out, X, dim, reduce_all)
    return xp.where(chosen, _spread(Out_grad, X, dim, reduce_all), 0)


def _extreme_double_grad(xp: Any, X: Any, Out: Any, DOut: Any, DDX: Any, dim: Any, reduce_all: bool) -> Any:
    chosen = X == _spread(Out, X, dim, reduce_all)
    picked = xp.where(chosen, or_zeros(xp, DDX, X), 0)
    return picked.sum(axis=axes_of(X.ndim, dim, reduce_all), dtype=X.dtype).reshape(DOut.shape)


def _prod_grad(xp: Any, X: Any, Out: Any, Out_grad: Any, dim: Any, reduce_all: bool) -> Any:
    """The product of the other elements, also where some are 0."""
    axes = axes_of(X.ndim, dim, reduce_all)
    zero = X == 0
    filled = xp.where(zero, 1, X)
    others = filled.prod(axis=axes, keepdims=True, dtype=X.dtype) / filled
    zeros_elsewhere = zero.sum(axis=axes, keepdims=True) - zero
    return _spread(Out_grad, X, dim, reduce_all) * xp.where(zeros_elsewhere == 0, others, 0)


def _mean_of(xp: Any, x: Any, axes: tuple[int, ...]) -> Any:
    if x.dtype.kind == "f":
        return x.mean(axis=axes, dtype=x.dtype)
    total = x.sum(axis=axes, dtype=x.dtype)
    return xp.trunc(total / max(x.size // max(total.size, 1), 1)).astype(x.dtype)


_register_reduction(
    "sum",
    lambda xp, x, axes: x.sum(axis=axes, dtype=x.dtype),
    "The sum over the dimensions `dim`.",
    _sum_grad,
    grad_grad=linear_double_grad("reduce_sum"),
    native_grad="reduce_fill",
    padding_rows="summed",
)
_register_reduction(
    "mean",
    _mean_of,
    "The mean over the dimensions `dim`.",
    _rmean_grad,
    grad_grad=linear_double_grad("reduce_mean"),
    native_grad="reduce_fill",
    types=REAL,
)


def _extreme(xp: Any, x: Any, axes: Any, which: str) -> Any:
    """The largest ("max") or smallest over `axes`; of no elements, the lowest or highest number of the type."""
    if x.size:
        return getattr(x, which)(axis=axes)
    if x.dtype.kind == "f":
        bound = -xp.inf if which == "max" else xp.inf
    else:
        info = xp.iinfo(x.dtype)
        bound = info.min if which == "max" else info.max
    return xp.full_like(x.sum(axis=axes, dtype=x.dtype), bound)


_register_reduction(
    "max",
    lambda xp, x, axes: _extreme(xp, x, axes, "max"),
    "The largest over the dimensions `dim`; every element as large gets the gradient.",
    _extreme_grad,
    second=_extreme_double_grad,
    needs_out=True,
    native_grad="reduce_max_grad",
    effects=Effects(numbered=False),
)
_register_reduction(
    "min",
    lambda xp, x, axes: _extreme(xp, x, axes, "min"),
    "The smallest over the dimensions `dim`; every element as small gets the gradient.",
    _extreme_grad,
    second=_extreme_double_grad,
    needs_out=True,
    native_grad="reduce_min_grad",
    effects=Effects(numbered=False),
)
_register_reduction(
    "prod",
    lambda xp, x, axes: x.prod(axis=axes, dtype=x.dtype),
    "The product over the dimensions `dim`.",
    _prod_grad,
    needs_out=True,
    effects=Effects(numbered=False),
)
for _name, _kernel, _which in (
    ("all", lambda xp, x, axes: x.all(axis=axes), "all elements over the dimensions `dim` are"),
    ("any", lambda xp, x, axes: x.any(axis=axes), "any element over the dimensions `dim` is"),
):
    register(
        f"reduce_{_name}",
        inputs=("X",),
        attrs=ATTRS,
        infer=_infer_reduce(VarType.BOOL),
        kernel=_reduced(_kernel),
        no_grad=("Out",),
        native=_native(f"reduce_{_name}", BYTES, mean=False),
        sequences=Sequences(source=unless_rows),
        effects=Effects(numbered=False),
        planning=Planning(batchable=planning_rules.reduced),
        doc=f"Whether {_which} true.",
    )


def _cumsum(xp: Any, X: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    source = xp.flip(X, axis) if reverse else X
    total = xp.cumsum(source, axis=axis, dtype=X.dtype)
    if exclusive:
        # Shifted, as subtracting would round, and make NaN of infinities.
        total = xp.roll(total, 1, axis)
        total[(slice(None),) * (axis % X.ndim) + (slice(0, 1),)] = 0
    return xp.ascontiguousarray(xp.flip(total, axis) if reverse else total)


register(
    "cumsum",
    inputs=("X",),
    attrs={"axis": -1, "exclusive": False, "reverse": False},
    infer=same_as("X"),
    kernel=_cumsum,
    grad=gradient_by(
        "cumsum",
        attrs=lambda op: {
            "axis": op.attr("axis"),
            "exclusive": op.attr("exclusive"),
            "reverse": not op.attr("reverse"),
        },
    ),
    effects=Effects(numbered=False),
    doc="The sums along `axis` up to each element; `exclusive`: without it, `reverse`: from the end.",
)
