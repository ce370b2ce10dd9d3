"""The exceptions for programs that cannot be planned, and for guards of a running plan that fail."""

from __future__ import annotations

from collections.abc import Mapping

from ...framework import Operator


class Unsupported(Exception):
    """A program cannot be planned; the message says why.

    `op`: the operator to blame, if it is a single one; `retryable`: whether a later step of the program may be planned.
    """

    def __init__(self, reason: str, op: Operator | None = None, retryable: bool = False) -> None:
        super().__init__(reason)
        self.op = op
        self.retryable = retryable


class DataDependentShape(Unsupported):
    """A size depends on data, in a request that does not allow data-dependent sizes."""


class GuardFailure(Exception):
    """A guard of a running plan has failed: a data-dependent size, or an element of an array, is not as planned.

    `sizes`: the data-dependent sizes computed so far, by label, if one of them has failed a guard.
    """

    def __init__(self, reason: str, sizes: Mapping[str, int] | None = None) -> None:
        super().__init__(reason)
        self.sizes = sizes
