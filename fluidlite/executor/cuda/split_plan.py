"""`DeviceSplitPlan`: a plan for a GPU whose backward operators run later, on gradients that come in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...backend.cupy_ import library
from ..ir.request import Request
from ..ir.step_plan import SplitPlan
from .plan import DevicePlan


class DeviceSplitPlan(SplitPlan):
    """The halves of a plan for `request`: the launches up to `cut` with the first `early` fetches, and the others."""

    def __init__(self, plan: DevicePlan, request: Request, cut: int, early: int) -> None:
        self.plan: DevicePlan = plan
        self._cut = cut
        self._first, self._second = [*request.fetches][:early], [*request.fetches][early:]
        self._late = [*request.late]
        self._values: dict[str, Any] = {}

    def run_first(self) -> list[Any]:
        with self.plan.device.active():
            self.plan._pace.begin()
            self._values = self.plan._list.start()
            try:
                self.plan._list.advance(self._values, 0, self._cut)
            finally:
                self.plan._pace.end()
            return self._copies(self._first)

    def run_second(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the backward operators with the late feeds `arrays`, which have the planned shapes and dtypes.

        Returns copies of the late fetches, on the device.
        """
        with self.plan.device.active():
            for name, array in zip(self._late, arrays, strict=True):
                self._values[name] = self.plan.device.put(array)
            self.plan._list.advance(self._values, self._cut, len(self.plan.instructions))
            return self._copies(self._second)

    def _copies(self, names: Sequence[str]) -> list[Any]:
        get = self.plan._list.getter(self._values)
        with library.errors("copying results"):
            return [self.plan.device.xp.array(get(name), order="C") for name in names]

    def snapshot(self) -> dict[str, Any]:
        return dict(self._values)

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._values = dict(snapshot)

    def rest(self) -> None:
        self._values = {}
