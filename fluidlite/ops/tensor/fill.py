"""Operators that make constants: filled tensors, given values, ranges, identity and diagonal matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...backend.functions import constant
from ...base.arrays import halves
from ...base.dtypes import VarType, to_numpy, to_vartype
from ...base.tensor_array import TensorArray
from .. import native, planning_rules
from ..grad_pairs import gradient_by
from ..infer import declared_shape, given_numbers, same_as
from ..registry import Attr, Call, Effects, OperatorError, OpView, Planning, Sequences, Shape, register


def _constant(value: float, str_value: str, dtype: VarType) -> Any:
    """The number to fill with: that in `str_value`, which holds large integers exactly, if it is set."""
    text = str_value or value
    if dtype in (VarType.INT16, VarType.INT32, VarType.INT64, VarType.INT8, VarType.UINT8):
        try:
            return int(text)
        except (ValueError, OverflowError):
            if not np.isfinite(float(text)):
                raise OperatorError(f"elements of type {dtype} cannot hold the value {text}") from None
            return int(float(text))  # "2.5"
    if dtype == VarType.FP16:
        with np.errstate(over="ignore"):
            return float(halves(np.array(float(text))))
    return bool(float(text)) if dtype == VarType.BOOL else float(text)


def _fill_call(op: OpView, value: Any) -> Call | None:
    """A native instruction that fills Out with `value`."""
    suffix = native.element(op, "Out")
    count = native.numel(op, "Out")
    if suffix in native.REAL:
        return Call(f"fill.{suffix}", [op.name("Out")], [count], [float(value)])
    return Call(f"fill.{suffix}", [op.name("Out")], [count, int(value)]) if suffix else None


def infer_constant(op: OpView) -> None:
    """Out has the declared shape and `dtype`."""
    op.set("Out", declared_shape(op), to_vartype(op.attr("dtype")))


def _fill_constant(
    xp: Any,
    ValueTensor: Any,
    ShapeTensor: Any,
    ShapeTensorList: list[Any],
    shape: list[int],
    dtype: int,
    value: float,
    str_value: str,
) -> Any:
    size = given_numbers(shape, ShapeTensor, ShapeTensorList)
    kind = to_vartype(dtype)
    if ValueTensor is not None:
        return xp.zeros(size, to_numpy(kind)) + ValueTensor.reshape(()).astype(to_numpy(kind))
    return xp.full(size, _constant(value, str_value, kind), to_numpy(kind))


def _fill_constant_native(op: OpView) -> Call | None:
    if op.has("ValueTensor"):
        return None
    return _fill_call(op, _constant(op.attr("value"), op.attr("str_value"), to_vartype(op.attr("dtype"))))


register(
    "fill_constant",
    inputs=("ValueTensor?", "ShapeTensor?", "ShapeTensorList*?"),
    attrs={
        "shape": Attr([], "LONGS"),
        "dtype": int(VarType.FP32),
        "value": 0.0,
        "str_value": "",
        "force_cpu": False,
    },
    infer=infer_constant,
    kernel=_fill_constant,
    native=_fill_constant_native,
    sequences=Sequences(source=None),
    doc="A tensor of the given shape full of `value` (or `str_value`, or ValueTensor's element).",
)


def batch_size_like(op: OpView) -> Shape:
    """The shape of Out of `*_batch_size_like`: attribute `shape` with one dimension taken from Input."""
    shape = [int(n) for n in op.attr("shape")]
    source, into = op.attr("input_dim_idx"), op.attr("output_dim_idx")
    rank = len(op.shape("Input"))
    if not 0 <= source < rank:
        raise op.fail(f"input_dim_idx must be in [0, {rank}), got {source}")
    if not 0 <= into < len(shape):
        raise op.fail(f"output_dim_idx must be in [0, {len(shape)}), got {into}")
    shape[into] = op.shape("Input")[source]
    return tuple(shape)


def _sized(shape: Sequence[int], like: Sequence[int]) -> list[int]:
    """`shape` with unknown sizes replaced by those of `like`."""
    return [like[axis] if n < 0 and axis < len(like) else n for axis, n in enumerate(shape)]


def _fill_like_infer(op: OpView) -> None:
    shape = list(batch_size_like(op))
    if op.exact:
        shape = _sized(shape, op.shape("Input"))
    if op.lod("Input") and op.attr("input_dim_idx") == 0:
        # The batch size of sequences is their number, not that of rows.
        shape[op.attr("output_dim_idx")] = op.sequences("Input")
    op.set("Out", shape, to_vartype(op.attr("dtype")))


def _fill_constant_batch_size_like(
    xp: Any,
    Input: Any,
    shape: list[int],
    input_dim_idx: int,
    output_dim_idx: int,
    dtype: int,
    value: float,
    str_value: str,
    lod: dict[str, list[Any]],
) -> Any:
    size = _sized(shape, Input.shape)
    levels = (lod.get("Input") or [[]])[0]
    by_sequence = bool(levels) and input_dim_idx == 0
    size[output_dim_idx] = len(levels[-1]) - 1 if by_sequence else Input.shape[input_dim_idx]
    kind = to_vartype(dtype)
    return xp.full(size, _constant(value, str_value, kind), to_numpy(kind))


_LIKE_ATTRS = {"shape": [], "input_dim_idx": 0, "output_dim_idx": 0, "dtype": int(VarType.FP32)}

register(
    "fill_constant_batch_size_like",
    inputs=("Input#",),
    attrs={**_LIKE_ATTRS, "value": 0.0, "str_value": "", "force_cpu": False},
    infer=_fill_like_infer,
    kernel=_fill_constant_batch_size_like,
    native=_fill_constant_native,
    sequences=Sequences(takes_lod=True, source=None),
    planning=Planning(batchable=planning_rules.filled_like),
    doc="As fill_constant, with one dimension taken from Input (its sequences if it holds any).",
)


def _zeros_like(xp: Any, X: Any) -> Any:
    if not isinstance(X, TensorArray):
        return xp.zeros_like(X)
    zeros = TensorArray()
    for index, (array, lod) in enumerate(X):
        zeros.write(index, None if array is None else xp.zeros_like(array), lod)
    return zeros


register(
    "fill_zeros_like",
    inputs=("X#",),
    infer=same_as("X"),
    kernel=_zeros_like,
    native=lambda op: _fill_call(op, 0),
    effects=Effects(numbered=False),
    planning=Planning(batchable=planning_rules.all_batched),
    doc="Zeros with the shape and type of X; for a tensor array, an array of them.",
)


register(
    "fill_zeros_like2",
    inputs=("X#",),
    attrs={"dtype": int(VarType.FP32)},
    infer=lambda op: op.set("Out", op.shape("X"), to_vartype(op.attr("dtype"))),
    kernel=lambda xp, X, dtype: xp.zeros(X.shape, to_numpy(to_vartype(dtype))),
    no_grad=("Out",),
    native=lambda op: _fill_call(op, 0),
    doc="Zeros with the shape of X and a type of their own.",
)


def _filled(value: tuple[float, ...], shape: tuple[int, ...], kind: Any) -> np.ndarray:
    return np.array(value).astype(kind).reshape(shape)


def _fill(xp: Any, value: list[float], shape: list[int], dtype: int) -> Any:
    return constant(xp, _filled, tuple(value), tuple(shape), to_numpy(to_vartype(dtype)))


def _fill_infer(op: OpView) -> None:
    shape, count = op.attr("shape"), len(op.attr("value"))
    if count != math.prod(shape):
        raise op.fail(f"value must have {math.prod(shape)} numbers for the shape {list(shape)}, got {count}")
    op.set("Out", tuple(shape), to_vartype(op.attr("dtype")))


register(
    "fill",
    attrs={
        "value": Attr([], "FLOATS"),
        "shape": Attr([], "INTS"),
        "dtype": int(VarType.FP32),
        "force_cpu": False,
    },
    infer=_fill_infer,
    kernel=_fill,
    no_grad=("Out",),
    sequences=Sequences(source=None),
    doc="The numbers of `value` in the given shape.",
)


def _like_type(op: OpView) -> VarType:
    wanted = op.attr("dtype")
    return op.dtype("X") if wanted < 0 else to_vartype(wanted)


register(
    "fill_any_like",
    inputs=("X#",),
    attrs={"value": 0.0, "dtype": -1},
    infer=lambda op: op.set("Out", op.shape("X"), _like_type(op)),
    kernel=lambda xp, X, value, dtype: xp.full(X.shape, value, X.dtype if dtype < 0 else to_numpy(dtype)),
    native=lambda op: _fill_call(op, op.attr("value")),
    doc="`value` in the shape of X, and in its type unless `dtype` names another.",
)


register(
    "assign",
    inputs=("X",),
    infer=same_as("X"),
    kernel=lambda xp, X: X.copy(),
    grad=gradient_by("assign"),
    native=native.copy("X", "Out"),
    planning=Planning(
        inplace=(("Out", "X"),), batchable=planning_rules.all_batched, identity=planning_rules.always()
    ),
    doc="A copy of X.",
)

_VALUES = ("bool_values", "fp32_values", "int32_values", "int64_values")


def _assign_value_infer(op: OpView) -> None:
    shape = [int(n) for n in op.attr("shape")]
    given = max(len(op.attr(name)) for name in _VALUES)
    if given != math.prod(shape):
        op.refuse(f"shape {shape} holds {math.prod(shape)} elements, but {given} values are given")
    op.set("Out", shape, to_vartype(op.attr("dtype")))


def _assign_value(
    xp: Any,
    shape: list[int],
    dtype: int,
    bool_values: list[int],
    fp32_values: list[float],
    int32_values: list[int],
    int64_values: list[int],
) -> Any:
    values = bool_values or fp32_values or int32_values or int64_values
    made = constant(xp, _array, tuple(values), tuple(int(n) for n in shape), dtype)
    return made if xp is np else made.copy()


def _array(values: tuple[Any, ...], shape: tuple[int, ...], dtype: int) -> np.ndarray:
    return np.asarray(values, dtype=to_numpy(dtype)).reshape(shape)


register(
    "assign_value",
    attrs={"shape": [], "dtype": int(VarType.FP32), **{name: [] for name in _VALUES}},
    infer=_assign_value_infer,
    kernel=_assign_value,
    effects=Effects(numbered=False),
    doc="A tensor of given elements, kept in the program.",
)


def _count(start: Any, end: Any, step: Any) -> int:
    if step == 0 or (end - start) * step < 0:
        needed = "must not be 0" if step == 0 else f"must be {'above' if end > start else 'below'} 0"
        raise OperatorError(f"the step of range from {start} to {end} {needed}, got {step}")
    if isinstance(start, float) or isinstance(end, float) or isinstance(step, float):
        return math.ceil((end - start) / step)
    return -((start - end) // step)


def _range_infer(op: OpView) -> None:
    known = [op.value(slot) for slot in ("Start", "End", "Step")]
    count = -1
    if all(value is not None for value in known):
        count = _count(*(value.reshape(-1).tolist()[0] for value in known))  # type: ignore[union-attr]
    op.set("Out", (count,), op.dtype("Start"))


def _range(xp: Any, Start: Any, End: Any, Step: Any) -> Any:
    start, end, step = (value.reshape(-1)[0].item() for value in (Start, End, Step))
    return (start + step * xp.arange(_count(start, end, step))).astype(Start.dtype)


register(
    "range",
    inputs=("Start", "End", "Step"),
    infer=_range_infer,
    kernel=_range,
    native=lambda op: native.typed_call(
        op, "range", ("Start", "Step"), ("Out",), [native.numel(op, "Out")], types=native.NUMERIC
    ),
    sequences=Sequences(source=None),
    doc="Start, Start + Step, ... as long as End is not reached; the three have one element each.",
)


def _linspace_infer(op: OpView) -> None:
    known = op.value("Num")
    op.set("Out", (-1 if known is None else int(known.reshape(-1)[0]),), op.dtype("Start"))


def _linspace(xp: Any, Start: Any, Stop: Any, Num: Any) -> Any:
    start, stop, num = (value.reshape(-1)[0].item() for value in (Start, Stop, Num))
    if num < 1:
        raise ValueError(f"the num of linspace must be 1 or more, got {num}")
    return xp.linspace(start, stop, int(num)).astype(Start.dtype)


register(
    "linspace",
    inputs=("Start", "Stop", "Num"),
    infer=_linspace_infer,
    kernel=_linspace,
    sequences=Sequences(source=None),
    doc="Num numbers evenly spaced from Start to Stop, both included.",
)


def _increment_infer(op: OpView) -> None:
    shape = op.shape("X")
    if math.prod(shape) != 1:
        raise op.fail(f"X must have one element, got shape {list(shape)}")
    op.set("Out", shape, op.dtype("X"))


register(
    "increment",
    inputs=("X",),
    attrs={"step": 1.0},
    infer=_increment_infer,
    kernel=lambda xp, X, step: X + X.dtype.type(step),
    native=lambda op: native.typed_call(
        op, "increment", ("X",), ("Out",), [1], [float(op.attr("step"))], native.NUMERIC
    ),
    planning=Planning(inplace=(("Out", "X"),), pattern="count"),
    doc="X, which has one element, plus `step`.",
)

register(
    "eye",
    attrs={"num_rows": 0, "num_columns": -1, "dtype": int(VarType.FP32)},
    infer=lambda op: op.set("Out", _eye_shape(op), to_vartype(op.attr("dtype"))),
    kernel=lambda xp, num_rows, num_columns, dtype: xp.eye(
        num_rows, num_rows if num_columns < 0 else num_columns, dtype=to_numpy(dtype)
    ),
    effects=Effects(numbered=False),
    doc="Ones on the diagonal of a matrix of zeros.",
)


def _eye_shape(op: OpView) -> Shape:
    rows, columns = op.attr("num_rows"), op.attr("num_columns")
    return rows, rows if columns < 0 else columns


def _diag_infer(op: OpView) -> None:
    shape = op.shape("Diagonal")
    if len(shape) != 1:
        raise op.fail(f"Diagonal must have one axis, got shape {list(shape)}")
    op.set("Out", (shape[0], shape[0]), op.dtype("Diagonal"))


register(
    "diag",
    inputs=("Diagonal",),
    infer=_diag_infer,
    kernel=lambda xp, Diagonal: xp.diag(Diagonal),
    sequences=Sequences(source=None),
    doc="A square matrix with the given diagonal.",
)
