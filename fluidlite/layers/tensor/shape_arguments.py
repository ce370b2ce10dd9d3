"""Lists of integers in which Variables of one element may stand: shapes, starts, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...framework import Variable
from ...layer_helper import LayerHelper
from .constants import fill_constant


def has_variables(values: Any) -> bool:
    """Whether a list holds Variables among its numbers."""
    return isinstance(values, (list, tuple)) and any(isinstance(value, Variable) for value in values)


def one_by_one(helper: LayerHelper, values: Sequence[Any]) -> list[Variable]:
    """A one-element Variable for each of `values`; numbers become int32 constants."""
    found = []
    given = [value for value in values if isinstance(value, Variable)]
    for value in values:
        if isinstance(value, Variable):
            value.stop_gradient = True
            found.append(value)
        else:
            made = helper.create_variable_for_type_inference("int32", like=given or None)
            found.append(fill_constant([1], "int32", int(value), force_cpu=True, out=made))
    return found


def known(values: Sequence[Any], unknown: int = -1) -> list[int]:
    """The numbers of `values`, with `unknown` for each Variable."""
    return [unknown if isinstance(value, Variable) else int(value) for value in values]


def number_inputs(
    helper: LayerHelper, name: str, values: Any, slot: str, list_slot: str, unknown: int = -1
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and attributes for the numbers `values`, of which the operator has an attribute `name`.

    A Variable that holds them all is the input `slot`. Where Variables stand among them, the input `list_slot` holds
    all, and the attribute has `unknown` in their place.
    """
    if isinstance(values, Variable):
        values.stop_gradient = True
        return {slot: values}, {}
    inputs = {list_slot: one_by_one(helper, values)} if has_variables(values) else {}
    return inputs, {name: known(values, unknown)}


def check_list(value: Any, name: str, layer: str) -> None:
    """Raise TypeError unless `value` is a list, a tuple or a Variable."""
    if not isinstance(value, (list, tuple, Variable)):
        raise TypeError(
            f"The type of '{name}' in {layer} must be a list, tuple or Variable, "
            f"but received {type(value).__name__}"
        )
