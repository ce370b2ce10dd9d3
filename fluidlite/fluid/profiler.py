"""Profiles of programs (`fluid.profiler`): a table of operators, and a trace."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..backend import device_at
from ..base.errors import NotSupportedError
from ..base.place import CUDAPlace
from ..base.reports import profile_report, profiling
from . import core

__all__ = ["cuda_profiler", "profiler", "reset_profiler", "start_profiler", "stop_profiler"]

NVPROF_CONFIG = [
    "gpustarttimestamp", "gpuendtimestamp", "gridsize3d", "threadblocksize", "streamid", "enableonstart 0",
    "conckerneltrace",
]  # fmt: skip
"""The options that Fluid's `cuda_profiler` passes to NVIDIA's old profiler."""

_STATES = {
    "CPU": profiling.ProfilerState.kCPU,
    "GPU": profiling.ProfilerState.kCUDA,
    "All": profiling.ProfilerState.kAll,
}
_KEYS = {
    None: profile_report.EventSortingKey.kDefault,
    "default": profile_report.EventSortingKey.kDefault,
    "calls": profile_report.EventSortingKey.kCalls,
    "total": profile_report.EventSortingKey.kTotal,
    "max": profile_report.EventSortingKey.kMax,
    "min": profile_report.EventSortingKey.kMin,
    "ave": profile_report.EventSortingKey.kAve,
}


def start_profiler(state: str, tracer_option: str = "Default") -> None:
    """Begin to record how long operators take, in all threads, in programs and eagerly.

    Args:
        state: 'CPU', 'GPU' (times of the GPU alone) or 'All'.
        tracer_option: 'Default', 'OpDetail' or 'AllOpDetail'; all the same here.

    Does nothing if a profiler is on already. Raises ValueError for another `state` or `tracer_option`. Follows
    `fluid.profiler.start_profiler`.
    """
    if core.is_profiler_enabled():
        return
    if state not in _STATES:
        raise ValueError(f"The state must be 'CPU' or 'GPU' or 'All', got {state!r}")
    if tracer_option not in ("Default", "OpDetail", "AllOpDetail"):
        raise ValueError(f"tracer option must be 'Default', 'OpDetail', 'AllOpDetail', got {tracer_option!r}")
    core.enable_profiler(_STATES[state])


def stop_profiler(
    sorted_key: str | None = None, profile_path: str | os.PathLike[str] = "/tmp/profile"
) -> None:
    """Stop, print the table of operators, and write a trace.

    Args:
        sorted_key: 'calls', 'total', 'max', 'min' or 'ave', largest first; None for the order in which operators ran.
        profile_path: the file that gets the trace: JSON that chrome://tracing and https://ui.perfetto.dev show. A
            warning is given if it cannot be written.

    Does nothing if no profiler is on. Raises ValueError for another key, TypeError for what is no path. Follows
    `fluid.profiler.stop_profiler`.
    """
    if core.is_profiler_enabled():
        core.disable_profiler(_key(sorted_key), profile_path)


def reset_profiler() -> None:
    """Clear the records, and go on (`fluid.profiler.reset_profiler`)."""
    core.reset_profiler()


@contextmanager
def profiler(
    state: str,
    sorted_key: str | None = None,
    profile_path: str | os.PathLike[str] = "/tmp/profile",
    tracer_option: str = "Default",
) -> Iterator[None]:
    """A context that calls `start_profiler` and `stop_profiler`, also after an exception.

    The innermost of several reports, and ends those around it. Follows `fluid.profiler.profiler`.
    """
    _key(sorted_key)
    start_profiler(state, tracer_option)
    try:
        yield
    finally:
        stop_profiler(sorted_key, profile_path)


@contextmanager
def cuda_profiler(
    output_file: str, output_mode: str | None = None, config: Sequence[str] | None = None
) -> Iterator[None]:
    """Have NVIDIA's profiler, under which the process runs, look at what is inside (`fluid.profiler.cuda_profiler`).

    The arguments are those of a profiler that CUDA no longer has, and change nothing. Raises ValueError for an
    `output_mode` other than 'kvp' and 'csv', NotSupportedError without a GPU.
    """
    if output_mode not in (None, "kvp", "csv"):
        raise ValueError(f"The output mode must be 'kvp' or 'csv', got {output_mode!r}")
    if not core.is_compiled_with_cuda():
        raise NotSupportedError("cuda_profiler needs a GPU; fluid.profiler.profiler('CPU') profiles the host")
    device = device_at(CUDAPlace(0))
    assert device is not None
    device.xp.cuda.runtime.profilerStart()
    try:
        yield
    finally:
        device.xp.cuda.runtime.profilerStop()


def _key(sorted_key: str | None) -> profile_report.EventSortingKey:
    if sorted_key not in _KEYS:
        raise ValueError(
            f"The sorted_key must be None or in 'calls', 'total', 'max', 'min' and 'ave', got {sorted_key!r}"
        )
    return _KEYS[sorted_key]
