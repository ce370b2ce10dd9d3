"""Commands, libraries and profilers outside of Python, as `fluid.core` has them."""

from __future__ import annotations

import ctypes
import subprocess
import time
from typing import Any

from ..base import callsite

__all__ = [
    "get_dso_path",
    "load_dso",
    "pre_load",
    "run_cmd",
    "run_shell_command",
    "set_paddle_lib_path",
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
