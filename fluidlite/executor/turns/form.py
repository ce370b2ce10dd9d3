"""`Turns`: what a loop asks for whose turns are to be taken together, and `Taken`: what it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...framework import Block, Operator
from .stacks import Stack


class Carried(NamedTuple):
    """What a turn finds of the turn before, where that is called `after`.

    `first`: what the first turn finds; `rows`: how many rows there are at each place, where that is known beforehand.
    """

    after: str
    first: np.ndarray
    rows: np.ndarray | None


@dataclass
class Turns:
    """The turns of a loop.

    Args:
        block: what a turn runs, and `ops`: what of that computes something.
        count: how many turns there are; `back`: whether they go from the last place to the first.
        given: what each turn is given; `carried`: what it finds of the turn before.
        shortened: the first rows of something given or carried: that, and how many at each place.
        wanted: what is wanted of all turns; `sums`: what is wanted as a sum over them.
    """

    block: Block
    ops: Sequence[Operator]
    count: int
    back: bool
    given: dict[str, Stack]
    carried: dict[str, Carried]
    wanted: Sequence[str]
    sums: Sequence[str] = ()
    shortened: dict[str, tuple[str, np.ndarray]] = field(default_factory=dict)

    def key(self) -> tuple[object, ...]:
        """What the operators are sorted by."""
        carried = tuple((name, each.after) for name, each in self.carried.items())
        shortened = tuple((name, source) for name, (source, _) in self.shortened.items())
        return tuple(self.given), carried, shortened, tuple(self.wanted), tuple(self.sums)

    def place(self, turn: int) -> int:
        return self.count - 1 - turn if self.back else turn


class Taken(NamedTuple):
    """What has come of the turns: values of all turns, sums, and what is carried as the last one has left it."""

    stacks: dict[str, Stack]
    sums: dict[str, np.ndarray]
    last: dict[str, np.ndarray]


__all__ = ["Carried", "Taken", "Turns"]
