"""`CpuSplitPlan`: a plan for the CPU whose backward operators run separately, on gradients from the caller."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.request import Request
from ..ir.step_plan import SplitPlan
from .plan import Plan

RELEASE_FROM = 1 << 18
"""Bytes of temporaries from which a plan releases the GIL."""


class CpuSplitPlan(SplitPlan):
    """The halves of a plan for `request`; the first `early` fetches belong to the first half."""

    def __init__(self, plan: Plan, request: Request, early: int) -> None:
        self.plan: Plan = plan
        assembly, engine = plan.assembly, plan.engine
        self._first = [assembly.entry(name) for name in plan.fetched[:early]]
        engine.set_fetches([assembly.entry(name) for name in plan.fetched[early:]])
        self._late = [
            (name, *assembly.entry(name)) for name, like in request.late.items() if plan.meta.has(like)
        ]

    def run_first(self) -> list[np.ndarray]:
        plan = self.plan
        plan.release_gil(plan.engine.arena_bytes >= RELEASE_FROM)
        plan.run(0, plan.code.cut)
        return [plan.engine.fetch(slot, shape, dtype) for slot, dtype, shape in self._first]

    def run_second(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run the backward operators with the late feeds `arrays`, of the sizes that the first half had.

        Returns copies of the late fetches. Raises ValueError for an array of another shape or dtype.
        """
        plan, engine = self.plan, self.plan.engine
        for (name, slot, dtype, shape), array in zip(self._late, arrays, strict=True):
            wanted = tuple([n if n >= 0 else engine.sizes.get(-1 - n) for n in shape])
            if array.shape != wanted or array.dtype != dtype:
                raise ValueError(
                    f"variable {name!r} is {dtype} {list(wanted)} after this forward pass, got an array of "
                    f"{array.dtype} {list(array.shape)}"
                )
            engine.bind(slot, array)
        if plan.code.cut < len(plan.ops):
            plan.run(plan.code.cut)
        return engine.fetch_all()

    def snapshot(self) -> np.ndarray:
        return self.plan.engine.arena.copy()

    def restore(self, snapshot: np.ndarray) -> None:
        np.copyto(self.plan.engine.arena, snapshot)
