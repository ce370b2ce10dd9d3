"""One operator on the variables of a scope, without a program of the user's (`fluid.op`, `fluid.core.Operator`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backend import device_at
from ...base import flags
from ...base.dtypes import VarType, to_vartype
from ...base.errors import EnforceNotMet
from ...base.lod import Lod
from ...base.place import Place, resolve
from ...base.selected_rows import SelectedRows
from ...base.tensor_array import TensorArray
from ...framework import Program
from ...ops.registry import OpDef, find
from ..tensors.lod_tensor import LoDTensorArray
from ..tensors.scope import RowsInScope, Scope
from .startup import run_once

Slots = dict[str, list[str]]


class BoundOperator:
    """An operator with the names of its variables by slot, and attributes."""

    def __init__(self, op_type: str, inputs: Slots, outputs: Slots, attrs: dict[str, Any]) -> None:
        self._definition: OpDef = find(op_type)
        self._inputs, self._outputs, self._attrs = inputs, outputs, attrs

    def type(self) -> str:
        return self._definition.type

    def inputs(self) -> Slots:
        return {slot: list(names) for slot, names in self._inputs.items()}

    def outputs(self) -> Slots:
        return {slot: list(names) for slot, names in self._outputs.items()}

    def input_vars(self) -> list[str]:
        return [name for names in self._inputs.values() for name in names]

    def output_vars(self) -> list[str]:
        return [name for names in self._outputs.values() for name in names]

    no_intermediate_outputs = output_vars

    def support_gpu(self) -> bool:
        return self._definition.kernel is not None and not self._definition.effects.host

    def run(self, scope: Scope, place: Place) -> None:
        """Compute at `place` from the variables of `scope`, and put the results into those of the outputs.

        Raises EnforceNotMet, naming the operator, if an input has no value, an output no variable in the scope, or
        shapes and dtypes do not fit. Nothing is written then.
        """
        for slot in self._definition.output_slots:
            names = self._outputs.get(slot.name, [])
            absent = [name for name in names if scope.find_var(name) is None]
            if absent or not (names or slot.optional):
                what = f"the scope has no variable {absent[0]!r}" if absent else "none is named"
                raise EnforceNotMet(f"No Output({slot.name}) found for operator {self.type()}: {what}")
        program = Program()
        block = program.global_block()
        for name in dict.fromkeys((*self.input_vars(), *self.output_vars())):
            block.create_var(name=name, persistable=True, **_described(scope, name))
        op = block.append_op(self.type(), self._inputs, self._outputs, self._attrs)
        run_once(program, scope, [op], device=device_at(resolve(place)), check_finite=flags.checks_finite())

    def __str__(self) -> str:
        inputs = ", ".join(f"{slot}[{', '.join(names)}]" for slot, names in self._inputs.items())
        outputs = ", ".join(f"{slot}[{', '.join(names)}]" for slot, names in self._outputs.items())
        return f"Op({self.type()}), inputs:{{{inputs}}}, outputs:{{{outputs}}}."


def _described(scope: Scope, name: str) -> dict[str, Any]:
    """The declaration of a variable with the type of the value that `name` has in the scope."""
    held = _value(scope, name)
    if held is None:
        found = scope.find_var(name)
        rows = found is not None and isinstance(found.get(), RowsInScope)
        return {"type": VarType.SELECTED_ROWS} if rows else {}
    value, lod = held
    if isinstance(value, TensorArray):
        shape, dtype = value.like or ((-1,), np.float32)
        return {"type": VarType.LOD_TENSOR_ARRAY, "shape": shape, "dtype": to_vartype(dtype)}
    kind = VarType.SELECTED_ROWS if isinstance(value, SelectedRows) else VarType.LOD_TENSOR
    return {"type": kind, "shape": value.shape, "dtype": to_vartype(value.dtype), "lod_level": len(lod)}


def _value(scope: Scope, name: str) -> tuple[Any, Lod] | None:
    """The value and LoD of a variable of the scope; None if it is not set."""
    found = scope.find_var(name)
    if found is None or not found.is_set():
        return None
    held = found.get()
    if isinstance(held, RowsInScope):
        return (held.value(), ()) if held.get_tensor()._is_initialized() else None
    if isinstance(held, LoDTensorArray):
        return held.elements(), ()
    tensor = found.get_tensor()
    return tensor.array, tensor.offsets
