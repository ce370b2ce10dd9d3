"""Pruning, queries about operators, roles of attributes, graphs, passes, and gradients by position in `fluid.core`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any

from ...base.errors import EnforceNotMet
from ...base.place import Place
from ...base.storage.messages import messages
from ...eager import Tensor, autograd
from ...eager.tracer import BackwardStrategy
from ...executor.lod_tensor import LoDTensor
from ...executor.scope import Scope
from ...framework import operator
from ...framework.common_attrs import tuning
from ...framework.names import EMPTY_VAR_NAME, TEMP_VAR_NAME
from ...framework.operator import Operator
from ...framework.program import Program
from ...framework.pruning import needed_ops, without_training
from ...framework.serialization.descs import BlockDesc, OpDesc, ProgramDesc
from ...framework.serialization.ir_graph import Graph, IrNode, IrOpNode, nodes_of
from ...framework.serialization.op_protos import get_all_op_protos as _protos
from ...framework.serialization.passes import Pass, PassBuilder, get_pass
from ...ops.registry import OpDef, OpSpec, find, is_known, known_types

__all__ = [
    "Layer",
    "Pass",
    "PassBuilder",
    "_get_all_register_op_kernels",
    "build_adjacency_list",
    "dygraph_partial_grad",
    "get_all_op_protos",
    "get_grad_op_desc",
    "get_op_attrs_default_value",
    "get_pass",
    "get_variable_tensor",
    "graph_num",
    "graph_safe_remove_nodes",
    "has_circle",
    "has_grad_op_maker",
    "has_infer_inplace",
    "has_non_empty_grad_op_maker",
    "infer_no_need_buffer_slots",
    "op_support_gpu",
    "prune",
    "prune_backward",
    "save_op_compatible_info",
    "topology_sort",
]


def get_all_op_protos() -> list[bytes]:
    """The declarations of all operators, each as the bytes of an OpProto (`fluid.core.get_all_op_protos`)."""
    result = []
    for proto in _protos():
        message = messages().OpProto(type=proto.type, comment=proto.comment)
        for listed, slots in ((message.inputs, proto.inputs), (message.outputs, proto.outputs)):
            for slot in slots:
                listed.add(
                    name=slot.name,
                    comment=slot.comment,
                    duplicable=slot.duplicable,
                    dispensable=slot.dispensable,
                )
        for attr in proto.attrs:
            message.attrs.add(name=attr.name, type=attr.type, comment=attr.comment)
        result.append(message.SerializeToString())
    return result


def infer_no_need_buffer_slots(
    op_type: str,
    inputs: Mapping[str, Sequence[str]],
    outputs: Mapping[str, Sequence[str]],
    attrs: Mapping[str, Any],
) -> set[str]:
    """The inputs of which an operator reads only shapes; EnforceNotMet for an unknown operator."""
    if not is_known(op_type):
        raise EnforceNotMet(f"Operator {op_type} has not been registered")
    return {slot.name for slot in find(op_type).input_slots if slot.shape_only}


def prune(
    program: ProgramDesc, feeded_var_names: Collection[str], targets: Sequence[Sequence[int]]
) -> tuple[ProgramDesc, dict[int, int]]:
    """A copy pruned to some operators, and old block number -> new one.

    `targets`: pairs of the numbers of a block, which is the first one, and of an operator in it; the operators after
    the last target are left out. `feeded_var_names`: variables that need not be computed.
    Raises EnforceNotMet for operators that there are not.
    """
    shown = program._shown
    count = len(shown.global_block().ops)
    wrong = [pair for pair in targets if pair[0] != 0 or not 0 <= pair[1] < count]
    if wrong:
        raise EnforceNotMet(f"targets are operators of block 0, which has {count}, got {wrong}")
    kept = {index for _, index in targets}
    copy = shown.clone()
    block = copy.global_block()
    block.ops = needed_ops(block, [index in kept for index in range(count)], (), feeded_var_names)
    return _cut(copy, {*feeded_var_names})


def prune_backward(program: ProgramDesc) -> tuple[ProgramDesc, dict[int, int]]:
    """A copy without operators of training (`without_training`), and old block number -> new one."""
    copy = program._shown.clone()
    for block, kept in zip(copy.blocks, without_training(copy.blocks), strict=True):
        block.ops = kept
    return _cut(copy, set())


def _cut(program: Program, fed: set[str]) -> tuple[ProgramDesc, dict[int, int]]:
    """A program that has lost operators, without the variables and blocks that are not needed any more."""
    numbers = {id(block): block.idx for block in program.blocks}
    program._drop_blocks()
    used = {name for block in program.blocks for op in block.ops for name in (*op.reads(), *op.writes())}
    for block in program.blocks:
        for name in [name for name in block.vars if name not in used | fed]:
            del block.vars[name]
    program._changed()
    return ProgramDesc(program), {numbers[id(block)]: block.idx for block in program.blocks}


def save_op_compatible_info(program: ProgramDesc) -> bool:
    """Whether versions of operators could be written into a program, which holds them already."""
    return isinstance(program, ProgramDesc)


def has_circle(graph: Graph) -> bool:
    """Whether operators depend on each other in a circle (`fluid.core.has_circle`)."""
    return nodes_of(graph).has_circle()


def topology_sort(graph: Graph) -> list[IrOpNode]:
    """The operators in topological order (`fluid.core.topology_sort`)."""
    return nodes_of(graph).topology_sort()


def build_adjacency_list(graph: Graph) -> dict[IrOpNode, set[IrOpNode]]:
    """The dependencies of each operator (`fluid.core.build_adjacency_list`)."""
    return nodes_of(graph).build_adjacency_list()


def graph_num(graph: Graph) -> int:
    """The number of connected components (`fluid.core.graph_num`)."""
    return nodes_of(graph).graph_num()


def graph_safe_remove_nodes(graph: Graph, nodes: Collection[IrNode]) -> None:
    """Take nodes and their arrows out of a graph (`fluid.core.graph_safe_remove_nodes`)."""
    nodes_of(graph).safe_remove_nodes(nodes)


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


class OpRole(IntEnum):
    """The phase of training that an operator belongs to, as saved programs number it."""

    Forward = operator.OpRole.Forward
    Backward = operator.OpRole.Backward
    Optimize = operator.OpRole.Optimize
    RPC = operator.OpRole.RPC
    Dist = operator.OpRole.Dist
    LRSched = operator.OpRole.LRSched
    Loss = operator.OpRole.Loss

    def __str__(self) -> str:
        return f"OpRole.{self.name}"


def kOpRoleAttrName() -> str:
    return "op_role"


def kOpRoleVarAttrName() -> str:
    return "op_role_var"


def kOpNameScopeAttrName() -> str:
    return "op_namescope"


def kOpCreationCallstackAttrName() -> str:
    return "op_callstack"


def kOpDeviceAttrName() -> str:
    return "op_device"


def empty() -> str:
    """The name of a variable that is not there."""
    return EMPTY_VAR_NAME


def temp() -> str:
    """A part of the names of temporaries."""
    return TEMP_VAR_NAME


class Layer:
    """The base of C++ layers (`fluid.core.Layer`): `forward` returns []."""

    def forward(self, inputs: list[Tensor]) -> list[Tensor]:
        """Results of `inputs`, for subclasses to define."""
        return []


def dygraph_partial_grad(
    inputs: list[Tensor],
    outputs: list[Tensor],
    grad_outputs: list[Any],
    no_grad_vars: list[Tensor],
    place: Place,
    backward_strategy: BackwardStrategy,
    create_graph: bool,
    retain_graph: bool,
    allow_unused: bool,
    only_inputs: bool,
) -> list[Tensor | None]:
    """`fluid.dygraph.grad`, with all of its arguments, inputs first (`fluid.core.dygraph_partial_grad`).

    An empty `grad_outputs` means ones. `place` and `backward_strategy` have no effect.
    """
    return autograd.grad(
        outputs,
        inputs,
        grad_outputs or None,
        retain_graph,
        create_graph,
        only_inputs,
        allow_unused,
        no_grad_vars,
    )
