"""GPU fusion of parameter updates: multi-tensor apply, one launch for all updates of a kind."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...backend.cupy_.launchers import updates
from ...ops.registry import OpView
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import Group, HorizontalFusion, Member
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_POWER = "Beta1Pow"


@dataclass
class _Update:
    """The update of one parameter: the operator, its variables by slot.

    `decay`: the factor of the parameter in its gradient (weight decay). `carry`: the factor by which the power of beta
    is multiplied afterwards.
    """

    view: OpView
    names: dict[str, str]
    decay: float = 0.0
    carry: float = 1.0


class Updates(HorizontalFusion):
    """Groups of updates of one kind, each with its weight decay and the advance of its power of beta."""

    def __init__(self, instructions: list[Instruction], uses: Uses) -> None:
        self._roots: dict[str, str] = {}
        self._read_at: dict[str, list[int]] = defaultdict(list)
        self._written_at: dict[str, list[int]] = defaultdict(list)
        super().__init__(instructions, uses, self._roots)
        for position, launch in enumerate(instructions):
            self._note_alias(launch)
            for name in launch.reads:
                self._read_at[self.root(name)].append(position)
            for name in launch.writes:
                self._written_at[self.root(name)].append(position)

    def root(self, name: str) -> str:
        """The variable whose memory `name` may share."""
        return self._roots.get(name, name)

    def _note_alias(self, launch: Instruction) -> None:
        if launch.view is not None and launch.op.definition.planning.view is not None:
            out_slot, in_slot = launch.op.definition.planning.view
            (out,), (source,) = launch.op.outputs[out_slot], launch.op.inputs[in_slot]
            self._roots[out] = self.root(source)

    def member(self, position: int) -> Member | None:
        """The update at a position; None if it has no kernel or is not in place."""
        launch = self.instructions[position]
        view = launch.view
        if view is None or view.type not in updates.RULES or view.rows("Grad") is not None:
            return None
        rule = updates.RULES[view.type]
        for slot, out in zip(rule.results, view.definition.output_slots, strict=True):
            if view.name_or_none(slot) != next(iter(view.outputs.get(out.name, ())), None):
                return None
        names = {slot: held[0] for slot, held in view.inputs.items() if held}
        if not set(names.values()) <= set(launch.reads):
            return None
        update = _Update(view, names)
        before = self._decay(position, update)
        return Member(_kind(update), launch, before, detail=update)

    def _decay(self, end: int, update: _Update) -> tuple[Instruction, ...]:
        """The launches that add weight decay to the gradient, if only the update reads their result.

        The update kernel computes the decay then.
        """
        total, param = update.names["Grad"], update.names["Param"]
        middle = self._writer_before(total, end)
        addition = self.instructions[middle].view if middle is not None else None
        if middle is None or addition is None or addition.type != "sum" or addition.count("X") != 2:
            return ()
        grad, decay = addition.names("X")
        start = self._writer_before(decay, middle)
        scale = self.instructions[start].view if start is not None else None
        if (
            start is None
            or scale is None
            or scale.type != "scale"
            or scale.attr("bias")
            or len(scale.inputs) != 1
        ):
            return ()
        only_reader = (
            scale.name("X") == param
            and addition.rows("X", 0) is None
            and grad != decay
            and self._written_at[decay] == [start]
            and self._read_at[decay] == [middle]
            and not {decay, total}.intersection(self.uses.needed)
            and [at for at in self._read_at[total] if at > middle] == [end]
            and self._written_at[total][-1] == middle
            and not self._roots.keys() & {decay, total, grad, param}
        )
        if not only_reader or any(
            at != middle
            for name in (param, grad)
            for at in _between(self._written_at[self.root(name)], start, end)
        ):
            return ()
        update.names["Grad"], update.decay = grad, float(scale.attr("scale"))
        return self.instructions[start], self.instructions[middle]

    def _writer_before(self, name: str, position: int) -> int | None:
        """The position of the last write of `name` before `position`."""
        positions = self._written_at[self.root(name)]
        index = bisect_left(positions, position)
        return positions[index - 1] if index else None

    def is_absorbed(self, position: int, groups: Iterable[Group]) -> bool:
        """True if the launch only advances the power of beta of an update, whose kernel does that then."""
        launch = self.instructions[position]
        view = launch.view
        if view is None or view.type != "scale" or view.attr("bias"):
            return False
        power = view.name("X")
        if view.inputs["X"] != view.outputs["Out"]:
            return False
        for group in groups:
            for member in group.members:
                matches = member.detail.names.get(_POWER) == power and not member.after
                if not matches or _POWER in updates.RULES[member.main.kind].results:
                    continue
                if not _between(self._read_at[self.root(power)], group.place, position):
                    member.detail.carry, member.after = float(view.attr("scale")), (launch,)
                    group.writes.add(self.root(power))
                    return True
        return False

    def fused(self, members: list[Member]) -> list[Instruction]:
        by_carry: dict[float, list[Member]] = defaultdict(list)
        for member in members:
            by_carry[member.detail.carry].append(member)
        return [_fused(each) for each in by_carry.values()]


def _between(positions: Sequence[int], start: int, end: int) -> Sequence[int]:
    """The sorted `positions` strictly between `start` and `end`."""
    return positions[bisect_right(positions, start) : bisect_left(positions, end)]


def _attrs(view: OpView) -> dict[str, Any]:
    return {name: view.attr(name) for name in view.definition.attrs}


def _kind(update: _Update) -> tuple[Any, ...]:
    """The key of updates that one launch can make: type, dtypes, hyperparameters and powers of beta."""
    view = update.view
    rule = updates.RULES[view.type]
    rate = view.dtype("LearningRate") if rule.rated else None
    betas = tuple(update.names.get(slot) for slot in rule.betas)
    return view.type, view.dtype("Param"), rate, rule.numbers(_attrs(view)), betas


def _fused(members: list[Member]) -> Instruction:
    """One launch for updates with the same key."""
    parts = [part for member in members for part in member.instructions]
    if len(parts) == 1:
        return parts[0]
    kept = [part for member in members for part in (member.main, *member.after)]
    reads = tuple(dict.fromkeys(name for member in members for name in member.detail.names.values()))
    writes = tuple(dict.fromkeys(name for part in kept for name in part.writes))
    ops = tuple(op for part in parts for op in part.ops)
    return Instruction(ops, reads, writes, _MultiUpdate([member.detail for member in members], parts, writes))


class _MultiUpdate:
    """Runs updates in one launch, or one by one if the arrays do not fit the kernel."""

    def __init__(self, members: list[_Update], parts: list[Instruction], writes: tuple[str, ...]) -> None:
        self._updates, self._parts, self._writes = members, parts, writes
        self._type = members[0].view.type
        self._attrs = {**_attrs(members[0].view), "carry": members[0].carry}

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        entries = []
        for update in self._updates:
            entry = {slot: get(name) for slot, name in update.names.items()}
            if not updates.fits(self._type, entry, self._attrs):
                outputs = one_by_one(self._parts, device, get)
                return {name: outputs[name] for name in self._writes}
            entries.append({**entry, "Decay": update.decay})
        updates.update(device, self._type, entries, self._attrs)
        return {name: get(name) for name in self._writes}
