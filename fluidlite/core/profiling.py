"""The profiler of `fluid.core`; scripts use `fluid.profiler`."""

import os
from enum import IntEnum

from ..base import callsite
from ..base.errors import EnforceNotMet
from ..base.reports import profiling
from ..base.reports.profile_report import EventSortingKey, table, write_trace
from ..base.reports.profiling import ProfilerState

__all__ = [
    "EventSortingKey",
    "ProfilerState",
    "TracerOption",
    "disable_profiler",
    "enable_profiler",
    "is_profiler_enabled",
    *("kDisabled", "kCPU", "kCUDA", "kAll"),
    *("kDefault", "kCalls", "kTotal", "kMin", "kMax", "kAve"),
    *("kOpDetail", "kAllOpDetail"),
    "reset_profiler",
    "set_tracer_option",
]


class TracerOption(IntEnum):
    """Fluid's levels of detail for operators; they have no effect here."""

    kDefault = 0
    kOpDetail = 1
    kAllOpDetail = 2


kDisabled, kCPU, kCUDA, kAll = ProfilerState
kDefault, kCalls, kTotal, kMin, kMax, kAve = EventSortingKey
kOpDetail, kAllOpDetail = TracerOption.kOpDetail, TracerOption.kAllOpDetail


def set_tracer_option(option: TracerOption) -> None:
    """No effect; TypeError for a value that is no option."""
    if not isinstance(option, TracerOption):
        raise TypeError(f"set_tracer_option takes a core.TracerOption, got {option!r}")


def enable_profiler(state: ProfilerState) -> None:
    """Begin to profile; EnforceNotMet for `kDisabled`, TypeError for a value that is no state. See `fluid.profiler`."""
    if not isinstance(state, ProfilerState):
        raise TypeError(f"enable_profiler takes a core.ProfilerState, got {state!r}")
    if state is ProfilerState.kDisabled:
        raise EnforceNotMet("Can't enable profiling, since the input state is kDisabled")
    profiling.switch(profiling.Recorder(state))


def disable_profiler(key: EventSortingKey, path: str | os.PathLike[str]) -> None:
    """End profiling, print the table sorted by `key` and write the trace to `path`, with a warning if that fails."""
    if not isinstance(key, EventSortingKey):
        raise TypeError(f"disable_profiler takes a core.EventSortingKey, got {key!r}")
    path = os.fspath(path)
    recorder = profiling.detailed() or profiling.switch(None)
    if recorder is None:
        return
    print(table(recorder, key), flush=True)
    try:
        write_trace(recorder, path)
    except OSError as error:
        callsite.warn(f"the trace could not be written to {path!r}: {error}", RuntimeWarning)


def is_profiler_enabled() -> bool:
    """Whether a profiler is on."""
    return profiling.active is not None


def reset_profiler() -> None:
    """Discard the profiler's records."""
    if profiling.active is not None and not profiling.active.detailed:
        profiling.active.reset()
