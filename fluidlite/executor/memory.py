"""What is known about the memory of temporaries before it has its place (`_ext/engine/places.h` finds places)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Storage:
    """Memory that one or several variables (views of each other) live in, from the step `first` to `last`.

    `bytes` may be a formula (`base.sizes.Size`).
    """

    bytes: int
    names: list[str] = field(default_factory=list)
    first: int = -1
    last: int = -1

    def touch(self, step: int) -> None:
        if self.first < 0:
            self.first = step
        self.last = max(self.last, step)
