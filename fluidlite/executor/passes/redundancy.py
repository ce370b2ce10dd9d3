"""Redundant work on the CPU: dead code is dropped, copies and common subexpressions become aliases."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from ..._ext import kernels
from ...base.sizes import SymFloat, SymInt, always_equal
from ...framework import OpRole
from ...ops.kernels.kernel_def import KERNELS, copies_of, without
from ...ops.registry import Call
from ..ir.instructions import Instruction, Uses, has_jumps


def eliminate_dead_code(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
    """The instructions without calls, of operators with several calls, whose results are not read.

    Such as the gradient of images in that of a convolution.
    """
    return [
        each
        for each in instructions
        if each.view is not None or not isinstance(each.action, Call) or any(map(uses.is_used, each.writes))
    ]


def propagate_copies(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
    """Copy propagation: results that are copies of operands, such as the gradients of a sum, become aliases of these.

    Plans with branches or loops are left alone.
    """
    if has_jumps(instructions):
        return instructions
    out: list[Instruction] = []
    for each in instructions:
        is_call = each.view is not None and isinstance(each.action, Call)
        kernel = KERNELS[each.action.kernel] if is_call else None
        if kernel is None or kernel.copies is None or each.role & OpRole.Optimize:
            out.append(each)
            continue
        gone: dict[int, str] = {}
        for at, source in copies_of(each.action):
            name, its = each.action.operands[at] or "", each.action.operands[source] or ""
            if _may_alias(name, its, uses):
                gone[at] = name
                uses.roots.merge(name, its)
        if not gone:
            out.append(each)
            continue
        left = without(each.action, gone)
        if left is not None:
            writes = tuple([name for name in each.writes if name not in gone.values()])
            out.append(replace(each, writes=writes, action=left))
    return out


def _may_alias(name: str, source: str, uses: Uses) -> bool:
    """True if a copy may alias its source: neither is written after the copy, and only one is needed at the end."""
    made, its = uses.root(name), uses.root(source)
    if made == its or uses.written[made] != 1 or made in uses.needed:
        return False
    return uses.written[its] == 0 or (uses.written[its] == 1 and its not in uses.needed)


def eliminate_common_subexpressions(instructions: list[Instruction], uses: Uses) -> list[Instruction]:
    """Common subexpression elimination: calls of one kernel on the same values with the same numbers run once.

    Plans with branches or loops are left alone: there an earlier call need not dominate a later one. Backward operators
    do not reuse results of forward ones, or recomputation (`RecomputeOptimizer`) would not save memory.
    """
    if has_jumps(instructions):
        return instructions
    out: list[Instruction] = []
    root = uses.root
    versions: dict[str, int] = {}  # the number of writes of each variable so far
    found: defaultdict[tuple[object, ...], list[Instruction]] = defaultdict(list)
    for each in instructions:
        if _is_pure(each, uses):
            read = {*map(root, each.reads)}
            key: list[object] = [each.action.kernel, each.role & OpRole.Backward]
            for operand in each.action.operands:
                name = root(operand or "")
                key.append((name, versions.get(name, 0)) if name in read else operand is None)
            others = found[tuple(key)]
            same = [other for other in others if _same_numbers(other.action, each.action)] if others else ()
            if same:
                for name, other in zip(each.writes, same[0].writes, strict=True):
                    uses.roots.merge(name, other)
                continue
            others.append(each)
        out.append(each)
        for name in map(root, each.writes):
            versions[name] = versions.get(name, 0) + 1
    return out


def _is_pure(each: Instruction, uses: Uses) -> bool:
    """True for a native call whose results are written once and depend on its operands and numbers alone."""
    if not isinstance(each.action, Call) or each.view is None or not each.writes:
        return False
    op = each.ops[0]
    if op.definition.effects.random or each.role & OpRole.Optimize:
        return False
    if "seed" in " ".join(op.attrs) or not kernels.available(each.action.kernel):
        return False
    made, written = {*map(uses.root, each.writes)}, uses.written
    for name in made:
        if written[name] != 1:
            return False
    return made.isdisjoint(uses.needed) and made.isdisjoint(map(uses.root, each.reads))


def _same_numbers(a: Call, b: Call) -> bool:
    return (
        len(a.ints) == len(b.ints)
        and len(a.floats) == len(b.floats)
        and all(map(always_equal, a.ints, b.ints))
        and all(map(_same_real, a.floats, b.floats))
    )


def _same_real(x: float, y: float) -> bool:
    """True if two numbers, neither of them symbolic, have the same bits."""
    return (
        not isinstance(x, SymFloat | SymInt)
        and not isinstance(y, SymFloat | SymInt)
        and float(x).hex() == float(y).hex()
    )
