"""Live ranges and sharing of the memory of temporaries; `_ext/engine/places.h` assigns offsets in the arena."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..._ext.operands import Aliases
from ...base.sizes import always_equal
from ...ops.kernels.chains import Chain
from ...ops.kernels.kernel_def import KERNELS
from ...ops.registry import Call
from ..ir import jumps
from ..ir.instructions import Instruction, lifetimes
from .code import Code


@dataclass
class Storage:
    """Memory of one or several variables, live from the instruction `first` to `last`. `bytes` may be a `SymInt`."""

    bytes: int
    names: list[str]
    first: int
    last: int


def allocate(code: Code) -> dict[str, Storage]:
    """The storage of each temporary, with its live range; in-place results share that of an input."""
    storages: dict[str, Storage] = {}
    size = code.meta.bytes
    ranges = lifetimes(code.instructions, code.aliases, code.fetches)
    for name in code.temporaries(ranges):
        first, last = ranges[name]
        storages[name] = Storage(size(name), [name], first, last)
    _share_in_place(code.instructions, storages, code.aliases)
    return storages


def _share_in_place(
    instructions: Sequence[Instruction], storages: dict[str, Storage], roots: Mapping[str, str]
) -> None:
    """Let outputs take the memory of inputs that die at the instruction, where the kernel allows aliases."""
    for step, instruction in enumerate(instructions):
        if not isinstance(instruction.action, Call):
            continue
        taken: set[str] = set()
        for name, result in _replaceable(instruction, roots):
            out, source = storages.get(result), storages.get(name)
            if out is None or source is None or out is source or not always_equal(out.bytes, source.bytes):
                continue
            # Two results of a kernel may not take the same memory.
            if source.last == step and out.first == step and name not in taken:
                taken.add(name)
                source.last = out.last
                for each in out.names:
                    storages[each] = source
                source.names += out.names


def _replaceable(instruction: Instruction, roots: Mapping[str, str]) -> list[tuple[str, str]]:
    """Pairs of an operand that a native instruction reads once, and a result that may overwrite it."""
    call = instruction.action
    if not isinstance(call, Call):
        return []
    pairs: list[tuple[str | None, str | None]] = []
    if isinstance(call, Chain):
        pairs += call.replaceable
    elif (kernel := KERNELS[call.kernel]) is not None:
        operands, places = call.operands, kernel.places
        for out, source in kernel.aliases:
            pairs.append((operands[places[source]], operands[places[out]]))
    found = []
    for a, b in pairs:
        if a is not None and b is not None:
            name = roots.get(a, a)
            if [roots.get(one or "", one) for one in call.operands].count(name) == 1:
                found.append((name, roots.get(b, b)))
    return found


def coalesce_merges(
    instructions: Sequence[Instruction], roots: Aliases, temporary: Callable[[str], bool]
) -> list[Instruction]:
    """Copy coalescing: the instructions without `merge` copies whose source can be computed in the target's memory.

    That is so if the block no longer reads the target's old value when the source is written. `roots`: alias -> owner,
    extended here; `temporary`: whether a variable may share memory.
    """
    merges = [at for at, each in enumerate(instructions) if each.op.definition is jumps.COPY_OUT]
    if not merges:
        return [*instructions]
    touched: defaultdict[str, list[int]] = defaultdict(list)
    blocks: list[int] = []  # the beginning of the innermost block around each instruction
    enclosing = [-1]
    for at, each in enumerate(instructions):
        if each.action in jumps.ENDS:
            enclosing.pop()
        blocks.append(enclosing[-1])
        if each.action in jumps.BEGINS:
            enclosing.append(at)
        for name in dict.fromkeys(roots.get(name, name) for name in each.accessed):
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
            roots.merge(new, place)
            touched[place] = sorted({*touched[place], *touched[new]})
            left.add(at)
    return [each for at, each in enumerate(instructions) if at not in left]
