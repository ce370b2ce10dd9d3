"""`cast` and `scale`: another element type, another size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.arrays import halves
from ...base.dtypes import FLOATS, VarType, to_numpy, to_vartype
from ...base.selected_rows import SelectedRows
from .. import native, planning_rules
from ..grad_pairs import gradient_by
from ..infer import same_as
from ..registry import Call, Dispatch, OpView, Planning, RowRule, register
from ..tensor import selected_rows as rows

_SUFFIX = {
    VarType.FP16: "f16",
    VarType.FP32: "f32",
    VarType.FP64: "f64",
    VarType.INT32: "i32",
    VarType.INT64: "i64",
    VarType.UINT8: "u8",
    VarType.BOOL: "b1",
}
_NO_KERNELS = [{"f16", suffix} for suffix in _SUFFIX.values() if suffix != "f32"]
"""Types that kernels do not convert one to the other."""

NEAREST = "nearest"
"""An attribute of casts that plans add themselves: float32 is rounded to float16, not cut."""


def _cast(xp: Any, X: Any, out_dtype: int) -> Any:
    if X.dtype == object:  # sizes are integers of any type
        return X
    if xp is np and out_dtype == VarType.FP16 != to_vartype(X.dtype):
        return halves(X)
    return X.astype(to_numpy(out_dtype))


def _cast_native(op: OpView) -> Call | None:
    source, target = _SUFFIX.get(op.dtype("X")), _SUFFIX.get(op.dtype("Out"))
    if source is None or target is None or (source != target and {source, target} in _NO_KERNELS):
        return None
    operands = [op.name("X"), op.name("Out")]
    if source == target:
        return Call("copy", operands, [native.numel(op, "X") * native.itemsize(op, "X")])
    kind = "round" if op.attrs.get(NEAREST) else "cast"
    return Call(f"{kind}.{source}.{target}", operands, [native.numel(op, "X")])


register(
    "cast",
    inputs=("X",),
    attrs={"in_dtype": int(VarType.FP32), "out_dtype": int(VarType.FP32)},
    infer=lambda op: op.set("Out", op.shape("X"), to_vartype(op.attr("out_dtype"))),
    kernel=_cast,
    grad=gradient_by(
        "cast", attrs=lambda op: {"in_dtype": op.attr("out_dtype"), "out_dtype": op.attr("in_dtype")}
    ),
    native=_cast_native,
    planning=Planning(batchable=planning_rules.all_batched),
    doc="X converted to the element type `out_dtype`; floats lose their fraction in integers, and "
    "what float16 cannot hold.",
)


def _scale(xp: Any, X: Any, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool) -> Any:
    # Integers are scaled by integers, in their own element type; small ones wrap.
    number = (lambda value: np.int64(value).astype(X.dtype)) if X.dtype.kind in "iu" else X.dtype.type
    factor = ScaleTensor.reshape(()).astype(X.dtype) if ScaleTensor is not None else number(scale)
    return X * factor + number(bias) if bias_after_scale else (X + number(bias)) * factor


def _scale_rows(
    xp: Any, X: SelectedRows, ScaleTensor: Any, scale: float, bias: float, bias_after_scale: bool
) -> SelectedRows:
    """The rows that are held, scaled: as in Fluid, `bias` is not added to the others."""
    return X.with_values(_scale(xp, X.values, ScaleTensor, scale, bias, bias_after_scale))


def _scale_rows_native(op: OpView) -> list[Call] | None:
    kernel = native.typed(op, "scale", ("X",))
    if kernel is None or op.has("ScaleTensor"):
        return None
    count, _, width = rows.extent(op, "X")
    values = [rows.parts(op.name(slot))[1] for slot in ("X", "Out")]
    floats = [float(op.attr("scale")), float(op.attr("bias"))]
    scaled = Call(kernel, list(values), [count * width, int(op.attr("bias_after_scale"))], floats)
    return [rows.same_rows(op, "X", "Out"), scaled]


def _scale_native(op: OpView) -> Call | None:
    kernel = native.typed(op, "scale", ("X",), native.NUMERIC)
    if kernel is None or op.has("ScaleTensor"):
        return None
    number = float if op.dtype("X") in FLOATS else int
    floats = [float(number(op.attr("scale"))), float(number(op.attr("bias")))]
    return Call(
        kernel,
        [op.name("X"), op.name("Out")],
        [native.numel(op, "X"), int(op.attr("bias_after_scale"))],
        floats,
    )


register(
    "scale",
    inputs=("X", "ScaleTensor?"),
    attrs={"scale": 1.0, "bias": 0.0, "bias_after_scale": True},
    infer=same_as("X"),
    kernel=_scale,
    grad=gradient_by(
        "scale",
        {"X": "Out@GRAD", "ScaleTensor": "ScaleTensor"},
        attrs=lambda op: {"scale": op.attr("scale"), "bias": 0.0, "bias_after_scale": True},
    ),
    no_grad=("ScaleTensor",),
    native=_scale_native,
    dispatch=Dispatch(
        rows=RowRule(_scale_rows, slots=("X",), out="Out", native=_scale_rows_native),
        cuda="elementwise.scale",
    ),
    planning=Planning(
        batchable=planning_rules.scaled, inplace=(("Out", "X"),), identity=planning_rules.scaled_by_one
    ),
    doc="scale * X + bias, or scale * (X + bias); ScaleTensor's element takes the place of `scale`.",
)
