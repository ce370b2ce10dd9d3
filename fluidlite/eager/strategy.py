"""`BackwardStrategy`: what a script may ask of `backward`."""

from __future__ import annotations

__all__ = ["BackwardStrategy"]


class BackwardStrategy:
    """How `backward` adds gradients up. `sort_sum_gradient` asks for a fixed order; here it always is one.

    Follows `fluid.dygraph.BackwardStrategy`.
    """

    def __init__(self) -> None:
        self.sort_sum_gradient = False
