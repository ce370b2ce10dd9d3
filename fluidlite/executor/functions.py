"""Functions of `fluid.executor` beside the executor: about values, shapes and names, and about `feed` operators;
`BoundOperator`: one operator on the variables of a scope, without a program (`fluid.op`, `fluid.core.Operator`).

`Executor.run` feeds and fetches by name, whether a program has `feed` and `fetch` operators or not; these functions are
for code that looks at programs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ..backend import device_at
from ..base import flags
from ..base.dtypes import VarType, to_numpy, to_vartype
from ..base.errors import EnforceNotMet, FeedError, TypeAssertion
from ..base.lod import Lod
from ..base.place import Place, resolve
from ..base.selected_rows import SelectedRows
from ..base.tensor_array import TensorArray
from ..framework import Block, Operator, Program, Variable
from ..ops.registry import OpDef, find
from .feeding import as_array, check
from .lod_tensor import LoDTensor, LoDTensorArray
from .plan_cache import run_once
from .scope import RowsInScope, Scope, global_scope


def has_feed_operators(block: Block, feed_targets: Collection[str], feed_holder_name: str) -> bool:
    """Whether `block` has feed operators, which then must be those of the names `feed_targets`.

    Raises Exception, as Fluid does, if they are for other variables, AssertionError if they take them from another
    variable than `feed_holder_name`. Follows `fluid.executor.has_feed_operators`.
    """
    return _has(block, "feed", "X", "Out", set(feed_targets), feed_holder_name)


def has_fetch_operators(
    block: Block, fetch_targets: Collection[Variable | str], fetch_holder_name: str
) -> bool:
    """Whether `block` has fetch operators, which then must be those of `fetch_targets`, Variables or names.

    Raises what `has_feed_operators` does. Follows `fluid.executor.has_fetch_operators`.
    """
    names = {var.name if isinstance(var, Variable) else var for var in fetch_targets}
    return _has(block, "fetch", "Out", "X", names, fetch_holder_name)


def _has(block: Block, kind: str, holder_slot: str, slot: str, targets: set[str], holder: str) -> bool:
    ops = [op for op in block.ops if op.type == kind]
    for op in ops:
        found = {**op.inputs, **op.outputs}[holder_slot][0]
        if found != holder:
            raise AssertionError(f"the {kind} operators of this program go by {found!r}, not by {holder!r}")
        name = {**op.inputs, **op.outputs}[slot][0]
        if name not in targets:
            raise Exception(f"'{kind}_targets' does not have {name} variable")
    if ops and len(ops) != len(targets):
        raise Exception(
            f"{kind.title()} operators in program desc do not match '{kind}_targets': {sorted(targets)}"
        )
    return bool(ops)


def check_feed_shape_type(var: Variable, feed: Any, num_places: int = 1) -> bool:
    """Raise ValueError if `feed` does not have the dtype and shape of `var`; return True otherwise.

    `num_places`: the number of devices that share the rows. Only variables of `fluid.data` are compared. Follows
    `fluid.executor.check_feed_shape_type`.
    """
    array, lod = as_array(feed, var)
    check(var, array[: -(-len(array) // num_places)] if num_places > 1 and not lod else array, lod)
    return True


def as_numpy(tensor: Any) -> Any:
    """The elements of a LoDTensor, None if it has not been set, or of each in a list (`fluid.executor.as_numpy`).

    Raises RuntimeError for a tensor of sequences, AssertionError for anything else, as Fluid does.
    """
    if isinstance(tensor, (list, tuple)):
        return [as_numpy(item) for item in tensor]
    assert isinstance(tensor, LoDTensor), f"as_numpy takes a LoDTensor, got {type(tensor).__name__}"
    if tensor.offsets:
        raise RuntimeError(
            "Some of your fetched tensors hold LoD information. They can not be completely cast to Python ndarray. "
            "Please set the parameter 'return_numpy' as 'False' to return LoDTensor itself directly."
        )
    return None if tensor.array is None else np.array(tensor)


def dimension_is_compatible_with(first: Sequence[int], second: Sequence[int]) -> bool:
    """True if two shapes are equal; -1 and None match any size."""
    if len(first) != len(second):
        return False
    return all(a == b or a in (-1, None) or b in (-1, None) for a, b in zip(first, second, strict=True))


def dtype_is_compatible_with(first: Any, second: Any) -> bool:
    """True if two element types are the same."""
    return to_vartype(first) == to_vartype(second)


def _as_lodtensor(data: Any, place: Place, dtype: Any = None) -> LoDTensor:
    """A tensor on `place` of an array, which keeps its element type, or of a number or tuple in `dtype`.

    Raises AssertionError for a number without `dtype`, RuntimeError for a list, of which `create_lod_tensor` makes
    sequences, EnforceNotMet for what holds no numbers.
    """
    if isinstance(data, list):
        raise RuntimeError("some of the fed data are lists: make arrays or LoDTensors of them")
    if not isinstance(data, np.ndarray):
        if np.isscalar(data):
            if dtype is None:
                raise TypeAssertion(f"dtype should be given for the number {data!r}")
            data = [data]
        data = np.array(data, dtype=None if dtype is None else to_numpy(dtype))
    if data.dtype.hasobject:
        raise FeedError(f"a tensor holds numbers, and there are Python objects in {data!r:.80}")
    tensor = LoDTensor()
    tensor.set(data, place)
    return tensor


def _to_name_str(var: Any) -> str:
    """The name of a variable, or of the first output of an operator; TypeError for anything else."""
    if isinstance(var, (list, tuple)):
        return ",".join(_to_name_str(item) for item in var)
    if isinstance(var, str):
        return var
    if isinstance(var, Variable):
        return var.name
    if isinstance(var, Operator):
        return str(id(var))
    raise TypeError(f"{var!r} should be Variable, Operator or str")


def _fetch_var(name: str, scope: Scope | None = None, return_numpy: bool = True) -> Any:
    """The value of a variable of `scope` (the global scope if None); AssertionError if there is none."""
    assert isinstance(name, str), f"a variable is known by its name, got {name!r}"
    found = (global_scope() if scope is None else scope).find_var(name)
    assert found is not None, (
        f"Cannot find {name} in scope. Perhaps you need to make the variable persistable by using "
        "var.persistable = True in your program."
    )
    tensor = found.get_tensor()
    return as_numpy(tensor) if return_numpy else tensor


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
