"""What `fluid.core` lets programs set that is settled otherwise here: accepted, without effect."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Kernels choose by the size of their work."""


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
