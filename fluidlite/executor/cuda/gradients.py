"""GPU fusion over gradients: clipping by their global norm, and sums of those of several lookups in one table.

Of the norm these are the sums of squares of all gradients, and their scaling; lookups all add to one array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.sizes.shapes import product
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from ..passes.rewriting import HorizontalFusion, Member
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class Squares(HorizontalFusion):
    """Multi-tensor sums of squares."""

    def member(self, position: int) -> Member | None:
        total = self.instructions[position]
        square = self.instructions[position - 1] if position else total
        if square.kind != "square" or total.kind != "reduce_sum" or total.view is None or square.view is None:
            return None
        dims, rank = total.view.attr("dim"), len(total.view.shape("X"))
        axes = [dims] if isinstance(dims, int) else dims
        whole = total.view.attr("reduce_all") or len({axis % rank for axis in axes}) == rank
        squares = square.view.name("Out")
        if not whole or total.view.name("X") != squares or not self.uses.is_private(squares, [total]):
            return None
        part = _part(square.view, total.view.name("Out"), tuple(total.view.shape("Out")))
        return None if part is None else Member(part.key, total, before=(square,), detail=part)

    def fused(self, members: list[Member]) -> list[Instruction]:
        return _fused(members, _Squares)


class Products(HorizontalFusion):
    """Multi-tensor products with the same scalar."""

    def member(self, position: int) -> Member | None:
        instruction = self.instructions[position]
        view = instruction.view
        if view is None or view.type != "elementwise_mul" or product(tuple(view.shape("Y"))) != 1:
            return None
        shape = tuple(view.shape("Out"))
        if view.dtype("Y") != view.dtype("X") or shape != tuple(view.shape("X")):
            return None
        part = _part(view, view.name("Out"), shape, view.name("Y"))
        return None if part is None else Member(part.key, instruction, detail=part)

    def fused(self, members: list[Member]) -> list[Instruction]:
        return _fused(members, _Products)


def _fused(members: list[Member], kind: Callable[..., Any]) -> list[Instruction]:
    """One launch for several members; the launches of a single member unchanged."""
    launches = [each for member in members for each in member.instructions]
    if len(members) < 2:
        return launches
    run = kind(tuple(member.detail for member in members))
    ops = tuple(op for each in launches for op in each.ops)
    return [Instruction(ops, run.reads, tuple(part.target for part in run.parts), run)]


@dataclass(frozen=True)
class _Part:
    """The operation on one array: `target` has `shape`; `by`: the variable that it is multiplied by."""

    kind: VarType
    source: str
    target: str
    shape: tuple[int, ...]
    by: str | None = None

    @property
    def key(self) -> tuple[VarType, str | None]:
        """The dtype and factor, which are the same for all arrays of a launch."""
        return self.kind, self.by


def _part(view: OpView, target: str, shape: tuple[int, ...], by: str | None = None) -> _Part | None:
    kind = view.dtype("X")
    if (
        kind not in (VarType.FP32, VarType.FP64)
        or view.rows("X") is not None
        or target in (view.name("X"), by)
    ):
        return None
    return _Part(kind, view.name("X"), target, shape, by)


@dataclass(frozen=True)
class _Squares:
    parts: tuple[_Part, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part.source for part in self.parts))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.updates import sums_of_squares

        sums = sums_of_squares(device, [get(part.source) for part in self.parts])
        return {part.target: total.reshape(part.shape) for part, total in zip(self.parts, sums, strict=True)}


@dataclass(frozen=True)
class _Products:
    parts: tuple[_Part, ...]

    @property
    def _by(self) -> str:
        by = self.parts[0].by
        assert by is not None
        return by

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*(part.source for part in self.parts), self._by)))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_.launchers.updates import scaled

        results = scaled(device, [get(part.source) for part in self.parts], get(self._by))
        return {part.target: array for part, array in zip(self.parts, results, strict=True)}


_OUT_GRAD, _W_GRAD = grad_name("Out"), grad_name("W")


def join_lookups(launches: list[Instruction], uses: Uses) -> list[Instruction]:
    """Replace gradients of lookups in one table and their sum by one launch."""
    fused_at: dict[int, Instruction] = {}
    absorbed: set[int] = set()
    places = {id(launch): place for place, launch in enumerate(launches)}
    for position, launch in enumerate(launches):
        parts = _terms(launch, uses)
        if parts is None:
            continue
        terms = sorted(places[id(part)] for part in parts)
        if any(_writes_any(launches[start + 1 : position], launches[start].reads) for start in terms):
            continue
        fused_at[position] = _fused_sum([launches[place] for place in terms], launch)
        absorbed.update(terms)
    return [fused_at.get(place, launch) for place, launch in enumerate(launches) if place not in absorbed]


def _terms(total: Instruction, uses: Uses) -> list[Instruction] | None:
    """The launches that compute the terms of a sum, if all are gradients of one table that only the sum reads."""
    view = total.view
    if view is None or view.type != "sum" or view.count("X") < 2:
        return None
    terms = view.names("X")
    if len({*terms}) != len(terms) or not all(uses.is_private(name, [total]) for name in terms):
        return None
    parts = [uses.producers[name] for name in terms]
    views = [part.view for part in parts if _dense(part)]
    tables = {view.name("W") for view in views if view is not None}
    return parts if len(views) == len(terms) and len(tables) == 1 else None


def _writes_any(launches: Sequence[Instruction], names: Collection[str]) -> bool:
    """True if one of `names` is written by launches."""
    return any(not set(names).isdisjoint(launch.writes) for launch in launches)


def _dense(launch: Instruction) -> bool:
    """True if a launch is a dense gradient of a lookup with types that have kernels."""
    view = launch.view
    if view is None or launch.kind != "lookup_grad" or view.attr("is_sparse") or not view.has(_W_GRAD):
        return False
    kinds = view.dtype("W"), view.dtype(_OUT_GRAD)
    ids = view.dtype("Ids") in (VarType.INT32, VarType.INT64)
    return ids and kinds[0] == kinds[1] and kinds[0] in (VarType.FP32, VarType.FP64)


def _fused_sum(parts: list[Instruction], total: Instruction) -> Instruction:
    """One launch for the gradients and their sum."""
    views = tuple(part.view for part in parts if part.view is not None)
    run = _Sum(views, total.op.outputs["Out"][0], (*parts, total))
    return Instruction(tuple(each.op for each in run.launches), run.reads, (run.total,), run)


@dataclass(frozen=True)
class _Sum:
    views: tuple[OpView, ...]
    total: str
    launches: tuple[Instruction, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        slots = ("W", "Ids", _OUT_GRAD)
        return tuple(dict.fromkeys(view.name(slot) for view in self.views for slot in slots))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_ import launch
        from ...backend.cupy_.launchers import moves

        table = get(self.views[0].name("W"))
        pairs = [(get(view.name("Ids")), get(view.name(_OUT_GRAD))) for view in self.views]
        if not all(launch.real(table, g) and launch.is_index(ids) for ids, g in pairs):
            return {self.total: one_by_one(self.launches, device, get)[self.total]}
        total = device.xp.zeros(table.shape, table.dtype)
        for view, (ids, g) in zip(self.views, pairs, strict=True):
            moves.add_rows(device, total, ids, g, view.attr("padding_idx"))
        return {self.total: total}
