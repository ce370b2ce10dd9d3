"""Pruning of programs, and properties of operators, in `fluid.core`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..base.errors import EnforceNotMet
from ..base.storage.messages import messages
from ..framework.program import Program
from ..framework.pruning import needed_ops, without_training
from ..framework.serialization.descs import ProgramDesc
from ..framework.serialization.op_protos import get_all_op_protos as _protos
from ..ops.registry import find, is_known

__all__ = [
    "get_all_op_protos",
    "infer_no_need_buffer_slots",
    "prune",
    "prune_backward",
    "save_op_compatible_info",
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
