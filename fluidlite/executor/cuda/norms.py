"""GPU fusion of clipping by the global norm: the sums of squares of all gradients, and their scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.sizes.shapes import product
from ...ops.registry import OpView
from ..ir.instructions import Instruction
from ..passes.rewriting import HorizontalFusion, Member
from .launch import Get

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
