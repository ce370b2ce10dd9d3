"""From code to a filled engine.

allocate    live ranges and sharing of the memory of temporaries; `_ext/engine/places.h` assigns offsets in the arena
Assembly    instructions, memory and constants
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._ext import engine, kernels
from ..._ext.operands import Aliases
from ...base import long_work
from ...base.dtypes import to_numpy
from ...base.sizes import Registers, SymFloat, SymInt, always_equal, current, current_shape
from ...framework import Operator
from ...ops.kernels.fusion import Chain
from ...ops.kernels.kernel_def import KERNELS
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import Call, OpDef
from .. import failures
from ..control_flow.scan import SCAN_KERNEL, ScanSpec, moving_memory
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
    for name, (first, last) in ranges.items():
        if code.is_temporary(name):
            storages[name] = Storage(size(name), [name], first, last)
    _share_in_place(code.instructions, storages, code.aliases)
    return storages


def _share_in_place(
    instructions: Sequence[Instruction], storages: dict[str, Storage], roots: Mapping[str, str]
) -> None:
    """Let outputs take the memory of inputs that die at the instruction, where the kernel allows aliases."""
    for step, instruction in enumerate(instructions):
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


class Assembly:
    """Slots of variables, registers of sizes, and the `engine` with the instructions; `settle` places temporaries."""

    def __init__(self, code: Code, storages: Mapping[str, Storage]) -> None:
        self.code, self.storages = code, storages
        meta = code.meta
        self.registers = Registers(meta.sizes)
        self.tensor_arrays = {name: engine.TensorArray() for name in code.tensor_arrays}
        self.loops: dict[int, ScanSpec] = {}  # scans by index of the instruction
        self._shapes: dict[str, tuple[int, ...]] = {}
        names = (
            *code.external, *code.feeds, *code.late, *code.ranked.names, *meta.persistable, *meta.constants, *storages,
            *self.tensor_arrays,
        )  # fmt: skip
        owners = dict.fromkeys(map(code.root, names))
        self._slots = {owner: at for at, owner in enumerate(owners)}
        self.engine = engine.Engine(len(self._slots), self.registers.values)
        self._add_instructions()
        for name, array in meta.constants.items():
            self.engine.bind(self._slots[name], array)
        for name, elements in self.tensor_arrays.items():
            self.engine.set_pointer(self._slots[name], elements.address)
        code.buffers.connect(self.engine, self._slots, self._shapes)

    def slot(self, name: str) -> int:
        """The slot of the memory of a variable."""
        return self._slots[self.code.root(name)]

    def size(self, size: Any) -> tuple[int, int]:
        """The register of a size, -1 for a constant, and its current value."""
        return (self.registers.integer(size) if isinstance(size, SymInt) else -1), current(size)

    def entry(self, name: str) -> tuple[int, np.dtype, tuple[int, ...]]:
        """Slot, element type and shape of a variable, as the engine takes them."""
        meta = self.code.meta
        return self.slot(name), to_numpy(meta.dtypes[name]), self.registers.shape(meta.shapes[name])

    def settle(self) -> None:
        """Emit the guards and place the temporaries for the current sizes; adds the last registers.

        Raises MemoryError naming the largest variable.
        """
        sharing: dict[int, tuple[Storage, list[int]]] = {}
        for name, storage in self.storages.items():
            sharing.setdefault(id(storage), (storage, []))[1].append(self._slots[name])
        self.registers.add_guards()
        try:
            for storage, slots in sharing.values():
                register = self.registers.integer(storage.bytes)
                self.engine.add_storage(storage.first, storage.last, register, slots)
            fits = self.engine.settle()
        except (MemoryError, ValueError, OverflowError) as error:
            meta = self.code.meta
            largest = max(self.storages, key=lambda name: current(meta.bytes(name)), default="")
            raise MemoryError(
                f"this program needs more memory than there is: variable {largest!r} "
                f"{list(current_shape(meta.shapes[largest]))} alone takes {current(meta.bytes(largest))} bytes"
            ) from error
        assert fits, "a plan holds for the sizes that it is made for"

    def _add_instructions(self) -> None:
        begun: list[int] = []  # jumps whose targets come later
        for at, instruction in enumerate(long_work.over(self.code.instructions, "instructions of the plan")):
            op, action = instruction.ops[0], instruction.action
            if isinstance(action, Call):
                self._add_call(at, op, action)
            elif action in jumps.BEGINS:
                begun.append(self.engine.add_jump(self.slot(op.inputs["Cond"][0])))
            elif action in jumps.ENDS:
                begin = begun.pop()
                self.engine.add_jump()
                self.engine.set_target(begin, at + 1)
                self.engine.set_target(at, begin if action is jumps.BACK_EDGE else at + 1)
            elif not isinstance(action, OpDef):
                self.engine.add_python(action)
                for name in instruction.accessed:
                    self._shapes[name] = self.registers.shape(self.code.meta.shapes[name])

    def _add_call(self, at: int, op: Operator, call: Call) -> None:
        if call.kernel == SCAN_KERNEL:
            self._add_loop(at, op.attrs["spec"], call)
            return
        if call.kernel == RESOLVE_SIZES:
            integer = self.registers.integer
            places = zip(call.ints[::2], call.ints[1::2], strict=True)
            (array,) = filter(None, call.operands)
            self.engine.add_find(
                self.slot(array), [(integer(place), integer(size)) for place, size in places]
            )
            return
        places_of, root = self._slots, self.code.root
        slots = [-1 if name is None else places_of[root(name)] for name in call.operands]
        ints, floats = [*map(current, call.ints)], [*map(float, map(current, call.floats))]
        self.engine.add(self._verified(op, call), slots, ints, floats)
        self._vary(at, call)

    def _add_loop(self, at: int, spec: ScanSpec, call: Call) -> None:
        """Add a scan with its body plans."""
        moving, index = moving_memory(spec, engine.LOOP_KINDS)
        bodies = [body.connections(index) for body in spec.bodies]
        sums = [(spec.operands[name], spec.ints[name]) for name in spec.names["Sums"]]
        slots = [-1 if name is None else self.slot(name) for name in call.operands]
        ints = [*map(current, call.ints)]
        self.engine.add_loop(slots, ints, spec.back, moving, sums, bodies)
        self._vary(at, call)
        self.loops[at] = spec

    def _vary(self, at: int, call: Call) -> None:
        """Bind the symbolic numbers of a call to registers."""
        for position, number in enumerate(call.ints):
            if isinstance(number, SymInt):
                self.engine.vary(at, position, self.registers.integer(number))
        for position, real in enumerate(call.floats):
            if isinstance(real, (SymInt, SymFloat)):
                self.engine.vary(at, position, self.registers.real(real), True)

    def _verified(self, op: Operator, call: Call) -> int:
        """Check the operands of a call and return the kernel's address; raises OperatorError if they are wrong."""
        meta, given = self.code.meta, []
        sizes = []
        for name in call.operands:
            given.append(name is not None)
            sizes.append(0 if name is None else meta.bytes(name))
        try:
            kernels.check(call.kernel, given, call.ints, call.floats, sizes)
        except ValueError as error:
            if meta.size_labels:
                raise failures.Unsupported(
                    "the guesses for data-dependent sizes contradict each other", op
                ) from error
            raise failures.in_operator(op, error) from error
        return kernels.address(call.kernel)
