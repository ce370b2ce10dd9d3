"""Who reads and writes the variables of a list of launches; what launches that join others ask."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .launch import Get, Launch

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class Uses:
    """`written`: how often each variable is written. `needed`: variables that must have their values in the end."""

    def __init__(self, launches: Sequence[Launch], needed: Collection[str]) -> None:
        self.written = Counter(name for launch in launches for name in launch.writes)
        self._needed = needed
        self._readers: dict[str, list[Launch]] = defaultdict(list)
        for launch in launches:
            for name in launch.reads:
                self._readers[name].append(launch)

    def private(self, name: str, inside: Iterable[Launch]) -> tuple[bool, bool]:
        """Whether nobody but the launches `inside` needs the elements of `name`; whether others look at its shape."""
        if name in self._needed or self.written[name] != 1:
            return False, False
        within = {id(launch) for launch in inside}
        others = [launch for launch in self._readers[name] if id(launch) not in within]
        return all(_shape_only(launch, name) for launch in others), bool(others)


def _shape_only(launch: Launch, name: str) -> bool:
    slots = {slot for slot, names in launch.op.inputs.items() if name in names}
    return bool(slots) and not launch.joined and slots <= launch.op.definition.unread


def one_by_one(launches: Iterable[Launch], device: CudaDevice, get: Get) -> Mapping[str, Any]:
    """Run launches in order; returns what all of them write."""
    made: dict[str, Any] = {}
    for launch in launches:
        made.update(launch.run(device, lambda name: made[name] if name in made else get(name)))
    return made
