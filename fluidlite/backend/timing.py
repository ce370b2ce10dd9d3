"""Recording how long an operator has taken, on the host and on a GPU."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..base.reports.profiling import Recorder
    from .cupy_.device import CudaDevice


def record(recorder: Recorder, name: str, begin: int, end: int, device: CudaDevice | None) -> None:
    """Record that an operator ran in this thread from `begin` to `end`; waits for it if it is on a GPU."""
    there = None
    if device is not None and recorder.on_device:
        device.synchronize()
        there = begin, time.perf_counter_ns() - begin
    recorder.add(name, begin, end, device=there)
