"""Joins the gradients of several lookups in one table on a GPU with their sum: all add to one array."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...ops.registry import OpView, grad_name
from .joining import Joining
from .launch import Get, Launch
from .uses import one_by_one

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice

_TYPES = ("lookup_table_grad", "lookup_table_v2_grad")
_OUT_GRAD, _W_GRAD = grad_name("Out"), grad_name("W")


def join_lookups(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with the gradients of lookups in one table and their sum joined, at the place of the sum.

    `needed`: see `fusion.fuse`.
    """
    return _Lookups(launches, needed).gradients()


class _Lookups(Joining):
    def __init__(self, launches: Sequence[Launch], needed: Collection[str]) -> None:
        super().__init__(launches, needed)
        self._made_at = {name: k for k, launch in enumerate(launches) for name in launch.writes}

    def gradients(self) -> list[Launch]:
        """With gradients of lookups made together where they are summed."""
        at: dict[int, Launch] = {}
        absorbed: set[int] = set()
        for position in range(len(self.launches)):
            parts = self._parts(position)
            if parts is not None:
                at[position] = self._together([*parts, position])
                absorbed |= {*parts}
        return [at.get(k, launch) for k, launch in enumerate(self.launches) if k not in absorbed]

    def _parts(self, position: int) -> list[int] | None:
        """Where the gradients are made that the sum at `position` is of, if they can be made there as well."""
        total = self._view(position, ("sum",))
        if total is None or total.count("X") < 2:
            return None
        terms = total.names("X")
        if any(self._between(name, self.launches[position]) != (True, False) for name in terms):
            return None
        parts = sorted({self._made_at[name] for name in terms})
        views = [self._dense(k) for k in parts]
        if len(parts) != len(terms) or any(view is None for view in views):
            return None
        if len({view.name("W") for view in views if view is not None}) != 1:
            return None
        if any(self._written(self.launches[k].reads, k, position) for k in parts):
            return None
        return parts

    def _written(self, names: Collection[str], start: int, end: int) -> bool:
        """Whether one of `names` is written between two positions."""
        return any(not set(names).isdisjoint(launch.writes) for launch in self.launches[start + 1 : end])

    def _dense(self, position: int) -> OpView | None:
        """The gradient of a lookup at a position if kernels take it."""
        view = self._view(position, _TYPES)
        if view is None or view.attr("is_sparse") or not view.has(_W_GRAD):
            return None
        kinds = view.dtype("W"), view.dtype(_OUT_GRAD)
        ids = view.dtype("Ids") in (VarType.INT32, VarType.INT64)
        return view if ids and kinds[0] == kinds[1] and kinds[0] in (VarType.FP32, VarType.FP64) else None

    def _together(self, positions: list[int]) -> Launch:
        """One launch for gradients and, at the last of `positions`, their sum."""
        launches = tuple(self.launches[k] for k in positions)
        views = tuple(launch.view for launch in launches[:-1] if launch.view is not None)
        run = _Sum(views, launches[-1].op.outputs["Out"][0], launches)
        ops = [launch.op for launch in launches]
        return Launch(ops[0], run.reads, (run.total,), run, tuple(ops[1:]))


@dataclass(frozen=True)
class _Sum:
    views: tuple[OpView, ...]
    total: str
    launches: tuple[Launch, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        slots = ("W", "Ids", _OUT_GRAD)
        return tuple(dict.fromkeys(view.name(slot) for view in self.views for slot in slots))

    def __call__(self, device: CudaDevice, get: Get) -> Mapping[str, Any]:
        from ...backend.cupy_ import launch, lookup

        table = get(self.views[0].name("W"))
        pairs = [(get(view.name("Ids")), get(view.name(_OUT_GRAD))) for view in self.views]
        if not all(launch.real(table, g) and launch.is_index(ids) for ids, g in pairs):
            return {self.total: one_by_one(self.launches, device, get)[self.total]}
        total = device.xp.zeros(table.shape, table.dtype)
        for view, (ids, g) in zip(self.views, pairs, strict=True):
            lookup.add_rows(device, total, ids, g, view.attr("padding_idx"))
        return {self.total: total}
