"""What is known about the memory of temporaries before it has its place (`_ext/engine/places.h` finds places)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...base.sizes import always_equal
from ...ops.kernels.chains import Chain
from ...ops.registry import Call
from ..ir import jumps as marks
from ..ir.instructions import Instruction, lifetimes
from .code import Code


@dataclass
class Storage:
    """Memory that one or several variables (views of each other) live in, from the step `first` to `last`.

    `bytes` may be a formula (`base.sizes.SymInt`).
    """

    bytes: int
    names: list[str]
    first: int
    last: int


def allocate(code: Code) -> dict[str, Storage]:
    """The live ranges of temporaries, which share memory where an instruction may overwrite its input."""
    storages: dict[str, Storage] = {}
    for name, (first, last) in lifetimes(code.instructions, code.aliases, code.fetches).items():
        if code.is_temporary(name):
            storages[name] = Storage(code.meta.bytes(name), [name], first, last)
    _share_in_place(code.instructions, storages, code.aliases)
    return storages


def _share_in_place(
    instructions: Sequence[Instruction], storages: dict[str, Storage], roots: Mapping[str, str]
) -> None:
    """Let an output take the memory of an input that nobody reads afterwards, where the operator allows it."""
    for step, instruction in enumerate(instructions):
        for name, result in _replaceable(instruction, roots):
            out, source = storages.get(result), storages.get(name)
            if out is None or source is None or out is source or not always_equal(out.bytes, source.bytes):
                continue
            if source.last == step and out.first == step:
                source.last = out.last
                for each in out.names:
                    storages[each] = source
                source.names += out.names


def _replaceable(instruction: Instruction, roots: Mapping[str, str]) -> list[tuple[str, str]]:
    """What a native instruction reads once, each with what it may write over it."""
    op, action = instruction.op, instruction.action
    if not isinstance(action, Call):
        return []
    if isinstance(action, Chain):
        return [(roots.get(name, name), roots.get(result, result)) for name, result in action.replaceable]
    touched = [roots.get(name, name) for name in action.operands if name is not None]
    pairs = [(op.inputs.get(source), op.outputs.get(out)) for out, source in op.definition.planning.inplace]
    named = [(roots.get(a[0], a[0]), roots.get(b[0], b[0])) for a, b in pairs if a and b]
    return [(name, result) for name, result in named if touched.count(name) == 1]


def made_in_place(
    instructions: Sequence[Instruction], roots: dict[str, str], temporary: Callable[[str], bool]
) -> list[Instruction]:
    """The instructions without copies (`merge`) of what can be made where they would put it: nobody in the block looks
    any more at what stands there.

    `roots`: names for the memory of others; `temporary`: whether memory may be another variable's as well.
    """
    merges = [at for at, each in enumerate(instructions) if each.op.definition is marks.MERGE]
    if not merges:
        return [*instructions]
    touched: defaultdict[str, list[int]] = defaultdict(list)
    blocks: list[int] = []  # of each instruction where the innermost block around it begins
    around = [-1]
    for at, each in enumerate(instructions):
        if each.action in marks.ENDS:
            around.pop()
        blocks.append(around[-1])
        if each.action in marks.BEGINS:
            around.append(at)
        for name in dict.fromkeys(roots.get(name, name) for name in each.touches):
            touched[name].append(at)
    left = set()
    for at in merges:
        (source,), (out,) = instructions[at].reads, instructions[at].writes
        new, place = roots.get(source, source), roots.get(out, out)
        first = touched[new][0]
        if blocks[first] != blocks[at] or not temporary(new) or not temporary(place):
            continue
        if all(
            k < first or (k == first and (place, new) in _replaceable(instructions[k], roots))
            for k in touched[place]
            if blocks[at] < k < at
        ):
            roots.update({name: place for name, root in roots.items() if root == new})
            roots[new] = place
            touched[place] = sorted({*touched[place], *touched[new]})
            left.add(at)
    return [each for at, each in enumerate(instructions) if at not in left]
