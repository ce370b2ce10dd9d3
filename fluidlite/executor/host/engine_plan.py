"""`EnginePlan`: what plans of the host are to the engine: slots, registers, instructions, arrays that it is given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..._ext import engine
from ...base.dtypes import to_numpy
from ...base.reports import profiling, progress
from ...base.sizes import SymFloat, SymInt, current, current_shape
from ...framework import Operator, Program
from ...ops.op_view import FIND
from ...ops.registry import Call, OpDef
from .. import failures
from ..plan import marks
from ..plan.analysis import Analysis
from ..plan.elements import CLEAR, ELEMENTS
from ..plan.instructions import Instruction
from ..plan.ranks import RankedFeeds
from ..plan.refusals import CannotPlan
from ..plan.step_plan import StepPlan
from ..plan.turn_ops import TURNS, LoopForm
from ..tensors.scope import Scope
from . import memory
from .registers import Registers


def is_call(instruction: Instruction, kernel: str) -> bool:
    return isinstance(instruction.action, Call) and instruction.action.kernel == kernel


class EnginePlan(StepPlan):
    """The slots of a plan's variables, registers of its sizes, and the engine that has its instructions.

    `later`: what is fed when part of the operators has run.
    """

    def __init__(self, program: Program, scope: Scope, analysis: Analysis, later: Iterable[str]) -> None:
        super().__init__(program, scope, analysis)
        self._later = list(later)
        self._ranked = RankedFeeds(self.meta.ranking, self.feed_names, self.meta)
        self._fed = frozenset([*self.feed_names, *self._later, *self._ranked.names])
        self._elements = {
            name + ELEMENTS: engine.TensorArray()
            for op, _ in analysis.steps
            if op.definition is CLEAR
            for name in op.attrs["arrays"]
        }
        self._registers = Registers(self.meta.sizes)
        self._again = True  # whether a step that asks for what is not there can be run in another way
        self._storages: dict[str, memory.Storage] = {}
        self._slots: dict[str, int] = {}
        self._changed = {name for op, _ in analysis.steps for name in op.output_arg_names}

    def _set_up(self, instructions: list[Instruction], fetches: Sequence[str]) -> None:
        """Give the engine all that a step takes."""
        self._emit(instructions)
        self._bind_first()
        self.fetched = list(fetches)
        self.engine.set_fetches([self._entry(name) for name in fetches])
        self._sign()
        self._values = [
            (self.feed_names.index(name), k, self._size(n))
            for name, numbers in self.meta.valued.items()
            for k, n in enumerate(numbers.flat)
        ]
        self._rank_sizes = [self._size(size) for size in self._ranked.sizes]
        self._registers.add_guards()
        self._settle()

    def _root(self, name: str) -> str:
        """The variable whose memory `name` lives in."""
        return self._roots.get(name, name)

    def _size(self, size: Any) -> tuple[int, int]:
        """The register of a size, -1 for one that stays, and that."""
        return (self._registers.integer(size) if isinstance(size, SymInt) else -1), current(size)

    def _entry(self, name: str) -> tuple[int, np.dtype, tuple[int, ...]]:
        """Slot, element type and shape of a variable, as the engine takes them."""
        return (
            self._slot(name),
            to_numpy(self.meta.dtypes[name]),
            self._registers.shape(self.meta.shapes[name]),
        )

    def _bytes_now(self, name: str) -> int:
        return current(self.meta.bytes(name)) if name in self.meta.shapes else 0

    def _slot(self, name: str) -> int:
        return self._slots.setdefault(self._root(name), len(self._slots))

    def _emit(self, instructions: list[Instruction]) -> None:
        """Give the engine its instructions, the memory of temporaries, and constants."""
        for name in (
            *self.feed_names,
            *self._later,
            *self._ranked.names,
            *self.meta.persistable,
            *self.meta.known,
            *self._storages,
            *self._elements,
        ):
            self._slot(name)
        self.ops = [each.op for each in instructions]
        self.is_native = [isinstance(each.action, (Call, OpDef)) for each in instructions]
        branches: list[int] = []  # where those begin that have not ended
        self._loops: dict[int, LoopForm] = {}  # by position, those whose turns are plans of their own
        self.engine = engine.Engine(len(self._slots), self._registers.found)
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._views: dict[str, np.ndarray] = {}
        self._generation = -1
        for at, instruction in enumerate(progress.over(instructions, "instructions of the plan")):
            op, action = instruction.op, instruction.action
            if is_call(instruction, TURNS):
                self._add_loop(at, op.attrs["form"], action)
            elif is_call(instruction, FIND):
                pairs = zip(action.ints[::2], action.ints[1::2], strict=True)
                integer = self._registers.integer
                self.engine.add_find(
                    self._slot(instruction.reads[0]),
                    [(integer(place), integer(size)) for place, size in pairs],
                )
            elif isinstance(action, Call):
                slots = [-1 if name is None else self._slot(name) for name in action.operands]
                ints, floats = [current(n) for n in action.ints], [float(current(x)) for x in action.floats]
                self.engine.add(self._verified(op, action), slots, ints, floats)
                self._vary(at, action)
            elif action in marks.BEGINS:
                branches.append(self.engine.add_jump(self._slot(op.inputs["Cond"][0])))
            elif action in marks.ENDS:
                begin = branches.pop()
                self.engine.add_jump()
                self.engine.set_target(begin, at + 1)
                self.engine.set_target(at, begin if action is marks.AGAIN else at + 1)
            elif not isinstance(action, OpDef):
                self.engine.add_python(action)
                for name in instruction.touches:
                    self._shapes[name] = self._registers.shape(self.meta.shapes[name])
        for name, array in self.meta.known.items():
            self.engine.bind(self._slots[name], array)
        for name, elements in self._elements.items():
            self.engine.set_pointer(self._slots[name], elements.address)

    def _add_loop(self, at: int, form: LoopForm, call: Call) -> None:
        """Give the engine a loop whose turns are plans of their own."""
        layout = form.layout
        assert layout is not None
        moving, read, made = layout.moving(engine.LOOP_KINDS)
        bodies = [body.connections(layout, read, made) for body in form.bodies]
        slots = [-1 if name is None else self._slot(name) for name in call.operands]
        ints = [current(n) for n in call.ints]
        self.engine.add_loop(slots, ints, form.back, moving, layout.sums(), bodies)
        for body in form.bodies:
            body._again = self._again
        self._vary(at, call)
        self._loops[at] = form

    def _vary(self, at: int, call: Call) -> None:
        """Have the numbers of a call follow the sizes that they are made of."""
        for position, number in enumerate(call.ints):
            if isinstance(number, SymInt):
                self.engine.vary(at, position, self._registers.integer(number))
        for position, real in enumerate(call.floats):
            if isinstance(real, (SymInt, SymFloat)):
                self.engine.vary(at, position, self._registers.real(real), True)

    def _verified(self, op: Operator, call: Call) -> int:
        """The address of a kernel that has been given what it takes; OperatorError otherwise."""
        from ..._ext import kernels

        sizes = [0 if name is None else self.meta.bytes(name) for name in call.operands]
        try:
            kernels.check(
                call.kernel, [name is not None for name in call.operands], call.ints, call.floats, sizes
            )
        except ValueError as error:
            if self.meta.finding:
                raise CannotPlan("sizes were guessed that do not fit each other", op) from error
            raise failures.in_operator(op, error) from error
        return kernels.address(call.kernel)

    def _settle(self) -> None:
        """Find places for the temporaries of the sizes at hand."""
        sharing: dict[int, tuple[memory.Storage, list[int]]] = {}
        for name, storage in self._storages.items():
            sharing.setdefault(id(storage), (storage, []))[1].append(self._slots[name])
        try:
            for storage, slots in sharing.values():
                register = self._registers.integer(storage.bytes)
                self.engine.add_storage(storage.first, storage.last, register, slots)
            fits = self.engine.settle()
        except (MemoryError, ValueError, OverflowError) as error:
            largest = max(self._storages, key=self._bytes_now, default="")
            raise MemoryError(
                f"this program needs more memory than there is: variable {largest!r} "
                f"{list(current_shape(self.meta.shapes[largest]))} alone takes {self._bytes_now(largest)} bytes"
            ) from error
        assert fits, "a plan holds for the sizes that it is made for"

    def _sign(self, followed: int = 0) -> None:
        """Tell the engine which arrays `accepts` will be given; the last, `followed` many, are written to."""
        self.engine.set_signature(
            [self._entry(name) for name in self.feed_names],
            range(len(self.feed_names) - followed, len(self.feed_names)),
        )

    def follow(self, names: Sequence[str]) -> None:
        self.feed_names = [*self.feed_names, *names]
        self.followed = len(names)
        self._sign(len(names))

    def bind_scope(self) -> bool:
        """Point at the scope's variables as they are now."""
        tensors = self._tensors()
        if tensors is None:
            return False
        for name, tensor in tensors.items():
            tensor.on(None)
            self.engine.bind(self._slots[name], tensor.own())
        self._views.clear()
        self._written = {name: tensors[name].array for name in tensors if name in self._changed}
        self.engine.set_written([*self._written.values()])
        return True

    def accepts(self, arrays: list[np.ndarray]) -> bool:
        """Bind the arrays of the feeds; what is only read and shares memory with what the plan writes is copied."""
        if self._loops or self._ranked.names:
            return self._accepts_ranked(arrays)
        return self._accepts(arrays)

    def _accepts_ranked(self, arrays: list[np.ndarray]) -> bool:
        """`accepts` where sequences are ranked, and turns of loops have sizes of their own."""
        # The profiler wants the time of each operator.
        if len(arrays) != len(self.feed_names) or profiling.active is not None:
            return self.engine.bind_arrays(())
        measured = self._ranked.measured(arrays)
        if measured is None or not all(map(self._is_size, self._rank_sizes, measured[0])):
            return self.engine.bind_arrays(())
        if not self._accepts(arrays):
            return False
        for name, array in zip(self._ranked.names, measured[1], strict=True):
            self.engine.bind(self._slot(name), array)
        return self.engine.loops_fit() or self.engine.bind_arrays(())

    def _is_size(self, wanted: tuple[int, int], found: int) -> bool:
        """Have a size be what has been found; False if it has to be another one."""
        register, number = wanted
        if register < 0:
            return number == found
        if found >= 2:
            self.engine.set_root(register, found)
        return found >= 2

    def _accepts(self, arrays: list[np.ndarray]) -> bool:
        if not all(self._holds(arrays[at], place, wanted) for at, place, wanted in self._values):
            return self.engine.bind_arrays(())
        if self.engine.bind_arrays(arrays):
            return True
        read = len(arrays) - self.followed
        shared = [k for k, array in enumerate(arrays[:read]) if self.engine.shares(array)]
        if not shared:
            return False
        arrays = list(arrays)
        for k in shared:
            arrays[k] = arrays[k].copy()
        return self.engine.bind_arrays(arrays)

    def _holds(self, array: np.ndarray, place: int, wanted: tuple[int, int]) -> bool:
        """Have a size be what an element of a feed says; False if that is no such size."""
        if place >= array.size or array.dtype.kind != "i":
            return False
        return self._is_size(wanted, array.item(place))

    def _array(self, name: str) -> np.ndarray:
        """The elements of a variable, whatever memory it lives in; valid for this step."""
        if self._generation != self.engine.generation:
            self._views.clear()
            self._generation = self.engine.generation
        found = self._views.get(name)
        if found is None:
            slot, dtype = self._slots[self._root(name)], to_numpy(self.meta.dtypes[name])
            found = self.engine.array(slot, dtype, self._shapes[name])
            if self._root(name) not in self._fed and not self.meta.finding:
                self._views[name] = found
        return found
