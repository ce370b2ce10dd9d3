"""Which processes train together: this one, alone (`fluid.dygraph.parallel_helper`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..base import missing

__all__: list[str] = []


def _is_data_parallel_mode() -> bool:
    """Whether several processes train together: never."""
    return False


def _set_parallel_ctx(nccl_parallel_context: Any) -> None:
    """Accepted and without effect: there is nobody to talk to."""


def _init_parallel_ctx() -> None:
    """Without effect: there is nobody to talk to."""


def _broadcast_parameters(parameters: Iterable[Any]) -> None:
    """Without effect: there is nobody to send parameters to."""


__getattr__ = missing.reporter(__name__)
