"""`TwoPhasePlan`: a plan whose backward operators run later than the others, on gradients that come in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...framework import Program
from ..plan.step_plan import TwoPhases
from ..tensors.scope import Scope
from .plan import Plan

RELEASE_FROM = 1 << 18
"""From how many bytes of temporaries on a plan lets other threads run."""


class TwoPhasePlan(TwoPhases, Plan):
    """A plan in two phases on the host.

    Args:
        program: forward operators, then backward ones.
        scope: where the persistable variables are.
        feed: arrays like those to come with the first phase; dimensions that the program leaves open may change.
        fetches: what the first phase makes.
        late_fetches: what the second phase makes.
        late: the feeds that come with the second phase; of each the variable that it has shape and type of.
        held: persistable variables whose memory belongs to somebody else; `accepts` takes them after the early feeds.
        watched: whether results with NaN or infinities are refused.

    Raises CannotPlan when the program is no single plan.
    """

    branches = False  # one might be cut in two

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, np.ndarray],
        fetches: Sequence[str],
        late_fetches: Sequence[str],
        late: Mapping[str, str],
        held: Sequence[str],
        watched: bool = False,
    ) -> None:
        super().__init__(program, scope, feed, [*fetches, *late_fetches], later=late, watched=watched)
        self._first = [self._entry(name) for name in self.fetched[: len(fetches)]]
        self.engine.set_fetches([self._entry(name) for name in self.fetched[len(fetches) :]])
        self._late = [(name, *self._entry(name)) for name, like in late.items() if self.meta.has(like)]
        self.follow([name for name in held if name in self.meta.persistable])

    def run_first(self) -> list[np.ndarray]:
        self.release_gil(self.engine.arena_bytes >= RELEASE_FROM)
        self.run(0, self._cut)
        return [self.engine.fetch(slot, shape, dtype) for slot, dtype, shape in self._first]

    def run_second(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the backward operators with the late feeds `arrays`, of the sizes that the first phase had.

        Returns copies of the late fetches. Raises ValueError for an array of another shape or dtype.
        """
        for (name, slot, dtype, shape), array in zip(self._late, arrays, strict=True):
            wanted = tuple([n if n >= 0 else self.engine.sizes.get(-1 - n) for n in shape])
            if array.shape != wanted or array.dtype != dtype:
                raise ValueError(
                    f"variable {name!r} is {dtype} {list(wanted)} after this forward pass, got an array of "
                    f"{array.dtype} {list(array.shape)}"
                )
            self.engine.bind(slot, array)
        if self._cut < len(self.ops):
            self.run(self._cut)
        return self.engine.fetch_all()

    def snapshot(self) -> np.ndarray:
        return self.engine.arena.copy()

    def restore(self, snapshot: np.ndarray) -> None:
        np.copyto(self.engine.arena, snapshot)
