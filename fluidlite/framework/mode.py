"""Whether calls without tensor arguments build programs or compute at once.

Everything that has tensors among its arguments follows those instead.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from ..base import context
from ..base.place import CPUPlace, Place

_eager: context.Slot[bool | None] = context.Slot("eager", None)
_training: context.Slot[bool] = context.Slot("training", True)


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


def is_training() -> bool:
    """What the last `train()` or `eval()` of any layer said, under Fluid's dygraph mode; True at its start.

    Layers have a flag of their own; this is for functions, which belong to no layer.
    """
    return _training.get()


def training_guard(training: bool) -> AbstractContextManager[bool]:
    """Have training mode on or off inside the block, and as it was afterwards."""
    return _training.hold(training)


def set_training(training: bool) -> None:
    """Change training mode until the end of the enclosing guard."""
    _training.set(training)


def _current_expected_place() -> Place:
    """Where tensors are computed (`fluid.framework._current_expected_place`)."""
    return CPUPlace()
