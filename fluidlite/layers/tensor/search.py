"""Layers that look for the largest and smallest elements and that sort."""

from __future__ import annotations

from ...base.dtypes import VarType
from ...framework import Variable
from ...layer_helper import LayerHelper, check_variable, run_op

__all__ = ["argmax", "argmin", "argsort"]


def argmax(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the largest element stands, int64 (`fluid.layers.argmax`)."""
    return _arg("argmax", "arg_max", x, axis)


def argmin(x: Variable, axis: int = 0) -> Variable:
    """Where along `axis` the smallest element stands, int64 (`fluid.layers.argmin`)."""
    return _arg("argmin", "arg_min", x, axis)


def _arg(layer: str, op_type: str, x: Variable, axis: int) -> Variable:
    check_variable(x, "x", layer)
    attrs = {"axis": axis}
    return run_op(op_type, {"X": x}, attrs=attrs, stop_gradient=True)


def argsort(
    input: Variable, axis: int = -1, descending: bool = False, name: str | None = None
) -> tuple[Variable, Variable]:
    """`input` sorted along `axis`, and where each element stood before, int64 (`fluid.layers.argsort`).

    Equal elements keep their order.
    """
    check_variable(input, "input", "argsort")
    helper = LayerHelper("argsort", name=name)
    out = helper.create_variable_for_type_inference(input.dtype, stop_gradient=True, like=input)
    ids = helper.create_variable_for_type_inference(VarType.INT64, stop_gradient=True, like=input)
    helper.append_op(
        type="argsort",
        inputs={"X": [input]},
        outputs={"Out": [out], "Indices": [ids]},
        attrs={"axis": axis, "descending": descending},
    )
    return out, ids
