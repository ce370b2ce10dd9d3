"""`DeviceTwoPhasePlan`: a plan for a GPU with separate forward and backward phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...backend.cupy_ import library
from ...framework import Program
from ..plan.step_plan import TwoPhases
from ..tensors.scope import Scope
from .plan import DevicePlan

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


class DeviceTwoPhasePlan(TwoPhases, DevicePlan):
    """`TwoPhasePlan` for arrays of `device`.

    Raises CannotPlan when the program needs the interpreter.
    """

    def __init__(
        self,
        program: Program,
        scope: Scope,
        feed: Mapping[str, Any],
        fetches: Sequence[str],
        late_fetches: Sequence[str],
        late: Mapping[str, str],
        held: Sequence[str],
        device: CudaDevice,
    ) -> None:
        super().__init__(program, scope, feed, [*fetches, *late_fetches], device, capture=False, later=late)
        self._first, self._second = list(fetches), list(late_fetches)
        self._late = list(late)
        self.follow(held)
        self._values: dict[str, Any] = {}

    def run_first(self) -> list[Any]:
        with self.device.active():
            self._pace.begin()
            self._values = self._list.start()
            try:
                self._list.advance(self._values, 0, self._cut)
            finally:
                self._pace.end()
            return self._copies(self._first)

    def run_second(self, arrays: Sequence[Any]) -> list[Any]:
        """Run the backward operators with the late feeds `arrays`, which have the planned shapes and dtypes.

        Returns copies of the late fetches, on the device.
        """
        with self.device.active():
            for name, array in zip(self._late, arrays, strict=True):
                self._values[name] = self.device.put(array)
            self._list.advance(self._values, self._cut, len(self.instructions))
            return self._copies(self._second)

    def _copies(self, names: Sequence[str]) -> list[Any]:
        get = self._list.getter(self._values)
        with library.errors("copying results"):
            return [self.device.xp.array(get(name), order="C") for name in names]

    def snapshot(self) -> dict[str, Any]:
        return dict(self._values)

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._values = dict(snapshot)

    def rest(self) -> None:
        self._values = {}
