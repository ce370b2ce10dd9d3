"""`Partition`: a program as stages that each place runs on its batch, and stages that run once for all places."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field

from ...framework import Block, Operator, OpRole, Program
from ...ops.registry import EMPTY

ONCE = OpRole.Optimize | OpRole.RPC | OpRole.Dist | OpRole.LRSched


@dataclass
class Stage:
    """Operators between two points at which the places wait for each other."""

    once: bool
    """Whether it runs once, on the variables that all places share; otherwise each place runs it."""

    ops: list[int] = field(default_factory=list)
    """The positions of its operators in the global block."""

    inputs: list[str] = field(default_factory=list)
    """The variables that it reads and that are fed or written by an earlier stage, without persistable ones."""

    outputs: list[str] = field(default_factory=list)
    """The variables that it writes and a later stage reads."""

    gradients: list[str] = field(default_factory=list)
    """Gradients of parameters that are complete after it; they are summed over the places."""

    program: Program = field(init=False)
    """A copy of the program with the operators of this stage."""


class Partition:
    """The stages of a program. Those with even numbers run at each place, those with odd numbers once.

    An operator is in the first stage after everything that it depends on. So a training program has two: the forward
    and backward pass, and the update; operators that read updated parameters come in a third one. An operator runs once
    if its role says so (optimizers, schedules, communication), and after such an operator if it computes the same at
    all places, such as an average of the parameters; but not if its inputs vary from place to place, such as a
    learning rate that is fed for each place, or if it writes a variable that is local to places.

    `local`: persistable variables that are local to places already, of which those in `varying` may differ between
    places. `reduce`: places share all persistable variables (Fluid's ReduceStrategy.Reduce), so an update reads the
    values of the first place only.
    """

    stages: list[Stage]

    local: list[str]
    """The persistable variables that each place writes for itself."""

    varying: set[str]
    """The persistable variables that may differ between places after a step."""

    def __init__(
        self,
        program: Program,
        local: Set[str] = frozenset(),
        varying: Set[str] = frozenset(),
        reduce: bool = False,
    ) -> None:
        block = program.global_block()
        self.varying, varies = _find_varying(block, varying)
        assumed = {*local}
        while True:  # until no variable is both local and written by a stage that runs once
            self.stages = _scheduled(block, varies, assumed, reduce)
            written = (name for stage in self.stages if not stage.once for name in _written(block, stage))
            self.local = [name for name in dict.fromkeys(written) if block._is_persistable(name)]
            assumed.update(self.local)
            once = {name for stage in self.stages if stage.once for name in _written(block, stage)}
            if reduce or assumed.isdisjoint(once):
                break
        _connect(block, self.stages)
        self._last = {name: stage for stage in self.stages for name in _written(block, stage)}
        for stage in self.stages:
            stage.program = _with_operators(program, stage.ops)

    def last(self, name: str) -> Stage:
        """The stage after which a variable has its final value; the first stage for a variable that none writes."""
        return self._last.get(name, self.stages[0])


def _find_varying(block: Block, varying: Set[str]) -> tuple[set[str], list[bool]]:
    """The persistable variables that may differ between places, and whether the inputs of each operator may.

    A value varies that depends on a place's batch, is drawn by each place, or is read from a persistable variable that
    varies after the step before: hence the iteration up to a fixed point.
    """
    persistable, found = block._is_persistable, {*varying}
    while True:
        values, written, inputs_vary = {*found}, set[str](), list[bool]()
        for op in block.ops:
            fed = (n for n in op.reads() if n not in written and n != EMPTY and not persistable(n))
            inputs_vary.append(not values.isdisjoint(op.reads()) or any(fed))
            drawn = not _has_role_once(op) and (op.definition.effects.random or op.type == "read")
            (values.update if inputs_vary[-1] or drawn else values.difference_update)(op.writes())
            values.difference_update(_gradients(op))  # their sums are the same at all places
            written.update(op.writes())
        after = {name for name in values if name != EMPTY and persistable(name)}
        if after <= found:
            return found, inputs_vary
        found |= after


def _scheduled(block: Block, inputs_vary: list[bool], local: Set[str], reduce: bool) -> list[Stage]:
    """The stages with their operators and gradients."""
    ops = block.ops
    uniform = [
        reduce or not (varies or not local.isdisjoint(op.writes()))
        for op, varies in zip(ops, inputs_vary, strict=True)
    ]
    has_role = [_has_role_once(op) and same for op, same in zip(ops, uniform, strict=True)]
    updated = {
        n
        for op, once in zip(ops, has_role, strict=True)
        if once
        for n in op.writes()
        if block._is_persistable(n)
    }
    written: dict[str, int] = {}  # the last stage that writes a variable
    read: dict[str, int] = {}  # the last stage that reads it
    stages = [Stage(once=False)]
    for at, op in enumerate(ops):
        dependencies = [written.get(name, 0) for name in op.reads()]
        dependencies += [max(written.get(name, 0), read.get(name, 0)) for name in op.writes()]
        earliest = max(dependencies, default=0)
        follows_update = earliest > 0 or not updated.isdisjoint(op.writes())
        once = has_role[at] or (uniform[at] and not inputs_vary[at] and follows_update)
        number = earliest + (earliest % 2 != once)
        while len(stages) <= number:
            stages.append(Stage(once=len(stages) % 2 == 1))
        stages[number].ops.append(at)
        for name in op.reads():
            read[name] = max(read.get(name, 0), number)
        for name in op.writes():
            written[name] = number
        for name in () if once else _gradients(op):
            stages[number].gradients.append(name)
            written[name] = number + 1  # readers need the sum
    return stages


def _connect(block: Block, stages: list[Stage]) -> None:
    """Find the inputs and outputs of each stage."""
    writer: dict[str, Stage] = {}
    for stage in stages:
        here: set[str] = set()
        for op in map(block.ops.__getitem__, stage.ops):
            for name in op.reads():
                if name in here or name == EMPTY or block._is_persistable(name):
                    continue
                stage.inputs.append(name)
                if name in writer:
                    writer[name].outputs.append(name)
            here.update(op.writes())
        writer.update(dict.fromkeys(here, stage))
        stage.inputs = list(dict.fromkeys(stage.inputs))
    for stage in stages:
        stage.outputs = list(dict.fromkeys(stage.outputs))


def _written(block: Block, stage: Stage) -> Iterable[str]:
    return (name for at in stage.ops for name in block.ops[at].writes() if name != EMPTY)


def _with_operators(program: Program, positions: list[int]) -> Program:
    """A copy of `program` with some operators of its global block."""
    copy = program.clone()
    block = copy.global_block()
    block.ops = [block.ops[at] for at in positions]
    copy._changed()
    return copy


def _has_role_once(op: Operator) -> bool:
    return bool(int(op.attrs.get("op_role", 0)) & ONCE)


def _gradients(op: Operator) -> list[str]:
    """The gradients of parameters that an operator of the backward pass completes."""
    if not int(op.attrs.get("op_role", 0)) & OpRole.Backward:
        return []
    return list((op.attrs.get("op_role_var") or [])[1::2])
