"""What looking for launches that can be joined has in common."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...ops.registry import OpView
from .launch import Get, Launch
from .uses import Uses

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class Joining:
    """Finds runs of neighbouring launches that belong together.

    `needed`: variables that must have their values in the end.
    """

    def __init__(self, launches: Sequence[Launch], needed: Collection[str]) -> None:
        self.launches = launches
        self.uses = Uses(launches, needed)

    def _joined(self, find: Callable[[int], tuple[Launch, int] | None]) -> list[Launch]:
        out: list[Launch] = []
        position = 0
        while position < len(self.launches):
            found = find(position)
            launch, count = found if found is not None else (self.launches[position], 1)
            out.append(launch)
            position += count
        return out

    def _view(self, position: int, types: Collection[str]) -> OpView | None:
        """The operator at a position if it is of one of `types` and works on the arrays that it names."""
        if position >= len(self.launches):
            return None
        launch = self.launches[position]
        view = launch.view
        if view is None or view.type not in types or launch.joined:
            return None
        names = [name for names in view.inputs.values() for name in names]
        return view if all(name in launch.reads for name in names) else None

    def _between(self, name: str, reader: Launch) -> tuple[bool, bool]:
        """Whether only `reader` needs the elements of `name`, and whether others still look at its shape."""
        return self.uses.private(name, [reader])

    def _only_next(self, position: int, name: str | None) -> bool:
        """Whether `name` is there and only the launch after `position` looks at it."""
        if name is None or position + 1 >= len(self.launches):
            return False
        return self._between(name, self.launches[position + 1]) == (True, False)

    def _launch(
        self,
        position: int,
        count: int,
        reads: tuple[str, ...],
        writes: tuple[str, ...],
        run: Callable[[CudaDevice, Get], Mapping[str, Any]],
    ) -> Launch:
        ops = [launch.op for launch in self.launches[position : position + count]]
        return Launch(ops[0], reads, writes, run, tuple(ops[1:]))
