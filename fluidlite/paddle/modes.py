"""Switching between computing at once and building programs (`paddle.enable_static` and its like)."""

from __future__ import annotations

from typing import Any

from ..base.place import Place
from ..framework import mode

__all__ = [
    "disable_dygraph",
    "disable_static",
    "enable_dygraph",
    "enable_static",
    "in_dygraph_mode",
    "in_dynamic_mode",
]


def enable_static() -> None:
    """From here on names of Paddle 2.0 build programs, until `disable_static` (`paddle.enable_static`)."""
    mode.switch(False)


def disable_static(place: Place | str | None = None) -> None:
    """From here on names of Paddle 2.0 compute at once, as they do at first (`paddle.disable_static`).

    `place` is accepted: there is one device. What names of `paddle.fluid` do does not change, except after
    `enable_static`, and that layers made outside of `program_guard` compute at once too.
    """
    mode.be_modern()
    if not mode.eager_by_default():
        mode.switch(None)


def in_dynamic_mode() -> bool:
    """Whether names of Paddle 2.0 compute at once (`paddle.in_dynamic_mode`)."""
    return mode.eager_by_default()


in_dygraph_mode = in_dynamic_mode


def enable_dygraph(place: Any = None) -> None:
    """The same as `disable_static` (`paddle.enable_dygraph`)."""
    disable_static(place)


def disable_dygraph() -> None:
    """The same as `enable_static` (`paddle.disable_dygraph`)."""
    enable_static()
