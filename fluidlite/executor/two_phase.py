"""`TwoPhasePlan`: a plan whose backward operators run later than the others, on gradients that come in between."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.dtypes import to_numpy
from ..framework import OpRole, Program
from .feeding import Feed
from .plan import Plan
from .scope import Scope

RELEASE_FROM = 1 << 18
"""From how many bytes of temporaries on a plan lets other threads run."""


class TwoPhasePlan(Plan):
    """A plan that stops before its first backward operator.

    Args:
        program: forward operators, then backward ones.
        scope: where the lasting variables are.
        feed: arrays like those to come, of both phases.
        fetches: what the first phase makes.
        late_fetches: what the second phase makes.
        late: the feeds that come with the second phase.
        held: lasting variables whose memory belongs to somebody else; `accepts` takes them after the early feeds.

    Raises CannotPlan when the program needs the interpreter.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Feed,
        fetches: Sequence[str],
        late_fetches: Sequence[str],
        late: Sequence[str],
        held: Sequence[str],
    ) -> None:
        super().__init__(program, scope, feed, [*fetches, *late_fetches])
        self._first, self._second = list(fetches), list(late_fetches)
        places = [self._slots.get(self._root(name), -1) for name in late_fetches]
        self._copied_at_once = bool(places) and min(places) >= 0
        if self._copied_at_once:
            layouts = [(to_numpy(self.meta.dtypes[name]), self.meta.shapes[name]) for name in late_fetches]
            self.engine.set_fetches([(slot, *layout) for slot, layout in zip(places, layouts, strict=True)])
        self._late = [(name, self._slots.get(name)) for name in late]
        self.feed_names = [name for name in self.feed_names if name not in late]
        self.follow([name for name in held if name in self.meta.persistable])
        roles = [op.attrs.get("op_role", 0) for op in self.ops]
        self._cut = next((k for k, role in enumerate(roles) if role & OpRole.Backward), len(roles))
        self.engine.release_gil = self.arena_bytes >= RELEASE_FROM

    def run_first(self) -> list[np.ndarray]:
        """Run the forward operators on what `accepts` has bound; returns copies of the fetches."""
        self.run(0, self._cut)
        return [self._array(name).copy() for name in self._first]

    def run_second(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the backward operators with the late feeds `arrays`, which have the planned shapes and dtypes.

        Returns copies of the late fetches.
        """
        for (name, slot), array in zip(self._late, arrays, strict=True):
            self._views[name] = array
            if slot is not None:
                self.engine.bind(slot, array)
        if self._cut < len(self.ops):
            self.run(self._cut)
        if self._copied_at_once:
            return self.engine.fetch_all()
        return [self._array(name).copy() for name in self._second]

    def snapshot(self) -> np.ndarray:
        """All temporaries as they are now, for `restore`."""
        return self._arena.copy()

    def restore(self, snapshot: np.ndarray) -> None:
        """Put the temporaries back, so that the second phase can run once more."""
        np.copyto(self._arena, snapshot)
