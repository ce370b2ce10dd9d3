"""GPU fusion of the gradients of several lookups in one table with their sum: all add to one array."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...ops.registry import OpView, grad_name
from ..ir.instructions import Instruction, Uses
from .launch import Get, one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

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
        fused_at[position] = _fused([launches[place] for place in terms], launch)
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


def _fused(parts: list[Instruction], total: Instruction) -> Instruction:
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
