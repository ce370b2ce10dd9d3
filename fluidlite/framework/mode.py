"""Whether calls without tensor arguments build programs or compute at once.

Everything that has tensors among its arguments follows those instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..base import context

_eager: context.Slot[bool | None] = context.Slot("eager", None)


def in_dygraph_mode() -> bool:
    """Whether dygraph mode is on for the names of Fluid 1.8, which are static unless told otherwise.

    Follows `fluid.in_dygraph_mode`.
    """
    return _eager.get() is True


def eager_by_default() -> bool:
    """Whether the names of Paddle 2.0 compute at once: they do unless static mode was switched on."""
    return _eager.get() is not False


def guard(eager: bool | None) -> AbstractContextManager[bool | None]:
    """Have dygraph mode on (True), off (False) or undecided (None) inside the block."""
    return _eager.hold(eager)


def switch(eager: bool | None) -> None:
    """Change the mode of the enclosing guard, or of the process outside of any."""
    _eager.set(eager)
