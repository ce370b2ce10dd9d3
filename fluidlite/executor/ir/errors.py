"""What is raised when a plan cannot be made, or does not hold for what a step finds."""

from __future__ import annotations

from collections.abc import Mapping

from ...framework import Operator


class Unsupported(Exception):
    """An operator, or this way to run it, cannot be part of a plan; the message says why.

    `op`: the operator, where it is one that makes the difference; `passing`: whether a second run may do better.
    """

    def __init__(self, reason: str, op: Operator | None = None, passing: bool = False) -> None:
        super().__init__(reason)
        self.op = op
        self.passing = passing


class DataDependentShape(Unsupported):
    """Sizes that only the data know, in a plan that does not find any."""


class GuardFailure(Exception):
    """A guard of a running plan has failed: a size that the step found, or an element of an array, is not as planned.

    `sizes`: the sizes found so far, by label, if one of them is the reason.
    """

    def __init__(self, reason: str, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(reason)
        self.sizes = sizes
