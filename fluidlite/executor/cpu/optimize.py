"""Runs the passes over the instructions for the CPU and counts the instructions that each saves."""

from __future__ import annotations

from collections.abc import Callable

from ...framework import OpRole
from ..ir.instructions import Instruction
from ..passes import cpu_passes
from ..passes.channel_blocks import ChannelBlocks
from ..passes.prepacking import prepack
from ..passes.rewriting import fuse
from . import memory
from .code import Code


def optimize(
    code: Code,
    split: bool = False,
    pack: Callable[[list[Instruction]], list[Instruction]] | None = None,
) -> None:
    """Run all passes.

    Args:
        split: whether the code has two halves, between which nothing moves.
        pack: prepacks weights, instead of `prepacking.prepack`.
    """
    needed = code.needed()
    pack = pack or (lambda instructions: prepack(instructions, code.meta, code.root))
    if not split:
        code.instructions = pack(_fused(code, code.instructions, needed))
    else:
        backward = [each.op.attrs.get("op_role", 0) & OpRole.Backward for each in code.instructions]
        cut = next((at for at, is_backward in enumerate(backward) if is_backward), len(backward))
        first, second = code.instructions[:cut], code.instructions[cut:]
        read = {name for each in second for name in each.reads}
        first = pack(_fused(code, first, [*needed, *read]))
        code.cut = len(first)
        code.instructions = [*first, *pack(_fused(code, second, needed))]
    code.instructions = memory.coalesce_merges(code.instructions, code.aliases, code.may_be_shared)


def _fused(code: Code, instructions: list[Instruction], needed: list[str]) -> list[Instruction]:
    layout = ChannelBlocks(code.meta, lambda name: not code.isolated and code.is_temporary(name))
    for name, each in cpu_passes.passes(layout).items():
        before = len(instructions)
        instructions = fuse(instructions, needed, [each], code.aliases)
        code.saved[name] += before - len(instructions)
    if layout.blocked:
        code.notes.append(str(layout))
    return instructions
