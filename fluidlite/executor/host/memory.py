"""What is known about the memory of temporaries before it has its place (`_ext/engine/places.h` finds places)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Storage:
    """Memory that one or several variables (views of each other) live in, from the step `first` to `last`.

    `bytes` may be a formula (`base.sizes.Size`).
    """

    bytes: int
    names: list[str]
    first: int
    last: int
