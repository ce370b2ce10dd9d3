"""Joins what clipping by the global norm does to each gradient on a GPU: its squares and their sum, and the scaling."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...base.dtypes import VarType
from ...base.shapes import product
from ...ops.registry import OpView
from .joining import Joining
from .launch import Get, Launch

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


def join_norms(launches: Sequence[Launch], needed: Collection[str]) -> list[Launch]:
    """The launches with runs of sums of squares, and of products with one number, joined. `needed`: see
    `fusion.fuse`."""
    joined = _Norms(launches, needed).squares()
    return _Norms(joined, needed).products()


class _Norms(Joining):
    def squares(self) -> list[Launch]:
        """With `square` and `reduce_sum` of at least two arrays joined."""
        return self._joined(lambda position: self._run(position, 2, self._sum, _Squares))

    def products(self) -> list[Launch]:
        """With products of at least two arrays and the same number joined."""
        return self._joined(lambda position: self._run(position, 1, self._product, _Products))

    def _run(
        self, position: int, step: int, find: Callable[[int], _Part | None], kind: Callable[..., Any]
    ) -> tuple[Launch, int] | None:
        """The launch for as many parts of `step` launches as are alike, next to each other and independent."""
        parts: list[_Part] = []
        written: set[str] = set()
        while (part := find(position + step * len(parts))) is not None:
            if written & {part.source, part.by} or (
                parts and (part.kind, part.by) != (parts[0].kind, parts[0].by)
            ):
                break
            parts.append(part)
            written |= {
                name for k in range(step) for name in self._writes(position + step * len(parts) - 1 - k)
            }
        if len(parts) < 2:
            return None
        run = kind(tuple(parts))
        count = step * len(parts)
        return self._launch(position, count, run.reads, tuple(part.target for part in parts), run), count

    def _writes(self, position: int) -> tuple[str, ...]:
        return self.launches[position].writes

    def _sum(self, position: int) -> _Part | None:
        square, total = self._view(position, ("square",)), self._view(position + 1, ("reduce_sum",))
        if square is None or total is None or total.name("X") != square.name("Out"):
            return None
        dims = total.attr("dim")
        listed = [dims] if isinstance(dims, int) else dims
        rank = len(total.shape("X"))
        whole = total.attr("reduce_all") or len({axis % rank for axis in listed}) == rank
        if not whole or not self._only_next(position, square.name("Out")):
            return None
        return _part(square, total.name("Out"), tuple(total.shape("Out")))

    def _product(self, position: int) -> _Part | None:
        view = self._view(position, ("elementwise_mul",))
        if view is None or product(tuple(view.shape("Y"))) != 1 or view.dtype("Y") != view.dtype("X"):
            return None
        if tuple(view.shape("Out")) != tuple(view.shape("X")):
            return None
        return _part(view, view.name("Out"), tuple(view.shape("Out")), view.name("Y"))


@dataclass(frozen=True)
class _Part:
    """What is done to one array: `target` gets `shape`; `by`: what it is multiplied by."""

    kind: VarType
    source: str
    target: str
    shape: tuple[int, ...]
    by: str | None = None


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
        from ...backend.cupy_.many import sums_of_squares

        sums = sums_of_squares(device, [get(part.source) for part in self.parts])
        return {part.target: made.reshape(part.shape) for part, made in zip(self.parts, sums, strict=True)}


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
        from ...backend.cupy_.many import scaled

        made = scaled(device, [get(part.source) for part in self.parts], get(self._by))
        return {part.target: array for part, array in zip(self.parts, made, strict=True)}
