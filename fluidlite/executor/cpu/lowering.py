"""Lowering of operators to instructions for the CPU: native calls, calls of reference kernels, aliases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from ..._ext import kernels
from ...base.sizes import always_equal
from ...framework import Operator
from ...ops.kernels.kernel_def import KERNELS
from ...ops.op_view import RESOLVE_SIZES
from ...ops.registry import LEVEL, Call, LodArray, OperatorError, OpView, check_result
from .. import failures
from ..control_flow.array_ops import CLEAR, TENSOR_ARRAY
from ..control_flow.scan import SCAN_KERNEL
from ..failures import Unsupported
from ..frontend import Typed
from ..ir import jumps
from ..ir.instructions import Instruction
from ..ir.legalization import row_rule
from ..ir.request import Request
from ..ir.type_env import PendingShapes, TypeEnv
from .code import Code


def lower(typed: Typed, request: Request) -> Code:
    """Lower operators with exact shapes to calls of kernels.

    Raises Unsupported for an operator on sequences or SelectedRows that has no kernel for these.
    """
    meta = typed.meta
    levels = [meta.lod(name) for name in typed.fetches]
    code = Code(
        meta,
        [*request.feed],
        [*typed.fetches, *(name for each in levels for name in each)],
        levels,
        late=[*request.late],
        tensor_arrays=[
            name + TENSOR_ARRAY
            for op, _ in typed.steps
            if op.definition is CLEAR
            for name in op.attrs["arrays"]
        ],
        isolated=request.body is not None,
    )
    code.instructions = Lowering(code, typed.steps).instructions()
    return code


class Lowering:
    """Chooses a native kernel or the reference kernel for each operator; results that are views become aliases."""

    def __init__(self, code: Code, steps: Sequence[tuple[Operator, OpView]]) -> None:
        self._code, self._meta, self._steps = code, code.meta, steps
        self._written = Counter([name for op, _ in steps for name in op.writes()])

    def levels(self, name: str) -> Sequence[str]:
        """The arrays of offsets of a variable, outermost level first."""
        return self._meta.lods.get(name, ())

    def instructions(self) -> list[Instruction]:
        made: list[Instruction] = []
        for op, view in self._steps:
            self._add(op, view, made)
        return made

    def _add(self, op: Operator, view: OpView, into: list[Instruction]) -> None:
        """Add the instructions of an operator."""
        definition = op.definition
        pending = self._meta.pending
        if pending and (measured := [pending[name] for name in op.writes() if name in pending]):
            into += self._data_dependent(op, view, measured[0])
            return
        if definition.planning.view is not None:  # the result only has another shape
            out_slot, in_slot = definition.planning.view
            if self._may_share(op.outputs[out_slot][0], op.inputs[in_slot][0]):
                return
        if definition in jumps.JUMPS:
            into.append(Instruction((op,), tuple(op.input_arg_names), (), definition))
            return
        by_rows = None if definition.dispatch.rows is None else row_rule(op, view)
        select = definition.native if by_rows is None else by_rows.native
        calls = None
        if select is not None and not _overwrites_input(op):
            try:
                calls = select(view)
            except Exception as error:
                failures.raise_in_operator(op, error)
        listed = [calls] if isinstance(calls, Call) else calls
        if listed is not None and all(
            [kernels.available(call.kernel) or call.kernel in (RESOLVE_SIZES, SCAN_KERNEL) for call in listed]
        ):
            passed_on: list[str] = []
            for call in listed:
                if call.kernel == RESOLVE_SIZES:
                    into.append(Instruction((op,), tuple(filter(None, call.operands)), (), call, view))
                elif call.kernel != "copy" or not self._is_part_view(op, call):
                    made = native(self._meta, op, call, view if len(listed) == 1 else None, passed_on)
                    passed_on.extend(made.writes)
                    into.append(made)
            return
        for call in listed or ():
            if KERNELS[call.kernel] is None and call.kernel not in (RESOLVE_SIZES, SCAN_KERNEL):
                raise LookupError(
                    f"operator {op.type} asks for the kernel {call.kernel!r}, which none declares"
                )
        if by_rows is not None:
            raise Unsupported(f"operator {op.type} has no native kernel for these SelectedRows", op)
        elif definition.sequences.takes_lod and not definition.sequences.inferred:
            raise Unsupported(f"operator {op.type} has no native kernel for these sequences", op)
        else:
            reads, writes = self._arrays(op, op.input_arg_names), self._arrays(op, op.output_arg_names)
            (step,) = reference(op, self._code.buffers, self.levels, None)
            into.append(Instruction((op,), reads, writes, step, view))

    def _data_dependent(self, op: Operator, view: OpView, pending: PendingShapes) -> list[Instruction]:
        """The instructions of an operator whose result sizes come from its reference kernel."""
        reads, writes = self._arrays(op, op.input_arg_names), self._arrays(op, op.output_arg_names)
        places = [n for pair in enumerate(pending.sizes) for n in pair]
        measure, store = reference(op, self._code.buffers, self.levels, pending)
        return [
            Instruction((op,), reads, (pending.scratch,), measure, view),
            Instruction((op,), (pending.scratch,), (), Call(RESOLVE_SIZES, [pending.scratch], places), view),
            Instruction((op,), (), writes, store, view),
        ]

    def _arrays(self, op: Operator, names: Iterable[str]) -> tuple[str, ...]:
        """The arrays of variables that a reference kernel reads or writes, with their offsets."""
        present = [name for name in names if name in self._meta.shapes]
        levels = (
            [level for name in present for level in self.levels(name)]
            if op.definition.sequences.takes_lod
            else []
        )
        return (*present, *levels)

    def _is_part_view(self, op: Operator, call: Call) -> bool:
        """Alias an array of SelectedRows, or a tensor with another LoD, with its source; `call` is a copy."""
        source, out = call.operands
        assert source is not None and out is not None
        size = self._meta.bytes(out)
        whole = always_equal(size, self._meta.bytes(source)) and always_equal(size, call.ints[0])
        if out not in self._meta.part_of and not (op.definition.sequences.takes_lod and whole):
            return False
        return self._may_share(out, source)

    def _may_share(self, out: str, source: str) -> bool:
        """Make `out` an alias of `source`; False if one of them has other writes."""
        written = self._written
        isolated = self._code.isolated and out in self._code.fetches
        if isolated or out == source or written[out] > 1 or written[source] > 1:
            return False
        if self._meta.is_persistable(out) or (self._meta.is_persistable(source) and written[source]):
            return False
        self._code.aliases.merge(out, source)
        return True


def native(
    meta: TypeEnv, op: Operator, call: Call, view: OpView | None = None, passed_on: Collection[str] = ()
) -> Instruction:
    """The instruction of a native call for an operator, or a part of one; `passed_on`: results of its earlier calls.

    Scratch arrays are both read and written.
    """
    taken, made = set(op.reads()), set(op.writes())
    reads, writes = [], []
    for name in call.operands:
        if name is None:
            continue
        read, made_here = name in taken, name in made and name not in call.unchanged
        if not read and not made_here:  # offsets, an array of SelectedRows, or a scratch array
            owner = meta.part_of.get(name) or name.partition(LEVEL)[0]
            read, made_here = owner in taken or owner not in made, owner in made or owner not in taken
        if read or name in passed_on:
            reads.append(name)
        if made_here:
            writes.append(name)
    return Instruction((op,), tuple(reads), tuple(writes), call, view)


def _overwrites_input(op: Operator) -> bool:
    """True if `op` writes a variable that it reads, in a way that its kernels are not made for.

    Allowed are updates (`Param` and `ParamOut`), and pairs of slots that its declaration lets share memory.
    """
    if set(op.reads()).isdisjoint(op.writes()) or op._is_optimize_op():
        return False
    for out_slot, names in op.outputs.items():
        for in_slot, sources in op.inputs.items():
            if out_slot == in_slot + "Out" or (out_slot, in_slot) in op.definition.planning.inplace:
                continue
            if not set(names).isdisjoint(sources):
                return True
    return False


Array = Callable[[str], np.ndarray]


def reference(
    op: Operator,
    array: Array,
    levels: Callable[[str], Iterable[str]],
    pending: PendingShapes | None,
) -> Sequence[Callable[[], None]]:
    """The function that calls the reference kernel of `op` on the memory of a plan and stores the results there.

    With data-dependent sizes there are two: `measure` runs the kernel and writes the sizes, `store_held` stores the
    results after the engine has resolved the sizes.

    Args:
        array: returns the elements of a variable in this step.
        levels: returns the names of a variable's offsets.
    """

    def called() -> Iterable[tuple[str, Any]]:
        """The results of the kernel by variable."""
        inputs = {slot: [array(name) for name in names] for slot, names in op.inputs.items() if names}
        lods = None
        if op.definition.sequences.takes_lod:
            lods = {
                slot: [tuple(map(array, levels(name))) for name in names] for slot, names in op.inputs.items()
            }
        try:
            results = op.definition.call(np, inputs, op.attrs, lods, on_numpy=True)
        except Exception as error:
            failures.raise_in_operator(op, error)
        return op._named(results)

    def store(name: str, value: Any) -> None:
        """Copy a result to the memory of its variable; raises OperatorError for another shape or element type."""
        if isinstance(value, LodArray):
            for level, offsets in zip(levels(name), value.lod, strict=False):
                if level.startswith(name + LEVEL):  # its own, not an input's
                    store(level, offsets)
            value = value.array
        target = array(name)
        try:
            check_result(op.type, value, target.shape, target.dtype)
        except OperatorError as error:
            raise failures.in_operator(op, error) from None
        np.copyto(target, value, casting="same_kind")

    def step() -> None:
        for name, value in called():
            store(name, value)

    held: list[tuple[str, Any]] = []

    def measure() -> None:
        assert pending is not None
        held[:] = called()
        array(pending.scratch)[:] = pending.measure(held)

    def store_held() -> None:
        for name, value in held:
            store(name, value)
        held.clear()

    return [step] if pending is None else [measure, store_held]
