"""Workers and parameter servers (`fluid.incubate.fleet.parameter_server`)."""

from typing import TYPE_CHECKING

from .....base import missing

if TYPE_CHECKING:
    from . import distribute_transpiler  # noqa: F401

__all__ = ["distribute_transpiler", "version"]

__getattr__, __dir__ = missing.lazy(__name__)
