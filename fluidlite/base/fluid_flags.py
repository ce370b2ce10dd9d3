"""Fluid's own switches: `fluid.get_flags`, `fluid.set_flags` and `fluid.core.globals()`.

They are kept in the environment, where the parts of this package that heed one look it up. Most have no effect here:
they tune what works otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from . import flags
from .errors import EnforceNotMet

_PREFIX = "FLAGS_"
_DEFAULTS: dict[str, bool | int | float | str] = {
    "allocator_strategy": "auto_growth",
    "benchmark": False,
    "check_nan_inf": False,
    "cpu_deterministic": False,
    "eager_delete_tensor_gb": 0.0,
    "enable_parallel_graph": False,
    "enable_rpc_profiler": False,
    "fraction_of_cpu_memory_to_use": 1.0,
    "free_idle_chunk": False,
    "free_when_no_cache_hit": False,
    "fuse_parameter_groups_size": 1,
    "fuse_parameter_memory_size": -1.0,
    "init_allocated_mem": False,
    "initial_cpu_memory_in_mb": 500,
    "inner_op_parallelism": 0,
    "memory_fraction_of_eager_deletion": 1.0,
    "multiple_of_cupti_buffer_size": 1,
    "paddle_num_threads": 1,
    "pe_profile_fname": "",
    "print_sub_graph_dir": "",
    "reader_queue_speed_test_mode": False,
    "tracer_profile_fname": "xxgperf",
    "use_mkldnn": False,
    "use_pinned_memory": True,
    "use_system_allocator": False,
    # Switches of Fluid built for GPUs.
    "conv_workspace_size_limit": 512,
    "cudnn_batchnorm_spatial_persistent": False,
    "cudnn_deterministic": False,
    "cudnn_exhaustive_search": False,
    "enable_cublas_tensor_op_math": False,
    "fraction_of_cuda_pinned_memory_to_use": 0.5,
    "fraction_of_gpu_memory_to_use": 0.92,
    "gpu_allocator_retry_time": 2000,
    "gpu_memory_limit_mb": 0,
    "initial_gpu_memory_in_mb": 0,
    "reallocate_gpu_memory_in_mb": 0,
    "selected_gpus": "",
    "sync_nccl_allreduce": True,
}
_PRIVATE = frozenset({"free_idle_chunk", "free_when_no_cache_hit", "use_mkldnn"})


class Globals:
    """All switches by name, including those that are accessible only here (`fluid.core.globals()`)."""

    def __contains__(self, name: str) -> bool:
        return name.startswith(_PREFIX) and name.removeprefix(_PREFIX) in _DEFAULTS

    def __getitem__(self, name: str) -> Any:
        """The value of a switch; raises EnforceNotMet for one that does not exist."""
        default = self._default(name)
        text = os.environ.get(name)
        if text is None:
            return default
        if isinstance(default, bool):
            return flags.is_true(text)
        try:
            return type(default)(text)
        except ValueError:
            kind = type(default).__name__
            raise ValueError(f"{name} in the environment must be of type {kind}, got {text!r}") from None

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a switch. RuntimeError, as in Fluid, for a value of another type; EnforceNotMet for an unknown one."""
        kind = type(self._default(name))
        takes = {bool: (bool, int), int: (int,), float: (float, int), str: (str,)}[kind]
        if not isinstance(value, takes):
            raise RuntimeError(f"{name} takes a value of type {kind.__name__}, got {value!r}")
        os.environ[name] = str(kind(value))
        if name == "FLAGS_check_nan_inf":
            flags.set_checks_finite(bool(value))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def keys(self) -> set[str]:
        return {_PREFIX + name for name in _DEFAULTS}

    def is_public(self, name: str) -> bool:
        """Whether `fluid.get_flags` and `fluid.set_flags` take the switch."""
        if not isinstance(name, str):
            raise TypeError(f"a flag is known by its name, a string, got {name!r}")
        return name in self and name.removeprefix(_PREFIX) not in _PRIVATE

    def _default(self, name: str) -> bool | int | float | str:
        if name not in self:
            raise EnforceNotMet(f"Cannot find global variable {name}")
        return _DEFAULTS[name.removeprefix(_PREFIX)]


_globals = Globals()


def all_flags() -> Globals:
    """`fluid.core.globals()`."""
    return _globals


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """The values of switches: one name, or a list or tuple of names (`fluid.get_flags`).

    Raises ValueError for a name that Fluid does not let one get, TypeError for anything but names.
    """
    if isinstance(flags, str):
        flags = [flags]
    elif not isinstance(flags, (list, tuple)):
        raise TypeError("Flags in get_flags should be a list, tuple or string.")
    for name in flags:
        if not _globals.is_public(name):
            raise ValueError(f"Flag {name} cannot get its value through this function.")
    return {name: _globals[name] for name in flags}


def set_flags(flags: dict[str, Any]) -> None:
    """Set switches, by name (`fluid.set_flags`).

    Raises ValueError for a name that Fluid does not let one set, RuntimeError for a value of another type, TypeError
    for anything but a dict of names. Nothing is set if a name is wrong.
    """
    if not isinstance(flags, dict):
        raise TypeError("flags in set_flags should be a dict")
    for name in flags:
        if not _globals.is_public(name):
            raise ValueError(f"Flag {name} cannot set its value through this function.")
    for name, value in flags.items():
        _globals[name] = value
