"""How layers run operators: at once on eager tensors, as part of a program on its Variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...eager import Tensor, apply
from ...framework import Variable
from ..layers import Layer


def is_eager(layer: Layer, value: Any) -> bool:
    """Whether `value`, an input of `layer`, is an eager tensor; if not it is a Variable of a program.

    Raises TypeError if it is neither.
    """
    if isinstance(value, Tensor):
        return True
    if isinstance(value, Variable):
        return False
    raise TypeError(
        f"{layer.full_name()} takes tensors, got {type(value).__name__}; make one with fluid.dygraph.to_variable or "
        "paddle.to_tensor"
    )


def run(
    layer: Layer,
    op_type: str,
    inputs: dict[str, Any],
    outputs: Sequence[str] = ("Out",),
    attrs: dict[str, Any] | None = None,
    frozen: Sequence[str] = (),
) -> Any:
    """The results of an operator for `layer`: one tensor, or a tuple of them in the order of `outputs`.

    The first of `inputs` decides whether it computes now or is appended to the current program, where results are named
    after the layer. Inputs that are None are left out. `frozen`: outputs that no gradient goes through.

    Raises TypeError if it is neither, and what the operator raises.
    """
    first = next(iter(inputs.values()))
    if is_eager(layer, first):
        return apply(op_type, inputs, outputs, attrs)
    return layer._helper.apply(op_type, inputs, outputs, attrs, frozen=frozen)


def activated(layer: Layer, act: str | None, value: Any) -> Any:
    """The activation that `act` names, an operator from X to Out, of `value`; `value` itself for None."""
    return value if act is None else run(layer, act, {"X": value})


def plus_bias(layer: Layer, value: Any, bias: Any, axis: int) -> Any:
    """`value` plus `bias` along `axis`; `value` itself without a bias."""
    return (
        value
        if bias is None
        else run(layer, "elementwise_add", {"X": value, "Y": bias}, attrs={"axis": axis})
    )
