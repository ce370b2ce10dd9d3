"""`BackwardStrategy`: options of `backward`."""

from __future__ import annotations

__all__ = ["BackwardStrategy"]


class BackwardStrategy:
    """How `backward` sums gradients. `sort_sum_gradient` asks for a fixed order, which is always kept here.

    Follows `fluid.dygraph.BackwardStrategy`.
    """

    def __init__(self) -> None:
        self.sort_sum_gradient = False
