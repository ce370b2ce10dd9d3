"""Queries about operators in `fluid.core`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..base.errors import EnforceNotMet
from ..executor.tensors.lod_tensor import LoDTensor
from ..executor.tensors.scope import Scope
from ..framework.ignored_attrs import tuning
from ..framework.operator import Operator
from ..framework.serialization.descs import BlockDesc, OpDesc
from ..ops.registry import OpDef, OpSpec, find, is_known, known_types

__all__ = [
    "_get_all_register_op_kernels",
    "get_grad_op_desc",
    "get_op_attrs_default_value",
    "get_variable_tensor",
    "has_grad_op_maker",
    "has_infer_inplace",
    "has_non_empty_grad_op_maker",
    "op_support_gpu",
]

_EMPTY = "@EMPTY@"


def _declared(op_type: str) -> OpDef:
    if not is_known(op_type):
        raise EnforceNotMet(f"Operator {op_type} has not been registered")
    return find(op_type)


def has_grad_op_maker(op_type: str) -> bool:
    """Whether gradients can go through operators of this type; EnforceNotMet for an unknown one."""
    return _declared(op_type).has_gradient


has_non_empty_grad_op_maker = has_grad_op_maker


def has_infer_inplace(op_type: str) -> bool:
    """Whether an output may take the memory of an input; EnforceNotMet for an unknown operator."""
    return bool(_declared(op_type).planning.inplace)


def op_support_gpu(op_type: str) -> bool:
    """Whether operators of this type compute on GPUs: all but host operators do."""
    definition = _declared(op_type)
    return definition.kernel is not None and not definition.effects.host


def _get_all_register_op_kernels() -> dict[str, list[str]]:
    """The kernels of every operator that computes, on the CPU; Fluid has more for some, with other element types."""
    kernel = "data_type[{}]:data_layout[ANY_LAYOUT]:place[CPUPlace]:library_type[PLAIN]"
    kinds = [kernel.format(kind) for kind in ("double", "float")]
    return {name: list(kinds) for name in known_types() if find(name).kernel is not None}


def get_op_attrs_default_value(op_type: str | bytes) -> dict[str, Any]:
    """The attributes that an operator declares with their defaults; empty for an unknown operator."""
    name = op_type.decode() if isinstance(op_type, bytes) else op_type
    return {**find(name).attrs, **tuning(name)} if is_known(name) else {}


def get_grad_op_desc(
    op_desc: OpDesc, no_grad_set: Collection[str], grad_sub_blocks: Sequence[BlockDesc] = ()
) -> tuple[list[OpDesc], dict[str, str]]:
    """The gradient operators of an operator, and gradient variable -> variable.

    They belong to no block yet. Gradients in `no_grad_set`, such as 'x@GRAD', are left out of their outputs.
    Follows `fluid.core.get_grad_op_desc`. An operator without gradients has none.
    """
    op = op_desc._shown
    rule = op.definition.grad if op.definition.has_gradient else None
    specs = [] if rule is None else rule(op.view())
    made = [_detached(op, spec, no_grad_set) for spec in specs]
    plain = {name for names in (*op.inputs.values(), *op.outputs.values()) for name in names}
    whose = {f"{name}@GRAD": name for name in sorted(plain)}
    used = {name for grad in made for name in (*grad.input_arg_names(), *grad.output_arg_names())}
    return made, {name: variable for name, variable in whose.items() if name in used}


def _detached(op: Operator, spec: OpSpec, no_grad_set: Collection[str]) -> OpDesc:
    grad = Operator.blank(op.block)
    grad.type, grad.definition = spec.type, find(spec.type)
    grad.inputs = {slot: list(names) for slot, names in spec.inputs.items()}
    grad.outputs = {
        slot: [name for name in names if name not in no_grad_set and name != _EMPTY]
        for slot, names in spec.outputs.items()
    }
    grad.attrs = dict(spec.attrs)
    return OpDesc(grad)


def get_variable_tensor(scope: Scope, name: str) -> LoDTensor:
    """The tensor of a variable of a scope; EnforceNotMet if the variable does not exist."""
    found = scope.find_var(name)
    if found is None:
        raise EnforceNotMet(f"the scope has no variable {name!r}")
    return found.get_tensor()
