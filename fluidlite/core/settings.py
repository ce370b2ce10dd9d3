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
    """Memory of temporaries is shared by a plan, not freed by thresholds."""


def _set_fuse_parameter_group_size(size: int) -> None:
    """Updates are fused by what they have in common."""


def _set_fuse_parameter_memory_size(size: float) -> None:
    """See `_set_fuse_parameter_group_size`."""


def set_num_threads(num_threads: int) -> None:
    """Have operators compute on `num_threads` threads (less than one: one) from now on, the calling one among them.

    Before that it is what OMP_NUM_THREADS says, or as many as there are processors for this process to use (its
    affinity, and what its control group leaves it). Results do not depend on it. Raises TypeError if
    `num_threads` is no integer.
    """
    threads.use(num_threads)


def init_gflags(arguments: Sequence[str]) -> bool:
    """Switches are those of `fluid.set_flags`."""
    return True


def init_glog(name: str) -> None:
    """Nothing is logged by native code."""


def init_devices(*arguments: object) -> None:
    """GPUs are looked for when a program asks for one."""


def _dygraph_debug_level() -> int:
    return 0


def _is_dygraph_debug_enabled() -> bool:
    return False
