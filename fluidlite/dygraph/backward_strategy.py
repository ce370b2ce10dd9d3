"""`BackwardStrategy` (`fluid.dygraph.backward_strategy`)."""

from __future__ import annotations

from ..base import missing

__all__ = ["BackwardStrategy"]


class BackwardStrategy:
    """How `backward` adds gradients up. `sort_sum_gradient` asks for a fixed order; here it always is one."""

    def __init__(self) -> None:
        self.sort_sum_gradient = False


__getattr__ = missing.reporter(__name__)
