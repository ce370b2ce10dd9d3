"""Looking at saved programs (`fluid.incubate.fleet.utils`)."""

from typing import TYPE_CHECKING

from .....base import missing

if TYPE_CHECKING:
    from . import utils  # noqa: F401

__all__ = ["utils"]

__getattr__, __dir__ = missing.lazy(__name__)
