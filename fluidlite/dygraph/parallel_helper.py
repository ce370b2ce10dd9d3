"""Names of `fluid.dygraph.parallel_helper`, for a single process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import missing

__all__: list[str] = []


def _is_data_parallel_mode() -> bool:
    """Always False."""
    return False


def _set_parallel_ctx(nccl_parallel_context: Any) -> None:
    """Accepted and without effect."""


def _init_parallel_ctx() -> None:
    """Without effect."""


def _broadcast_parameters(parameters: Iterable[Any]) -> None:
    """Without effect."""


__getattr__ = missing.reporter(__name__)
