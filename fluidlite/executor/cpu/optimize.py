"""The passes over instructions for the CPU, in order; the instructions that each saves or replaces are counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ...base import flags
from ...framework import OpRole
from ...ops.kernels.fusion import may_be_epilogue, with_epilogue
from ...ops.kernels.kernel_def import KERNELS
from ...ops.optimizers import updates as optim
from ...ops.registry import Call
from ..ir.instructions import Instruction
from ..passes.attention import fuse_attention
from ..passes.chains import join_chains
from ..passes.channel_blocks import ChannelBlocks
from ..passes.patterns import Match, Node, Pattern
from ..passes.prepacking import prepack
from ..passes.redundancy import eliminate_common_subexpressions, eliminate_dead_code, propagate_copies
from ..passes.rewriting import Pass, Replacement, apply_passes, fuse_alike, fuse_matches, in_halves, joined
from .assembly import coalesce_merges
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
    needed = [*code.fetches, *code.persistable_results(code.instructions)]
    pack = pack or (lambda instructions: prepack(instructions, code.meta, code.root))
    run = partial(_run_passes, code, pack)
    if split:
        code.instructions, code.cut = in_halves(code.instructions, needed, run)
    else:
        code.instructions = run(code.instructions, needed)
    code.instructions = coalesce_merges(code.instructions, code.aliases, code.may_be_shared)


def _run_passes(
    code: Code,
    pack: Callable[[list[Instruction]], list[Instruction]],
    instructions: list[Instruction],
    needed: Sequence[str],
) -> list[Instruction]:
    """Run the passes but for those that the user leaves out; raises ValueError if one of these does not exist."""
    layout = ChannelBlocks(code.meta, lambda name: not code.isolated and code.is_temporary(name))
    passes: dict[str, Pass] = {
        "dead_code": eliminate_dead_code,
        "copy_propagation": propagate_copies,
        "common_subexpressions": eliminate_common_subexpressions,
        "attention": fuse_attention,
        "epilogues": _fuse_epilogues,
        "channel_blocks": layout,
        "chains": join_chains,
        "updates": _fuse_updates,
        "packing": lambda instructions, uses: pack(instructions),
    }
    left_out = flags.passes_left_out()
    if extra := left_out - passes.keys():
        names = ", ".join(passes), ", ".join(sorted(extra))
        raise ValueError("FLUIDLITE_WITHOUT_PASSES may name {}, got {}".format(*names))
    for name in [name for name in passes if name not in left_out]:
        before = instructions
        instructions = apply_passes(before, needed, [passes[name]], code.aliases)
        saved = len(before) - len(instructions)
        if not saved:
            saved = sum([a.action is not b.action for a, b in zip(before, instructions, strict=True)])
        code.saved[name] += saved
    if layout.blocked:
        code.notes.append(str(layout))
    return instructions


def _has_epilogue(each: Instruction) -> Node | None:
    """A product, convolution, normalisation, softmax or addition that can go on with its result."""
    kernel = KERNELS[each.action.kernel]
    if kernel is None or kernel.epilogue is None:
        return None
    return Node([], [kernel.operand(each.action, kernel.made[0])])


def _continues(each: Instruction) -> Node | None:
    """A call that the call before may end with."""
    call = each.action
    kernel = KERNELS[call.kernel]
    return (
        Node(call.operands[:1], call.operands[-1:])
        if kernel is not None and may_be_epilogue(kernel)
        else None
    )


_EPILOGUE = Pattern(
    "result = has_epilogue() \n out = continues(result)",
    {"has_epilogue": _has_epilogue, "continues": _continues},
)


def _with_epilogue(match: Match) -> list[Replacement]:
    """A bias, a normalisation by moving statistics, an activation or a logarithm as an epilogue of the call before."""
    call = match.found["result"].action
    kernel = KERNELS[call.kernel]
    action = None if kernel is None else with_epilogue(call, kernel, match.found["out"].action)
    return [] if action is None else [Replacement([*match.found.values()], action)]


_fuse_epilogues = fuse_matches(_EPILOGUE, _with_epilogue)


def _update_key(each: Instruction) -> Any:
    """The kind of a parameter's update, with its rate and constants; None for other instructions."""
    if not each.role & OpRole.Optimize or not isinstance(each.action, Call):
        return None
    return optim.update_kind(each.action)


def _multi_tensor_update(parts: list[Instruction]) -> list[Instruction]:
    """The updates of one kind, rate and constants as one call over many parameters."""
    return [joined(parts, optim.joined([part.action for part in parts]))]


_fuse_updates = fuse_alike(_update_key, _multi_tensor_update)
