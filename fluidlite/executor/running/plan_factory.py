"""Where plans are made: for the host or for a GPU, whatever the place of the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...framework import Program
from ..host.plan import Plan
from ..host.two_phase import TwoPhasePlan
from ..plan.step_plan import StepPlan, TwoPhases
from ..tensors.scope import Scope

if TYPE_CHECKING:
    from ...backend.cupy_.device import CudaDevice


def planned(
    program: Program,
    scope: Scope,
    feed: Mapping[str, Any],
    fetches: Sequence[str],
    device: CudaDevice | None,
    fixed: bool = False,
) -> StepPlan:
    """A plan of the whole program for feeds like `feed`; `device`: the GPU, None for the host.

    `fixed`: whether feeds are of just these shapes, and are used where they are, so that no CUDA graph can be made.
    Raises CannotPlan when the program cannot be one plan, EnforceNotMet when something it reads has no value.
    """
    if device is None:
        return Plan(program, scope, feed, fetches, varying=not fixed)
    from ..device.plan import DevicePlan

    return DevicePlan(program, scope, feed, fetches, device, capture=not fixed)


def planned_in_two(
    program: Program,
    scope: Scope,
    feed: Mapping[str, Any],
    fetches: Sequence[str],
    late_fetches: Sequence[str],
    late: Mapping[str, str],
    held: Sequence[str],
    device: CudaDevice | None,
) -> TwoPhases:
    """A plan whose backward operators run later; the arguments are those of `TwoPhasePlan`, and `device`."""
    if device is None:
        return TwoPhasePlan(program, scope, feed, fetches, late_fetches, late, held)
    from ..device.two_phase import DeviceTwoPhasePlan

    return DeviceTwoPhasePlan(program, scope, feed, fetches, late_fetches, late, held, device)
