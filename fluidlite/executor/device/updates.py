"""Joins the updates of parameters of a program on a GPU: all of one kind in one launch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import updates
from ...ops.registry import OpView
from .launch import Get, Launch
from .uses import one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


def join_updates(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with updates of one kind joined, each with its weight decay and with what carries its power on.

    An update is made later, with the last of its kind, when nothing in between touches what it works on.
    """
    return _Joining(launches, needed).result()


@dataclass
class _Update:
    """The update of one parameter: its launch, those that it makes superfluous before and after, variables by slot.

    `decay`: so many times the parameter is added to its gradient. `carry`: what the power of beta is multiplied by
    afterwards.
    """

    launch: Launch
    view: OpView
    names: dict[str, str]
    before: tuple[Launch, ...] = ()
    after: tuple[Launch, ...] = ()
    decay: float = 0.0
    carry: float = 1.0

    @property
    def launches(self) -> tuple[Launch, ...]:
        return (*self.before, self.launch, *self.after)


@dataclass
class _Group:
    """Updates that can be made together, at the place of the last one; what they read and write."""

    place: int
    updates: list[_Update] = field(default_factory=list)
    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def meets(self, reads: set[str], writes: set[str]) -> bool:
        """Whether the order between the group and something else matters."""
        return bool(self.writes & (reads | writes) or self.reads & writes)


class _Joining:
    def __init__(self, launches: Sequence[Launch], needed: Collection[str]) -> None:
        self._launches = launches
        self._needed = needed
        self._roots: dict[str, str] = {}
        self._read_at: dict[str, list[int]] = defaultdict(list)
        self._written_at: dict[str, list[int]] = defaultdict(list)
        for position, launch in enumerate(launches):
            self._note_view(launch)
            for name in launch.reads:
                self._read_at[self._root(name)].append(position)
            for name in launch.writes:
                self._written_at[self._root(name)].append(position)

    def _note_view(self, launch: Launch) -> None:
        view = launch.op.definition.view
        if view is not None and not launch.joined:
            (out,), (source,) = launch.op.outputs[view[0]], launch.op.inputs[view[1]]
            self._roots[out] = self._root(source)

    def _root(self, name: str) -> str:
        """The variable whose memory `name` may be another name for."""
        return self._roots.get(name, name)

    def _all_roots(self, names: Iterable[str]) -> set[str]:
        return {self._root(name) for name in names}

    def result(self) -> list[Launch]:
        found = {
            position: update for position in range(len(self._launches)) if (update := self._update(position))
        }
        places = {id(launch): position for position, launch in enumerate(self._launches)}
        absorbed = {places[id(part)] for update in found.values() for part in update.before}
        groups: list[_Group] = []
        open_: dict[tuple[Any, ...], _Group] = {}
        for position, launch in enumerate(self._launches):
            if position in absorbed:
                continue
            if self._carried(position, open_.values()):
                absorbed.add(position)
                continue
            update = found.get(position)
            parts = update.launches if update is not None else (launch,)
            reads = self._all_roots(name for part in parts for name in part.reads)
            writes = self._all_roots(name for part in parts for name in part.writes)
            for key in [key for key, group in open_.items() if group.meets(reads, writes)]:
                del open_[key]
            if update is None:
                continue
            key = _kind(update)
            if key not in open_:
                groups.append(open_.setdefault(key, _Group(position)))
            group = open_[key]
            group.place = position
            group.updates.append(update)
            group.reads |= reads
            group.writes |= writes
        return self._with(groups, absorbed | set(found))

    def _with(self, groups: list[_Group], replaced: set[int]) -> list[Launch]:
        """The launches with the groups in place of `replaced`."""
        at: dict[int, list[Launch]] = defaultdict(list)
        for group in groups:
            by_carry: dict[float, list[_Update]] = defaultdict(list)
            for update in group.updates:
                by_carry[update.carry].append(update)
            at[group.place] += [_together(members) for members in by_carry.values()]
        out: list[Launch] = []
        for position, launch in enumerate(self._launches):
            if position not in replaced:
                out.append(launch)
            out += at.get(position, [])
        return out

    def _update(self, position: int) -> _Update | None:
        """The update at a position, if there is a kernel for it and it is made in place."""
        launch = self._launches[position]
        view = launch.view
        if view is None or view.type not in updates.RULES or view.rows("Grad") is not None:
            return None
        rule = updates.RULES[view.type]
        for slot, out in zip(rule.results, view.definition.output_slots, strict=True):
            if view.name_or_none(slot) != next(iter(view.outputs.get(out.name, ())), None):
                return None
        names = {slot: given[0] for slot, given in view.inputs.items() if given}
        if not set(names.values()) <= set(launch.reads):
            return None
        return self._decayed(position, _Update(launch, view, names))

    def _decayed(self, end: int, update: _Update) -> _Update:
        """The update with the weight decay that is added to its gradient before, if nobody else looks at that."""
        total, param = update.names["Grad"], update.names["Param"]
        middle = self._writer_before(total, end)
        addition = self._launches[middle].view if middle is not None else None
        if middle is None or addition is None or addition.type != "sum" or addition.count("X") != 2:
            return update
        grad, decay = addition.names("X")
        start = self._writer_before(decay, middle)
        scale = self._launches[start].view if start is not None else None
        if (
            start is None
            or scale is None
            or scale.type != "scale"
            or scale.attr("bias")
            or len(scale.inputs) != 1
        ):
            return update
        alone = (
            scale.name("X") == param
            and addition.rows("X", 0) is None
            and grad != decay
            and self._written_at[decay] == [start]
            and self._read_at[decay] == [middle]
            and not {decay, total}.intersection(self._needed)
            and [at for at in self._read_at[total] if at > middle] == [end]
            and self._written_at[total][-1] == middle
            and not self._roots.keys() & {decay, total, grad, param}
        )
        if not alone or any(
            at != middle
            for name in (param, grad)
            for at in _inside(self._written_at[self._root(name)], start, end)
        ):
            return update
        update.before = self._launches[start], self._launches[middle]
        update.names["Grad"], update.decay = grad, float(scale.attr("scale"))
        return update

    def _writer_before(self, name: str, position: int) -> int | None:
        """Where `name` was written last before a position."""
        places = self._written_at[self._root(name)]
        index = bisect_left(places, position)
        return places[index - 1] if index else None

    def _carried(self, position: int, groups: Iterable[_Group]) -> bool:
        """Whether the launch only carries the power of beta of an update on, which then does it itself."""
        launch = self._launches[position]
        view = launch.view
        if (
            view is None
            or view.type != "scale"
            or view.attr("bias")
            or view.inputs["X"] != view.outputs["Out"]
        ):
            return False
        power = view.name("X")
        for group in groups:
            for update in group.updates:
                mine = update.view.type == "adamax" and update.names["Beta1Pow"] == power and not update.after
                if mine and not _inside(self._read_at[self._root(power)], group.place, position):
                    update.carry, update.after = float(view.attr("scale")), (launch,)
                    group.writes.add(self._root(power))
                    return True
        return False


def _inside(places: Sequence[int], start: int, end: int) -> Sequence[int]:
    """Those of `places` (in order) that are between two positions."""
    return places[bisect_right(places, start) : bisect_left(places, end)]


def _attrs(view: OpView) -> dict[str, Any]:
    return {name: view.attr(name) for name in view.definition.attrs}


def _kind(update: _Update) -> tuple[Any, ...]:
    """What updates have in common that one launch can make."""
    view = update.view
    rule = updates.RULES[view.type]
    rate = view.dtype("LearningRate") if rule.rated else None
    betas = tuple(update.names.get(slot) for slot in rule.betas)
    return view.type, view.dtype("Param"), rate, rule.numbers(_attrs(view)), betas


def _together(members: list[_Update]) -> Launch:
    """One launch for updates that are all alike."""
    parts = [part for update in members for part in update.launches]
    if len(parts) == 1:
        return parts[0]
    kept = [part for update in members for part in (update.launch, *update.after)]
    reads = tuple(dict.fromkeys(name for update in members for name in update.names.values()))
    writes = tuple(dict.fromkeys(name for part in kept for name in part.writes))
    return Launch(
        parts[0].op, reads, writes, _Together(members, writes), tuple(part.op for part in parts[1:])
    )


class _Together:
    """Runs updates in one launch, or one by one where the arrays turn out not to fit the kernel."""

    def __init__(self, members: list[_Update], writes: tuple[str, ...]) -> None:
        self._members, self._writes = members, writes
        self._type = members[0].view.type
        self._attrs = {**_attrs(members[0].view), "carry": members[0].carry}

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        entries = []
        for update in self._members:
            entry = {slot: get(name) for slot, name in update.names.items()}
            if not updates.fits(self._type, entry, self._attrs):
                made = one_by_one((part for each in self._members for part in each.launches), device, get)
                return {name: made[name] for name in self._writes}
            entries.append({**entry, "Decay": update.decay})
        updates.update(device, self._type, entries, self._attrs)
        return {name: get(name) for name in self._writes}
