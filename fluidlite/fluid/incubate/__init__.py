"""`fluid.incubate`: training with several processes, and generators of slot files."""

from typing import TYPE_CHECKING

from ...base import missing
from . import data_generator

if TYPE_CHECKING:
    from . import fleet  # noqa: F401

__all__ = ["data_generator", "fleet"]

__getattr__, __dir__ = missing.lazy(__name__)
