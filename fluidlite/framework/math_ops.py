"""The operators that `a + b`, `a < 1.0`, `a[1:]` and so on append to a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import callsite
from ..base.dtypes import FLOATS, VarType, to_numpy

if TYPE_CHECKING:
    from .variable import Variable

_CONDITIONS = frozenset(
    ("less_than", "less_equal", "greater_than", "greater_equal", "equal", "not_equal")
    + ("logical_and", "logical_or", "logical_xor", "logical_not", "is_empty", "isfinite")
)

_ALL = 10000000
"""An end beyond every dimension, as slices write it."""


class VariableMath:
    """The operators of Python on a Variable of a static program, or an eager tensor."""

    __slots__ = ()

    of_python = False
    """Whether it represents a Python number, which has no element type."""

    # Arrays leave `array + variable` to the variable, instead of going through their elements.
    __array_priority__ = 100

    def _append(self, op_type: str, inputs: dict[str, Any], out: Variable, attrs: dict[str, Any]) -> None:
        out.block.program.current_block().append_op(
            type=op_type, inputs=inputs, outputs={"Out": [out]}, attrs=attrs
        )

    def _temporary(self, dtype: VarType, key: str = "tmp") -> Variable:
        block = self.block.program.current_block()  # type: ignore[attr-defined]
        return block.create_var(name=block._new_name(key), dtype=dtype)

    def _scaled(self, scale: float, bias: float) -> Variable:
        me: Variable = self  # type: ignore[assignment]
        check_whole(me, scale, bias)
        out = self._temporary(me.dtype)
        attrs = {"scale": float(scale), "bias": float(bias), "bias_after_scale": True}
        self._append("scale", {"X": [me]}, out, attrs)
        return out

    def _constant(self, value: float, like_me: bool) -> Variable:
        """A variable filled with `value`: one element, or the shape of this variable."""
        me: Variable = self  # type: ignore[assignment]
        out = self._temporary(me.dtype)
        shape = list(me.shape) if like_me else [1]
        attrs = {"shape": shape, "value": float(value), "dtype": int(me.dtype)}
        unknown = [axis for axis, n in enumerate(shape) if n < 0]
        for axis in unknown[1:]:
            shape[axis] = 1  # the operator fills in one size only
        if unknown:
            attrs |= {"input_dim_idx": unknown[0], "output_dim_idx": unknown[0]}
            self._append("fill_constant_batch_size_like", {"Input": [me]}, out, attrs)
        else:
            self._append("fill_constant", {}, out, attrs)
        out.stop_gradient = True
        return out

    def _binary(self, op_type: str, other: Any, swapped: bool = False) -> Variable:
        me: Variable = self  # type: ignore[assignment]
        if _is_number(other):
            whole = swapped and op_type in (
                "elementwise_div",
                "elementwise_pow",
                "elementwise_floordiv",
                "elementwise_mod",
            )
            other = self._constant(other, like_me=whole)
        elif isinstance(other, np.ndarray) and me.block.program._tracer is not None:
            other = me.block.program._tracer.constant(other.astype(to_numpy(me.dtype)))
        elif isinstance(other, np.ndarray) and other.size != 1:
            raise TypeError(
                f"variable {me.name!r} cannot be combined with an array of shape {list(other.shape)}: only arrays of "
                "one element are used as numbers; fluid.layers.assign(array) makes it a variable"
            )
        elif isinstance(other, np.ndarray):
            return self._binary(op_type, other.item(), swapped)
        elif not isinstance(other, VariableMath):
            return NotImplemented  # type: ignore[return-value]
        left, right = (other, me) if swapped else (me, other)
        if left.dtype != right.dtype:
            right = right.astype(left.dtype)
        out = self._temporary(left.dtype)
        self._append(op_type, {"X": [left], "Y": [right]}, out, {"axis": _axis(left, right)})
        return out

    def __add__(self, other: Any) -> Variable:
        if isinstance(other, _PYTHONS):
            return self._scaled(1.0, other)
        return self._binary("elementwise_add", other)

    def __radd__(self, other: Any) -> Variable:
        other = _handed_over(other)
        if isinstance(other, _PYTHONS):
            return self._scaled(1.0, other)
        return self._binary("elementwise_add", other, True)

    def __sub__(self, other: Any) -> Variable:
        if isinstance(other, _PYTHONS):
            return self._scaled(1.0, -float(other))
        return self._binary("elementwise_sub", other)

    def __rsub__(self, other: Any) -> Variable:
        other = _handed_over(other)
        if isinstance(other, _PYTHONS):
            return self._scaled(-1.0, other)
        return self._binary("elementwise_sub", other, True)

    def __mul__(self, other: Any) -> Variable:
        if isinstance(other, _PYTHONS):
            return self._scaled(other, 0.0)
        return self._binary("elementwise_mul", other)

    def __rmul__(self, other: Any) -> Variable:
        other = _handed_over(other)
        if isinstance(other, _PYTHONS):
            return self._scaled(other, 0.0)
        return self._binary("elementwise_mul", other, True)

    def __truediv__(self, other: Any) -> Variable:
        if isinstance(other, _PYTHONS) and self.dtype in FLOATS:  # type: ignore[attr-defined]
            return self._scaled(1.0 / other, 0.0)
        return self._binary("elementwise_div", other)

    def __rtruediv__(self, other: Any) -> Variable:
        return self._binary("elementwise_div", other, True)

    def __pow__(self, other: Any) -> Variable:
        return self._binary("elementwise_pow", other)

    def __rpow__(self, other: Any) -> Variable:
        return self._binary("elementwise_pow", other, True)

    def __floordiv__(self, other: Any) -> Variable:
        return self._binary("elementwise_floordiv", other)

    def __mod__(self, other: Any) -> Variable:
        return self._binary("elementwise_mod", other)

    def __neg__(self) -> Variable:
        return self._scaled(-1.0, 0.0)

    def __lt__(self, other: Any) -> Variable:
        return self._binary("less_than", other)

    def __le__(self, other: Any) -> Variable:
        return self._binary("less_equal", other)

    def __gt__(self, other: Any) -> Variable:
        return self._binary("greater_than", other)

    def __ge__(self, other: Any) -> Variable:
        return self._binary("greater_equal", other)

    def __eq__(self, other: object) -> Variable:  # type: ignore[override]
        return self._binary("equal", other)

    def __ne__(self, other: object) -> Variable:  # type: ignore[override]
        return self._binary("not_equal", other)

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        # A variable without a value is true, like any Python object: `if variable:` tests for None.
        self._without_value("bool(), which if, while, and, or and not call,")
        op = self.op  # type: ignore[attr-defined]
        if op is not None and op.type in _CONDITIONS and callsite.called_by_user():
            callsite.warn(
                f"this condition has no value while the program is built, and counts as true ({op.type} of "
                f"{', '.join(op.reads())}): use fluid.layers.cond, or while_loop for a loop"
            )
        return True

    def __float__(self) -> float:
        self._without_value("float()")
        raise TypeError(f"variable {self.name!r} of a static program has no value to make a float of")  # type: ignore[attr-defined]

    def __int__(self) -> int:
        self._without_value("int()")
        raise TypeError(f"variable {self.name!r} of a static program has no value to make an int of")  # type: ignore[attr-defined]

    def _without_value(self, use: str) -> None:
        """Raise NotSupportedError while tracing, where the code expects an eager tensor with a value."""
        tracer = self.block.program._tracer  # type: ignore[attr-defined]
        if tracer is not None:
            raise tracer.needs_value(self, use)

    def __iter__(self) -> Any:
        shape: tuple[int, ...] = self.shape  # type: ignore[attr-defined]
        if self.block.program._tracer is not None and shape and shape[0] >= 0:  # type: ignore[attr-defined]
            return iter([self[k] for k in range(shape[0])])
        raise TypeError(f"variable {self.name!r} of a static program has no elements to iterate over")  # type: ignore[attr-defined]

    def _drops_with_steps(self) -> bool:
        """Whether integers take their dimensions away in an index that has steps other than 1 as well."""
        return True

    def __getitem__(self, index: Any) -> Variable:
        me: Variable = self  # type: ignore[assignment]
        program = me.block.program
        current = program.current_block()
        found = current._find_var_recursive(me.name)
        if found is None or found is me or found.block is me.block:
            return _indexed(me, index)
        # A step input of StaticRNN has the name of the variable that it goes through, which an operator of this block
        # could not read. The slice is taken where the variable is, as in Fluid.
        program.current_block_idx = me.block.idx
        try:
            return _indexed(me, index)
        finally:
            program.current_block_idx = current.idx


def _axis(left: Variable, right: Variable) -> int:
    """The dimension at which the operand of fewer dimensions begins in the other one: the first one if the declared
    shape of `right` begins with an open size, as in Fluid, otherwise the last dimensions are the same ones.

    Traced code is eager code, where only sizes count.
    """
    return 0 if right.shape[:1] == (-1,) and left.block.program._tracer is None else -1


_PYTHONS = (int, float)
"""Numbers of Python's, and with them np.float64: attributes of `scale` hold them. NumPy's others become variables of
the operand's type, as in Fluid, so that `1 / np.float16(3)` is not computed in half precision.
"""


def _handed_over(value: Any) -> Any:
    """The left operand that a reflected operator gets: of NumPy's numbers Fluid gets Python's."""
    return (
        value.item()
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim)
        else value
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating, np.bool_))


def check_whole(var: Any, *numbers: float) -> None:
    """Raise AssertionError, as Fluid does, for a fraction in arithmetic with integers."""
    for value in numbers:
        if var.dtype not in FLOATS and value != int(value):
            raise AssertionError(
                f"float value {value} cannot convert to integer: variable {var.name!r} is {var.dtype}; cast it first"
            )


def _expand_ellipsis(index: tuple[Any, ...], rank: int) -> tuple[Any, ...]:
    if Ellipsis not in [i for i in index if i is Ellipsis]:
        return index
    at = next(k for k, i in enumerate(index) if i is Ellipsis)
    missing = rank - (len(index) - 1)
    return (*index[:at], *[slice(None)] * missing, *index[at + 1 :])


def _indexed(var: Variable, index: Any) -> Variable:
    """Append `slice` (and `reverse`, `strided_slice`) for `var[index]`."""
    items = _expand_ellipsis(index if isinstance(index, tuple) else (index,), len(var.shape))
    if len(items) > len(var.shape):
        raise IndexError(
            f"too many indices for variable {var.name!r} of shape {list(var.shape)}: got {len(items)}"
        )
    axes: list[int] = []
    starts: list[Any] = []  # integers and variables
    ends: list[Any] = []
    drop, reverse = [], []
    strided: dict[int, Any] = {}
    for axis, item in enumerate(items):
        if isinstance(item, VariableMath):
            if item.of_python:
                item = item.astype(VarType.INT32)  # type: ignore[attr-defined]
            axes.append(axis)
            drop.append(axis)
            # Of the type of the index: Fluid always takes int32, and then refuses places of int64.
            kind = VarType.INT64 if item.dtype == VarType.INT64 else VarType.INT32  # type: ignore[attr-defined]
            one = var._temporary(kind, "_generated_var")
            var._append("fill_constant", {}, one, {"shape": [1], "value": 1.0, "dtype": int(kind)})
            one.stop_gradient = True
            stop = var._temporary(item.dtype, "_generated_var")  # type: ignore[attr-defined]
            var._append("elementwise_add", {"X": [item], "Y": [one]}, stop, {"axis": -1})
            starts.append(item)
            ends.append(stop)
        elif isinstance(item, slice):
            step = 1 if item.step is None else _bound(item.step)
            constant = not isinstance(step, VariableMath)
            forward = not constant or step > 0  # as Fluid takes it
            if item.start is None and item.stop is None:
                if constant and step == 1:
                    continue
                if not constant or step == -1:
                    reverse.append(axis)
                    continue
            if constant and step == 0:
                raise ValueError(f"the step of an index of variable {var.name!r} must not be 0")
            axes.append(axis)
            starts.append((0 if forward else _ALL) if item.start is None else _bound(item.start))
            ends.append((_ALL if forward else -_ALL) if item.stop is None else _bound(item.stop))
            if not constant or step != 1:
                strided[len(axes) - 1] = step
        elif isinstance(item, (int, np.integer)) or (isinstance(item, np.ndarray) and item.size == 1):
            item = _bound(item)
            axes.append(axis)
            drop.append(axis)
            starts.append(item)
            ends.append(item + 1 if item != -1 else _ALL)
        else:
            raise TypeError(
                f"variable {var.name!r} can be indexed with integers, slices and variables, got {item!r}"
            )
    if drop and (strided or reverse) and not var._drops_with_steps():
        drop = []
    out = var
    if axes:
        op_type = "strided_slice" if strided else "slice"
        out = var._temporary(var.dtype, f"{var.name}_{op_type}")
        inputs: dict[str, Any] = {"Input": [var]}
        attrs: dict[str, Any] = {"axes": axes, "decrease_axis": drop}
        numbers = [("starts", starts), ("ends", ends)]
        if strided:
            numbers.append(("strides", [strided.get(k, 1) for k in range(len(axes))]))
        open_ends = [
            any(isinstance(bound, VariableMath) for bound in bounds)
            for bounds in zip(*(values for _, values in numbers), strict=True)
        ]
        attrs["infer_flags"] = [-1 if unknown else 1 for unknown in open_ends]
        for name, bounds in numbers:
            attrs[name] = [-1 if isinstance(bound, VariableMath) else bound for bound in bounds]
            if any(isinstance(bound, VariableMath) for bound in bounds):
                inputs[f"{name.capitalize()}TensorList"] = [
                    bound if isinstance(bound, VariableMath) else _known(var, bound) for bound in bounds
                ]
        var._append(op_type, inputs, out, attrs)
    if reverse:
        flipped = var._temporary(var.dtype, var.name + "_slice_reverse")
        left = [axis - sum(gone < axis for gone in drop) for axis in reverse]
        var._append("reverse", {"X": [out]}, flipped, {"axis": left})
        out = flipped
    return out


def _bound(value: Any) -> Any:
    """A bound of a slice: an integer, or a variable of a program."""
    if isinstance(value, VariableMath) and not hasattr(value, "stands_for"):
        return value
    return int(value.item() if isinstance(value, np.ndarray) else value)


def _known(var: Variable, number: int) -> Variable:
    """A one-element int32 variable holding `number`, for an index with variables."""
    out = var._temporary(VarType.INT32, "_generated_var")
    attrs = {"shape": [1], "value": float(number), "dtype": int(VarType.INT32), "force_cpu": True}
    var._append("fill_constant", {}, out, attrs)
    out.stop_gradient = True
    return out
