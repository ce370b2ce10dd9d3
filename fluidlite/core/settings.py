"""Settings in `fluid.core`: the number of threads; all others are accepted and have no effect."""

from __future__ import annotations

from collections.abc import Sequence

from .._ext import threads

__all__ = [
    "init_devices",
    "init_gflags",
    "init_glog",
    "set_num_threads",
]


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
