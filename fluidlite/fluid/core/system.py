"""Constants and properties of the build, settings, commands, libraries and profilers in `fluid.core`."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import time
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from ..._ext import threads
from ...base import callsite
from ...base.dtypes import VarType, to_numpy
from ...base.errors import EnforceNotMet
from ...base.reports import profiling
from ...base.reports.profile_report import EventSortingKey, table, write_trace
from ...base.reports.profiling import ProfilerState
from ...ops.registry import grad_name

__all__ = [
    "avx_supported",
    "core_suffix",
    "current_path",
    "empty_var_name",
    "get_dso_path",
    "get_glibc_ver",
    "grad_var_suffix",
    "has_avx_core",
    "has_noavx_core",
    "init_devices",
    "init_gflags",
    "init_glog",
    "is_compiled_with_brpc",
    "is_compiled_with_dist",
    "is_compiled_with_mkldnn",
    "kControlDepVarName",
    "kEmptyVarName",
    "kGradVarSuffix",
    "kNewGradSuffix",
    "kTempVarName",
    "kZeroVarSuffix",
    "less_than_ver",
    "load_dso",
    "load_noavx",
    "loaded_var_suffix",
    "pre_load",
    "run_cmd",
    "run_shell_command",
    "set_num_threads",
    "set_paddle_lib_path",
    "size_of_dtype",
    "start_imperative_gperf_profiler",
    "stop_imperative_gperf_profiler",
]


def run_cmd(cmd: str, time_out: int = -1, sleep_inter: int = -1) -> str:
    """The output of a shell command (`fluid.core.run_cmd`).

    A command that fails is retried every `sleep_inter` milliseconds until `time_out` milliseconds have passed; then
    its last output is returned, with a warning. With -1 it is run once.
    """
    end = time.monotonic() + time_out / 1000
    while True:
        done = subprocess.run(["/bin/sh", "-c", cmd], stdout=subprocess.PIPE, check=False)
        if done.returncode == 0 or time.monotonic() >= end:
            break
        time.sleep(max(sleep_inter, 0) / 1000)
    if done.returncode:
        callsite.warn(f"status[{done.returncode}], cmd[{cmd}]")
    return done.stdout.decode(errors="replace")


def run_shell_command(cmd: str) -> str | None:
    """The stripped output of a shell command; None if it writes to standard error."""
    done = subprocess.run(["/bin/sh", "-c", cmd], capture_output=True, check=False)
    return None if done.stderr else done.stdout.decode(errors="replace").strip()


def get_dso_path(core_so: str, dso_name: str) -> str | None:
    """The file of the library `dso_name` that the library `core_so` is linked with; None if there is none."""
    done = subprocess.run(["ldd", core_so], capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        name, _, path = line.strip().partition(" => ")
        if path and dso_name in name:
            return path.split(" ")[0]
    return None


def load_dso(dso_absolute_path: str | None) -> Any:
    """Load a library into the process; None, with a warning, where that fails."""
    if not dso_absolute_path:
        return None
    try:
        return ctypes.CDLL(dso_absolute_path, ctypes.RTLD_GLOBAL)
    except OSError:
        callsite.warn(f"Load {dso_absolute_path} failed")
        return None


def pre_load(dso_name: str) -> None:
    """No effect: the extensions here need no library to be loaded before them."""


def set_paddle_lib_path() -> None:
    """No effect: the extensions here find their libraries themselves."""


def start_imperative_gperf_profiler() -> None:
    """Only a warning, as in Paddle's releases, which are built without gperftools."""
    callsite.warn("there are no gperftools here; fluid.profiler shows where the time goes")


def stop_imperative_gperf_profiler() -> None:
    """Only a warning, see `start_imperative_gperf_profiler`."""
    start_imperative_gperf_profiler()


__all__ += [
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


def _set_eager_deletion_mode(threshold: float, fraction: float, use_executor_gc: bool = False) -> None:
    """No effect: plans share the memory of temporaries."""


def _set_fuse_parameter_group_size(size: int) -> None:
    """No effect: updates of the same kind are fused anyway."""


def _set_fuse_parameter_memory_size(size: float) -> None:
    """See `_set_fuse_parameter_group_size`."""


def set_num_threads(num_threads: int) -> None:
    """Set the number of threads that operators compute on, the calling one included (less than one: one).

    The default is OMP_NUM_THREADS, or the number of processors available to this process (by its affinity and control
    group). Results do not depend on it. Raises TypeError if `num_threads` is no integer.
    """
    threads.use(num_threads)


def init_gflags(arguments: Sequence[str]) -> bool:
    """No effect: `fluid.set_flags` sets the switches."""
    return True


def init_glog(name: str) -> None:
    """No effect: native code logs nothing."""


def init_devices(*arguments: object) -> None:
    """No effect: GPUs are initialised when a program uses one."""


def _dygraph_debug_level() -> int:
    return 0


def _is_dygraph_debug_enabled() -> bool:
    return False


core_suffix = "so"
has_avx_core = True
has_noavx_core = True
load_noavx = False
current_path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
legacy_core = os.path.join(current_path, f"core.{core_suffix}")
"""A file of Paddle before 1.6, which must not exist."""


def grad_var_suffix() -> str:
    return grad_name("")


def empty_var_name() -> str:
    return "@EMPTY@"


def loaded_var_suffix() -> str:
    return "@LOADED"


kGradVarSuffix = grad_var_suffix
kEmptyVarName = empty_var_name


def kTempVarName() -> str:
    return "@TEMP@"


def kZeroVarSuffix() -> str:
    return "@ZERO"


def kNewGradSuffix() -> str:
    return "@NEWGRAD@"


def kControlDepVarName() -> str:
    return "__control_var"


def size_of_dtype(dtype: VarType) -> int:
    """The bytes that an element takes; EnforceNotMet for kinds of variables that hold none (`fluid.core`)."""
    if not isinstance(dtype, VarType):
        raise TypeError(f"size_of_dtype takes a VarType, got {dtype!r}")
    try:
        return int(to_numpy(dtype).itemsize)
    except TypeError as error:
        raise EnforceNotMet(
            f"Not support proto::VarType::Type({int(dtype)}) as tensor type: {error}"
        ) from None


def is_compiled_with_brpc() -> bool:
    return False


def is_compiled_with_dist() -> bool:
    return False


def is_compiled_with_mkldnn() -> bool:
    """Whether convolutions can go through oneDNN, by its older name."""
    return True


def avx_supported() -> bool:
    """Whether Fluid's module with AVX could be loaded; here each kernel detects the processor's features."""
    return True


def get_glibc_ver() -> str:
    """The version of the C library."""
    return platform.libc_ver()[1]


def less_than_ver(a: str, b: str) -> bool:
    """Whether version `a`, such as '2.23', is lower than `b`."""
    return [int(part) for part in a.split(".")] < [int(part) for part in b.split(".")]


def _is_program_version_supported(version: int) -> bool:
    """Whether a saved program of this version can be read: any can."""
    return True
